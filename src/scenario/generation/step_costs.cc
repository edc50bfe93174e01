#include "scenario/generation/step_costs.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "ops/op_def.h"
#include "scenario/generation/drafts.h"

namespace tilecast {

GridKnots::GridKnots(const std::vector<int64_t>& named) : sizes(named) {
  constexpr int64_t kLargest = int64_t{1} << 32;
  sizes.push_back(1);
  for (int64_t x = 2; x <= kLargest; x *= 2) {
    sizes.push_back(x);
    sizes.push_back(x + x / 2);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  logs.reserve(sizes.size());
  for (const int64_t size : sizes) logs.push_back(std::log(static_cast<double>(size)));
}

template <size_t D>
LazyGrid<D>::LazyGrid(std::shared_ptr<const GridKnots> knots,
                      std::function<double(const Knots&)> value)
    : knots_(std::move(knots)), value_(std::move(value)) {
  sizes_.fill(std::numeric_limits<double>::quiet_NaN());
  corners_.fill(std::numeric_limits<double>::quiet_NaN());
}

template <size_t D>
double LazyGrid<D>::log_of(const std::array<size_t, D>& indices) {
  uint64_t key = 0;
  Knots sizes{};
  for (size_t d = 0; d < D; ++d) {
    key = key << 16 | indices[d];
    sizes[d] = knots_->sizes[indices[d]];
  }
  const auto [it, fresh] = known_.try_emplace(key, 0.0);
  constexpr double kMin = 1e-12;  // seconds; the logarithm needs a positive value
  if (fresh) it->second = std::log(std::max(kMin, value_(sizes)));
  return it->second;
}

/// Whether the sizes differ from the call before.
template <size_t D>
bool LazyGrid<D>::find_cell(const std::array<double, D>& sizes) {
  bool same_cell = true, same_sizes = true;
  const std::vector<double>& logs = knots_->logs;
  for (size_t d = 0; d < D; ++d) {
    if (sizes[d] == sizes_[d]) continue;
    same_sizes = false;
    sizes_[d] = sizes[d];
    const double x = std::log(std::max(1.0, sizes[d]));
    const double place = x + 1e-12;
    if (place < logs[low_[d]] || place >= logs[low_[d] + 1]) {
      const auto above = std::upper_bound(logs.begin(), logs.end() - 1, place);
      low_[d] = static_cast<size_t>(above - logs.begin()) - 1;
      same_cell = false;
    }
    const double low = logs[low_[d]];
    part_[d] = std::max(0.0, (x - low) / (logs[low_[d] + 1] - low));
    if (part_[d] < 1e-9) part_[d] = 0;
  }
  if (!same_cell) corners_.fill(std::numeric_limits<double>::quiet_NaN());
  return !same_sizes;
}

template <size_t D>
double LazyGrid<D>::log_at(const std::array<double, D>& sizes) {
  if (!find_cell(sizes)) return log_result_;
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << D; ++corner) {
    double weight = 1;
    std::array<size_t, D> at = low_;
    for (size_t d = 0; d < D; ++d) {
      const bool high = (corner >> d & 1) != 0;
      weight *= high ? part_[d] : 1 - part_[d];
      at[d] += high ? 1 : 0;
    }
    if (weight <= 0) continue;
    if (std::isnan(corners_[corner])) corners_[corner] = log_of(at);
    sum += weight * corners_[corner];
  }
  result_ = std::numeric_limits<double>::quiet_NaN();
  return log_result_ = sum;
}

template <size_t D>
double LazyGrid<D>::at(const std::array<double, D>& sizes) {
  const double log = log_at(sizes);
  if (std::isnan(result_)) result_ = std::exp(log);
  return result_;
}

double KnownTimes::of(size_t part, What what, const Sizes& sizes,
                      const std::function<double()>& value) {
  const auto key = std::tuple(part, what, sizes);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(key, value()).first->second;
}

namespace {

/// The images of a prompt, and those of a full run of the tower, are frequent.
std::shared_ptr<const GridKnots> image_knots(const ServedModel& served) {
  std::vector<int64_t> named = {std::max<int64_t>(1, served.asked.images)};
  if (served.tower && served.asked.images > 0) named.push_back(served.tower->most_together());
  return std::make_shared<const GridKnots>(named);
}

}  // namespace

template <size_t D, typename Value>
LazyGrid<D> StepCosts::grid(KnownTimes::What what, Value value,
                            std::shared_ptr<const GridKnots> knots) {
  return LazyGrid<D>(knots ? std::move(knots) : knots_,
                     [this, what, value](const std::array<int64_t, D>& x) {
                       KnownTimes::Sizes sizes{};
                       std::copy(x.begin(), x.end(), sizes.begin());
                       return known_.of(part_, what, sizes, [&] { return value(x); });
                     });
}

StepCosts::StepCosts(const ServedModel& served, size_t part, const std::vector<int64_t>& named,
                     KnownTimes& known)
    : served_(served),
      part_(part),
      known_(known),
      knots_(std::make_shared<const GridKnots>(named)),
      tokens_of_decode_(1 + served.asked.deployment.speculation.tokens),
      rest_(grid<1>(KnownTimes::What::kRest,
                    [this](const auto& x) { return kind_s({1, x[0], 1}, Kind::kRest, false); })),
      head_(grid<1>(KnownTimes::What::kHead,
                    [this](const auto& x) { return kind_s({x[0], 1, 1}, Kind::kHead, false); })),
      experts_(
          grid<1>(KnownTimes::What::kExperts,
                  [this](const auto& x) { return kind_s({1, x[0], 1}, Kind::kExperts, false); })),
      decode_experts_(
          grid<1>(KnownTimes::What::kDecodeExperts,
                  [this](const auto& x) { return kind_s({1, x[0], 1}, Kind::kExperts, true); })),
      send_(grid<1>(KnownTimes::What::kSend,
                    [this](const auto& x) { return send_seconds(served_, x[0], part_); })),
      decode_(grid<2>(KnownTimes::What::kDecode,
                      [this](const auto& x) {
                        return kind_s({x[0], tokens_of_decode_, std::max<int64_t>(1, x[1] - 1)},
                                      Kind::kGroup, false);
                      })),
      fresh_(
          grid<2>(KnownTimes::What::kFresh,
                  [this](const auto& x) { return kind_s({x[0], x[1], 0}, Kind::kGroup, false); })),
      later_(grid<3>(
          KnownTimes::What::kLater,
          [this](const auto& x) { return kind_s({x[0], x[1], x[2]}, Kind::kGroup, false); })),
      draft_(grid<2>(KnownTimes::What::kDraft,
                     [this](const auto& x) {
                       return served_.drafter->draft(x[0], std::max<int64_t>(1, x[1] - 1)).value;
                     })),
      draft_fresh_(grid<2>(
          KnownTimes::What::kDraftFresh,
          [this](const auto& x) { return served_.drafter->pass({{x[0], x[1], 0}}).value; })),
      adapters_(grid<2>(
          KnownTimes::What::kAdapters,
          [this](const auto& x) { return kind_s({1, x[0], 1}, Kind::kAdapters, false, x[1]); })),
      images_(grid<1>(
          KnownTimes::What::kImages, [this](const auto& x) { return images_s(x[0]); },
          image_knots(served))),
      experts_ops_{require_op("experts"), require_op("expert_dispatch"),
                   require_op("expert_combine"), require_op("data_all_gather"),
                   require_op("data_reduce_scatter")},
      adapters_ops_{require_op("lora_shrink"), require_op("lora_expand")} {
  const Graph graph = step_graph(served, {{1, 1, 1}}, part);
  launches_ = count_launches(lower(graph));
}

double StepCosts::images_s(int64_t images) const {
  double seconds = 0;
  for (const auto& [together, runs] : served_.tower->runs(images))
    seconds +=
        static_cast<double>(runs) * time_tower(served_, *served_.tower, together).totals.seconds;
  return seconds;
}

StepCosts::Kind StepCosts::kind_of(const Node& node) const {
  if (std::find(std::begin(adapters_ops_), std::end(adapters_ops_), node.op) !=
      std::end(adapters_ops_))
    return Kind::kAdapters;
  if (node.role == Role::kGroup) return Kind::kGroup;
  if (node.role == Role::kOutput) return Kind::kHead;
  const bool shared =
      served_.plan.dp > 1 && std::find(std::begin(experts_ops_), std::end(experts_ops_), node.op) !=
                                 std::end(experts_ops_);
  return shared ? Kind::kExperts : Kind::kRest;
}

const StepKernels& StepCosts::kernels_of(const StepGroup& group, int64_t adapters) {
  constexpr size_t kKept = 8;
  for (const auto& [of, kernels] : recent_) {
    if (of == std::pair(group, adapters)) return kernels;
  }
  if (recent_.size() == kKept) recent_.pop_front();
  return recent_
      .emplace_back(std::pair(group, adapters), step_kernels(served_, {group}, part_, adapters))
      .second;
}

double StepCosts::kind_s(const StepGroup& group, Kind kind, bool decode, int64_t adapters) {
  const auto wanted = [&](const Launch& l) { return kind_of(*l.node) == kind; };
  return kernel_seconds(served_, kernels_of(group, adapters), {.decode = decode, .wanted = wanted});
}

double StepCosts::prompts_s(const std::vector<PromptChunk>& prompts, bool fresh) {
  double tokens = 0, squares = 0, pairs = 0;
  for (const PromptChunk& p : prompts) {
    if ((p.past == 0) != fresh) continue;
    const auto t = static_cast<double>(p.tokens);
    tokens += t;
    squares += t * t;
    pairs += t * static_cast<double>(p.past);
  }
  if (tokens == 0) return 0;
  const double count = tokens * tokens / squares, each = squares / tokens;
  return fresh ? fresh_.at({count, each}) : later_.at({count, each, pairs / tokens});
}

StepCosts::AttentionTime StepCosts::attention(const ServingBatch& batch) {
  AttentionTime time;
  if (batch.decoding > 0)
    time.decode_s = decode_.at({static_cast<double>(batch.decoding), batch.decode_context + 1});
  time.prompts_s = prompts_s(batch.prompts, true) + prompts_s(batch.prompts, false);
  return time;
}

/// Time of the rank with the most work.
StepCosts::AttentionTime StepCosts::longest_attention(std::span<const ServingBatch> ranks,
                                                      bool decodes) {
  AttentionTime longest;
  if (decodes) {
    double most = -std::numeric_limits<double>::infinity();
    for (const ServingBatch& batch : ranks) {
      if (batch.decoding == 0) continue;
      most = std::max(
          most, decode_.log_at({static_cast<double>(batch.decoding), batch.decode_context + 1}));
    }
    longest.decode_s = std::exp(most);
    return longest;
  }
  for (const ServingBatch& batch : ranks) {
    const AttentionTime time = attention(batch);
    if (time.seconds() > longest.seconds()) longest = time;
  }
  return longest;
}

/// The model that makes drafts computes the prompts too.
double StepCosts::drafts_s(const ServingBatch& batch) {
  double seconds = 0, tokens = 0, squares = 0;
  if (batch.decoding > 0)
    seconds += draft_.at({static_cast<double>(batch.decoding), batch.decode_context + 1});
  for (const PromptChunk& p : batch.prompts) {
    const auto t = static_cast<double>(p.tokens);
    tokens += t;
    squares += t * t;
  }
  return tokens > 0 ? seconds + draft_fresh_.at({tokens * tokens / squares, squares / tokens})
                    : seconds;
}

double StepCosts::seconds(std::span<const ServingBatch> ranks) {
  double tokens = 0, all_tokens = 0, sequences = 0, running = 0, images = 0, drafts = 0,
         adapters = 0;
  const bool makes_drafts = served_.drafter != nullptr && served_.stages[part_].layers.has_end;
  bool decodes = true;
  for (const ServingBatch& batch : ranks) {
    const auto decoding = static_cast<double>(batch.decoding * tokens_of_decode_);
    double own = decoding;
    for (const PromptChunk& p : batch.prompts) own += static_cast<double>(p.tokens);
    if (own == 0) continue;
    all_tokens += own;
    tokens = std::max(tokens, own);
    sequences = std::max(sequences, decoding + static_cast<double>(batch.prompts.size()));
    running = std::max(
        running, static_cast<double>(batch.decoding) + static_cast<double>(batch.prompts.size()));
    adapters = std::max(adapters, static_cast<double>(batch.adapters));
    if (makes_drafts) drafts = std::max(drafts, drafts_s(batch));
    if (batch.prompts.empty()) continue;
    decodes = false;
    images = std::max(images, static_cast<double>(batch.images));
  }
  const AttentionTime longest = longest_attention(ranks, decodes);
  const LayerRange& layers = served_.stages[part_].layers;
  double seconds = rest_.at({tokens});
  if (layers.has_end) seconds += head_.at({sequences});
  if (adapters > 0) seconds += adapters_.at({tokens, adapters});
  seconds += longest.decode_s;
  seconds += longest.prompts_s;
  const bool graphs = served_.asked.execution.cuda_graphs && decodes;
  if (ranks.size() > 1) {
    const double each = graphs ? tokens : all_tokens / static_cast<double>(ranks.size());
    seconds += (decodes ? decode_experts_ : experts_).at({each});
  }
  if (graphs) seconds += graph_launches_s(served_, launches_.all);
  const bool mixed = longest.decode_s > 0 && longest.prompts_s > 0;
  const double host_s = graphs ? 0 : launching_s(served_, launches_, tokens, mixed);
  seconds = std::max(seconds, host_s) + step_overhead_s(served_, part_, running);
  // The tower runs before the layers.
  if (images > 0 && layers.has_start && served_.tower) seconds += images_.at({images});
  return layers.has_end ? seconds + drafts : seconds + send_.at({tokens});
}

template class LazyGrid<1>;
template class LazyGrid<2>;
template class LazyGrid<3>;

}  // namespace tilecast
