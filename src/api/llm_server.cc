#include <algorithm>
#include <cmath>
#include <functional>

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {
namespace {

/// Piecewise linear in the logarithms of one or two sizes; made once, read in every step.
class Surface {
 public:
  Surface() = default;
  Surface(std::vector<int64_t> xs, std::vector<int64_t> ys,
          const std::function<double(int64_t, int64_t)>& value)
      : xs_(std::move(xs)), ys_(std::move(ys)) {
    for (int64_t x : xs_) {
      for (int64_t y : ys_) logs_.push_back(std::log(std::max(1e-12, value(x, y))));
    }
  }
  double at(double x, double y) const {
    const Place i = place(xs_, x), j = place(ys_, y);
    const auto log_at = [&](size_t a, size_t b) { return logs_[a * ys_.size() + b]; };
    const double low = log_at(i.index, j.index) * (1 - j.part) + log_at(i.index, j.next) * j.part;
    const double high = log_at(i.next, j.index) * (1 - j.part) + log_at(i.next, j.next) * j.part;
    return std::exp(low * (1 - i.part) + high * i.part);
  }

 private:
  struct Place {
    size_t index, next;
    double part;
  };
  static Place place(const std::vector<int64_t>& grid, double x) {
    if (grid.size() == 1 || x <= static_cast<double>(grid.front())) return {0, 0, 0};
    size_t i = 0;
    while (i + 2 < grid.size() && x > static_cast<double>(grid[i + 1])) ++i;
    const double low = std::log(static_cast<double>(grid[i]));
    const double high = std::log(static_cast<double>(grid[i + 1]));
    return {i, i + 1, std::min(1.0, (std::log(x) - low) / (high - low))};
  }
  std::vector<int64_t> xs_, ys_;
  std::vector<double> logs_;
};

/// Powers of two from `first` on, and `last`.
std::vector<int64_t> grid(int64_t first, int64_t last) {
  std::vector<int64_t> result;
  for (int64_t x = first; x < last; x *= 2) result.push_back(x);
  result.push_back(std::max(first, last));
  return result;
}

/// Seconds of a step's kernels: attention, the output layer, all else.
struct Parts {
  double attention = 0, head = 0, rest = 0;
};
Parts parts(const LlmSteps& steps, std::vector<LlmSteps::Group> groups) {
  const LlmSteps::Step s = steps.step(std::move(groups), false);
  const size_t last = s.graph.segments.size() - 1;  // the head
  Parts p;
  for (const Launch& launch : s.lowered.launches) {
    const double seconds = s.times[launch.kernel].seconds * static_cast<double>(launch.count);
    const bool attention = s.lowered.distinct[launch.kernel].is_attention();
    (attention ? p.attention : launch.segment == last ? p.head : p.rest) += seconds;
  }
  return p;
}

/// What the host takes to launch a step kernel by kernel.
double host_floor(const LlmSteps& steps) {
  const LlmSteps::Step s = steps.step({{1, 1, 1}}, false);
  double launches = 0;
  for (const Launch& launch : s.lowered.launches) launches += static_cast<double>(launch.count);
  return launches * steps.options().host_launch_s;
}

}  // namespace

LlmForecast::Serving forecast_server(const LlmSteps& steps, int64_t cache_room,
                                     const Estimate& first_token, const Estimate& per_token) {
  const LlmOptions& o = steps.options();
  LlmForecast::Serving result;
  ServingLoad load;
  load.prompt = o.prompt;
  load.output = o.output;
  load.requests_per_s = o.rate;
  load.concurrency = o.concurrency > 0 ? o.concurrency : o.batch;
  load.tokens_per_step = o.chunk;
  load.cache_tokens = cache_room /
                      std::max<int64_t>(1, steps.cache_bytes(1, o.prompt + o.output, o.tp)) *
                      (o.prompt + o.output);
  result.most_sequences = std::min(load.most_sequences, load.cache_tokens / (o.prompt + o.output));
  // Enough to fill the batch several times, but not for ever.
  const int64_t together = o.rate > 0 ? result.most_sequences : load.concurrency;
  constexpr int64_t kFewest = 12, kMost = 20000, kMostTokens = 20'000'000;
  load.requests =
      std::clamp<int64_t>(std::max<int64_t>(load.requests, 6 * std::min(together, kMost)), kFewest,
                          std::clamp<int64_t>(kMostTokens / o.output, kFewest, kMost));
  result.rate = o.rate;
  result.concurrency = o.rate > 0 ? 0 : load.concurrency;

  const int64_t most = std::max<int64_t>(1, std::min(result.most_sequences, together));
  const int64_t longest = o.prompt + o.output;
  // All but attention depends on the tokens of a step alone, the output layer on its sequences.
  const Surface rest(grid(1, o.chunk + most), {1},
                     [&](int64_t tokens, int64_t) { return parts(steps, {{1, tokens, 1}}).rest; });
  const Surface head(grid(1, most + 1), {1},
                     [&](int64_t b, int64_t) { return parts(steps, {{b, 1, 1}}).head; });
  const Surface decode(
      grid(1, most), grid(std::max<int64_t>(1, o.prompt / 2), longest),
      [&](int64_t b, int64_t past) { return parts(steps, {{b, 1, past}}).attention; });
  const int64_t chunk = std::min(o.chunk, o.prompt);
  const Surface fresh(grid(std::min<int64_t>(64, chunk), chunk), {1}, [&](int64_t tokens, int64_t) {
    return parts(steps, {{1, tokens, 0}}).attention;
  });
  const Surface later(
      grid(std::min<int64_t>(64, chunk), chunk), grid(std::min<int64_t>(256, o.prompt), o.prompt),
      [&](int64_t tokens, int64_t past) { return parts(steps, {{1, tokens, past}}).attention; });
  const double launches = host_floor(steps);
  const auto step_s = [&](const ServingBatch& b) {
    const auto tokens = static_cast<double>(b.decoding + b.prefill_tokens);
    const auto sequences = static_cast<double>(b.decoding + (b.prefill_tokens > 0 ? 1 : 0));
    double seconds = rest.at(tokens, 1) + head.at(sequences, 1);
    if (b.decoding > 0) seconds += decode.at(static_cast<double>(b.decoding), b.decode_context);
    if (b.prefill_tokens > 0)
      seconds += b.prefill_past == 0 ? fresh.at(static_cast<double>(b.prefill_tokens), 1)
                                     : later.at(static_cast<double>(b.prefill_tokens),
                                                static_cast<double>(b.prefill_past));
    const bool graphs = o.cuda_graphs && b.prefill_tokens == 0;
    return graphs ? seconds : std::max(seconds, launches);
  };
  const ServingResult s = simulate_serving(load, step_s);
  const auto quantile = [](const std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0.0;
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  // Steps are as uncertain as those of the batch at a time; queues make that worse, unmodelled.
  const auto with = [](double seconds, const Estimate& like) {
    return Estimate{seconds, seconds * like.low_s / like.seconds,
                    seconds * like.high_s / like.seconds};
  };
  result.first_token_median = with(quantile(s.first_token, 0.5), first_token);
  result.first_token_p99 = with(quantile(s.first_token, 0.99), first_token);
  result.per_token_median = with(quantile(s.per_token, 0.5), per_token);
  result.per_token_p99 = with(quantile(s.per_token, 0.99), per_token);
  result.requests_per_s = s.requests_per_s;
  result.tokens_per_s = s.requests_per_s * static_cast<double>(o.output);
  result.mean_batch = s.mean_batch;
  result.busy_share = s.busy_share;
  result.keeps_up = s.keeps_up;
  return result;
}

}  // namespace tilecast
