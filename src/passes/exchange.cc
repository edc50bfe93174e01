#include "passes/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/checked.h"
#include "ops/expert_load.h"
#include "ops/op_def.h"
#include "ops/sharding.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "passes/splits.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Copies a node as it is.
std::vector<TensorId> keep(GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
  return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
}

/// Of `own` keys on each rank, as many as a query sees; of causal attention on average, if it stood
/// at the end: queries · (seen − queries / 2) pairs are half of queries · ranks · queries.
int64_t seen_keys(const Node& node, int64_t own, int64_t ranks) {
  const int64_t all = checked_multiply(own, ranks);
  return attribute<int64_t>(node, "causal") == 0 ? all : (all + own) / 2;
}

/// Keys or values [b, heads, s, size] of all ranks.
TensorId gathered(GraphBuilder& b, TensorId x, const Node& node, int64_t ranks) {
  const int64_t seen = seen_keys(node, b.graph().tensor(x).shape[2], ranks);
  const TensorId all =
      b.op("context_all_gather", {x}, node.name + ".all_gather", {{"ranks", ranks}, {"dim", 2}});
  if (attribute<int64_t>(node, "causal") == 0) return all;
  const std::vector<int64_t> swap = {0, 1, 3, 2};
  const TensorId columns = b.op("transpose", {all}, "transpose", {{"order", swap}});
  const TensorId part = b.op("slice_columns", {columns}, node.name + ".seen", {{"columns", seen}});
  return b.op("transpose", {part}, "transpose", {{"order", swap}});
}

/// Tensors that ranks exchange are packed before, and put in their order afterwards (Transformer
/// Engine, flash_attn_a2a_communicate).
TensorId tokens_for_heads(GraphBuilder& b, TensorId x, const Node& node,
                          std::vector<Attribute> attributes) {
  const TensorId packed = b.op("copy", {x}, node.name + ".pack");
  const TensorId sent =
      b.op("sequence_all_to_all", {packed}, node.name + ".all_to_all", std::move(attributes));
  return b.op("copy", {sent}, node.name + ".unpack");
}

/// Attention of all tokens with a part of the heads.
std::vector<TensorId> attend_by_heads(GraphBuilder& b, const Node& node,
                                      std::vector<TensorId> inputs, const ContextForm& form) {
  for (size_t i = 0; i < 3; ++i) {
    const int64_t heads = b.graph().tensor(inputs[i]).shape[1];
    if (heads % checked_multiply(form.ranks, form.tensor_ranks) != 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("`cp-comm-type` a2a: node '{}': `cp` {} × `tp` {} does not divide "
                              "the {} heads of {}; use p2p or allgather, or other degrees",
                              node.name, form.ranks, form.tensor_ranks, heads,
                              i == 0 ? "queries" : "keys and values"));
    inputs[i] =
        tokens_for_heads(b, inputs[i], node, {{"ranks", form.ranks}, {"dim", 2}, {"scatter", 1}});
  }
  std::vector<TensorId> outputs = keep(b, node, std::move(inputs));
  outputs[0] =
      tokens_for_heads(b, outputs[0], node, {{"ranks", form.ranks}, {"dim", 2}, {"scatter", 1}});
  return outputs;
}

/// Attention to one block of keys after the other, whose results are merged.
std::vector<TensorId> attend_around_ring(GraphBuilder& b, const Node& node,
                                         std::vector<TensorId> inputs, int64_t ranks) {
  for (size_t i = 1; i < 3; ++i) {
    const int64_t own = b.graph().tensor(inputs[i]).shape[2];
    inputs[i] = b.op("context_ring", {inputs[i]}, node.name + ".ring",
                     {{"ranks", ranks}, {"dim", 2}, {"length", seen_keys(node, own, ranks)}});
  }
  std::vector<TensorId> outputs = keep(b, node, std::move(inputs));
  outputs[0] = b.op("ring_merge", {outputs[0]}, node.name + ".merge", {{"ranks", ranks}});
  return outputs;
}

/// Operators that mix the tokens of a sequence, other than attention.
constexpr std::array<std::string_view, 4> kMixers = {"latent_attention", "linear_scan", "conv1d",
                                                     "causal_conv"};

/// Tokens sent to the rank whose experts get most, over the mean of the ranks. Where a token is
/// sent to a rank once, whatever the number of its experts there (see expert_dispatch), no rank
/// gets more than all. `inputs`: of the layer of experts, its weights divided already.
int64_t busiest_percent(const Graph& graph, const std::vector<TensorId>& inputs, int64_t top_k,
                        const ExpertForm& form) {
  const Shape& x = graph.tensor(inputs[0]).shape;
  const int64_t all =
      checked_multiply(element_count(x) / std::max<int64_t>(1, x.back()), form.ranks);
  const int64_t experts = checked_multiply(graph.tensor(inputs[1]).shape[0], form.ranks);
  const ExpertLoad busiest = expert_load(all, top_k, experts, form.ranks, form.skew_percent);
  const auto copies = static_cast<double>(checked_multiply(all, top_k));
  const double mean = copies / static_cast<double>(form.ranks);
  const double most = form.sends_once ? static_cast<double>(all) : copies;
  const double share = std::min(busiest.assignments, most) / std::max(1.0, std::min(mean, most));
  return std::max<int64_t>(100, std::llround(100 * share));
}

/// Ranks with tokens of their own have a part of each expert; `shard` divides it no further.
void divide_each_expert(Graph& graph, int64_t ranks) {
  std::erase_if(graph.splits, [&](const WeightSplit& split) {
    Tensor& tensor = graph.tensor(split.weight);
    if (!is_expert_weight(tensor)) return false;
    for (const int64_t units : split.parts) {
      if (units % ranks != 0)
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: `expert-tensor-parallel-size` {} does not divide the {} rows "
                                "of an expert's FFN ('{}')",
                                graph.name, ranks, units, tensor.name));
    }
    tensor.shape[split.dim] = share_of(split, ranks);
    return true;
  });
}

}  // namespace

Graph divide_context(const Graph& modules, const ContextForm& form) {
  if (form.ranks == 1) return modules;
  const OpId sdpa = require_op("sdpa");
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const std::string_view op = op_def(node.op).name;
    if (std::find(kMixers.begin(), kMixers.end(), op) != kMixers.end())
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: node '{}': context parallelism divides attention only, not {}; "
                              "leave `cp` at 1",
                              modules.name, node.name, op));
    if (node.op != sdpa) return keep(b, node, std::move(inputs));
    if (form.type == CpCommType::kAllToAll)
      return attend_by_heads(b, node, std::move(inputs), form);
    if (form.type == CpCommType::kP2p)
      return attend_around_ring(b, node, std::move(inputs), form.ranks);
    for (size_t i = 1; i < 3; ++i) inputs[i] = gathered(b, inputs[i], node, form.ranks);
    return keep(b, node, std::move(inputs));
  };
  Graph graph = Rewriter(modules, rule).run();
  copy_splits(modules, graph);
  return graph;
}

Graph divide_experts(const Graph& modules, const ExpertForm& form) {
  const bool own_rows = form.tensor_ranks > 0;
  if (form.ranks == 1 && !own_rows) return modules;
  const OpId experts = require_op("experts");
  Graph divided = modules;
  bool found = false;
  for (const Node& node : modules.nodes) {
    if (node.op != experts) continue;
    found = true;
    for (size_t i = 1; i < 3; ++i) {
      int64_t& count = divided.tensor(node.inputs[i]).shape[0];
      if (count % form.ranks != 0)
        throw Error(ErrorKind::kInput, fmt::format("{}: `ep` {} does not divide the {} experts of "
                                                   "node '{}'",
                                                   modules.name, form.ranks, count, node.name));
      count /= form.ranks;
    }
  }
  if (own_rows) divide_each_expert(divided, form.tensor_ranks);
  if (!found)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the model has no experts; leave {}", modules.name,
                            form.ranks == 1 ? "out `expert-tensor-parallel-size`" : "`ep` at 1"));
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    if (node.op != experts) return keep(b, node, std::move(inputs));
    const auto top_k = attribute<int64_t>(node, "top_k");
    std::vector<Attribute> exchange = {
        {"ranks", form.ranks}, {"top_k", top_k}, {"own_rows", own_rows ? 1 : 0}};
    // The ranks that divide an expert gather the rows of all of them, and add up its results.
    std::vector<Attribute> rows = {
        {"ranks", form.tensor_ranks}, {"expert_ranks", form.ranks}, {"top_k", top_k}};
    if (form.skew_percent > 0) {
      const int64_t busiest = busiest_percent(b.graph(), inputs, top_k, form);
      exchange.push_back({"busiest_percent", busiest});
      rows.push_back({"busiest_percent", busiest});
    }
    if (form.sends_once)
      exchange.push_back(
          {"num_experts", checked_multiply(b.graph().tensor(inputs[1]).shape[0], form.ranks)});
    std::vector<Attribute> dispatch = exchange;
    if (form.counts_awaited && form.ranks > 1) dispatch.push_back({"counts_awaited", 1});
    inputs[0] = b.op("expert_dispatch", {inputs[0]}, node.name + ".dispatch", std::move(dispatch));
    if (form.tensor_ranks > 1)
      inputs[0] = b.op("expert_all_gather", {inputs[0]}, node.name + ".all_gather", rows);
    Node own = node;
    own.set_attribute("ranks", form.ranks);
    own.set_attribute("skew_percent", form.skew_percent);
    own.set_attribute("own_rows", int64_t{own_rows ? 1 : 0});
    own.set_attribute("tensor_ranks", std::max<int64_t>(1, form.tensor_ranks));
    // Rows of an all-to-all are in the order of their senders.
    own.set_attribute("sorted_again", int64_t{form.ranks > 1 && !form.sends_once ? 1 : 0});
    std::vector<TensorId> outputs = keep(b, own, std::move(inputs));
    if (form.tensor_ranks > 1)
      outputs[0] = b.op("expert_reduce_scatter", {outputs[0]}, node.name + ".reduce_scatter", rows);
    outputs[0] = b.op("expert_combine", {outputs[0]}, node.name + ".combine", exchange);
    return outputs;
  };
  Graph graph = Rewriter(divided, rule).run();
  copy_splits(divided, graph);
  return graph;
}

namespace {

void check_divisible(const Graph& graph, const Node& experts, int64_t ep) {
  const int64_t count = graph.tensor(experts.inputs[1]).shape[0];
  if (count % ep != 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: `ep` {} does not divide the {} experts of node "
                                               "'{}'",
                                               graph.name, ep, count, experts.name));
}

/// The rank's part of the weights of all experts; `divides_experts` shares each among ranks.
void divide_weights(Graph& graph, int64_t ep, int64_t divides_experts) {
  for (Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::kExperts) tensor.shape[0] /= ep;
  }
  std::erase_if(graph.splits, [&](const WeightSplit& split) {
    Tensor& tensor = graph.tensor(split.weight);
    if (tensor.role != Role::kExperts) return false;
    tensor.shape[split.dim] = share_of(split, divides_experts);
    return true;
  });
}

}  // namespace

Graph divide_served_experts(const Graph& modules, const ServedExperts& form) {
  if (form.dp == 1 && form.ep == 1) return modules;
  const OpId experts = require_op("experts");
  Graph divided = modules;
  bool found = false;
  for (const Node& node : modules.nodes) {
    if (node.op != experts) continue;
    found = true;
    check_divisible(modules, node, form.ep);
  }
  if (!found)
    throw Error(ErrorKind::kUnsupported,
                modules.name + ": the model has no experts that ranks share");
  divide_weights(divided, form.ep, form.tp * form.dp / form.ep);
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    if (node.op != experts) return keep(b, node, std::move(inputs));
    const auto top_k = attribute<int64_t>(node, "top_k");
    const std::vector<Attribute> copies = {{"ranks", form.dp}, {"top_k", top_k}, {"copies", 1}};
    const std::vector<Attribute> rows = {{"ranks", form.dp}, {"dim", int64_t{0}}};
    const auto exchange = [&](std::string_view sent, std::string_view gathered, TensorId x,
                              const char* name) {
      if (form.dp == 1) return x;
      return b.op(form.dispatch ? sent : gathered, {x}, node.name + name,
                  form.dispatch ? copies : rows);
    };
    inputs[0] = exchange("expert_dispatch", "data_all_gather", inputs[0], ".dispatch");
    inputs.resize(3);  // the router's weights are for its gradient
    Node own = node;
    if (form.dispatch) {
      own.set_attribute("top_k", int64_t{1});
      own.set_attribute("senders", form.ep);
      own.set_attribute("sent_top_k", top_k);
    } else {
      own.set_attribute("ranks", form.ep);
    }
    own.set_attribute("partial", int64_t{form.tp > 1 ? 1 : 0});
    std::vector<TensorId> outputs = keep(b, own, std::move(inputs));
    outputs[0] = exchange("expert_combine", "data_reduce_scatter", outputs[0], ".combine");
    return outputs;
  };
  Graph graph = Rewriter(divided, rule).run();
  copy_splits(divided, graph);
  return graph;
}

}  // namespace tilecast
