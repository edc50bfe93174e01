#pragma once

// Pointwise operators: every output element depends on the same element of each input, which may be
// broadcast.

#include "ops/op_def.h"

namespace tilecast {

/// Shape and layout of the result. As in PyTorch's TensorIterator, the layout is that of the first
/// input of full size.
TensorSpec pointwise_spec(const OpContext& context, DType dtype);

/// The widest dtype of the inputs.
std::vector<TensorSpec> infer_pointwise(const OpContext& context);
/// A mask.
std::vector<TensorSpec> infer_compare(const OpContext& context);

void work_pointwise(const OpContext& context, std::vector<Kernel>& kernels);

/// The inputs have the gradient of the output.
void pass_on(GradientBuilder& g, const Node& node);
/// One fused kernel that reads the gradient and the saved output.
void backward_from_output(GradientBuilder& g, const Node& node);
/// One fused kernel that reads the gradient and the input.
void backward_from_input(GradientBuilder& g, const Node& node);

/// A table entry with so many inputs, and so many FLOPs per element; null: no gradient.
OpDef pointwise(std::string_view name, std::string_view doc, std::string_view aten,
                std::string_view onnx, int inputs, int64_t flops,
                void (*backward)(GradientBuilder&, const Node&));

}  // namespace tilecast
