// Operators that are not supported: what they hide, and what stands in for their results.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "importers/onnx/call.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {

/// Remembers an unknown operator, and goes on with the shapes that the file declares, else with the
/// shape of its first input.
void OnnxTranslator::skip_node(const OnnxNode& node, OnnxScope& scope) {
  OnnxCall call(*this, node, scope);
  Skipped skipped{.node = node.name, .op = node.op};
  if (!node.domain.empty()) skipped.op = node.domain + "." + node.op;
  TensorId first = -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!call.has(i)) continue;
    const TensorId id = call.tensor(i);
    if (first < 0) first = id;
    skipped.bytes = checked_add(skipped.bytes, tensor_bytes(graph_.tensor(id)));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!call.wants(i)) continue;
    const auto declared = declared_.find(node.outputs[i]);
    if (declared == declared_.end() && first < 0)
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: node '{}': the operator '{}' is not supported, and the file does "
                      "not declare the shape of its output '{}'",
                      where_, shown_name(node.name), shown_name(skipped.op),
                      shown_name(node.outputs[i])));
    // A copy: adding tensors may move the existing ones.
    const Shape shape =
        declared != declared_.end() ? declared->second : Shape(graph_.tensor(first).shape);
    const DType dtype = first >= 0 ? graph_.tensor(first).dtype : request_.dtype;
    const TensorId like = first >= 0 ? first : b_.input(node.outputs[i], {1}, dtype);
    const TensorId out = b_.op("empty", {like}, call.name(), {{"shape", shape}});
    skipped.bytes = checked_add(skipped.bytes, tensor_bytes(graph_.tensor(out)));
    call.set(i, out);
  }
  skipped_.push_back(std::move(skipped));
}

/// Bytes that all kernels of a graph move.
static int64_t bytes_of(const Graph& graph) {
  int64_t total = 0;
  std::vector<Kernel> kernels;
  for (const Node& node : graph.nodes) {
    kernels.clear();
    // Modules have no kernels yet: their inputs and outputs count.
    if (op_def(node.op).work == nullptr) {
      if (op_def(node.op).decompose == nullptr) continue;
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (const TensorId id : *ids) total = checked_add(total, tensor_bytes(graph.tensor(id)));
      }
      continue;
    }
    lower_node(graph, node, kernels);
    for (const Kernel& kernel : kernels) total = checked_add(total, kernel.bytes());
  }
  return total;
}

void OnnxTranslator::check_skipped() {
  if (skipped_.empty()) return;
  int64_t hidden = 0;
  std::map<std::string, int64_t> counts;
  for (const Skipped& node : skipped_) {
    hidden = checked_add(hidden, node.bytes);
    ++counts[node.op];
  }
  std::vector<std::string> ops;
  constexpr size_t kMostNames = 8;
  for (const auto& [op, count] : counts) {
    if (ops.size() < kMostNames) ops.push_back(fmt::format("{} ({})", shown_name(op), count));
  }
  if (counts.size() > kMostNames) ops.push_back("…");
  const double share = 100 * static_cast<double>(hidden) /
                       static_cast<double>(std::max<int64_t>(1, hidden + bytes_of(graph_)));
  const std::string left_out =
      fmt::format("{} of {} nodes, which read and write {:.1f} % of the bytes", skipped_.size(),
                  nodes_run_, share);
  if (!request_.skip_unsupported)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: node '{}': the operator '{}' is not supported; not supported in "
                            "all: {}: {}; `skip-unsupported` forecasts the rest",
                            where_, shown_name(skipped_[0].node), shown_name(skipped_[0].op),
                            join(ops, ", "), left_out));
  warnings_.push_back(
      fmt::format("operators that are not supported were left out: {}: {}; their time and FLOPs "
                  "are missing",
                  join(ops, ", "), left_out));
}

}  // namespace tilecast
