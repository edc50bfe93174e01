#pragma once

// What the operators between ranks share.

#include <string_view>

#include "ops/attributes.h"
#include "ops/gradient.h"

namespace tilecast {

/// How many ranks take part.
AttributeDef ranks_attribute();

/// The gradient of the first output goes through one node of that operator.
void backward_through(GradientBuilder& g, const Node& node, std::string_view op);

}  // namespace tilecast
