#include "profile/memory_use.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>

#include "base/budget.h"
#include "base/checked.h"
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

/// For each event, the operators of its thread that were running, the outermost first.
class RunningOperators {
 public:
  explicit RunningOperators(const ProfilerTrace& trace) : trace_(trace) {}

  const std::vector<int32_t>& at(const MemoryEvent& event) {
    for (; next_ < trace_.operators.size() && trace_.operators[next_].start_ns <= event.start_ns;
         ++next_)
      open_[trace_.operators[next_].thread].push_back(static_cast<int32_t>(next_));
    std::vector<int32_t>& stack = open_[event.thread];
    std::erase_if(stack, [&](int32_t op) {
      return trace_.operators[static_cast<size_t>(op)].end_ns() < event.start_ns;
    });
    return stack;
  }

 private:
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
      sum = checked_add(sum, work->kernels[i].write_bytes);
    bytes.push_back(sum);
  }
  return bytes;
}

struct Taken {
  int64_t bytes = 0;
  int32_t inner = -1;  ///< the innermost operator that ran
  int32_t known = -1;  ///< the innermost one whose work is known
  CachingAllocator::BlockId block = -1;
};

/// Follows the events of one device.
class MemoryReplay {
 public:
  MemoryReplay(const ProfilerTrace& trace, int32_t device)
      : trace_(trace), written_(written_bytes(trace)), running_(trace), device_(device) {}
  TracedMemoryUse run();

 private:
  void take(const MemoryEvent& event);
  void give_back(const MemoryEvent& event);
  void note_peak();

  const ProfilerTrace& trace_;
  const std::vector<int64_t> written_;
  RunningOperators running_;
  const int32_t device_;
  CachingAllocator allocator_;
  std::unordered_map<int64_t, Taken> live_;         ///< by address
  std::unordered_map<int32_t, int64_t> workspace_;  ///< by operator
  TracedMemoryUse use_;
};

void MemoryReplay::take(const MemoryEvent& event) {
  Taken taken{.bytes = event.bytes};
  for (const int32_t op : running_.at(event)) {
    taken.inner = op;
    const int32_t call = trace_.operators[static_cast<size_t>(op)].call;
    if (written_[static_cast<size_t>(call)] >= 0) taken.known = op;
  }
  taken.block = allocator_.allocate(event.bytes);
  // An address that was not given back: the event that did so is missing.
  if (const auto before = live_.find(event.address); before != live_.end())
    allocator_.free(before->second.block);
  live_[event.address] = taken;
}

void MemoryReplay::give_back(const MemoryEvent& event) {
  const auto found = live_.find(event.address);
  if (found == live_.end()) return;  // taken before the trace began
  const Taken& taken = found->second;
  const std::vector<int32_t>& running = running_.at(event);
  if (taken.known >= 0 && std::find(running.begin(), running.end(), taken.known) != running.end())
    use_.workspace_bytes = std::max(use_.workspace_bytes, workspace_[taken.known] += taken.bytes);
  allocator_.free(taken.block);
  live_.erase(found);
}

TracedMemoryUse MemoryReplay::run() {
  bool first = true;
  size_t peak = 0;
  for (size_t i = 0; i < trace_.memory_events.size(); ++i) {
    const MemoryEvent& event = trace_.memory_events[i];
    if (event.device != device_) continue;
    if (first) {
      use_.held_bytes = std::max<int64_t>(0, event.allocated_bytes - event.bytes);
      if (use_.held_bytes > 0) allocator_.allocate(use_.held_bytes);
      first = false;
    }
    if (event.allocated_bytes > use_.peak_bytes) {
      use_.peak_bytes = event.allocated_bytes;
      peak = i;
    }
    use_.reserved_bytes = std::max(use_.reserved_bytes, event.reserved_bytes);
  }
  for (size_t i = 0; i < trace_.memory_events.size(); ++i) {
    const MemoryEvent& event = trace_.memory_events[i];
    if (event.device != device_) continue;
    go_on("reading the memory of a profiler trace");
    if (event.bytes > 0)
      take(event);
    else
      give_back(event);
    if (i == peak) note_peak();
  }
  use_.of_host = device_ < 0;
  if (!use_.of_host) use_.model_reserved_bytes = allocator_.reserved_bytes();
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
        checked_add(use_.model_results_bytes, written_[static_cast<size_t>(call)]);
  }
}

/// Weights of one step of inference: each operator with one has its own. In training, gradients use
/// them again: 0.
int64_t weights_of_a_step(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups) {
  const BatchSizes sizes = batch_sizes(trace, groups);
  int64_t bytes = 0;
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
    bytes = checked_add(
        bytes, checked_multiply(weight->stored_bytes(), static_cast<int64_t>(group.calls)));
  }
  return bytes / std::max<int64_t>(1, static_cast<int64_t>(trace.steps.size()));
}

}  // namespace

std::optional<TracedMemoryUse> memory_use(const ProfilerTrace& trace,
                                          const std::vector<OperatorGroup>& groups) {
  if (trace.memory_events.empty()) return std::nullopt;
  TracedMemoryUse use = MemoryReplay(trace, shown_device(trace)).run();
  use.model_weights_bytes = weights_of_a_step(trace, groups);
  return use;
}

}  // namespace tilecast
