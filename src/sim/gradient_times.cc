#include "sim/gradient_times.h"

#include <map>
#include <utility>
#include <vector>

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

/// By gradient: a weight that is used twice has two contributions.
std::map<TensorId, size_t> last_contributions(const Graph& graph, const Program& program) {
  std::map<TensorId, size_t> last;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    for (const TensorId gradient : sums_of(graph, launch)) last[gradient] = i;
  }
  return last;
}

/// One run of a block, and the gradients that are complete within it.
struct BlockRun {
  HostFedStream::Sequence body;
  std::vector<std::pair<TensorId, HostFedStream::Sequence>> ready;
};

}  // namespace

LastPass run_last_pass(const Graph& graph, const Program& program, std::span<const double> kernel_s,
                       double host_launch_s, const GradientCopy& copy_s) {
  const std::map<TensorId, size_t> last = last_contributions(graph, program);
  LastPass pass{.gradients = {}, .stream = HostFedStream(host_launch_s)};
  HostFedStream& stream = pass.stream;
  double start_s = -1;
  const auto add_gradient = [&](BlockRun& run, TensorId gradient) {
    if (copy_s) stream.append(run.body, copy_s(gradient));
    run.ready.emplace_back(gradient, run.body);
  };
  for (const Block& block : program.blocks) {
    if (block.phase == Phase::kOptimizer) break;
    if (block.phase == Phase::kBackward && start_s < 0) start_s = stream.end_s();
    // The gradient of a weight that all layers share is complete after the last of them.
    BlockRun each, final;
    for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
      const Launch& launch = program.launches[i];
      const HostCalls& calls = program.kernels[launch.kernel].host;
      stream.append(each.body, kernel_s[launch.kernel], calls);
      stream.append(final.body, kernel_s[launch.kernel], calls);
      for (const TensorId gradient : sums_of(graph, launch)) {
        if (last.at(gradient) != i) continue;
        if (graph.repeat_of(graph.tensor(gradient).segment) > 1) add_gradient(each, gradient);
        add_gradient(final, gradient);
      }
    }
    if (final.ready.empty()) {
      stream.run(each.body, block.repeat);
      continue;
    }
    for (int64_t r = 0; r < block.repeat; ++r) {
      const BlockRun& run = r + 1 < block.repeat ? each : final;
      for (const auto& [gradient, upto] : run.ready)
        pass.gradients.push_back(
            {stream.end_after(upto) - start_s, tensor_bytes(graph.tensor(gradient)), gradient});
      stream.run(run.body, 1);
    }
  }
  pass.backward_s = start_s < 0 ? 0 : stream.end_s() - start_s;
  return pass;
}

}  // namespace tilecast
