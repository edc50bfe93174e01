// Optimizers of bitsandbytes 0.50 (optim/optimizer.py): 8-bit Adam and Lion, one kernel for each
// parameter, after which the host waits for the GPU (sync_gpu).

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/adam.h"
#include "passes/optimizer_steps.h"

namespace tilecast {
namespace {

/// Blocks of a state of 8 bits, each with its largest value in fp32, and the elements below which a
/// parameter keeps states of 32 bits: `blocksize` of init_state and the default of `min_8bit_size`.
constexpr int64_t kBlock = 256, kLeastElements = 4096;
/// Of an element: weighted sum, sign, update and average. Conversions to 8 bits are not counted.
constexpr int64_t kLionFlops = 8;

}  // namespace

bool has_8bit_states(Optimizer optimizer, const Shape& shape) {
  return optimizer == Optimizer::kAdam8Bit && element_count(shape) >= kLeastElements;
}

/// States have their own dtype, whatever that of the parameter.
void OptimizerSteps::bitsandbytes(Optimizer optimizer) {
  const int64_t elements = element_count(shape_);
  const bool narrow = has_8bit_states(optimizer, shape_);
  const DType dtype = narrow ? DType::kInt8 : DType::kFp32;
  const int states = optimizer == Optimizer::kLion ? 1 : 2;
  std::vector<TensorId> inputs = {parameters_, gradients_};
  std::string outputs = fmt::format("{}{}", dtype_name(dtype_), format_shape(shape_));
  const auto add = [&](const char* name, Shape shape, DType type) {
    outputs += fmt::format(" {}{}", dtype_name(type), format_shape(shape));
    inputs.push_back(tensor(name, TensorKind::kOptimizer, std::move(shape), type));
  };
  for (int i = 0; i < states; ++i) {
    add("state", shape_, dtype);
    if (narrow) add("absmax", {ceil_divide(elements, kBlock)}, DType::kFp32);
  }
  const int64_t flops = states == 1 ? kLionFlops : kAdamFlops;
  const char* const kernel = narrow ? "bitsandbytes::optimizer_update_8bit_blockwise"
                                    : "bitsandbytes::optimizer_update_32bit";
  builder_.add("stream", std::move(inputs), "optimizer.step",
               {{"outputs", outputs},
                {"flops", checked_multiply(flops, elements)},
                {"waits", int64_t{1}},
                {"unmeasured", std::string(kernel)}});
  for (const TensorId id : graph_.nodes.back().outputs)
    graph_.tensor(id).kind = TensorKind::kReference;
}

}  // namespace tilecast
