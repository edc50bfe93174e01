#include "api/step_costs.h"

#include <algorithm>

namespace tilecast {

template <size_t D>
LazyGrid<D>::LazyGrid(const std::vector<int64_t>& named, std::function<double(const Knots&)> value)
    : knots_(named), value_(std::move(value)) {
  constexpr int64_t kLargest = int64_t{1} << 32;
  knots_.push_back(1);
  for (int64_t x = 2; x <= kLargest; x *= 2) {
    knots_.push_back(x);
    knots_.push_back(x + x / 2);
  }
  std::sort(knots_.begin(), knots_.end());
  knots_.erase(std::unique(knots_.begin(), knots_.end()), knots_.end());
  for (const int64_t knot : knots_) logs_.push_back(std::log(static_cast<double>(knot)));
}

template <size_t D>
double LazyGrid<D>::log_at(const std::array<size_t, D>& indices) {
  uint64_t key = 0;
  Knots sizes{};
  for (size_t d = 0; d < D; ++d) {
    key = key << 16 | indices[d];
    sizes[d] = knots_[indices[d]];
  }
  const auto [it, fresh] = known_.try_emplace(key, 0.0);
  constexpr double kMin = 1e-12;  // seconds; the logarithm needs a positive value
  if (fresh) it->second = std::log(std::max(kMin, value_(sizes)));
  return it->second;
}

template <size_t D>
double LazyGrid<D>::at(const std::array<double, D>& sizes) {
  std::array<size_t, D> low{};
  std::array<double, D> part{};
  for (size_t d = 0; d < D; ++d) {
    const double x = std::log(std::max(1.0, sizes[d]));
    const auto above = std::upper_bound(logs_.begin(), logs_.end() - 1, x + 1e-12);
    low[d] = static_cast<size_t>(above - logs_.begin()) - 1;
    part[d] = std::max(0.0, (x - logs_[low[d]]) / (*above - logs_[low[d]]));
    if (part[d] < 1e-9) part[d] = 0;
  }
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << D; ++corner) {
    double weight = 1;
    std::array<size_t, D> at = low;
    for (size_t d = 0; d < D; ++d) {
      const bool high = (corner >> d & 1) != 0;
      weight *= high ? part[d] : 1 - part[d];
      at[d] += high ? 1 : 0;
    }
    if (weight > 0) sum += weight * log_at(at);
  }
  return std::exp(sum);
}

StepCosts::StepCosts(const LlmSteps& steps, const std::vector<int64_t>& named)
    : steps_(steps),
      rest_(named, [this](const auto& x) { return part_s({1, x[0], 1}, Part::kRest); }),
      head_(named, [this](const auto& x) { return part_s({x[0], 1, 1}, Part::kHead); }),
      decode_(named,
              [this](const auto& x) {
                return part_s({x[0], 1, std::max<int64_t>(1, x[1] - 1)}, Part::kGroup);
              }),
      fresh_(named, [this](const auto& x) { return part_s({x[0], x[1], 0}, Part::kGroup); }),
      later_(named, [this](const auto& x) { return part_s({x[0], x[1], x[2]}, Part::kGroup); }) {
  const LlmSteps::Step step = steps_.step({{1, 1, 1}}, false);
  double launches = 0;
  for (const double count : step.program.kernel_counts()) launches += count;
  launch_s_ = launches * *steps_.asked().execution.host_launch_s;
  for (const auto& [images, runs] : steps_.tower_runs(1))
    images_s_ += static_cast<double>(runs) * steps_.tower_step(images).totals.seconds;
}

double StepCosts::part_s(const StepRequest::Group& group, Part part) const {
  return steps_.kernel_seconds({group}, [part](const Program&, const Launch& launch) {
    const std::string& name = launch.node->name;
    if (is_group_work(name)) return part == Part::kGroup;
    return part == (is_output_work(name) ? Part::kHead : Part::kRest);
  });
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

double StepCosts::seconds(const ServingBatch& batch) {
  const auto decoding = static_cast<double>(batch.decoding);
  double tokens = decoding;
  for (const PromptChunk& p : batch.prompts) tokens += static_cast<double>(p.tokens);
  double seconds =
      rest_.at({tokens}) + head_.at({decoding + static_cast<double>(batch.prompts.size())});
  if (batch.decoding > 0) seconds += decode_.at({decoding, batch.decode_context + 1});
  seconds += prompts_s(batch.prompts, true) + prompts_s(batch.prompts, false);
  // The tower runs before the first part of a prompt, unless that is in the prefix cache.
  const auto starts = std::count_if(batch.prompts.begin(), batch.prompts.end(),
                                    [](const PromptChunk& p) { return p.past == 0; });
  const double images_s = static_cast<double>(starts) * images_s_;
  // As in a static batch: decode steps are CUDA graphs, kernels of prompts are launched one by one.
  const bool graphs = steps_.asked().execution.cuda_graphs && batch.prompts.empty();
  return images_s + (graphs ? seconds : std::max(seconds, launch_s_));
}

template class LazyGrid<1>;
template class LazyGrid<2>;
template class LazyGrid<3>;

}  // namespace tilecast
