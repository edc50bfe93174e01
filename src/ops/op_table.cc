#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {

std::string_view kernel_family_name(KernelFamily family) {
  switch (family) {
    case KernelFamily::kBmm:
      return "bmm";
    case KernelFamily::kLinear:
      return "linear";
    case KernelFamily::kElementwise:
      return "elementwise";
    case KernelFamily::kSoftmax:
      return "softmax";
    case KernelFamily::kLayerNorm:
      return "layer_norm";
    case KernelFamily::kMemory:
      return "memory";
    case KernelFamily::kAttention:
      return "attention";
    case KernelFamily::kDecodeAttention:
      return "decode_attention";
    case KernelFamily::kExperts:
      return "experts";
    case KernelFamily::kCollective:
      return "collective";
  }
  return "";
}

const std::vector<std::string>& software_names() {
  static const std::vector<std::string> names = {"pytorch", "vllm", "sglang", "trtllm"};
  return names;
}

std::string_view software_name(Software software) {
  return software_names()[static_cast<size_t>(software)];
}

std::optional<Software> find_software(std::string_view name) {
  const std::vector<std::string>& names = software_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Software>(found - names.begin());
}

std::string precision_name(const Kernel& kernel) {
  if (kernel.scheme != Scheme::kNone) return std::string(scheme_info(kernel.scheme).name);
  std::string name(dtype_name(kernel.dtype));
  if (kernel.is_attention() && kernel.attention.kv_dtype != kernel.dtype)
    name += fmt::format("/{}", dtype_name(kernel.attention.kv_dtype));
  return name;
}

void OpContext::fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("node '{}' ({}): {}", shown_name(node.name),
                                             op_def(node.op).name, message));
}

const std::vector<OpDef>& op_table() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> all;
    for (std::vector<OpDef> (*family)() : {matmul_ops, transformer_ops, expert_ops, collective_ops,
                                           convolution_ops, pointwise_ops, row_ops, movement_ops}) {
      for (OpDef& op : family()) all.push_back(std::move(op));
    }
    return all;
  }();
  return table;
}

const OpDef& op_def(OpId op) { return op_table()[static_cast<size_t>(op)]; }

std::optional<OpId> find_op(std::string_view name) {
  static const std::unordered_map<std::string_view, OpId> index = [] {
    std::unordered_map<std::string_view, OpId> result;
    for (size_t i = 0; i < op_table().size(); ++i)
      result.emplace(op_table()[i].name, static_cast<OpId>(i));
    return result;
  }();
  const auto it = index.find(name);
  if (it == index.end()) return std::nullopt;
  return it->second;
}

OpId require_op(std::string_view name) {
  if (const std::optional<OpId> found = find_op(name)) return *found;
  std::vector<std::string> names;
  for (const OpDef& op : op_table()) names.emplace_back(op.name);
  throw Error(ErrorKind::kNotFound, fmt::format("unknown operator '{}'{}; 'tilecast ops' lists all",
                                                shown_name(name), did_you_mean(name, names)));
}

}  // namespace tilecast
