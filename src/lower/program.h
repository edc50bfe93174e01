#pragma once

// The kernels of a graph in the order of their launches, without times. Goals: identical kernels
// are stored once, and layers that repeat are not expanded. Non-goals: times (src/predict) and when
// a kernel starts (src/sim/timeline.h).

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"

namespace tilecast {

/// One launch of a kernel. It waits for all earlier launches on the same stream of the same rank.
/// With a single stream, this satisfies every dependency of the graph.
struct Launch {
  const Node* node = nullptr;  ///< points into the graph, which must outlive the program
  size_t kernel = 0;           ///< index into `Program::kernels`
  size_t block = 0;            ///< index into `Program::blocks`
  int32_t stream = 0;          ///< stream of the rank
  int32_t rank = 0;
};

/// Consecutive launches of one phase that are repeated `repeat` times: the body of a segment.
struct Block {
  size_t first_launch = 0;
  size_t launch_count = 0;
  int64_t repeat = 1;
  size_t segment = 0;  ///< index into the graph's segments
  Phase phase = Phase::kForward;
};

struct Program {
  std::vector<Kernel> kernels;  ///< each distinct kernel once
  std::vector<Launch> launches;
  std::vector<Block> blocks;  ///< in order of execution, covering all launches

  /// How many times a launch runs.
  int64_t count(const Launch& launch) const { return blocks[launch.block].repeat; }
  /// How many times each kernel runs, by its index.
  std::vector<double> kernel_counts() const;
};

/// The kernels of a graph of one rank, on one stream. Throws Error{kInput} if the work of a node
/// overflows 64 bits.
Program lower(const Graph& graph);

}  // namespace tilecast
