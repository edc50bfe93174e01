// Low-rank adapters (LoRA, Hu et al. 2021) as peft runs them (peft/tuners/lora/layer.py, Linear).

#include <set>

#include "ops/op_def.h"
#include "passes/adapted_layers.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "passes/splits.h"

namespace tilecast {
namespace {

struct Adapter {
  TensorId down = -1;  ///< A [rank, inputs]
  TensorId up = -1;    ///< B [outputs, rank]
  TensorId sum = -1;   ///< y + scale (x A^T) B^T
};

/// Where the adapter's weights are FP32 (peft's autocast_adapter_dtype) beside a layer that is not,
/// x is cast, and the sum is cast back.
Adapter add_adapter(GraphBuilder& b, const Node& node, TensorId x, TensorId y,
                    const LoraForm& form) {
  const auto step = [&](const char* op, std::vector<TensorId> inputs, const char* name,
                        std::vector<Attribute> attributes = {}) {
    return b.op(op, std::move(inputs), node.name + name, std::move(attributes));
  };
  const auto cast = [&](TensorId t, DType to, const char* name) {
    return b.graph().tensor(t).dtype == to ? t : step("cast", {t}, name, {{"dtype", to}});
  };
  const int64_t in = b.graph().tensor(x).shape.back(), out = b.graph().tensor(y).shape.back();
  const DType dtype = b.graph().tensor(y).dtype;
  const DType own = form.dtype == LoraDType::kFp32 ? DType::kFp32 : dtype;
  const TensorId down = b.weight(node.name + ".lora_A.weight", {form.rank, in}, own);
  const TensorId up = b.weight(node.name + ".lora_B.weight", {out, form.rank}, own);
  const TensorId low = step("linear", {cast(x, own, ".lora_cast"), down}, ".lora_A");
  const TensorId delta = step("mul_scalar", {step("linear", {low, up}, ".lora_B")}, ".lora_scale");
  return {down, up, cast(step("add", {y, delta}, ".lora_add"), dtype, ".lora_cast_back")};
}

/// Tensor parallelism divides an adapter like its layer: B along the outputs of a column-parallel
/// layer, A along the inputs of a row-parallel one; the other matrix is replicated
/// (peft/tuners/lora/tp_layer.py, LoraParallelLinear).
void divide_adapter(const Graph& graph, const Node& node, const Adapter& adapter,
                    std::vector<WeightSplit>& splits) {
  const size_t outputs = attribute<int64_t>(node, "weight_layout") == 1 ? 1 : 0;
  for (WeightSplit split : graph.splits) {
    if (split.weight != node.inputs[1]) continue;
    const bool columns = split.dim == outputs;
    split.weight = columns ? adapter.up : adapter.down;
    split.dim = columns ? 0 : 1;
    splits.push_back(split);
  }
}

}  // namespace

void add_lora(Graph& graph, const LoraForm& form) {
  std::set<std::string> known;
  std::vector<WeightSplit> splits;  // of the adapters
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const TensorId x = inputs[0];
    std::vector<TensorId> outputs =
        b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    if (!may_have_adapter(graph, node)) return outputs;
    known.insert(layer_name(node));
    if (!is_target(form.targets, layer_name(node))) return outputs;
    const Adapter adapter = add_adapter(b, node, x, outputs[0], form);
    divide_adapter(graph, node, adapter, splits);
    outputs[0] = adapter.sum;
    return outputs;
  };
  for (Tensor& tensor : graph.tensors) tensor.frozen = tensor.kind == TensorKind::kWeight;
  Graph adapted_graph = Rewriter(graph, rule).run();
  check_targets(graph, form.targets, known);
  copy_splits(graph, adapted_graph);
  adapted_graph.splits.insert(adapted_graph.splits.end(), splits.begin(), splits.end());
  graph = std::move(adapted_graph);
  validate_if_debug(graph);
}

}  // namespace tilecast
