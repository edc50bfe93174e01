// Which operator launched a kernel: by its External id, else the innermost operator that the thread
// ran when it launched the kernel. Kernels that were launched before the trace began, or from a
// graph, have neither: kernels of the same name between kernels of the same names tell the call.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "profile/trace.h"

namespace tilecast {
namespace {

/// The last to begin of those with the same id: the innermost one, where several have it.
template <typename T>
std::unordered_map<int64_t, int32_t> by_id(const std::vector<T>& list, int64_t T::* id) {
  std::unordered_map<int64_t, int32_t> index;
  index.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].*id >= 0) index[list[i].*id] = static_cast<int32_t>(i);
  return index;
}

/// For each runtime call, the innermost operator of its thread at its start; -1: none.
std::vector<int32_t> innermost_operators(const ProfilerTrace& trace) {
  std::vector<int32_t> result(trace.runtime.size(), -1);
  std::unordered_map<int32_t, std::vector<int32_t>> open;  // by thread
  size_t next = 0;
  for (size_t i = 0; i < trace.runtime.size(); ++i) {
    const RuntimeCall& call = trace.runtime[i];
    for (; next < trace.operators.size() && trace.operators[next].start_ns <= call.start_ns; ++next)
      open[trace.operators[next].thread].push_back(static_cast<int32_t>(next));
    std::vector<int32_t>& stack = open[call.thread];
    while (!stack.empty() &&
           trace.operators[static_cast<size_t>(stack.back())].end_ns() < call.start_ns)
      stack.pop_back();
    if (!stack.empty()) result[i] = stack.back();
  }
  return result;
}

/// A kernel with the names of those around it on its stream, `radius` on each side. Grid and block
/// belong to it only where nothing around it does: not all traces state them.
using Surroundings = std::vector<int32_t>;

Surroundings surroundings(const std::vector<const DeviceEvent*>& stream, size_t at, size_t radius) {
  Surroundings key;
  for (size_t i = 0; i <= 2 * radius; ++i) {
    const size_t place = at + i;
    key.push_back(place < radius || place - radius >= stream.size() ? -1
                                                                    : stream[place - radius]->name);
  }
  if (radius == 0) {
    key.insert(key.end(), stream[at]->grid.begin(), stream[at]->grid.end());
    key.insert(key.end(), stream[at]->block.begin(), stream[at]->block.end());
  }
  return key;
}

/// Calls of kernels without one: as kernels with the same surroundings have them, if all have the
/// same. The widest surroundings that others have count.
void infer_calls(ProfilerTrace& trace) {
  constexpr int32_t kSeveral = -2;
  constexpr size_t kRadii[] = {4, 2, 1, 0};
  if (std::none_of(trace.events.begin(), trace.events.end(), [](const DeviceEvent& event) {
        return event.call < 0 && event.work == DeviceWork::kKernel;
      }))
    return;
  std::map<std::pair<int32_t, int32_t>, std::vector<DeviceEvent*>> streams;
  for (DeviceEvent& event : trace.events)
    if (event.work == DeviceWork::kKernel) streams[{event.device, event.stream}].push_back(&event);
  std::vector<std::pair<DeviceEvent*, int32_t>> found;
  for (const size_t radius : kRadii) {
    std::map<Surroundings, int32_t> calls;
    for (const auto& [key, events] : streams) {
      const std::vector<const DeviceEvent*> stream(events.begin(), events.end());
      for (size_t i = 0; i < stream.size(); ++i) {
        if (stream[i]->op < 0) continue;
        const auto [entry, added] = calls.emplace(surroundings(stream, i, radius), stream[i]->call);
        if (!added && entry->second != stream[i]->call) entry->second = kSeveral;
      }
    }
    for (const auto& [key, events] : streams) {
      const std::vector<const DeviceEvent*> stream(events.begin(), events.end());
      for (size_t i = 0; i < stream.size(); ++i) {
        if (events[i]->call >= 0) continue;
        const auto same = calls.find(surroundings(stream, i, radius));
        if (same != calls.end() && same->second >= 0) found.emplace_back(events[i], same->second);
      }
    }
    for (const auto& [event, call] : found) event->call = call;
    found.clear();
  }
}

}  // namespace

void assign_operators(ProfilerTrace& trace) {
  const auto operators = by_id(trace.operators, &HostOperator::external_id);
  const auto launches = by_id(trace.runtime, &RuntimeCall::correlation);
  const std::vector<int32_t> around = innermost_operators(trace);
  for (DeviceEvent& event : trace.events) {
    if (const auto launch = launches.find(event.correlation); launch != launches.end())
      event.launch = launch->second;
    if (const auto op = operators.find(event.external_id); op != operators.end())
      event.op = op->second;
    else if (event.launch >= 0)
      event.op = around[static_cast<size_t>(event.launch)];
    if (event.op >= 0) event.call = trace.operators[static_cast<size_t>(event.op)].call;
    if (event.launch >= 0) {
      const std::string& name = trace.names[trace.runtime[static_cast<size_t>(event.launch)].name];
      event.in_graph = event.in_graph || name.find("GraphLaunch") != std::string::npos;
    }
  }
  infer_calls(trace);
}

}  // namespace tilecast
