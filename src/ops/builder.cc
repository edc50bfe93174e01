#include "ops/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/budget.h"
#include "base/check.h"
#include "base/checked.h"
#include "ops/op_def.h"

namespace tilecast {
void GraphBuilder::begin_segment(std::string name, int64_t repeat) {
  Segment segment;
  segment.name = std::move(name);
  segment.first_node = static_cast<int32_t>(graph_.nodes.size());
  segment.repeat = repeat;
  graph_.segments.push_back(std::move(segment));
}

void GraphBuilder::begin_segment(const Segment& like, int64_t repeat) {
  const Role role = like.role;  // `like` may be of this graph
  begin_segment(like.name, repeat);
  graph_.segments.back().role = role;
}

Role GraphBuilder::role_of_maker(TensorId id) const {
  const auto maker = std::find_if(graph_.nodes.rbegin(), graph_.nodes.rend(), [id](const Node& n) {
    return std::find(n.outputs.begin(), n.outputs.end(), id) != n.outputs.end();
  });
  return maker == graph_.nodes.rend() ? Role::kNone : maker->role;
}

void GraphBuilder::carry(TensorId initial, TensorId next) {
  graph_.segments.back().carries.push_back({initial, next});
}

void GraphBuilder::reverses(int32_t segment) { graph_.segments.back().reverses = segment; }

TensorId GraphBuilder::tensor(Tensor tensor) {
  const TensorId id = static_cast<TensorId>(graph_.tensors.size());
  if (tensor.storage < 0) tensor.storage = id;
  graph_.tensors.push_back(std::move(tensor));
  return id;
}

TensorId GraphBuilder::input(std::string name, Shape shape, DType dtype) {
  return tensor({.name = std::move(name),
                 .shape = std::move(shape),
                 .dtype = dtype,
                 .kind = TensorKind::kInput});
}

TensorId GraphBuilder::weight(std::string name, Shape shape, DType dtype) {
  return tensor({.name = std::move(name),
                 .shape = std::move(shape),
                 .dtype = dtype,
                 .kind = TensorKind::kWeight,
                 .segment = current_segment()});
}

TensorId GraphBuilder::scales(const std::string& name, QuantScheme scheme, int64_t count,
                              int32_t segment) {
  return tensor({.name = name + ".scales",
                 .shape = {scale_bytes(scheme, count)},
                 .dtype = DType::kInt8,
                 .kind = TensorKind::kBuffer,
                 .segment = segment});
}

std::vector<TensorId> GraphBuilder::add(std::string_view op, std::vector<TensorId> inputs,
                                        std::string name, std::vector<Attribute> attributes) {
  TILECAST_CHECK(!graph_.segments.empty()) << "a node before the first segment";
  go_on("building a graph");
  const std::string_view where = graph_.name.empty() ? std::string_view("the model") : graph_.name;
  Budget::here().allow(kGraphNodes, static_cast<int64_t>(graph_.nodes.size()), where);
  Node node{.name = std::move(name),
            .op = require_op(op),
            .inputs = std::move(inputs),
            .outputs = {},
            .attributes = std::move(attributes),
            .phase = phase_,
            .counts = counts_,
            .attention_core = attention_core_,
            .recomputed = recomputed_};
  const OpDef& definition = op_def(node.op);
  if (role_ != Role::kNone && role_fits_op(role_, definition.name)) node.role = role_;
  const OpContext context{graph_, node};
  check_operands(context);
  std::vector<TensorSpec> specs = definition.infer(context);
  for (size_t i = 0; i < specs.size(); ++i) {
    Tensor output{.name = i == 0 ? node.name : fmt::format("{}.{}", node.name, i),
                  .shape = std::move(specs[i].shape),
                  .dtype = specs[i].dtype,
                  .kind = TensorKind::kActivation,
                  .contiguous = specs[i].contiguous,
                  .storage = specs[i].view ? graph_.tensor(node.inputs[0]).storage : -1,
                  .segment = current_segment(),
                  .stored_bytes = specs[i].stored_bytes};
    element_count(output.shape);  // throws on overflow while the node is still known
    node.outputs.push_back(tensor(std::move(output)));
  }
  graph_.segments.back().node_count += 1;
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

TensorId GraphBuilder::op(std::string_view op, std::vector<TensorId> inputs, std::string name,
                          std::vector<Attribute> attributes) {
  return add(op, std::move(inputs), std::move(name), std::move(attributes)).front();
}

void lower_node(const Graph& graph, const Node& node, std::vector<Kernel>& kernels) {
  const OpDef& definition = op_def(node.op);
  if (definition.work == nullptr) {
    if (definition.decompose != nullptr)
      OpContext{graph, node}.fail("a module has no kernels until it is decomposed or fused");
    return;
  }
  go_on("adding up the work of a graph");
  const size_t first = kernels.size();
  definition.work({graph, node}, kernels);
  for (size_t i = first; i < kernels.size(); ++i) {
    kernels[i].op = node.op;
    // Kernel::bytes adds without a check.
    checked_add(kernels[i].read_bytes, kernels[i].write_bytes);
  }
}

}  // namespace tilecast
