#pragma once

// The readers of traces, one for each format; `read_profiler_trace` takes the one that a file's
// content asks for.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/sqlite_file.h"
#include "profile/text_source.h"
#include "profile/trace.h"
#include "profile/trace_builder.h"

namespace tilecast {

/// JSON: events of Kineto, or nodes of an execution trace. `name`: of the file, for messages.
ProfilerTrace read_json_trace(TextSource& source, const std::string& name);

/// Tables that Nsight Systems exports.
ProfilerTrace read_nsight_trace(const SqliteFile& file, const std::string& name);

/// What torch.autograd.profiler.emit_nvtx writes as the name of a range:
/// "aten::mm, seq = 3, op_id = 7, sizes = [[8, 4], [4, 2]]".
struct NvtxRange {
  std::string_view name, sizes;
  bool is_operator = false;
  bool is_step = false;  ///< "step 3", "iteration 3", "ProfilerStep#3"
};
NvtxRange nvtx_range(std::string_view text);

/// Nodes of an execution trace, in any order: a node is written when its operator ends. Operators
/// that state no times get their places in the order of the program, nested as they were called.
class ChakraNodes {
 public:
  /// `name`: of the file, for messages.
  explicit ChakraNodes(std::string name) : name_(std::move(name)) {}
  /// A node, as the file has it. One that is none counts as an odd event.
  void add(std::string_view json, TraceBuilder& builder);
  /// Puts all operators into the trace.
  void finish(TraceBuilder& builder);
  /// Nodes that were added.
  int64_t count() const { return count_; }

 private:
  struct Node {
    int64_t parent = -1, thread = 0;
    std::string name, dims, types, strides, values, start, duration;
  };
  void visit(int64_t root, TraceBuilder& builder);

  std::string name_;
  int64_t count_ = 0;
  std::map<int64_t, Node> nodes_;  ///< by id, which is given when an operator begins
  std::map<int64_t, std::vector<int64_t>> children_;
  int64_t place_ = 0, bytes_ = 0;
};

/// Gives the calls of a trace that states no dtypes those that the names of their kernels tell.
void type_by_kernels(ProfilerTrace& trace);

}  // namespace tilecast
