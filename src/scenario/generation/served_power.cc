// Power over a minute of a server under load.

#include "scenario/generation/served_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "request/access.h"
#include "scenario/generation/served_layout.h"
#include "scenario/generation/step_timer.h"
#include "scenario/power.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kMinute = 60;

/// Sequences that compute alike; a group without sequences has none.
struct ShownGroup {
  int64_t sequences = 0, tokens = 0, past = 0;
  auto operator<=>(const ShownGroup&) const = default;
};

/// What a rank computes in a step: its decoding sequences, and prompts of their mean length, with
/// different adapters, after the images of the prompts.
struct ShownStep {
  ShownGroup decode, prompts;
  int64_t adapters = 0, images = 0;
  auto operator<=>(const ShownStep&) const = default;
};

/// `drafted`: tokens of drafts, which a sequence that decodes checks with its own.
ShownStep shown_step(const ServingBatch& batch, int64_t drafted) {
  ShownStep step{.adapters = batch.adapters, .images = batch.images};
  if (batch.decoding > 0)
    step.decode = {batch.decoding, 1 + drafted,
                   std::max<int64_t>(1, std::llround(batch.decode_context))};
  const auto count = static_cast<int64_t>(batch.prompts.size());
  if (count == 0) return step;
  int64_t tokens = 0, past = 0;
  for (const PromptChunk& p : batch.prompts) {
    tokens += p.tokens;
    past += p.past;
  }
  step.prompts = {count, std::max<int64_t>(1, tokens / count), past / count};
  return step;
}

/// "decode of 32 sequences", "prompts of 2,048 tokens, decode of 32 sequences".
std::string step_name(const ShownStep& step) {
  std::string name;
  if (step.prompts.sequences > 0)
    name = fmt::format("prompts of {} tokens", step.prompts.sequences * step.prompts.tokens);
  if (step.decode.sequences > 0)
    name += fmt::format("{}decode of {} sequence{}", name.empty() ? "" : ", ",
                        step.decode.sequences, step.decode.sequences == 1 ? "" : "s");
  return name;
}

/// Three significant binary digits: a server has thousands of steps, whose power hardly differs
/// between neighbours.
int64_t rounded_size(int64_t size) {
  constexpr int64_t kExact = 8;
  int64_t unit = 1;
  while (size / unit >= kExact) unit *= 2;
  return std::max<int64_t>(std::min<int64_t>(size, 1), (size + unit / 2) / unit * unit);
}

ShownGroup rounded(const ShownGroup& group) {
  return {rounded_size(group.sequences), rounded_size(group.tokens), rounded_size(group.past)};
}

ShownStep rounded(const ShownStep& step) {
  ShownStep all{.decode = rounded(step.decode),
                .prompts = rounded(step.prompts),
                .images = rounded_size(step.images)};
  // Each sequence has one adapter.
  all.adapters =
      std::min(rounded_size(step.adapters), all.decode.sequences + all.prompts.sequences);
  return all;
}

/// Power of the steps of a server's first stage.
class StepPower {
 public:
  StepPower(const ServedModel& served, const BoardPower& board)
      : served_(served), board_(board), terms_(served.power()) {}

  double idle_w() const { return board_.idle_w(terms_.clock_share()); }

  /// The kernels of a step that takes so long, in which it waits for the host and other ranks, too.
  double watts(const ShownStep& step, double seconds) {
    const ShownStep key = rounded(step);
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, kernels_of(key)).first;
    const PowerSum& sum = known->second;
    if (std::max(seconds, sum.busy_s) <= 0) return idle_w();
    const double watts = sum.mean_w(seconds, board_.idle_w(sum.clock_share()), board_.warm_w());
    return std::clamp(watts, idle_w(), board_.limit_w());
  }

 private:
  PowerSum kernels_of(const ShownStep& step) const {
    std::vector<StepGroup> groups;
    for (const ShownGroup& g : {step.decode, step.prompts}) {
      if (g.sequences > 0) groups.push_back({g.sequences, g.tokens, g.past});
    }
    PowerSum sum{.clock_share_of_waits = terms_.clock_share()};
    add(sum, time_step(served_, std::move(groups), StepLaunch::kCudaGraph, 0, step.adapters), 1);
    if (step.images == 0 || !served_.tower) return sum;
    for (const auto& [images, runs] : served_.tower->runs(step.images))
      add(sum, time_tower(served_, *served_.tower, images), static_cast<double>(runs));
    return sum;
  }

  void add(PowerSum& sum, const TimedStep& timed, double runs) const {
    for (const Launch& launch : timed.program.launches) {
      const KernelTime& time = timed.times[launch.kernel];
      sum.add(board_, time.energy, time.seconds,
              runs * static_cast<double>(timed.program.count(launch)));
    }
  }

  const ServedModel& served_;
  const BoardPower& board_;
  PowerTerms terms_;
  std::map<ShownStep, PowerSum> known_;
};

struct WatchedStep {
  double start_s = 0, end_s = 0;
  double seconds = 0;  ///< of each of the steps, all of which are alike
  ShownStep step;
};

/// The part of the run that is shown.
struct ShownMinute {
  double start_s = 0, end_s = 0;
};

ShownMinute middle_minute(const std::vector<WatchedStep>& steps) {
  const double first = steps.front().start_s, last = steps.back().end_s;
  if (last - first <= kMinute) return {first, last};
  const double middle = (first + last) / 2;
  return {middle - kMinute / 2, middle + kMinute / 2};
}

std::vector<PowerPoint> points_in(const std::vector<WatchedStep>& steps, const ShownMinute& window,
                                  StepPower& power) {
  std::vector<PowerPoint> points;
  double at = window.start_s;  // until when power is known
  const auto add = [&](double start_s, double watts, std::string what) {
    points.push_back({start_s - window.start_s, watts, std::move(what)});
  };
  for (const WatchedStep& s : steps) {
    if (s.end_s <= window.start_s || s.start_s >= window.end_s) continue;
    const double start = std::max(s.start_s, window.start_s);
    if (start > at) add(at, power.idle_w(), "");
    add(start, power.watts(s.step, s.seconds), step_name(s.step));
    at = std::min(s.end_s, window.end_s);
  }
  if (at < window.end_s) add(at, power.idle_w(), "");
  return points;
}

}  // namespace

PowerTimeline served_power(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                           const Request& request) {
  KnownServer known;
  const ServedLayout layout(forecaster, model, gpu, request, known);
  const ServedModel& served = layout.served();
  const PowerTerms terms = served.power();
  const std::optional<BoardPower> board = terms.board();
  if (!board) throw Error(ErrorKind::kUnsupported, "the power of " + gpu.id() + " is not forecast");
  std::vector<WatchedStep> steps;
  const GenerationForecast f =
      layout.under(request.load.concurrency, {}, [&](const ServedSteps& s) {
        if (s.begins_counting) steps.clear();
        const ShownStep step =
            shown_step(s.ranks.front(), served.asked.deployment.speculation.tokens);
        if (step.decode.sequences > 0 || step.prompts.sequences > 0)
          steps.push_back({s.start_s, s.start_s + s.first_stage_s,
                           s.first_stage_s / static_cast<double>(s.steps), step});
      });
  if (!f.serving || steps.empty())
    throw Error(ErrorKind::kInput,
                "the server does not run: the forecast without power over time says why");
  std::sort(steps.begin(), steps.end(),
            [](const WatchedStep& a, const WatchedStep& b) { return a.start_s < b.start_s; });
  StepPower power(served, *board);
  const ShownMinute window = middle_minute(steps);
  return {.model = model.name(),
          .gpu = gpu.id(),
          .gpu_name = served.device.name,
          .work = "server under load",
          .seconds = window.end_s - window.start_s,
          .limit_w = board->limit_w(),
          .idle_w = power.idle_w(),
          .ranks = {{.rank = 0, .points = points_in(steps, window, power)}}};
}

}  // namespace tilecast
