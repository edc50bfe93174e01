// Kineto's JSON: {"deviceProperties": [..], .., "traceEvents": [{"ph": "X", "cat": "kernel", ..},
// ..]}. Events are read one by one from a window of the text, which holds one event at least.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/budget.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "profile/json_cursor.h"
#include "profile/text_source.h"
#include "profile/trace.h"

namespace tilecast {

int32_t KnownTexts::add(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<int32_t>(by_id_.size());
  const auto [entry, added] = ids_.emplace(std::string(text), id);
  by_id_.push_back(&entry->first);
  bytes_ += static_cast<int64_t>(text.size()) + 64;
  return id;
}

namespace {

constexpr int64_t kNsPerUs = 1000;
/// Kineto writes no event near this size: the longest names of kernels have some 10 kB.
constexpr size_t kMostEventBytes = size_t{16} << 20;

int64_t whole(std::string_view text, int64_t fallback) { return scaled_number(text, 1, fallback); }

int32_t narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
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

/// An event, as texts of the window.
struct RawEvent {
  std::string_view phase, category, name, time, duration, process, thread;
  std::string_view external_id, correlation, dims, types, strides, values, stream, device, grid,
      block, registers, bytes, graph_node;
};

void read_arguments(JsonCursor& cursor, RawEvent& event) {
  struct Member {
    std::string_view key;
    std::string_view RawEvent::* text;
  };
  static constexpr Member kMembers[] = {{"External id", &RawEvent::external_id},
                                        {"correlation", &RawEvent::correlation},
                                        {"Input Dims", &RawEvent::dims},
                                        {"Input type", &RawEvent::types},
                                        {"Input Strides", &RawEvent::strides},
                                        {"Concrete Inputs", &RawEvent::values},
                                        {"stream", &RawEvent::stream},
                                        {"device", &RawEvent::device},
                                        {"grid", &RawEvent::grid},
                                        {"block", &RawEvent::block},
                                        {"registers per thread", &RawEvent::registers},
                                        {"bytes", &RawEvent::bytes},
                                        {"graph node id", &RawEvent::graph_node},
                                        {"external id", &RawEvent::external_id}};
  std::string_view key;
  while (cursor.next_key(key)) {
    const std::string_view value = cursor.value();
    for (const Member& member : kMembers) {
      if (member.key == key) event.*member.text = value;
    }
  }
}

RawEvent read_event(JsonCursor& cursor) {
  RawEvent event;
  std::string_view key;
  cursor.expect('{');
  while (cursor.next_key(key)) {
    if (key == "args" && cursor.peek() == '{' && event.category != "python_function") {
      cursor.expect('{');
      read_arguments(cursor, event);
      continue;
    }
    const std::string_view value = cursor.value();
    if (key == "ph") event.phase = unquoted(value);
    if (key == "cat") event.category = unquoted(value);
    if (key == "name") event.name = unquoted(value);
    if (key == "ts") event.time = value;
    if (key == "dur") event.duration = value;
    if (key == "tid") event.thread = value;
    if (key == "pid") event.process = value;
  }
  return event;
}

/// Puts events into a trace.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string name) : name_(std::move(name)) {}

  void add(const RawEvent& event);
  void add_devices(std::string_view json);
  ProfilerTrace finish();
  ProfilerTrace& trace() { return trace_; }

 private:
  bool is_far(int64_t start);
  void add_operator(const RawEvent& event, int64_t start, int64_t duration);
  void add_runtime(const RawEvent& event, int64_t start, int64_t duration);
  void add_device_event(const RawEvent& event, DeviceWork work, int64_t start, int64_t duration);
  int32_t thread_of(const RawEvent& event) {
    key_.assign(event.process).append("/").append(event.thread);
    return threads_.add(key_);
  }

  std::string name_, key_;
  ProfilerTrace trace_;
  KnownTexts call_keys_, threads_;
  int64_t device_ns_ = 0;            ///< of all events of GPUs
  std::optional<int64_t> first_ns_;  ///< start of the first event of the file
};

/// Whether an event begins too far from the first one to be of the same profile.
bool TraceBuilder::is_far(int64_t start) {
  if (!first_ns_) first_ns_ = start;
  return std::abs(start - *first_ns_) > kLongestTraceNs;
}

void TraceBuilder::add(const RawEvent& event) {
  ++trace_.event_count;
  if (event.phase != "X") return;
  const bool is_kernel = event.category == "kernel", is_copy = event.category == "gpu_memcpy";
  const bool is_fill = event.category == "gpu_memset", is_op = event.category == "cpu_op";
  const bool is_call = event.category == "cuda_runtime" || event.category == "cuda_driver";
  const bool is_step =
      event.category == "user_annotation" && event.name.starts_with("ProfilerStep");
  if (!is_kernel && !is_copy && !is_fill && !is_op && !is_call && !is_step) return;
  const int64_t start = scaled_number(event.time, kNsPerUs, -1);
  const int64_t duration = scaled_number(event.duration, kNsPerUs, -1);
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
  Budget::here().allow(kTraceNames, trace_.names.bytes() + call_keys_.bytes(), name_);
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
void sort_by_start(std::vector<T>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const T& a, const T& b) { return a.start_ns < b.start_ns; });
}

ProfilerTrace TraceBuilder::finish() {
  sort_by_start(trace_.operators);
  sort_by_start(trace_.runtime);
  sort_by_start(trace_.events);
  sort_by_start(trace_.steps);
  return std::move(trace_);
}

/// The document, from a window that moves over its text.
class TraceReader {
 public:
  TraceReader(TextSource& source, const std::string& name)
      : source_(source), name_(name), builder_(name) {}

  ProfilerTrace read();

 private:
  /// Calls `work` with a cursor at the window's beginning, again with a longer window where the
  /// text ends in the middle. False where all text ends there.
  template <typename Work>
  bool from_window(Work work);
  bool grow();
  /// Both read to the end of the list or object; false where the text ends before.
  bool read_members();
  bool read_events();

  TextSource& source_;
  const std::string& name_;
  TraceBuilder builder_;
  std::string window_;
  size_t begin_ = 0;  ///< what is before was read
  bool has_events_ = false;
};

bool TraceReader::grow() {
  window_.erase(0, begin_);
  begin_ = 0;
  if (window_.size() > kMostEventBytes)
    fail_input(name_, "no trace of a profiler: a single value has more than 16 MiB");
  return source_.append_to(window_);
}

template <typename Work>
bool TraceReader::from_window(Work work) {
  while (true) {
    JsonCursor cursor(std::string_view(window_).substr(begin_));
    try {
      work(cursor);
      begin_ = static_cast<size_t>(cursor.at() - window_.data());
      return true;
    } catch (const JsonCursor::Ended&) {
      if (!grow()) return false;
    } catch (const JsonCursor::Malformed&) {
      fail_input(name_, fmt::format("no valid JSON after {} events of the trace",
                                    builder_.trace().event_count));
    }
  }
}

bool TraceReader::read_events() {
  has_events_ = true;
  for (bool more = true; more;) {
    // The event is added after the last step that may find the end of the window.
    const bool whole = from_window([&](JsonCursor& cursor) {
      more = cursor.next_element();
      if (!more) return;
      if (cursor.peek() != '{') {
        cursor.value();
        return;
      }
      const RawEvent event = read_event(cursor);
      builder_.add(event);
    });
    if (!whole) return false;
    go_on("reading a profiler trace");
  }
  return true;
}

bool TraceReader::read_members() {
  for (bool more = true; more;) {
    bool events = false;
    const bool whole = from_window([&](JsonCursor& cursor) {
      std::string_view key;
      more = cursor.next_key(key);
      if (!more) return;
      events = key == "traceEvents" && cursor.take('[');
      if (events) return;
      const std::string_view value = cursor.value();
      if (key == "deviceProperties") builder_.add_devices(value);
    });
    if (!whole) return false;
    if (events && !read_events()) return false;
  }
  return true;
}

ProfilerTrace TraceReader::read() {
  bool is_list = false, is_object = false;
  const bool begins = from_window([&](JsonCursor& cursor) {
    is_list = cursor.take('[');
    is_object = !is_list && cursor.take('{');
  });
  if (!begins) fail_input(name_, "the file is empty: expected a trace of torch.profiler");
  if (!is_list && !is_object)
    fail_input(name_, "expected a trace of torch.profiler (JSON, or JSON packed by gzip)");
  builder_.trace().cut_off = !(is_list ? read_events() : read_members());
  if (!has_events_)
    fail_input(name_, builder_.trace().cut_off
                          ? "the file ends before its list of events (`traceEvents`)"
                          : "no trace of torch.profiler: it has no list of events (`traceEvents`)");
  return builder_.finish();
}

}  // namespace

ProfilerTrace read_profiler_trace(const std::filesystem::path& path) {
  const std::unique_ptr<TextSource> source = open_text(path);
  const std::string name = printable(path.string());
  ProfilerTrace trace = TraceReader(*source, name).read();
  assign_operators(trace);
  return trace;
}

ProfilerTrace parse_profiler_trace(std::string_view content, const std::string& name) {
  const std::unique_ptr<TextSource> source = text_of_memory(content, name);
  ProfilerTrace trace = TraceReader(*source, name).read();
  assign_operators(trace);
  return trace;
}

}  // namespace tilecast
