#include <fmt/format.h>

#include <unordered_map>

#include "base/checked.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {

void OpContext::fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("node '{}' ({}): {}", shown_name(node.name),
                                             op_def(node.op).name, message));
}

std::vector<TensorSpec> infer_same(const OpContext& context) {
  return {{.shape = context.input(0).shape, .dtype = context.input(0).dtype}};
}

void add_traffic(Kernel& kernel, const OpContext& context) {
  for (size_t i = 0; i < context.input_count(); ++i)
    kernel.read_bytes = checked_add(kernel.read_bytes, tensor_bytes(context.input(i)));
  for (size_t i = 0; i < context.node.outputs.size(); ++i)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.output(i)));
}

// The families that make up the table, one file each.
std::vector<OpDef> matmul_ops();
std::vector<OpDef> low_precision_ops();
std::vector<OpDef> quantization_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> transformer_ops();
std::vector<OpDef> scan_ops();
std::vector<OpDef> expert_ops();
std::vector<OpDef> embedding_bag_ops();
std::vector<OpDef> embedding_table_ops();
std::vector<OpDef> collective_ops();
std::vector<OpDef> expert_exchange_ops();
std::vector<OpDef> context_ring_ops();
std::vector<OpDef> convolution_ops();
std::vector<OpDef> image_ops();
std::vector<OpDef> pointwise_ops();
std::vector<OpDef> row_ops();
std::vector<OpDef> loss_ops();
std::vector<OpDef> chunked_loss_ops();
std::vector<OpDef> host_ops();
std::vector<OpDef> reduction_ops();
std::vector<OpDef> view_ops();
std::vector<OpDef> movement_ops();
std::vector<OpDef> gather_ops();
std::vector<OpDef> module_ops();
std::vector<OpDef> sparse_attention_ops();
std::vector<OpDef> stream_ops();
std::vector<OpDef> traced_ops();
std::vector<OpDef> convolution_nd_ops();
std::vector<OpDef> pooling_ops();
std::vector<OpDef> indexing_ops();
std::vector<OpDef> arrangement_ops();
std::vector<OpDef> recurrent_ops();
std::vector<OpDef> function_ops();
std::vector<OpDef> adapter_ops();

const std::vector<OpDef>& op_table() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> all;
    for (std::vector<OpDef> (*family)() : {matmul_ops,
                                           low_precision_ops,
                                           quantization_ops,
                                           attention_ops,
                                           transformer_ops,
                                           scan_ops,
                                           expert_ops,
                                           embedding_bag_ops,
                                           collective_ops,
                                           expert_exchange_ops,
                                           context_ring_ops,
                                           convolution_ops,
                                           image_ops,
                                           pointwise_ops,
                                           row_ops,
                                           loss_ops,
                                           chunked_loss_ops,
                                           host_ops,
                                           reduction_ops,
                                           view_ops,
                                           movement_ops,
                                           gather_ops,
                                           module_ops,
                                           sparse_attention_ops,
                                           stream_ops,
                                           convolution_nd_ops,
                                           pooling_ops,
                                           indexing_ops,
                                           arrangement_ops,
                                           recurrent_ops,
                                           function_ops,
                                           traced_ops,
                                           embedding_table_ops,
                                           adapter_ops}) {
      for (OpDef& op : family()) all.push_back(std::move(op));
    }
    for (OpDef& op : all) {
      if (op.work == nullptr) continue;
      if (op.sizes.empty()) op.sizes = row_sizes();
      if (op.operands == nullptr) op.operands = row_operands;
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
