// The host's calls and the GPU's events are replayed in the order of the trace. Threads of the host
// are one sequence: in training, forward and backward threads take turns. An event that began right
// after one of another stream ended, while its own stream was idle and it had long been launched,
// waited for it: traces do not state such dependencies.

#include "profile/replay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "profile/timeline.h"

namespace tilecast {
namespace {

/// Before any trace, and such that differences fit.
constexpr int64_t kLongAgo = -(int64_t{1} << 61);
/// No time of a replay is later, such that some more of a trace's times can be added.
constexpr int64_t kLatest = INT64_MAX - 4 * kLongestTraceNs;

int64_t ns_of(double seconds) { return std::llround(seconds * 1e9); }

/// `ns` of the trace later than `at`, for a host of this speed.
int64_t later(int64_t at, int64_t ns, double speed) {
  const double passed = static_cast<double>(ns) / speed;
  const int64_t by = passed < static_cast<double>(kLatest) ? static_cast<int64_t>(passed) : kLatest;
  return at > kLatest - by ? kLatest : at + by;
}

class Replay {
 public:
  Replay(const ProfilerTrace& trace, const std::vector<int64_t>& durations, double host_speed,
         const TraceConstants& constants);
  ReplayedTrace run();

 private:
  /// An event of a stream: what it waits for.
  struct Step {
    int32_t previous = -1;  ///< of its stream
    int32_t after = -1;     ///< of another stream
    int64_t gap_ns = 0;     ///< after the one that it waits for
    int64_t delay_ns = 0;   ///< from its launch
  };

  const DeviceEvent& event(int32_t i) const { return trace_.events[static_cast<size_t>(i)]; }
  const RuntimeCall& call(int32_t i) const { return trace_.runtime[static_cast<size_t>(i)]; }
  void find_steps();
  int64_t usual_delay() const;
  void run_host();
  void run_event(int32_t i);

  const ProfilerTrace& trace_;
  const std::vector<int64_t>& durations_;
  const double host_speed_;
  const int64_t launch_ns_, longest_gap_ns_, other_gap_ns_, slack_ns_;
  std::vector<Step> steps_;
  std::vector<int64_t> begin_, end_;            ///< of events, in the replay
  std::vector<int64_t> call_begin_, call_end_;  ///< of runtime calls
  std::vector<std::vector<int32_t>> of_call_;   ///< events by their launch
};

Replay::Replay(const ProfilerTrace& trace, const std::vector<int64_t>& durations, double host_speed,
               const TraceConstants& constants)
    : trace_(trace),
      durations_(durations),
      host_speed_(host_speed),
      launch_ns_(ns_of(constants.queued_launch_s)),
      longest_gap_ns_(ns_of(constants.stream_gap_s)),
      other_gap_ns_(ns_of(constants.other_stream_gap_s)),
      slack_ns_(ns_of(constants.host_slack_s)),
      steps_(trace.events.size()),
      begin_(trace.events.size(), 0),
      end_(trace.events.size(), 0),
      call_begin_(trace.runtime.size(), 0),
      call_end_(trace.runtime.size(), 0),
      of_call_(trace.runtime.size()) {
  for (size_t i = 0; i < trace.events.size(); ++i)
    if (trace.events[i].launch >= 0)
      of_call_[static_cast<size_t>(trace.events[i].launch)].push_back(static_cast<int32_t>(i));
}

/// Of events that began on an idle stream: the median.
int64_t Replay::usual_delay() const {
  std::vector<int64_t> delays;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const DeviceEvent& e = trace_.events[i];
    if (e.launch < 0) continue;
    const int64_t launched = call(e.launch).start_ns;
    const int32_t previous = steps_[i].previous;
    if (previous < 0 || event(previous).end_ns() < launched)
      delays.push_back(e.start_ns - launched);
  }
  if (delays.empty()) return launch_ns_;
  const auto middle = delays.begin() + static_cast<ptrdiff_t>(delays.size() / 2);
  std::nth_element(delays.begin(), middle, delays.end());
  return std::max<int64_t>(0, *middle);
}

void Replay::find_steps() {
  std::map<std::pair<int32_t, int32_t>, int32_t> last;  // event of each stream
  for (size_t i = 0; i < steps_.size(); ++i) {
    const DeviceEvent& e = trace_.events[i];
    auto [entry, first] = last.emplace(std::pair{e.device, e.stream}, -1);
    steps_[i].previous = entry->second;
    entry->second = static_cast<int32_t>(i);
  }
  const int64_t usual = usual_delay();
  last.clear();
  std::map<int64_t, int32_t> ends;  // events by their end
  for (size_t i = 0; i < steps_.size(); ++i) {
    const DeviceEvent& e = trace_.events[i];
    Step& step = steps_[i];
    const int64_t launched = e.launch < 0 ? kLongAgo : call(e.launch).start_ns;
    const int64_t idle_from = step.previous < 0 ? kLongAgo : event(step.previous).end_ns();
    // A call that takes long launches at its end.
    const bool by_host = e.launch >= 0 && call(e.launch).end_ns() > idle_from;
    const int64_t delay = e.launch < 0 ? 0 : std::max<int64_t>(0, e.start_ns - launched);
    step.delay_ns = by_host ? delay : std::min(usual, delay);
    if (step.previous >= 0) step.gap_ns = e.start_ns - idle_from;
    const int64_t waited = e.start_ns - std::max(idle_from, by_host ? launched + usual : idle_from);
    if (step.previous < 0 || waited > other_gap_ns_) {
      // The last one that ended before: on another stream, and shortly before.
      const auto later = ends.upper_bound(e.start_ns);
      if (later != ends.begin()) {
        const auto [end, other] = *std::prev(later);
        if (other != step.previous && e.start_ns - end < longest_gap_ns_ &&
            end > std::max(idle_from, by_host ? launched : idle_from)) {
          step.after = other;
          step.delay_ns = std::min(usual, delay);
          step.gap_ns = std::min(step.gap_ns, other_gap_ns_);
        }
      }
    }
    if (e.launch >= 0) step.gap_ns = std::min(step.gap_ns, longest_gap_ns_);
    if (by_host) step.gap_ns = std::clamp<int64_t>(step.gap_ns, 0, slack_ns_);
    ends[e.end_ns()] = static_cast<int32_t>(i);
  }
}

void Replay::run_event(int32_t i) {
  const auto at = static_cast<size_t>(i);
  const DeviceEvent& e = trace_.events[at];
  const Step& step = steps_[at];
  int64_t start =
      e.launch < 0 ? kLongAgo : call_begin_[static_cast<size_t>(e.launch)] + step.delay_ns;
  if (step.previous >= 0) {
    const auto before = static_cast<size_t>(step.previous);
    // Of a graph's branches, one begins while another one of the same stream runs.
    start =
        std::max(start, step.gap_ns >= 0 ? end_[before] + step.gap_ns
                                         : std::max(begin_[before], end_[before] + step.gap_ns));
  }
  if (step.after >= 0) start = std::max(start, end_[static_cast<size_t>(step.after)]);
  if (start == kLongAgo) start = e.start_ns;  // it began before the trace did
  begin_[at] = start;
  end_[at] = later(start, durations_[at], 1);
}

void Replay::run_host() {
  const bool at_once = !std::isfinite(host_speed_);
  if (trace_.runtime.empty()) return;
  int64_t traced_from = trace_.runtime.front().start_ns;  // the last point in both times
  int64_t now = traced_from;
  int64_t traced_gpu = kLongAgo, gpu = kLongAgo;  // ends of what was launched so far
  size_t next_event = 0;
  const auto run_until = [&](int32_t launch) {
    // Events are run in the order of the trace, which all that they wait for precede.
    while (next_event < trace_.events.size() && trace_.events[next_event].launch <= launch) {
      run_event(static_cast<int32_t>(next_event));
      traced_gpu = std::max(traced_gpu, trace_.events[next_event].end_ns());
      gpu = std::max(gpu, end_[next_event]);
      ++next_event;
    }
  };
  for (size_t i = 0; i < trace_.runtime.size(); ++i) {
    const RuntimeCall& c = trace_.runtime[i];
    if (!at_once) {
      now = later(now, std::max<int64_t>(0, c.start_ns - traced_from), host_speed_);
      traced_from = std::max(traced_from, c.start_ns);
    }
    call_begin_[i] = now;
    call_end_[i] = at_once ? now : later(now, c.duration_ns, host_speed_);
    if (at_once || !may_wait(trace_.names[c.name])) continue;
    run_until(static_cast<int32_t>(i));
    // It waited if it ended when the GPU did.
    if (traced_gpu > c.start_ns && traced_gpu <= c.end_ns() + slack_ns_) {
      const int64_t rest = std::max<int64_t>(0, c.end_ns() - traced_gpu);
      now = later(std::max(now, gpu), rest, host_speed_);
      call_end_[i] = now;
      traced_from = std::max(traced_from, c.end_ns());
    }
  }
  run_until(static_cast<int32_t>(trace_.runtime.size()));
}

ReplayedTrace Replay::run() {
  if (trace_.events.empty()) return {};
  find_steps();
  if (trace_.runtime.empty())
    for (size_t i = 0; i < trace_.events.size(); ++i) run_event(static_cast<int32_t>(i));
  else
    run_host();
  int64_t first = *std::min_element(begin_.begin(), begin_.end());
  for (size_t i = 0; i < of_call_.size(); ++i)
    if (!of_call_[i].empty()) first = std::min(first, call_begin_[i]);
  const int64_t last = *std::max_element(end_.begin(), end_.end());
  return {std::move(begin_),    std::move(end_), std::move(call_begin_),
          std::move(call_end_), first,           last - first};
}

}  // namespace

ReplayedTrace replayed(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                       double host_speed, const TraceConstants& constants) {
  return Replay(trace, durations_ns, host_speed, constants).run();
}

int64_t replayed_span_ns(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                         double host_speed, const TraceConstants& constants) {
  return replayed(trace, durations_ns, host_speed, constants).span_ns;
}

}  // namespace tilecast
