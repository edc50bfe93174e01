#pragma once

// What a question may take: asked by importers, passes, simulations and searches before they
// allocate, and while they go on.
//
// The budget belongs to the thread: a scope sets it (tilecast/error.h), threads of base/threads.h
// take over that of the thread that starts them. As an argument it would be in the signature of
// every shape rule, pass and importer. None of them decides by it: it changes no answer, it only
// ends the work.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "tilecast/error.h"

namespace tilecast {

/// A part of the work that a small input can make large.
struct BudgetPart {
  std::string_view what;   ///< of which there may be too many
  int64_t usual;           ///< the most of it without `max-memory`
  int64_t bytes_each = 1;  ///< in memory, with all that is made of it
};

// All of them. What the largest real inputs take is stated beside each limit.

/// DeepSeek-V3 with its experts written out one by one has some 300,000 nodes. A node with its
/// tensor takes 1 kB in each of the graphs of a pass.
inline constexpr BudgetPart kGraphNodes{"nodes of a graph", 1'000'000, 2048};
/// Of an ONNX file, read: an empty node is two bytes of the file and 300 in memory.
inline constexpr BudgetPart kOnnxBytes{"bytes of an ONNX file's nodes, names and attributes",
                                       int64_t{512} << 20};
/// Shapes, positions, masks of fixed size.
inline constexpr BudgetPart kKnownElements{
    "elements of constants and lists that are computed before the model runs", int64_t{1} << 24,
    16};
/// The largest config.json has some thousand values. A value takes a tree's node with its key, or
/// its place in a list while that grows.
inline constexpr BudgetPart kJsonValues{"values of JSON", 3'000'000, 160};
/// Of a table in memory, beside eight times its text: the largest public table of measurements has
/// 17 million cells, 165 MB as a file and 700 MB in memory. A cell without text takes 32 bytes.
inline constexpr BudgetPart kTableBytes{"bytes of a table", int64_t{256} << 20};
/// 64 stages with 512 micro-batches, as for GPT-3 1T, have 130,000 operations.
inline constexpr BudgetPart kStepOperations{"operations of a training step", 350'000, 1536};
/// 128 layers that differ and 6 regular expressions, as many as published configs have, take at
/// most 120 million: 6 ns each, and no memory.
inline constexpr BudgetPart kNameSteps{
    "steps of comparing modules with the patterns of a quantization config", int64_t{1} << 28, 2};
/// Of a profiler trace, unpacked: 64 GB are hours of a large model. They pass through, none stays.
inline constexpr BudgetPart kTraceBytes{"bytes of a profiler trace's text", int64_t{1} << 36};
/// Operators, launches and kernels of it: 1 GB of JSON has about 2.5 million events.
inline constexpr BudgetPart kTraceEvents{"events of a profiler trace", 20'000'000, 160};
/// Names of kernels and arguments of operators, each once: a model with 1,500 of them takes 1 MB.
inline constexpr BudgetPart kTraceNames{"bytes of names and arguments in a profiler trace",
                                        int64_t{256} << 20, 4};

class Budget {
 public:
  explicit Budget(const Limits& limits);

  /// Of the question that this thread works on.
  static const Budget& here();

  /// The most of a part.
  int64_t most(const BudgetPart& part) const {
    return limits_.memory_bytes ? *limits_.memory_bytes / part.bytes_each : part.usual;
  }
  /// Whether the part may be as large. Throws Error{kUnsupported}, which begins with `where`, a
  /// file or a model.
  void allow(const BudgetPart& part, int64_t count, std::string_view where) const {
    if (count > most(part)) refuse(part, where);
  }
  bool has_deadline() const { return limits_.seconds.has_value(); }
  /// Limits::files.
  bool reads_files() const { return limits_.files; }
  /// Limits::folder.
  const std::string& folder() const { return limits_.folder; }

  /// Throws LimitReached if the time is over, the work holds more memory than it may, or it was
  /// cancelled. `doing`: "simulating a server".
  void check(std::string_view doing) const;

  /// Counts what a thread of this budget has allocated, less what it has freed.
  void add_bytes(int64_t bytes) const { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Whether the threads hold more than they may.
  bool holds_too_much() const {
    return limits_.memory_bytes && bytes_.load(std::memory_order_relaxed) > *limits_.memory_bytes;
  }
  /// Whether one allocation alone is more than all may be.
  bool is_beyond(size_t bytes) const {
    return limits_.memory_bytes && bytes > static_cast<uint64_t>(*limits_.memory_bytes);
  }

 private:
  [[noreturn]] void refuse(const BudgetPart& part, std::string_view where) const;

  Limits limits_;
  std::chrono::steady_clock::time_point start_;
  int64_t start_bytes_ = 0;                ///< of the process, where allocations are not counted
  mutable std::atomic<int64_t> bytes_{0};  ///< allocated, less freed
};

/// Counts allocations: how a program tells what each question holds. One that replaces the
/// operators new and delete (src/cli/counted_memory.cc) calls `begin` at its start and `add` at
/// each of them. Where none does, a budget's memory is the growth of the whole process, which
/// cannot tell one question from another.
///
/// What a question frees that another one allocated (a remembered pass that is dropped) is counted
/// for it, too: it may then hold as much more.
class CountedMemory {
 public:
  static void begin();
  static bool is_counted() { return is_counted_; }
  /// Whether the thread works for a budget; nothing is counted else.
  static bool is_wanted() { return budget_ != nullptr; }

  static void add(int64_t bytes) {
    constexpr int64_t kUntold = 64 << 10;  // seldom enough for many threads to share one counter
    untold_bytes_ += bytes;
    if (untold_bytes_ > kUntold || untold_bytes_ < -kUntold) tell();
  }
  /// Before one allocation, which would be made before the next look at the budget. Throws
  /// AllocationRefused where it alone is beyond the limit. Not where all together are: code that
  /// must not fail allocates, too (nlohmann's destructors), but never as much.
  static void before(size_t bytes);
  /// Adds what the thread has not told to its budget.
  static void tell();

 private:
  friend class Budget;
  friend class LimitScope;
  friend void take_budget(const Budget& budget);
  static const Budget* exchange(const Budget* budget);

  static bool is_counted_;
  static constinit thread_local const Budget* budget_;
  static constinit thread_local int64_t untold_bytes_;
};

/// An allocation beyond the limit of memory.
class AllocationRefused : public std::bad_alloc {
 public:
  const char* what() const noexcept override;
};

/// Gives the calling thread, which works for another one to its end, the budget of that one.
void take_budget(const Budget& budget);

/// For what may go on for long: checks the thread's budget, at every 64th call.
inline void go_on(std::string_view doing) {
  constexpr uint32_t kBetweenChecks = 64;
  thread_local uint32_t calls = 0;
  if (++calls % kBetweenChecks == 0) Budget::here().check(doing);
}

}  // namespace tilecast
