#pragma once

// Knowledge distillation: the loss over the logits of the model that is trained and of its teacher.

#include "graph/graph.h"

namespace tilecast {

/// Appends the divergence of Kullback and Leibler of the first output from the last one, the
/// teacher's logits, which are an output no longer: torch.nn.functional.kl_div of log_softmax and
/// softmax of logits that a temperature divides (Hinton et al. 2015). It takes the place of the
/// cross entropy. Throws Error{kInput} if the logits have different sizes.
struct DistillationForm {
  bool wide = false;  ///< logits are cast to fp32 first
  Counts counts = Counts::kAll;
};
void add_distillation_loss(Graph& graph, const DistillationForm& form);

}  // namespace tilecast
