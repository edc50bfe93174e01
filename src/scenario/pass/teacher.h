#pragma once

// The teacher of a model that is trained to match its logits (knowledge distillation).

#include "graph/graph.h"
#include "importers/model.h"
#include "scenario/precision.h"
#include "tilecast/request.h"

namespace tilecast {

/// Throws Error if a request with a teacher asks for what is not modelled with one.
void check_teacher(const Request& request, const Precision& precision);

/// The teacher's forward pass on the same batch, without dropout and gradients, before `student`,
/// whose modules are decomposed. The teacher's logits are the last output. `request` has its `seq`.
Graph with_teacher(const Graph& student, const Request& request, const Precision& precision);

/// Parameters of the teacher, which are not trained.
int64_t teacher_parameters(const Request& request, const Precision& precision);

}  // namespace tilecast
