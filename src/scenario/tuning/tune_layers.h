#pragma once

#include <string>
#include <vector>

#include "devices/device.h"
#include "importers/model.h"
#include "tilecast/request.h"
#include "tuning/conv_problem.h"

namespace tilecast {

struct NamedProblem {
  std::string name;  ///< of the first node that has it
  tuning::ConvProblem problem;
};

/// The 2-D convolutions of a model's forward pass, and their gradients for Mode::kTraining, each
/// distinct one once in the order of the graph. Transposed ones, other dimensions and padding that
/// differs between the two sides of an axis are named in `warnings` and left out.
std::vector<NamedProblem> convolutions_of(const Model& model, const Device& device,
                                          const Request& request,
                                          std::vector<std::string>& warnings);

}  // namespace tilecast
