// Kineto's JSON: {"deviceProperties": [..], .., "traceEvents": [{"ph": "X", "cat": "kernel", ..},
// ..]}, and that of an execution trace, which has "nodes" instead. Events are read one by one from
// a window of the text, which holds one event at least.

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
#include "profile/formats.h"
#include "profile/json_cursor.h"
#include "profile/text_source.h"
#include "profile/trace_builder.h"

namespace tilecast {
namespace {

/// Kineto writes no event near this size: the longest names of kernels have some 10 kB.
constexpr size_t kMostEventBytes = size_t{16} << 20;

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
                                        {"external id", &RawEvent::external_id},
                                        {"Collective name", &RawEvent::collective},
                                        {"In msg nelems", &RawEvent::in_elements},
                                        {"Out msg nelems", &RawEvent::out_elements},
                                        {"Group size", &RawEvent::group_size},
                                        {"Process Group Ranks", &RawEvent::group_ranks},
                                        {"dtype", &RawEvent::dtype},
                                        {"Total Allocated", &RawEvent::allocated},
                                        {"Total Reserved", &RawEvent::reserved},
                                        {"Device Type", &RawEvent::device_type},
                                        {"Device Id", &RawEvent::device_id},
                                        {"Addr", &RawEvent::address},
                                        {"Bytes", &RawEvent::bytes}};
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
  bool read_nodes();

  TextSource& source_;
  const std::string& name_;
  TraceBuilder builder_;
  std::string window_;
  size_t begin_ = 0;  ///< what is before was read
  bool has_events_ = false;
  std::optional<ChakraNodes> nodes_;
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
      fail_input(name_, fmt::format("no valid JSON after {} {} of the trace",
                                    nodes_ ? nodes_->count() : builder_.trace().event_count,
                                    nodes_ ? "nodes" : "events"));
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

bool TraceReader::read_nodes() {
  nodes_.emplace(name_);
  for (bool more = true; more;) {
    std::string_view node;
    const bool whole = from_window([&](JsonCursor& cursor) {
      more = cursor.next_element();
      if (more) node = cursor.value();
    });
    if (!whole) return false;
    // The window does not move before the next value is read.
    if (more) nodes_->add(node, builder_);
    go_on("reading a profiler trace");
  }
  return true;
}

bool TraceReader::read_members() {
  for (bool more = true; more;) {
    bool events = false, nodes = false;
    const bool whole = from_window([&](JsonCursor& cursor) {
      std::string_view key;
      more = cursor.next_key(key);
      if (!more) return;
      events = key == "traceEvents" && cursor.take('[');
      nodes = !has_events_ && !nodes_ && key == "nodes" && cursor.take('[');
      if (events || nodes) return;
      const std::string_view value = cursor.value();
      if (key == "deviceProperties") builder_.add_devices(value);
      if (key == "distributedInfo") builder_.add_ranks(value);
    });
    if (!whole) return false;
    if (events && !read_events()) return false;
    if (nodes && !read_nodes()) return false;
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
  if (nodes_) nodes_->finish(builder_);
  if (!has_events_ && !nodes_)
    fail_input(name_, builder_.trace().cut_off
                          ? "the file ends before its list of events (`traceEvents`)"
                          : "no trace of torch.profiler: it has no list of events (`traceEvents`)");
  return builder_.finish();
}

}  // namespace

ProfilerTrace read_json_trace(TextSource& source, const std::string& name) {
  return TraceReader(source, name).read();
}

}  // namespace tilecast
