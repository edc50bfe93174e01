#pragma once

#include "importers/onnx/call.h"

namespace tilecast {

/// The letters of each operand of Einsum and of its result; "..." is replaced by letters.
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string output;
};

/// Throws Error{kInput} if the equation does not fit the operands.
EinsumTerms parse_einsum(const OnnxCall& call);

/// torch.matmul of two tensors.
TensorId product(OnnxCall& call, TensorId a, TensorId b);

}  // namespace tilecast
