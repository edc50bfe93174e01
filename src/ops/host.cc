// Work of the host in a training step: an optimizer whose states are in its memory. The host's
// rates are no property of a device, so the scenario gives these kernels their times.

#include "base/checked.h"
#include "ops/adam.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

void work_host(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  Kernel kernel{.shape = Stream{.elements = element_count(out.shape)}, .dtype = out.dtype};
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void work_host_adam(const OpContext& context, std::vector<Kernel>& kernels) {
  work_host(context, kernels);
  kernels.back().flops = checked_multiply(kAdamFlops, element_count(context.output(0).shape));
}

/// Parameters and both states in place, and the parameters in the model's dtype.
std::vector<TensorSpec> infer_host_adam(const OpContext& context) {
  std::vector<TensorSpec> specs;
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}})
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  specs.push_back({.shape = context.input(0).shape, .dtype = context.attribute<DType>("dtype")});
  return specs;
}

}  // namespace

std::vector<OpDef> host_ops() {
  return {
      {.name = "host_copy",
       .doc = "a copy between the GPU's memory and the host's",
       .aten = "aten::copy_",
       .onnx = "",
       .infer = infer_same,
       .work = work_host,
       .example = "x: fp32[64, 256]",
       .unmeasured = true},
      {.name = "host_adam",
       .doc = "Adam's step on the host: parameters, gradients and both states; writes the "
              "parameters in the model's dtype too",
       .aten = "",
       .onnx = "",
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = {{.name = "dtype",
                       .doc = "of the parameters that go back",
                       .type = AttributeType::kDType,
                       .default_value = DType::kFp32}},
       .infer = infer_host_adam,
       .work = work_host_adam,
       .example = "p: fp32[64, 256] g: fp32[64, 256] m: fp32[64, 256] v: fp32[64, 256]",
       .unmeasured = true},
  };
}

}  // namespace tilecast
