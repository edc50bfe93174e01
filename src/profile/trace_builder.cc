// Each event that is kept: operators, calls of the runtime, work of GPUs, steps, and the most
// memory.

#include "profile/trace_builder.h"

#include <algorithm>
#include <cstdlib>

#include "base/budget.h"
#include "base/json.h"
#include "profile/json_cursor.h"

namespace tilecast {
namespace {

int64_t whole(std::string_view text, int64_t fallback) { return scaled_number(text, 1, fallback); }

int32_t narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

/// "[4, 1, 1]"
std::array<int32_t, 3> triple(std::string_view text) {
  std::array<int32_t, 3> sizes{};
  JsonCursor cursor(text);
  if (text.empty() || !cursor.take('[')) return sizes;
  for (size_t i = 0; i < sizes.size() && cursor.next_element(); ++i)
    sizes[i] = narrow(whole(cursor.value(), 0));
  return sizes;
}

}  // namespace

int32_t KnownTexts::add(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<int32_t>(by_id_.size());
  const auto [entry, added] = ids_.emplace(std::string(text), id);
  by_id_.push_back(&entry->first);
  bytes_ += static_cast<int64_t>(text.size()) + 64;
  return id;
}

/// Whether an event begins too far from the first one to be of the same profile.
bool TraceBuilder::is_far(int64_t start) {
  if (!first_ns_) first_ns_ = start;
  return std::abs(start - *first_ns_) > kLongestTraceNs;
}

void TraceBuilder::add(const RawEvent& event) {
  ++trace_.event_count;
  if (event.name == "[memory]") add_memory(event);
  if (event.phase != "X") return;
  const bool is_kernel = event.category == "kernel", is_copy = event.category == "gpu_memcpy";
  const bool is_fill = event.category == "gpu_memset", is_op = event.category == "cpu_op";
  const bool is_call = event.category == "cuda_runtime" || event.category == "cuda_driver";
  const bool is_step = event.category == "step" || (event.category == "user_annotation" &&
                                                    event.name.starts_with("ProfilerStep"));
  if (!is_kernel && !is_copy && !is_fill && !is_op && !is_call && !is_step) return;
  const int64_t start = scaled_number(event.time, time_unit_ns_, -1);
  const int64_t duration = scaled_number(event.duration, time_unit_ns_, -1);
  // Nor do the GPUs of a profile together take longer.
  const bool on_device = is_kernel || is_copy || is_fill;
  if (start < 0 || duration < 0 || duration > kLongestTraceNs - (on_device ? device_ns_ : 0) ||
      is_far(start)) {
    ++trace_.odd_events;
    return;
  }
  if (on_device) device_ns_ += duration;
  if (is_op) add_operator(event, start, duration);
  if (is_call) add_runtime(event, start, duration);
  if (is_step) trace_.steps.push_back({unescaped(event.name), start, duration});
  if (on_device)
    add_device_event(event,
                     is_kernel ? DeviceWork::kKernel
                     : is_copy ? DeviceWork::kCopy
                               : DeviceWork::kFill,
                     start, duration);
  const auto kept = static_cast<int64_t>(trace_.operators.size() + trace_.runtime.size() +
                                         trace_.events.size() + trace_.steps.size());
  Budget::here().allow(kTraceEvents, kept, name_);
  Budget::here().allow(kTraceNames,
                       trace_.names.bytes() + call_keys_.bytes() + collective_keys_.bytes(), name_);
}

void TraceBuilder::add_operator(const RawEvent& event, int64_t start, int64_t duration) {
  key_.clear();
  for (const std::string_view part :
       {event.name, event.dims, event.types, event.strides, event.values})
    key_.append(part).push_back('\n');
  const auto known = static_cast<int32_t>(call_keys_.size());
  const int32_t call = call_keys_.add(key_);
  if (call == known)
    trace_.calls.push_back({unescaped(event.name), std::string(event.dims),
                            std::string(event.types), std::string(event.strides),
                            std::string(event.values)});
  trace_.has_shapes = trace_.has_shapes || !event.dims.empty();
  const int32_t thread = thread_of(event);
  trace_.operators.push_back({start, duration, whole(event.external_id, -1), call, thread});
}

void TraceBuilder::add_runtime(const RawEvent& event, int64_t start, int64_t duration) {
  const int32_t thread = thread_of(event);
  trace_.is_amd = trace_.is_amd || event.name.starts_with("hip");
  trace_.runtime.push_back({start, duration, whole(event.correlation, -1),
                            whole(event.external_id, -1), trace_.names.add(event.name), thread});
}

void TraceBuilder::add_device_event(const RawEvent& event, DeviceWork work, int64_t start,
                                    int64_t duration) {
  DeviceEvent& added = trace_.events.emplace_back();
  added.start_ns = start;
  added.duration_ns = duration;
  added.correlation = whole(event.correlation, -1);
  added.external_id = whole(event.external_id, -1);
  added.bytes = std::max<int64_t>(0, whole(event.bytes, 0));
  added.name = trace_.names.add(unescaped(event.name));
  added.device = narrow(whole(event.device.empty() ? event.process : event.device, 0));
  added.stream = narrow(whole(event.stream.empty() ? event.thread : event.stream, 0));
  added.grid = triple(event.grid);
  added.block = triple(event.block);
  added.registers = narrow(whole(event.registers, 0));
  added.work = work;
  added.in_graph = whole(event.graph_node, 0) > 0;
  added.collective = collective_of(event);
}

/// The host's memory has the type 0.
void TraceBuilder::add_memory(const RawEvent& event) {
  const bool host = whole(event.device_type, 0) == 0;
  const int64_t start = scaled_number(event.time, time_unit_ns_, -1);
  const int64_t allocated = whole(event.allocated, 0), reserved = whole(event.reserved, 0);
  constexpr int64_t kMostBytes = int64_t{1} << 50;  // what no device has
  const int64_t bytes = whole(event.bytes, 0);
  if (start >= 0 && std::abs(bytes) < kMostBytes && bytes != 0 && allocated >= 0 &&
      allocated < kMostBytes)
    trace_.memory_events.push_back({start, bytes, whole(event.address, 0), allocated,
                                    std::clamp<int64_t>(reserved, 0, kMostBytes),
                                    host ? -1 : narrow(whole(event.device_id, 0)),
                                    thread_of(event)});
  Budget::here().allow(kTraceEvents, static_cast<int64_t>(trace_.memory_events.size()), name_);
  if (host || allocated >= kMostBytes || reserved >= kMostBytes) return;
  TracedMemory& memory = trace_.memory;
  memory.allocated_bytes = std::max(memory.allocated_bytes, allocated);
  memory.reserved_bytes = std::max(memory.reserved_bytes, reserved);
}

/// "[0, 1, 2]", or with a part left out, as PyTorch writes long ones: "[0, 1, ..., 62, 63]" is a
/// sequence of `size` even steps, if these fit.
static std::vector<int64_t> ranks_of(std::string_view text, int64_t size) {
  std::vector<int64_t> ranks;
  size_t at = 0;
  while ((at = text.find_first_of("0123456789", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    const int64_t rank = whole(text.substr(at, end - at), -1);
    if (rank >= 0 && rank <= INT32_MAX) ranks.push_back(rank);
    at = end;
  }
  if (text.find("...") == std::string_view::npos) return ranks;
  constexpr int64_t kMostRanks = int64_t{1} << 20;
  if (ranks.size() < 3 || size < 3 || size > kMostRanks) return {};
  const int64_t first = ranks[0], last = ranks.back();
  const int64_t step = (last - first) / (size - 1);
  if (step < 1 || ranks[1] - first != step || first + (size - 1) * step != last) return {};
  ranks.clear();
  for (int64_t i = 0; i < size; ++i) ranks.push_back(first + i * step);
  return ranks;
}

/// The number of the collective that a kernel states; -1: it is none, or does not state it.
int32_t TraceBuilder::collective_of(const RawEvent& event) {
  if (event.collective.empty()) return -1;
  key_.clear();
  for (const std::string_view part : {event.collective, event.dtype, event.in_elements,
                                      event.out_elements, event.group_size, event.group_ranks})
    key_.append(part).push_back('\n');
  const auto known = static_cast<int32_t>(collective_keys_.size());
  const int32_t id = collective_keys_.add(key_);
  if (id != known) return id;
  const int64_t size = std::max<int64_t>(0, whole(event.group_size, 0));
  trace_.collectives.push_back({unescaped(unquoted(event.collective)),
                                unescaped(unquoted(event.dtype)),
                                std::max<int64_t>(0, whole(event.in_elements, 0)),
                                std::max<int64_t>(0, whole(event.out_elements, 0)), size,
                                ranks_of(event.group_ranks, size)});
  return id;
}

void TraceBuilder::add_ranks(std::string_view json) {
  const Json job = parse_json(std::string(json), name_ + ": distributedInfo");
  const auto found = job.is_object() ? job.find("world_size") : job.end();
  if (job.is_object() && found != job.end() && found->is_number_integer())
    trace_.world_size = std::max<int64_t>(0, found->get<int64_t>());
}

void TraceBuilder::add_devices(std::string_view json) {
  const Json list = parse_json(std::string(json), name_ + ": deviceProperties");
  if (!list.is_array()) return;
  const auto number = [](const Json& device, const char* key) {
    const auto found = device.find(key);
    return found != device.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  constexpr size_t kMostName = 256;  // that of CUDA's cudaDeviceProp
  for (const Json& device : list) {
    if (!device.is_object()) continue;
    const auto name = device.find("name");
    trace_.devices.push_back({number(device, "id"),
                              name != device.end() && name->is_string()
                                  ? name->get<std::string>().substr(0, kMostName)
                                  : "",
                              std::max<int64_t>(0, number(device, "totalGlobalMem")),
                              std::max<int64_t>(0, number(device, "numSms"))});
  }
}

template <typename T>
static void sort_by_start(std::vector<T>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const T& a, const T& b) { return a.start_ns < b.start_ns; });
}

ProfilerTrace TraceBuilder::finish() {
  sort_by_start(trace_.operators);
  sort_by_start(trace_.runtime);
  sort_by_start(trace_.events);
  sort_by_start(trace_.steps);
  sort_by_start(trace_.memory_events);
  return std::move(trace_);
}

}  // namespace tilecast
