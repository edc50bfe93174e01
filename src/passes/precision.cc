#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// Writes a graph anew, node by node; types of what nodes make follow from their inputs.
class Rewriter {
 public:
  /// Adds the new form of a node; its inputs are given as they are now. Returns its outputs.
  using Rule =
      std::function<std::vector<TensorId>(GraphBuilder&, const Node&, std::vector<TensorId>)>;

  Rewriter(const Graph& from, Rule rule) : from_(from), rule_(std::move(rule)), b_(to_) {
    now_.assign(from.tensors.size(), -1);
  }

  Graph run() {
    to_.name = from_.name;
    copy_given();
    for (const Segment& segment : from_.segments) {
      b_.begin_segment(segment.name, segment.repeat);
      if (segment.reverses) b_.reverses(*segment.reverses);
      for (int32_t i = 0; i < segment.node_count; ++i)
        rewrite(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) b_.carry(now(carry.initial), now(carry.next));
    }
    for (TensorId id : from_.outputs) to_.outputs.push_back(now(id));
    return std::move(to_);
  }

 private:
  TensorId now(TensorId id) const { return now_[static_cast<size_t>(id)]; }

  /// What no node makes: inputs, weights, buffers.
  void copy_given() {
    std::vector<bool> made(from_.tensors.size(), false);
    for (const Node& node : from_.nodes) {
      for (TensorId id : node.outputs) made[static_cast<size_t>(id)] = true;
    }
    for (size_t id = 0; id < made.size(); ++id) {
      if (made[id]) continue;
      Tensor tensor = from_.tensors[id];
      tensor.storage = tensor.storage == static_cast<TensorId>(id) ? -1 : now(tensor.storage);
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  void rewrite(const Node& node) {
    std::vector<TensorId> inputs;
    for (TensorId id : node.inputs) inputs.push_back(now(id));
    b_.set_phase(node.phase);
    const std::vector<TensorId> outputs = rule_(b_, node, std::move(inputs));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      now_[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }

  const Graph& from_;
  Rule rule_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
};

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), op_def(node.op).name) != names.end();
}

bool is_float(DType dtype) {
  return dtype == DType::kFp32 || dtype == DType::kBf16 || dtype == DType::kFp16;
}

}  // namespace

void autocast(Graph& graph, DType narrow) {
  // torch/csrc, aten/src/ATen/autocast_mode.h (PyTorch 2.x): the lists "lower_precision_fp" and
  // "fp32" as far as operators here are on them.
  static constexpr std::array<std::string_view, 6> kNarrow = {
      "linear", "gemm", "matmul", "attention", "experts", "quantized_linear"};
  static constexpr std::array<std::string_view, 8> kWide = {
      "softmax",    "layer_norm",  "rsqrt",      "pow",
      "pow_scalar", "integer_pow", "reduce_sum", "rms_norm"};
  const auto rule = [narrow](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const bool narrows = is_one_of(node, kNarrow);
    const bool leaves = !narrows && !is_one_of(node, kWide);
    const DType wanted = narrows ? narrow : DType::kFp32;
    for (TensorId& id : inputs) {
      const Tensor& tensor = b.graph().tensor(id);
      if (leaves || !is_float(tensor.dtype) || tensor.dtype == wanted) continue;
      const std::string name =
          tensor.kind == TensorKind::kWeight ? tensor.name + ".cast" : node.name + ".cast";
      id = b.op("cast", {id}, name, {{"dtype", {static_cast<int64_t>(wanted)}}});
    }
    return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  };
  graph = Rewriter(graph, rule).run();
}

void quantize_linears(Graph& graph, Scheme scheme) {
  std::vector<int> uses(graph.tensors.size(), 0);
  for (const Node& node : graph.nodes) {
    for (TensorId id : node.inputs) uses[static_cast<size_t>(id)] += 1;
  }
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const bool is_output = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
    });
    const bool linear = op_def(node.op).name == "linear" && !is_output &&
                        graph.tensor(node.inputs[1]).kind == TensorKind::kWeight &&
                        uses[static_cast<size_t>(node.inputs[1])] == 1 &&
                        node.attribute_or("weight_layout", 0) == 0;
    if (!linear) return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    Tensor& weight = b.graph().tensor(inputs[1]);
    weight.dtype = scheme_info(scheme).weight;
    Tensor held{.name = weight.name + ".scales",
                .shape = {scale_bytes(scheme, element_count(weight.shape))},
                .dtype = DType::kInt8,
                .kind = TensorKind::kBuffer,
                .segment = weight.segment};
    inputs.insert(inputs.begin() + 2, b.tensor(std::move(held)));
    return b.add("quantized_linear", std::move(inputs), node.name,
                 {{"scheme", {static_cast<int64_t>(scheme)}}});
  };
  graph = Rewriter(graph, rule).run();
}

}  // namespace tilecast
