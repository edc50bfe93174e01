#pragma once

// When each kernel of a program runs.

#include <span>
#include <vector>

#include "lower/program.h"

namespace tilecast {

/// All runs of one launch. Layers that repeat stay folded: a kernel of each of 36 layers is one
/// event with a count of 36.
struct Event {
  size_t launch = 0;      ///< index into the program's launches
  size_t kernel = 0;      ///< index into the program's kernels
  double start_s = 0;     ///< of the first run
  double duration_s = 0;  ///< of one run
  int64_t count = 1;      ///< runs; those after the first lie within the span
  int32_t stream = 0;
  int32_t rank = 0;
};

/// A block of the program with all its repetitions.
struct Span {
  Phase phase = Phase::kForward;
  double start_s = 0;
  double end_s = 0;
};

/// Seconds count from the start of the first kernel.
struct Timeline {
  std::vector<Event> events;  ///< one for each launch of the program, in its order
  std::vector<Span> spans;    ///< one for each block of the program, in its order

  double end_s() const { return spans.empty() ? 0 : spans.back().end_s; }
  /// The time that the spans of a phase take.
  double phase_s(Phase phase) const;
};

/// Runs a program whose kernels take `kernel_s` (by their index), on one stream that one host feeds
/// with a launch every `host_launch_s`; see stream.h.
Timeline simulate(const Program& program, std::span<const double> kernel_s, double host_launch_s);

}  // namespace tilecast
