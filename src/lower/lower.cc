#include <unordered_map>

#include "lower/program.h"
#include "ops/builder.h"

namespace tilecast {
namespace {

/// Appends launches; a new segment or phase starts a new block.
class Lowering {
 public:
  explicit Lowering(const Graph& graph) : graph_(graph) { index_.reserve(2 * graph.nodes.size()); }

  Program run() {
    for (size_t s = 0; s < graph_.segments.size(); ++s) {
      const Segment& segment = graph_.segments[s];
      for (int32_t i = 0; i < segment.node_count; ++i)
        add_node(s, graph_.nodes[static_cast<size_t>(segment.first_node + i)]);
    }
    return std::move(program_);
  }

 private:
  void add_node(size_t segment, const Node& node) {
    if (node.counts == Counts::kMemoryOnly) return;
    kernels_.clear();
    lower_node(graph_, node, kernels_);
    for (const Kernel& kernel : kernels_) {
      const auto [it, fresh] = index_.emplace(kernel, program_.kernels.size());
      if (fresh) program_.kernels.push_back(kernel);
      program_.launches.push_back(
          {.node = &node, .kernel = it->second, .block = block_of(segment, node.phase)});
    }
  }

  /// The block that the next launch belongs to.
  size_t block_of(size_t segment, Phase phase) {
    std::vector<Block>& blocks = program_.blocks;
    if (blocks.empty() || blocks.back().segment != segment || blocks.back().phase != phase)
      blocks.push_back({.first_launch = program_.launches.size(),
                        .repeat = graph_.segments[segment].repeat,
                        .segment = segment,
                        .phase = phase});
    blocks.back().launch_count += 1;
    return blocks.size() - 1;
  }

  const Graph& graph_;
  Program program_;
  std::unordered_map<Kernel, size_t, KernelHash> index_;
  std::vector<Kernel> kernels_;  ///< kernels of one node
};

}  // namespace

std::vector<double> Program::kernel_counts() const {
  std::vector<double> counts(kernels.size(), 0);
  for (const Launch& launch : launches) counts[launch.kernel] += static_cast<double>(count(launch));
  return counts;
}

Program lower(const Graph& graph) { return Lowering(graph).run(); }

}  // namespace tilecast
