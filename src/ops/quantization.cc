// Kernels that convert stored weights.

#include <fmt/format.h>

#include "ops/op_def.h"

namespace tilecast {
namespace {

std::vector<TensorSpec> infer_dequantize_weight(const OpContext& context) {
  const QuantScheme scheme = context.attribute<QuantScheme>("scheme");
  const Tensor& weight = context.input(0);
  if (scheme == QuantScheme::kNone || scheme_info(scheme).weight_dtype != weight.dtype)
    context.fail(fmt::format("expected a weight as the scheme {} stores it, found {}",
                             scheme_info(scheme).name, dtype_name(weight.dtype)));
  return {{.shape = weight.shape, .dtype = context.attribute<DType>("dtype")}};
}

/// One product with the scale for each weight.
void work_dequantize_weight(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& weights = context.output(0);
  const int64_t count = element_count(weights.shape);
  Kernel kernel{.shape = Stream{.elements = count}, .dtype = weights.dtype};
  kernel.flops = count;
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

Operands dequantize_operands(GraphBuilder& b, const GivenSizes& s) {
  const QuantScheme scheme = QuantScheme::kInt4WeightOnly;
  const TensorId weight = b.input("w", {s["rows"], s["columns"]}, scheme_info(scheme).weight_dtype);
  return {{weight, b.input("s", {1}, DType::kFp32)}, {{"scheme", scheme}, {"dtype", s.dtype()}}};
}

}  // namespace

std::vector<OpDef> quantization_ops() {
  return {{.name = "dequantize_weight",
           .doc = "a stored weight and its scales, written in the dtype of the activations",
           .aten = "bitsandbytes::dequantize_4bit",
           .onnx = "",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{.name = "scheme",
                           .doc = "quantization scheme of the weight",
                           .type = AttributeType::kScheme,
                           .required = true},
                          {.name = "dtype",
                           .doc = "of the output",
                           .type = AttributeType::kDType,
                           .required = true}},
           .infer = infer_dequantize_weight,
           .work = work_dequantize_weight,
           .recomputed_in_backward = true,
           .operands = dequantize_operands,
           .example = "w: int4[512, 256] s: fp32[1] {scheme=int4_wo, dtype=bf16}"}};
}

}  // namespace tilecast
