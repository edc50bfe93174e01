#include "profile/memory_use.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/budget.h"
#include "memory/allocator.h"
#include "profile/aten.h"
#include "profile/changed_work.h"

namespace tilecast {
namespace {

/// The device whose memory is shown.
int32_t shown_device(const ProfilerTrace& trace) {
  int32_t device = -1;
  int64_t most = -1;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0 || event.allocated_bytes <= most) continue;
    most = event.allocated_bytes;
    device = event.device;
  }
  return device;
}

/// No device has as much: sums beyond it are those of events that contradict each other.
constexpr int64_t kMostMemory = int64_t{1} << 50;

/// a + b, at most kMostMemory; neither is negative, and a is not beyond it.
int64_t bounded_sum(int64_t a, int64_t b) {
  return std::min(kMostMemory, a + std::min(b, kMostMemory));
}

/// The operators that were running when memory was taken.
class RunningOperators {
 public:
  explicit RunningOperators(const ProfilerTrace& trace) : trace_(trace) {}

  /// Those of the event's thread, the outermost first; operators that overlap without one being
  /// within the other may have ended. Events must come by start.
  const std::vector<int32_t>& at(const MemoryEvent& event) {
    for (; next_ < trace_.operators.size() && trace_.operators[next_].start_ns <= event.start_ns;
         ++next_)
      open(static_cast<int32_t>(next_));
    std::vector<int32_t>& stack = open_[event.thread];
    close(stack, event.start_ns);
    return stack;
  }
  bool has_ended(int32_t op, int64_t at_ns) const {
    return trace_.operators[static_cast<size_t>(op)].end_ns() < at_ns;
  }

 private:
  void open(int32_t op) {
    const HostOperator& one = trace_.operators[static_cast<size_t>(op)];
    std::vector<int32_t>& stack = open_[one.thread];
    close(stack, one.start_ns);
    constexpr size_t kMostDepth = 256;  // operators of PyTorch call each other some 20 deep
    if (stack.size() < kMostDepth) stack.push_back(op);
  }
  void close(std::vector<int32_t>& stack, int64_t at_ns) {
    while (!stack.empty() && has_ended(stack.back(), at_ns)) stack.pop_back();
  }

  const ProfilerTrace& trace_;
  std::unordered_map<int32_t, std::vector<int32_t>> open_;
  size_t next_ = 0;
};

/// Bytes that the kernels of each call write; -1: its work is not known.
std::vector<int64_t> written_bytes(const ProfilerTrace& trace) {
  std::vector<int64_t> bytes;
  for (const OperatorCall& call : trace.calls) {
    const std::optional<CallWork> work = work_of(call);
    int64_t sum = work ? 0 : -1;
    for (size_t i = 0; work && i < work->kernels.size(); ++i)
      sum = bounded_sum(sum, work->kernels[i].write_bytes);
    bytes.push_back(sum);
  }
  return bytes;
}

struct Taken {
  int64_t bytes = 0;
  size_t event = 0;    ///< that took it
  int32_t known = -1;  ///< the innermost operator that ran and whose work is known
  CachingAllocator::BlockId block = -1;
};

/// Memory that an operator takes, or with bytes below 0 gives back, before it ends.
struct WorkspaceChange {
  size_t event = 0;
  int32_t op = -1;
  int64_t bytes = 0;
};

/// The most that one operator had at a time.
int64_t most_workspace(std::vector<WorkspaceChange> changes) {
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.event < b.event; });
  std::unordered_map<int32_t, int64_t> held;
  int64_t most = 0;
  for (const WorkspaceChange& change : changes)
    most = std::max(most, held[change.op] += change.bytes);
  return most;
}

/// Follows the events of one device.
class MemoryReplay {
 public:
  MemoryReplay(const ProfilerTrace& trace, int32_t device)
      : trace_(trace), written_(written_bytes(trace)), running_(trace), device_(device) {}
  /// nullopt: the events contradict each other.
  std::optional<TracedMemoryUse> run();

 private:
  void take(size_t place);
  void give_back(size_t place);
  void note_totals();
  void note_peak();

  const ProfilerTrace& trace_;
  const std::vector<int64_t> written_;
  RunningOperators running_;
  const int32_t device_;
  CachingAllocator allocator_;
  std::unordered_map<int64_t, Taken> live_;  ///< by address
  int64_t live_bytes_ = 0;
  std::vector<WorkspaceChange> workspace_;
  size_t peak_ = 0;  ///< the event after which most is in use
  TracedMemoryUse use_;
};

void MemoryReplay::take(size_t place) {
  const MemoryEvent& event = trace_.memory_events[place];
  Taken taken{.bytes = event.bytes, .event = place};
  const std::vector<int32_t>& running = running_.at(event);
  for (auto op = running.rbegin(); op != running.rend() && taken.known < 0; ++op) {
    const int32_t call = trace_.operators[static_cast<size_t>(*op)].call;
    if (written_[static_cast<size_t>(call)] >= 0 && !running_.has_ended(*op, event.start_ns))
      taken.known = *op;
  }
  taken.block = allocator_.allocate(event.bytes);
  // An address that was not given back: the event that did so is missing.
  if (const auto before = live_.find(event.address); before != live_.end()) {
    allocator_.free(before->second.block);
    live_bytes_ -= before->second.bytes;
  }
  live_[event.address] = taken;
  live_bytes_ += event.bytes;
}

void MemoryReplay::give_back(size_t place) {
  const MemoryEvent& event = trace_.memory_events[place];
  const auto found = live_.find(event.address);
  if (found == live_.end()) return;  // taken before the trace began
  const Taken& taken = found->second;
  if (taken.known >= 0 && !running_.has_ended(taken.known, event.start_ns) &&
      trace_.operators[static_cast<size_t>(taken.known)].thread == event.thread) {
    workspace_.push_back({taken.event, taken.known, taken.bytes});
    workspace_.push_back({place, taken.known, -taken.bytes});
  }
  allocator_.free(taken.block);
  live_bytes_ -= taken.bytes;
  live_.erase(found);
}

/// What the events state themselves.
void MemoryReplay::note_totals() {
  bool first = true;
  for (size_t i = 0; i < trace_.memory_events.size(); ++i) {
    const MemoryEvent& event = trace_.memory_events[i];
    if (event.device != device_) continue;
    if (first) use_.held_bytes = std::max<int64_t>(0, event.allocated_bytes - event.bytes);
    first = false;
    if (event.allocated_bytes > use_.peak_bytes) {
      use_.peak_bytes = event.allocated_bytes;
      peak_ = i;
    }
    use_.reserved_bytes = std::max(use_.reserved_bytes, event.reserved_bytes);
  }
}

std::optional<TracedMemoryUse> MemoryReplay::run() {
  note_totals();
  if (use_.held_bytes > 0) allocator_.allocate(use_.held_bytes);
  for (size_t i = 0; i < trace_.memory_events.size(); ++i) {
    const MemoryEvent& event = trace_.memory_events[i];
    if (event.device != device_) continue;
    go_on("reading the memory of a profiler trace");
    if (event.bytes > 0)
      take(i);
    else
      give_back(i);
    if (std::max(live_bytes_, allocator_.reserved_bytes()) >= kMostMemory) return std::nullopt;
    if (i == peak_) note_peak();
  }
  use_.workspace_bytes = most_workspace(std::move(workspace_));
  use_.of_host = device_ < 0;
  if (!use_.of_host) use_.model_reserved_bytes = allocator_.reserved_bytes();
  if (use_.model_results_bytes >= kMostMemory) return std::nullopt;
  return use_;
}

void MemoryReplay::note_peak() {
  std::map<int32_t, int64_t> by_operator;
  for (const auto& [address, taken] : live_) {
    use_.results_bytes += taken.bytes;
    if (taken.known >= 0) by_operator[taken.known] += taken.bytes;
  }
  for (const auto& [op, bytes] : by_operator) {
    const int32_t call = trace_.operators[static_cast<size_t>(op)].call;
    use_.known_results_bytes += bytes;
    use_.model_results_bytes =
        bounded_sum(use_.model_results_bytes, written_[static_cast<size_t>(call)]);
  }
}

/// Weights of one step of inference: each operator with one has its own. In training, gradients use
/// them again: 0. Without steps, nothing tells how often the calls of a trace used the same: 0.
int64_t weights_of_a_step(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups) {
  if (trace.steps.empty()) return 0;
  const BatchSizes sizes = batch_sizes(trace, groups);
  double bytes = 0;
  for (const OperatorGroup& group : groups) {
    if (group.call < 0) continue;
    const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
    if (call.name.find("backward") != std::string::npos) return 0;
    const std::string_view name = without_aten(call.name);
    const std::vector<TracedArgument> arguments = arguments_of(call);
    const int product = product_place(name);
    const int place = weight_place(name) >= 0 ? weight_place(name)
                      : product >= 0          ? product + 1
                                              : -1;
    if (place < 0) continue;
    const TracedTensor* weight = tensor_at(arguments, static_cast<size_t>(place));
    if (weight == nullptr || (product >= 0 && !sizes.weights.contains(weight->shape))) continue;
    bytes += static_cast<double>(weight->stored_bytes()) * group.calls;
  }
  bytes /= static_cast<double>(trace.steps.size());
  return bytes < static_cast<double>(kMostMemory) ? std::llround(bytes) : 0;
}

}  // namespace

std::optional<TracedMemoryUse> memory_use(const ProfilerTrace& trace,
                                          const std::vector<OperatorGroup>& groups) {
  if (trace.memory_events.empty()) return std::nullopt;
  std::optional<TracedMemoryUse> use = MemoryReplay(trace, shown_device(trace)).run();
  if (use) use->model_weights_bytes = weights_of_a_step(trace, groups);
  return use;
}

}  // namespace tilecast
