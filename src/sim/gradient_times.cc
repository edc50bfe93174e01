#include "sim/gradient_times.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/stream.h"

namespace tilecast {
namespace {

/// The gradients that a kernel of the backward pass adds to: nothing else reads them there. A fused
/// kernel may have them anywhere among its operands.
std::vector<TensorId> sums_of(const Graph& graph, const Launch& launch) {
  std::vector<TensorId> sums;
  if (launch.node->phase != Phase::kBackward) return sums;
  for (const TensorId input : launch.node->inputs) {
    if (graph.tensor(input).kind == TensorKind::kGradient) sums.push_back(input);
  }
  return sums;
}

}  // namespace

std::vector<ReadyGradient> gradients_ready(const Graph& graph, const Program& program,
                                           std::span<const double> kernel_s, double host_launch_s) {
  // By gradient and layer: a weight that is used twice has two contributions.
  std::map<std::pair<TensorId, int64_t>, double> ready;
  HostFedStream stream(host_launch_s);
  double start_s = -1;
  for (const Block& block : program.blocks) {
    if (block.phase == Phase::kBackward && start_s < 0) start_s = stream.end_s();
    HostFedStream::Sequence body;
    std::vector<std::pair<TensorId, HostFedStream::Sequence>> added;
    for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
      const Launch& launch = program.launches[i];
      stream.append(body, kernel_s[launch.kernel]);
      for (const TensorId sum : sums_of(graph, launch)) added.emplace_back(sum, body);
    }
    for (int64_t run = 0; run < block.repeat && !added.empty(); ++run) {
      HostFedStream before = stream;
      before.run(body, run);
      for (const auto& [gradient, upto] : added) {
        const bool layered = graph.repeat_of(graph.tensor(gradient).segment) > 1;
        ready[{gradient, layered ? run : 0}] = before.end_after(upto) - start_s;
      }
    }
    stream.run(body, block.repeat);
  }
  std::vector<ReadyGradient> gradients;
  for (const auto& [key, seconds] : ready)
    gradients.push_back({seconds, tensor_bytes(graph.tensor(key.first)), key.first});
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const auto& a, const auto& b) { return a.ready_s < b.ready_s; });
  return gradients;
}

}  // namespace tilecast
