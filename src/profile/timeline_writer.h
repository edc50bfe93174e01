#pragma once

// A trace's operations as they were measured and as they are carried, in Chrome's trace format,
// which ui.perfetto.dev reads: a process each, a thread for each stream and each thread of the
// host.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "profile/read_trace.h"
#include "profile/replay.h"

namespace tilecast {

class TimelineWriter {
 public:
  TimelineWriter();

  void add_measured(const ReadTrace& one, const std::string& title);
  /// `one` as it runs in a replay.
  void add_replayed(const ReadTrace& one, const ReplayedTrace& times, const std::string& title);
  std::string finish();

 private:
  void begin_process(const std::string& title);
  /// Threads of the process by what they are: streams first.
  int64_t thread_of(bool is_host, int32_t device, int32_t number);
  void add_slice(int64_t thread, int64_t begin_ns, int64_t end_ns, const std::string& name,
                 const std::string& arguments);
  void add_all(const ReadTrace& one, const ReplayedTrace& times, const std::string& title);

  std::string out_;
  int64_t process_ = 0;
  std::map<std::pair<bool, std::pair<int32_t, int32_t>>, int64_t> threads_;
};

}  // namespace tilecast
