// Transformers 5 stores the experts of a layer as one parameter of three dimensions. bitsandbytes
// replaces modules of the class Linear only (transformers/integrations/bitsandbytes.py,
// replace_with_bnb_linear), so experts stay as they are; Llama 4 is an exception, whose experts are
// replaced by linear layers first (quantizers/base.py, MODULES_TO_PATCH_FOR_QUANTIZATION). peft's
// "all-linear" finds linear layers only (peft 0.21, tuners/tuners_utils.py), but for Mixtral,
// Qwen2-MoE and models with the same names it adds the experts and the router
// (utils/transformers_weight_conversion.py, _resolve_string_target_modules).

#include "scenario/parallel/adapter_remarks.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "ops/op_def.h"

namespace tilecast {

std::vector<std::string> adapter_remarks(const Graph& graph, const Request& request,
                                         const Precision& precision) {
  if (request.lora_rank == 0) return {};
  static const OpId experts = require_op("experts");
  int64_t bytes = 0;
  DType dtype = precision.dtype;
  for (const Node& node : graph.nodes) {
    if (node.op != experts || node.phase != Phase::kForward) continue;
    for (const TensorId id : node.inputs) {
      const Tensor& tensor = graph.tensor(id);
      if (tensor.kind != TensorKind::kWeight || tensor.shape.size() != 3) continue;
      dtype = tensor.dtype;
      bytes = checked_add(bytes,
                          checked_multiply(tensor_bytes(tensor), graph.repeat_of(tensor.segment)));
    }
  }
  if (bytes == 0) return {};
  std::vector<std::string> remarks = {
      "experts have no adapters: those are beside linear layers; peft 0.21 adds some to the "
      "experts "
      "of Mixtral, Qwen2-MoE and models named alike if its target_modules are all-linear"};
  if (precision.scheme_of && request.execution.dtype.empty())
    remarks.push_back(fmt::format(
        "experts are taken to be in {} ({}): adapters beside experts that the checkpoint stores in "
        "fewer bits are not modelled",
        dtype_name(dtype), format_bytes(bytes)));
  else if (precision.scheme_of)
    remarks.push_back(fmt::format(
        "experts stay in {} ({}): bitsandbytes quantizes linear layers only, and Transformers 5 "
        "stores the experts of a layer as one parameter",
        dtype_name(dtype), format_bytes(bytes)));
  return remarks;
}

}  // namespace tilecast
