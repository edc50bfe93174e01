// Replaces the bytes of weights by those that a checkpoint stores.

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "ops/op_def.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// Matrices that a checkpoint stores for one weight of a served model.
int64_t merged_matrices(const Tensor& weight) {
  if (weight.role == Role::kQkv) return 3;
  return weight.role == Role::kGateUp || weight.role == Role::kLatents ? 2 : 1;
}

/// `parts` matrices that are stored one above the other.
int64_t bytes_of(const WeightStorage& storage, const Shape& matrix, int64_t parts) {
  // Only what counts once for each matrix depends on the number of parts.
  WeightStorage all = storage;
  all.matrix_bits = checked_multiply(storage.matrix_bits, parts);
  return stored_bytes(all, matrix[0], matrix[1]);
}

class Storing {
 public:
  Storing(Graph& graph, const StorageTable& table) : graph_(graph), table_(table) {}

  void run() {
    static const OpId linear = require_op("quantized_linear"), experts = require_op("experts"),
                      dequantize = require_op("dequantize_weight");
    for (const Node& node : graph_.nodes) {
      const AttributeValue* scheme = node.find_attribute("scheme");
      if (scheme == nullptr || (node.op != linear && node.op != experts && node.op != dequantize))
        continue;
      const auto found = table_.find(std::get<QuantScheme>(*scheme));
      if (found == table_.end()) continue;
      if (node.op == experts) {
        store_experts(node, found->second);
      } else {
        // The weight is followed by its scales.
        const size_t weight = node.op == linear ? 1 : 0;
        const TensorId id = node.inputs[weight];
        const Tensor& stored = graph_.tensor(id);
        // In training, the weights are the model's own.
        const int64_t matrices = node.op == linear ? merged_matrices(stored) : 1;
        set(id, bytes_of(found->second, stored.shape, matrices));
        set(node.inputs[weight + 1], 0);
      }
    }
  }

 private:
  void set(TensorId id, int64_t bytes) { graph_.tensor(id).stored_bytes = bytes; }

  void store_experts(const Node& node, const WeightStorage& storage) {
    const Shape& up = graph_.tensor(node.inputs[1]).shape;
    const Shape& down = graph_.tensor(node.inputs[2]).shape;
    const int64_t gated = up[1] == 2 * down[2] ? 2 : 1;
    const int64_t each[] = {bytes_of(storage, {up[1], up[2]}, gated),
                            bytes_of(storage, {down[1], down[2]}, 1)};
    for (size_t i = 0; i < 2; ++i) set(node.inputs[i + 1], checked_multiply(up[0], each[i]));
    constexpr size_t kScales = 3;
    if (node.inputs.size() > kScales) set(node.inputs[kScales], 0);
  }

  Graph& graph_;
  const StorageTable& table_;
};

bool holds_weights(const Tensor& tensor) {
  return tensor.kind == TensorKind::kWeight || tensor.kind == TensorKind::kBuffer;
}

}  // namespace

void store_weights(Graph& graph, const StorageTable& table) {
  if (!table.empty()) Storing(graph, table).run();
}

int64_t weights_bytes(const Graph& graph) {
  int64_t total = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (holds_weights(tensor))
      total = checked_add(total,
                          checked_multiply(memory_bytes(tensor), graph.repeat_of(tensor.segment)));
  }
  return total;
}

void set_weights_bytes(Graph& graph, int64_t total) {
  const int64_t now = weights_bytes(graph);
  if (now == 0) return;
  const double ratio = static_cast<double>(total) / static_cast<double>(now);
  Tensor* last = nullptr;  // takes what rounding leaves
  for (Tensor& tensor : graph.tensors) {
    if (!holds_weights(tensor)) continue;
    tensor.stored_bytes = static_cast<int64_t>(ratio * static_cast<double>(memory_bytes(tensor)));
    const bool once = graph.repeat_of(tensor.segment) == 1;
    if (once && (last == nullptr || memory_bytes(tensor) > memory_bytes(*last))) last = &tensor;
  }
  if (last != nullptr)
    last->stored_bytes = std::max<int64_t>(0, *last->stored_bytes + total - weights_bytes(graph));
}

}  // namespace tilecast
