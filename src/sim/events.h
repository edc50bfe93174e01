#pragma once

// Operations on streams of many ranks. Goals: exact, linear in the number of operations, the same
// for one folded rank of each kind and for all ranks. An operation occupies one stream (a kernel)
// or several (a collective, which starts when all of its ranks are ready). Streams run their
// operations in the order in which they were added, as CUDA streams do, so when each starts follows
// from the operations before it. Non-goals: rates that change while an operation runs; cost models
// take contention into account before.

#include <cstdint>
#include <span>
#include <vector>

namespace tilecast {

class EventGraph {
 public:
  using Op = int32_t;
  using StreamId = int32_t;

  StreamId add_stream();
  /// An operation after all others on its streams so far.
  Op add(std::span<const StreamId> streams, double duration_s);
  Op add(StreamId stream, double duration_s) { return add({&stream, 1}, duration_s); }
  /// `op` starts at the earliest when `earlier` has ended.
  void after(Op op, Op earlier);
  /// `op` starts at the earliest `lag_s` after `earlier` has started.
  void after_start(Op op, Op earlier, double lag_s);

  size_t op_count() const { return ops_.size(); }
  double duration_s(Op op) const { return ops_[static_cast<size_t>(op)].duration_s; }

  struct Run {
    double start_s = 0, end_s = 0;
    Op cause = -1;  ///< the operation that it waited for last; -1: it started at 0
  };
  /// When each operation runs, by its index. Throws Error{kInternal} if operations wait for each
  /// other in a circle, which is a wrong order on a stream.
  std::vector<Run> run() const;

  /// The operations that determine the end, first to last.
  static std::vector<Op> critical_path(const std::vector<Run>& runs);

 private:
  struct Wait {
    Op op = -1;
    double lag_s = 0;
    bool from_start = false;
  };
  struct Operation {
    double duration_s = 0;
    std::vector<Wait> waits;
  };
  void wait(Op op, Wait wait) { ops_[static_cast<size_t>(op)].waits.push_back(wait); }

  std::vector<Operation> ops_;
  std::vector<Op> last_;  ///< by stream; -1: none yet
};

}  // namespace tilecast
