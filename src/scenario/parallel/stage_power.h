#pragma once

// Power over a training step: the mean of each phase of a stage's ranks.

#include <optional>
#include <string_view>

#include "scenario/parallel/model_part.h"

namespace tilecast {

struct StageWatts {
  double forward_w = 0, backward_w = 0, optimizer_w = 0, idle_w = 0;

  /// By the first word of an operation's name; nullopt: none of the phases.
  std::optional<double> of(std::string_view operation) const;
};

/// By stage; empty where power is not forecast. `parts`: by their number in the model.
std::vector<StageWatts> stage_watts(const std::vector<const ModelPart*>& parts,
                                    const PipelineShape& pipeline, const PowerTerms& terms);

}  // namespace tilecast
