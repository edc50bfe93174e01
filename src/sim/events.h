#pragma once

// Operations on streams of many ranks. Goals: exact, linear in the number of operations, the same
// for one folded rank of each kind and for all ranks. An operation occupies one stream (a kernel)
// or several (a collective, which starts when all of its ranks are ready). Streams run their
// operations in the order in which they were added, as CUDA streams do, so when each starts follows
// from the operations before it. Operations that use the same links at the same time share them
// (shared_links.cc); without such, no time is spent on that. Non-goal: multiprocessors that
// operations share.

#include <cstdint>
#include <span>
#include <vector>

namespace tilecast {

class EventGraph {
 public:
  using Op = int32_t;
  using StreamId = int32_t;
  using LinkId = int32_t;

  StreamId add_stream();
  /// An operation after all others on its streams so far.
  Op add(std::span<const StreamId> streams, double duration_s);
  Op add(StreamId stream, double duration_s) { return add({&stream, 1}, duration_s); }
  /// `op` starts at the earliest when `earlier` has ended.
  void after(Op op, Op earlier);
  /// `op` starts at the earliest `lag_s` after `earlier` has started.
  void after_start(Op op, Op earlier, double lag_s);

  /// Adds a link that operations can share, in one direction.
  LinkId add_link();
  /// `op`, the last one added, sends over all of `links` at the same time. Alone, it would fill
  /// them for `busy_s` of its duration. An operation sends all the time, or it computes and sends
  /// in turns; of the latter, at most one may use a link at a time.
  enum class Sends : uint8_t { kThroughout, kInTurns };
  void use(Op op, std::span<const LinkId> links, double busy_s, Sends sends = Sends::kThroughout);
  /// `op`, the last one added, computes and sends in turns over two sets of links, and fills both
  /// together for `busy_s` of its duration. Without this, it fills one after the other.
  void use_together(Op op, double busy_s);

  size_t op_count() const { return ops_.size(); }
  double duration_s(Op op) const { return ops_[static_cast<size_t>(op)].duration_s; }

  struct Run {
    double start_s = 0, end_s = 0;
    Op cause = -1;  ///< the operation that it waited for last; -1: it started at 0
  };
  /// When each operation runs, by its index. Throws Error{kInternal} if operations wait for each
  /// other in a circle, which is a wrong order on a stream.
  std::vector<Run> run() const;
  /// The same as if each operation had all links for itself.
  std::vector<Run> run_without_sharing() const;

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
    int32_t first_use = 0, use_count = 0;
    double together = 0;  ///< part of the duration in which it fills all of its links
  };
  /// An operation's use of some links at the same time.
  struct Use {
    Op op = -1;
    double part = 0;  ///< of the operation's duration, in which it would fill the links
    Sends sends = Sends::kThroughout;
    int32_t first_link = 0, link_count = 0;
  };
  class SharedRun;

  void wait(Op op, Wait wait) { ops_[static_cast<size_t>(op)].waits.push_back(wait); }
  std::span<const Use> uses_of(Op op) const;
  std::span<const LinkId> links_of(const Use& use) const;
  double together(Op op) const { return ops_[static_cast<size_t>(op)].together; }
  /// Whether operations that want more than a link has overlap in these runs.
  bool contended(const std::vector<Run>& runs) const;

  std::vector<Operation> ops_;
  std::vector<Op> last_;  ///< by stream; -1: none yet
  int32_t link_count_ = 0;
  std::vector<Use> uses_;          ///< by operation
  std::vector<LinkId> use_links_;  ///< by use
};

}  // namespace tilecast
