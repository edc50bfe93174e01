#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "base/checked.h"
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
  // aten/src/ATen/autocast_mode.h (PyTorch 2.13): of the lists AT_FORALL_LOWER_PRECISION_FP,
  // AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE what is an operator here. Operators of the
  // promote list and all others take the wider type of their inputs by their own shape rules.
  static constexpr std::array<std::string_view, 7> kNarrow = {
      "linear", "gemm", "matmul", "attention", "experts", "quantized_linear", "conv2d"};
  static constexpr std::array<std::string_view, 12> kWide = {
      "softmax",    "layer_norm",  "group_norm", "rms_norm", "rsqrt",    "pow",
      "pow_scalar", "integer_pow", "exp",        "log",      "upsample", "reduce_sum"};
  std::map<TensorId, TensorId> cached;  // a weight's copy
  const auto rule = [narrow, &cached](GraphBuilder& b, const Node& node,
                                      std::vector<TensorId> inputs) {
    const bool narrows = is_one_of(node, kNarrow);
    const bool leaves = !narrows && !is_one_of(node, kWide);
    const DType wanted = narrows ? narrow : DType::kFp32;
    for (TensorId& id : inputs) {
      const Tensor& tensor = b.graph().tensor(id);
      if (leaves || !is_float(tensor.dtype) || tensor.dtype == wanted) continue;
      const std::vector<Attribute> attributes = {{"dtype", wanted}};
      if (tensor.kind != TensorKind::kWeight) {
        id = b.op("cast", {id}, node.name + ".cast", attributes);
        continue;
      }
      const auto [copy, fresh] = cached.emplace(id, -1);
      if (fresh) {
        copy->second = b.op("cast", {id}, tensor.name + ".cast", attributes);
        b.graph().tensor(copy->second).cached = true;
      }
      id = copy->second;
    }
    return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  };
  graph = Rewriter(graph, rule).run();
}

namespace {

TensorId scales_of(GraphBuilder& b, const std::string& name, Scheme scheme, int64_t elements,
                   int32_t segment) {
  return b.tensor({.name = name + ".scales",
                   .shape = {scale_bytes(scheme, elements)},
                   .dtype = DType::kInt8,
                   .kind = TensorKind::kBuffer,
                   .segment = segment});
}

std::vector<TensorId> quantized_linear(GraphBuilder& b, const Node& node,
                                       std::vector<TensorId> inputs, Scheme scheme) {
  Tensor& weight = b.graph().tensor(inputs[1]);
  weight.dtype = scheme_info(scheme).weight;
  // GPT-2 stores its weights the other way round; quantized ones lie as everyone's.
  if (attribute<int64_t>(node, "weight_layout") == 1) std::swap(weight.shape[0], weight.shape[1]);
  const TensorId scales =
      scales_of(b, weight.name, scheme, element_count(weight.shape), weight.segment);
  inputs.insert(inputs.begin() + 2, scales);
  return b.add("quantized_linear", std::move(inputs), node.name, {{"scheme", scheme}});
}

std::vector<TensorId> quantized_experts(GraphBuilder& b, const Node& node,
                                        std::vector<TensorId> inputs, Scheme scheme) {
  int64_t elements = 0;
  for (size_t i = 1; i < 3; ++i) {
    Tensor& weight = b.graph().tensor(inputs[i]);
    weight.dtype = scheme_info(scheme).weight;
    elements = checked_add(elements, element_count(weight.shape));
  }
  const int32_t segment = b.graph().tensor(inputs[1]).segment;
  inputs.push_back(scales_of(b, node.name, scheme, elements, segment));
  Node quantized = node;
  quantized.set_attribute("scheme", scheme);
  return b.add("experts", std::move(inputs), node.name, std::move(quantized.attributes));
}

}  // namespace

void quantize_linears(Graph& graph, const SchemeOf& scheme_of) {
  std::vector<int> uses(graph.tensors.size(), 0);
  for (const Node& node : graph.nodes) {
    for (TensorId id : node.inputs) uses[static_cast<size_t>(id)] += 1;
  }
  const auto own_weight = [&](TensorId id) {
    return graph.tensor(id).kind == TensorKind::kWeight && uses[static_cast<size_t>(id)] == 1;
  };
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const bool is_output = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
    });
    const std::string_view name = op_def(node.op).name;
    const bool linear = name == "linear" && !is_output && own_weight(node.inputs[1]);
    const bool experts = name == "experts" && node.inputs.size() == 3 &&
                         own_weight(node.inputs[1]) && own_weight(node.inputs[2]);
    const Scheme scheme = linear || experts ? scheme_of(node.name) : Scheme::kNone;
    if (scheme == Scheme::kNone) return b.add(name, std::move(inputs), node.name, node.attributes);
    return linear ? quantized_linear(b, node, std::move(inputs), scheme)
                  : quantized_experts(b, node, std::move(inputs), scheme);
  };
  graph = Rewriter(graph, rule).run();
}

}  // namespace tilecast
