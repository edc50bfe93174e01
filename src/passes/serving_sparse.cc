// Sparse attention in a serving step: the indexer's keys and the compressed keys have caches of
// their own. Rotary embedding of the queries is one kernel with that of the keys.

#include <algorithm>

#include "base/checked.h"
#include "ops/decompose.h"
#include "ops/op_def.h"
#include "passes/serving_step.h"

namespace tilecast {

/// DeepSeek stores the indexer's keys in fp8, MiniMax M3 like its other keys.
void ServingStep::indexer(int32_t index) {
  const Node& node = node_at(index);
  const std::string p = name_prefix(node.name);
  const auto heads = attribute<int64_t>(node, "heads"), ratio = attribute<int64_t>(node, "ratio");
  const auto block = attribute<int64_t>(node, "block");
  const TensorId q = get(node.inputs[0]), k = get(node.inputs[1]);
  const TensorId w = node.inputs.size() > 2 ? get(node.inputs[2]) : -1;
  const int64_t size = to_.tensor(k).shape.back();
  std::vector<TensorId> caches;
  for (const StepRequest::Group& g : request_.groups)
    caches.push_back(states(p + "keys", {g.sequences, ceil_divide(g.past + g.tokens, ratio), size},
                            block > 1 ? request_.kv_dtype : DType::kFp8));
  caches.front() = op("append_cache", {caches.front(), k}, p + "cache");
  for (size_t i = 0; i < caches.size(); ++i) {
    const RoleScope role(b_, Role::kGroup);
    const StepRequest::Group& g = request_.groups[i];
    const TensorId queries = view(rows_of(q, g, p + "rows"), {g.sequences, g.tokens, heads, size});
    std::vector<TensorId> inputs = {queries, caches[i]};
    if (w >= 0) inputs.push_back(view(rows_of(w, g, p + "rows"), {g.sequences, g.tokens, heads}));
    const TensorId scores =
        op("index_scores", std::move(inputs), node.name, {{"ratio", ratio}, {"block", block}});
    op("top_keys", {scores}, node.name,
       {{"top_k", ceil_divide(attribute<int64_t>(node, "top_k"), block)}});
  }
}

void ServingStep::compressed_attention(int32_t index) {
  const Node& node = node_at(index);
  const std::string p = name_prefix(node.name);
  const Shape& qs = module_shape(node.inputs[0]);  // [b, heads, s, size]
  const int64_t heads = qs[1], size = qs[3];
  const auto window = attribute<int64_t>(node, "window"), ratio = attribute<int64_t>(node, "ratio");
  std::vector<TensorId> added;
  for (size_t i = 1; i < node.inputs.size(); ++i) added.push_back(get(node.inputs[i]));
  const std::vector<TensorId> turned =
      b_.add("rotary", {get(node.inputs[0]), added[0]}, p + "rotary");
  const TensorId q = turned[0];
  added[0] = turned[1];
  const auto cache_of = [&](const StepRequest::Group& g) {
    const int64_t all = g.past + g.tokens;
    const int64_t kept = std::min(all, std::max(window, g.tokens));
    return b_.tensor({.name = p + "cache",
                      .shape = {g.sequences, kept + (ratio > 0 ? all / ratio : 0), size},
                      .dtype = request_.kv_dtype,
                      .kind = TensorKind::kCache,
                      .segment = b_.current_segment()});
  };
  std::vector<TensorId> caches;
  for (const StepRequest::Group& g : request_.groups) caches.push_back(cache_of(g));
  added.insert(added.begin(), caches.front());
  caches.front() = op("append_cache", std::move(added), p + "cache");
  const TensorId buffer = buffer_like(q, heads * size, p + "outputs");
  std::vector<TensorId> outputs;
  for (const StepRequest::Group& g : request_.groups) {
    const RoleScope role(b_, Role::kGroup);
    const TensorId rows = view(rows_of(q, g, p + "rows"), {g.sequences, g.tokens, heads, size});
    const TensorId context = op("sparse_attention", {rows, caches[outputs.size()]}, node.name,
                                {{"keys", g.past + g.tokens},
                                 {"window", window},
                                 {"ratio", ratio},
                                 {"top_k", attribute<int64_t>(node, "top_k")}});
    outputs.push_back(view(context, {g.sequences * g.tokens, heads * size}));
  }
  set(node.outputs[0], join(buffer, std::move(outputs), p + "joined"));
}

}  // namespace tilecast
