#include "api/timing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "sim/stream.h"

namespace tilecast {
namespace {

struct KernelHash {
  size_t operator()(const Kernel& k) const {
    uint64_t hash = 14695981039346656037ull;
    for (int64_t v :
         {static_cast<int64_t>(k.family) * 64 + static_cast<int64_t>(k.dtype),
          static_cast<int64_t>(k.op), k.batch, k.m, k.n, k.k, k.read_bytes, k.write_bytes})
      hash = (hash ^ static_cast<uint64_t>(v)) * 1099511628211ull;
    return hash;
  }
};

/// Runs the kernels on a stream that the host feeds; a phase lasts from the end of the one before.
void run_stream(Timeline& timeline, const Lowered& lowered, const std::vector<KernelTime>& times,
                double host_launch_s) {
  HostFedStream stream(host_launch_s);
  const std::vector<Launch>& launches = lowered.launches;
  for (size_t i = 0; i < launches.size();) {
    const Launch& first = launches[i];
    HostFedStream::Sequence sequence;
    for (; i < launches.size() && launches[i].segment == first.segment &&
           launches[i].node->phase == first.node->phase;
         ++i)
      stream.append(sequence, times[launches[i].kernel].seconds);
    const double before = stream.end_s();
    stream.run(sequence, first.count);
    timeline.phases[static_cast<size_t>(first.node->phase)] += stream.end_s() - before;
  }
  timeline.seconds = stream.end_s();
}

/// The interval of the sum: of each predictor's errors a share is common to all its kernels and
/// adds up, the rest differs from kernel to kernel and partly cancels, as the errors of different
/// predictors do.
void add_interval(Timeline& timeline, const Lowered& lowered,
                  const std::vector<KernelTime>& times) {
  struct Deviation {
    double low = 0, high = 0;
  };
  std::vector<double> counts(times.size(), 0);
  for (const Launch& launch : lowered.launches)
    counts[launch.kernel] += static_cast<double>(launch.count);
  std::map<std::string_view, Deviation> common;
  double low = 0, high = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const KernelTime& t = times[i];
    timeline.kernels_s += t.seconds * counts[i];
    const double down = (t.seconds - t.low_s) * counts[i];
    const double up = (t.high_s - t.seconds) * counts[i];
    const double share = std::sqrt(t.common_share);
    common[t.predictor].low += share * down;
    common[t.predictor].high += share * up;
    low += (1 - t.common_share) * down * down;
    high += (1 - t.common_share) * up * up;
  }
  for (const auto& [predictor, deviation] : common) {
    low += deviation.low * deviation.low;
    high += deviation.high * deviation.high;
  }
  timeline.low_s = timeline.seconds - std::sqrt(low);
  timeline.high_s = timeline.seconds + std::sqrt(high);
}

}  // namespace

Lowered lower(const Graph& graph, Software software) {
  Lowered result;
  std::unordered_map<Kernel, size_t, KernelHash> index;
  index.reserve(2 * graph.nodes.size());
  std::vector<Kernel> kernels;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      kernels.clear();
      lower_node(graph, node, kernels);
      for (Kernel& kernel : kernels) {
        kernel.software = software;
        const auto [it, fresh] = index.emplace(kernel, result.distinct.size());
        if (fresh) result.distinct.push_back(kernel);
        result.launches.push_back({&node, it->second, segment.repeat, s});
      }
    }
  }
  return result;
}

Timeline time_launches(const Lowered& lowered, const std::vector<KernelTime>& times,
                       double host_launch_s) {
  Timeline timeline;
  run_stream(timeline, lowered, times, host_launch_s);
  add_interval(timeline, lowered, times);
  timeline.host_wait_s = std::max(0.0, timeline.seconds - timeline.kernels_s);
  return timeline;
}

KernelForecast describe(const Kernel& kernel, const KernelTime& time) {
  KernelForecast row;
  row.op = op_def(kernel.op).name;
  row.family = kernel_family_name(kernel.family);
  row.dtype = precision_name(kernel);
  row.shape = {kernel.batch, kernel.m, kernel.n, kernel.k};
  row.latency_s = time.seconds;
  row.low_s = time.low_s;
  row.high_s = time.high_s;
  row.flops = kernel.flops;
  row.bytes = kernel.bytes();
  row.limit = limit_name(time.limit);
  if (time.tile) row.tile = {time.tile->m, time.tile->n};
  row.waves = time.waves;
  row.utilization_ratio = time.utilization_ratio;
  row.predictor = time.predictor;
  row.extrapolated = time.extrapolated;
  row.extrapolated_feature = time.extrapolated_feature;
  return row;
}

std::vector<KernelForecast> describe_launches(const Lowered& lowered,
                                              const std::vector<KernelTime>& times) {
  std::vector<KernelForecast> rows;
  rows.reserve(lowered.launches.size());
  for (const Launch& launch : lowered.launches) {
    KernelForecast row = describe(lowered.distinct[launch.kernel], times[launch.kernel]);
    row.name = launch.node->name;
    row.phase = phase_name(launch.node->phase);
    row.count = launch.count;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tilecast
