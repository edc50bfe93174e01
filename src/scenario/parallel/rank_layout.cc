#include "scenario/parallel/rank_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/text.h"
#include "request/access.h"
#include "request/pass_layout.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kInput, message); }

Cluster cluster_of_ranks(const Device& device, const Request& request, int64_t ranks) {
  const Parallel& p = request.parallel;
  if (ranks == 1 && p.cluster.empty()) return {.device = device};
  const Cluster cluster = p.cluster.empty() ? node_of(device) : find_cluster(p.cluster);
  const int64_t each = cluster.gpus_per_node;
  if (!p.nodes) {
    if (ranks <= each) return with_nodes(cluster, 1);
    // As many GPUs of each node, at least half of them: 256 ranks take 64 of each of four nodes of
    // 72.
    int64_t nodes = ceil_divide(ranks, each);
    while (ranks % nodes != 0 && 2 * (ranks / nodes) >= each) ++nodes;
    if (ranks % nodes != 0 || 2 * (ranks / nodes) < each)
      refuse(
          fmt::format("{} ranks do not fill nodes of {} GPUs ({}), nor the same part of each; "
                      "change the degrees, or give `nodes`",
                      ranks, each, cluster.name));
    return with_gpus_per_node(with_nodes(cluster, nodes), ranks / nodes);
  }
  if (ranks % *p.nodes != 0 || ranks / *p.nodes > each)
    refuse(
        fmt::format("`dp` {} × `tp` {} × `pp` {} × `cp` {} = {} ranks, but {} of {} {} {} GPUs, "
                    "each node the same number of ranks; change the degrees or `nodes`",
                    request.execution.dp, request.execution.tp, request.execution.pp, p.cp, ranks,
                    *p.nodes == 1 ? "1 node" : fmt::format("{} nodes", *p.nodes), cluster.name,
                    *p.nodes == 1 ? "has" : "have", *p.nodes * each));
  const Cluster nodes = with_nodes(cluster, *p.nodes);
  return ranks == nodes.gpus() ? nodes : with_gpus_per_node(nodes, ranks / *p.nodes);
}

/// `layers` over `parts`, as even as possible. The first and the last part, which also have the
/// embeddings and the head, get fewer; then those at the end (Llama 3, section 3.3.2).
std::vector<int64_t> even_layers(int64_t layers, int64_t parts) {
  const int64_t most = ceil_divide(layers, parts);
  std::vector<int64_t> counts(static_cast<size_t>(parts), most);
  int64_t spare = most * parts - layers;
  std::vector<size_t> order = {counts.size() - 1, 0};
  for (size_t i = counts.size() - 1; i-- > 1;) order.push_back(i);
  for (size_t i = 0; spare > 0; ++i, --spare) counts[order[i]] -= 1;
  return counts;
}

std::vector<int64_t> given_layers(const std::string& text, int64_t layers, int64_t stages) {
  std::vector<int64_t> counts;
  OptionDef number = *find_option("pipeline-layers", RequestKind::kPass);
  number.min = 0;  // parts at the ends may have the embeddings or the head alone
  for (const std::string& part : split(text, ',')) counts.push_back(whole_value(number, part));
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (static_cast<int64_t>(counts.size()) != stages || sum != layers)
    refuse(
        fmt::format("`pipeline-layers` {}: expected {} numbers that sum up to the model's {} "
                    "layers, found {} that sum up to {}",
                    text, stages, layers, counts.size(), sum));
  return counts;
}

void divide_layers(RankLayout& layout, const Model& model, const Request& request, int64_t layers) {
  const Parallel& p = request.parallel;
  PipelineShape& shape = layout.pipeline;
  shape.schedule = p.schedule;
  shape.stages = layout.pp;
  if (layout.pp > layers && layout.pp > 1)
    refuse(fmt::format("{}: `pp` {}, but the model has {} layers that stages can divide",
                       model.name, layout.pp, layers));
  if (p.schedule == PipelineSchedule::kInterleaved) {
    const int64_t each = checked_multiply(*p.layers_per_virtual_stage, layout.pp);
    shape.chunks = ceil_divide(layers, each);
    if (shape.chunks < 2)
      refuse(
          fmt::format("`num-layers-per-virtual-pipeline-stage` {} × `pp` {} leaves one part on "
                      "each stage for {} layers: nothing to interleave",
                      *p.layers_per_virtual_stage, layout.pp, layers));
  }
  if (p.schedule == PipelineSchedule::kZbV) shape.chunks = 2;
  const int64_t parts = shape.parts();
  const std::vector<int64_t> counts = p.stage_layers.empty()
                                          ? even_layers(layers, parts)
                                          : given_layers(p.stage_layers, layers, parts);
  int64_t first = 0;
  for (const int64_t count : counts) {
    const bool end = layout.parts.empty() || layout.parts.size() + 1 == counts.size();
    if (count == 0 && layers > 0 && !end)
      refuse(fmt::format(
          "{}: {} layers in {} parts leave a part in the middle without layers; use more "
          "layers a part",
          model.name, layers, parts));
    layout.parts.push_back({.first = first, .count = count});
    first += count;
  }
  layout.parts.front().has_start = true;
  layout.parts.back().has_end = true;
}

/// "5:1.2,17:1.5"
void read_slow_ranks(RankLayout& layout, const std::string& text) {
  if (text.empty()) return;
  layout.slow.assign(static_cast<size_t>(layout.ranks()), 1);
  for (const std::string& entry : split(text, ',')) {
    const size_t colon = entry.find(':');
    if (colon == std::string::npos)
      refuse(fmt::format("`slow-ranks`: expected rank:factor, found '{}'", shown_name(entry)));
    OptionDef number = *find_option("slow-ranks", RequestKind::kPass);
    number.min = 0;
    const int64_t rank = whole_value(number, entry.substr(0, colon));
    number.min = 1;  // a rank that is faster than its device is none of the device's
    const double factor = number_value(number, entry.substr(colon + 1));
    if (rank >= layout.ranks())
      refuse(fmt::format("`slow-ranks`: rank {}, but there are {} ranks, numbered from 0", rank,
                         layout.ranks()));
    layout.slow[static_cast<size_t>(rank)] = factor;
  }
}

void require_modules(const Model& model, const Request& request) {
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  if (!model.has_modules && (e.tp > 1 || e.pp > 1 || p.cp > 1 || p.ep > 1))
    throw Error(ErrorKind::kUnsupported,
                model.name +
                    ": a graph file states no layers and no weights that ranks divide; "
                    "use `dp` only");
}

}  // namespace

CommGroup RankLayout::group(int64_t size, int64_t stride) const {
  const int64_t node = std::min(cluster.gpus_per_node, ranks());
  int64_t inside = std::min(size, (node - 1) / stride + 1);  // ranks 0, stride, … of a node
  while (size % inside != 0) --inside;
  return {.ranks = size,
          .ranks_per_node = inside,
          .concurrent = std::max<int64_t>(1, node / inside),
          .stride = std::min(stride, node)};
}

StageLinks RankLayout::links_after(int64_t stage) const {
  const int64_t node = std::min(cluster.gpus_per_node, ranks()), ranks_of_stage = width() * dp;
  const auto [lower, upper] = std::minmax({stage, (stage + 1) % pp});
  const int64_t first = lower * ranks_of_stage, last = (upper + 1) * ranks_of_stage - 1;
  return first / node == last / node ? StageLinks::kInNode : StageLinks::kNetwork;
}

std::optional<StageLinks> RankLayout::links_before(int64_t part) const {
  if (part == 0) return std::nullopt;
  const int64_t from = stage_of_part(pipeline, part - 1), to = stage_of_part(pipeline, part);
  if (from == to) return std::nullopt;
  return links_after(to == (from + 1) % pp ? from : to);
}

CommGroup RankLayout::context_ring() const {
  CommGroup pair = context_group();
  // Where ranks are on several nodes, all wait for those that send over the network.
  pair.ranks_per_node = pair.ranks_per_node == pair.ranks ? 2 : 1;
  pair.ranks = 2;
  return pair;
}

CommGroup RankLayout::stage_pair(StageLinks links) const {
  const int64_t node = std::min(cluster.gpus_per_node, ranks()), stride = width() * dp;
  const bool inside = links == StageLinks::kInNode;
  return {.ranks = 2,
          .ranks_per_node = inside ? 2 : 1,
          .concurrent = std::max<int64_t>(1, inside ? node / 2 : std::min(stride, node)),
          .stride = std::min(stride, node)};
}

bool is_parallel(const Request& request) {
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  return e.dp != 1 || e.tp != 1 || e.pp != 1 || p.cp != 1 || p.ep != 1 || e.microbatches != 1 ||
         (p.micro_batch_size && *p.micro_batch_size != request.batch) || !p.slow_ranks.empty();
}

Cluster cluster_of(const Device& device, const Request& request) {
  const Execution& e = request.execution;
  return cluster_of_ranks(
      device, request,
      checked_multiply(checked_multiply(e.dp, e.tp), checked_multiply(e.pp, request.parallel.cp)));
}

RankShare rank_share(const Model& model, const Request& request) {
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  require_modules(model, request);
  check_pass_layout(request);
  if (p.cp > 1 && e.attention != AttentionKind::kFlash)
    throw Error(ErrorKind::kUnsupported,
                "`cp` needs `attention` flash: eager attention's masks are not divided");
  return {.sequences = p.micro_batch_size.value_or(request.batch / e.dp / e.microbatches),
          .tokens = *request.seq / p.cp};
}

RankLayout lay_out_ranks(const Model& model, const Cluster& cluster, int64_t layers,
                         const Request& request) {
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  RankLayout layout{.cluster = cluster,
                    .dp = e.dp,
                    .tp = e.tp,
                    .pp = e.pp,
                    .cp = p.cp,
                    .ep = p.ep,
                    .expert_tp = p.expert_tp == e.tp ? std::nullopt : p.expert_tp,
                    .tp_overlap = p.tp_comm_overlap,
                    .expert_overlap = p.moe_comm_overlap,
                    .sends_once = p.token_dispatcher == TokenDispatcher::kFlex};
  const int64_t ranks = layout.ranks();
  layout.micro_batch = rank_share(model, request).sequences;
  layout.pipeline.microbatches = request.batch / layout.dp / layout.micro_batch;
  if (p.moe_comm_overlap && (p.ep == 1 || layout.pipeline.microbatches == 1))
    throw Error(
        ErrorKind::kInput,
        fmt::format("`overlap-moe-expert-parallel-comm` has no effect with {}: it hides the "
                    "exchange of experts behind another micro-batch; leave it out",
                    p.ep == 1 ? "`ep` 1" : "one micro-batch"));
  if (layout.sends_once && p.ep == 1)
    throw Error(ErrorKind::kInput,
                "`moe-token-dispatcher-type` flex has no effect with `ep` 1: it sends tokens to "
                "other ranks' experts; leave it out");
  if (layout.sends_once && layout.expert_tp.value_or(1) > 1)
    throw Error(ErrorKind::kUnsupported,
                "`moe-token-dispatcher-type` flex with `expert-tensor-parallel-size` other than 1 "
                "and `tp`: how its kernels reach the parts of an expert is not modelled; use "
                "alltoall");
  divide_layers(layout, model, request, layers);
  // 3,072 GPUs of the largest published run take 100,000 passes.
  constexpr int64_t kMostPasses = 4'000'000, kMostRanks = 1 << 24;
  const int64_t passes =
      checked_multiply(static_cast<int64_t>(layout.parts.size()), layout.pipeline.microbatches);
  if (passes > kMostPasses || ranks > kMostRanks)
    refuse(
        fmt::format("{} ranks and {} passes of micro-batches through parts of the model are too "
                    "many to simulate; the most are {} and {}",
                    ranks, passes, kMostRanks, kMostPasses));
  read_slow_ranks(layout, p.slow_ranks);
  return layout;
}

}  // namespace tilecast
