#pragma once

// From events as texts, which Kineto's JSON and the readers of other formats give, to a trace.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profile/trace.h"

namespace tilecast {

/// An event, as texts of the window.
struct RawEvent {
  std::string_view phase, category, name, time, duration, process, thread;
  std::string_view external_id, correlation, dims, types, strides, values, stream, device, grid,
      block, registers, bytes, graph_node;
  // Of collectives.
  std::string_view collective, in_elements, out_elements, group_size, group_ranks, dtype;
  // Of memory events.
  std::string_view allocated, reserved, device_type, device_id, address;
};

/// A string of JSON without its quotes; another value as it is.
inline std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

/// Puts events into a trace.
class TraceBuilder {
 public:
  /// `name`: of the file, for messages. `time_unit_ns`: of the events' times.
  explicit TraceBuilder(std::string name, int64_t time_unit_ns = 1000)
      : name_(std::move(name)), time_unit_ns_(time_unit_ns) {}

  void add(const RawEvent& event);
  void add_devices(std::string_view json);
  /// The ranks of the job, of the member distributedInfo.
  void add_ranks(std::string_view json);
  ProfilerTrace finish();
  ProfilerTrace& trace() { return trace_; }

 private:
  bool is_far(int64_t start);
  void add_operator(const RawEvent& event, int64_t start, int64_t duration);
  void add_runtime(const RawEvent& event, int64_t start, int64_t duration);
  void add_device_event(const RawEvent& event, DeviceWork work, int64_t start, int64_t duration);
  void add_memory(const RawEvent& event);
  int32_t collective_of(const RawEvent& event);
  int32_t thread_of(const RawEvent& event) {
    key_.assign(event.process).append("/").append(event.thread);
    return threads_.add(key_);
  }

  std::string name_, key_;
  int64_t time_unit_ns_;
  ProfilerTrace trace_;
  KnownTexts call_keys_, threads_, collective_keys_;
  int64_t device_ns_ = 0;            ///< of all events of GPUs
  std::optional<int64_t> first_ns_;  ///< start of the first event of the file
};

}  // namespace tilecast
