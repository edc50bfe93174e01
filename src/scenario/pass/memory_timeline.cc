// Memory over time, with all repetitions and PyTorch's allocator.

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "memory/allocator.h"
#include "memory/peak.h"
#include "memory/replay.h"
#include "memory/stack.h"
#include "request/access.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/pass.h"
#include "scenario/pass/pass_images.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string_view part_name(MemoryUse use) {
  switch (use) {
    case MemoryUse::kWeights:
      return "weights";
    case MemoryUse::kGradients:
      return "gradients";
    case MemoryUse::kOptimizer:
      return "optimizer";
    case MemoryUse::kActivations:
      return "activations";
    case MemoryUse::kTemporaries:
      return "temporaries";
    case MemoryUse::kLoss:
      return "loss";
    case MemoryUse::kInputs:
      return "inputs";
    case MemoryUse::kCache:
      return "cache";
  }
  return "";
}

/// Tensors at the peak, tensors of one name together.
class Holders {
 public:
  void add(const Tensor& tensor, MemoryUse use, int64_t bytes, int64_t count) {
    MemoryHolder& holder = holders_[{part_name(use), tensor.name}];
    holder.name = tensor.name;
    holder.part = part_name(use);
    holder.bytes += bytes * count;
    holder.count += count;
    (bytes <= segment_bytes(0) / 2 ? small_bytes_ : large_bytes_) += bytes * count;
  }

  /// Whole segments of the allocator for all of them.
  int64_t least_reserved() const {
    const int64_t segment = segment_bytes(0);
    return large_bytes_ + checked_multiply(ceil_divide(small_bytes_, segment), segment);
  }

  std::vector<MemoryHolder> sorted() const {
    std::vector<MemoryHolder> all;
    for (const auto& [key, holder] : holders_) all.push_back(holder);
    std::stable_sort(all.begin(), all.end(), [](const MemoryHolder& a, const MemoryHolder& b) {
      return a.bytes > b.bytes;
    });
    return all;
  }

 private:
  std::map<std::pair<std::string_view, std::string>, MemoryHolder> holders_;
  int64_t small_bytes_ = 0, large_bytes_ = 0;
};

Holders holders_at(const Graph& graph, const Lifetimes& lifetimes, int32_t step,
                   ZeroGrad zero_grad) {
  Holders holders;
  for (const Tensor& tensor : graph.tensors) {
    if (const auto use = permanent_use(tensor, zero_grad))
      holders.add(tensor, *use, block_bytes(memory_bytes(tensor)), graph.repeat_of(tensor.segment));
  }
  for (const Lifetime& life : lifetimes.lifetimes) {
    if (life.born <= step && step <= life.last)
      holders.add(graph.tensor(life.tensor), use_at(life, step), life.bytes, 1);
  }
  return holders;
}

void add_points(MemoryTimeline& timeline, const Graph& graph, const Lifetimes& lifetimes) {
  const std::vector<BytesByUse> bytes = bytes_by_step(lifetimes);
  int64_t most = -1;
  for (size_t i = 0; i < lifetimes.steps.size(); ++i) {
    const NodeRun& step = lifetimes.steps[i];
    const Node& node = graph.nodes[static_cast<size_t>(step.node)];
    timeline.points.push_back({.phase = phase_name(node.phase),
                               .segment = graph.segments[static_cast<size_t>(step.segment)].name,
                               .repetition = step.repetition,
                               .node = node.name,
                               .parts = parts_of(bytes[i])});
    const int64_t sum = timeline.points.back().parts.sum();
    if (sum <= most) continue;
    most = sum;
    timeline.peak_point = i;
  }
}

}  // namespace

MemoryTimeline Forecaster::memory_timeline(const ModelRef& model_ref, const GpuRef& gpu,
                                           const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [used, precision] = checked_pass(model, device, request);
  if (is_parallel(used))
    throw Error(ErrorKind::kUnsupported,
                "memory over time is that of one GPU and one batch; omit the options of several "
                "GPUs and micro-batches, or ask for the forecast, which states the peak of a rank");
  const Graph graph = build_graph(model, used, precision);
  const Lifetimes lifetimes = find_lifetimes(graph, {.folded = false, .zero_grad = used.zero_grad});
  const PassMemory memory = forecast_memory(graph, {model, device, used, precision});

  MemoryTimeline timeline;
  timeline.model = model.name;
  timeline.gpu = device.id;
  timeline.gpu_name = device.name;
  timeline.mode = choice_name(used.mode);
  timeline.dtype = precision.name;
  timeline.batch = used.batch;
  timeline.seq = checked_add(*used.seq, image_tokens(model, used));
  add_points(timeline, graph, lifetimes);
  const Holders holders =
      holders_at(graph, lifetimes, static_cast<int32_t>(timeline.peak_point), used.zero_grad);
  timeline.holders = holders.sorted();
  timeline.workspace_bytes = memory.workspace_bytes;
  timeline.framework_bytes = memory.framework_bytes;
  timeline.device_bytes = visible_bytes(device);
  const AllocatorResult replayed =
      replay_allocations(graph, lifetimes, used.zero_grad, memory.workspace_bytes);
  timeline.allocated_bytes = replayed.allocated_bytes;
  timeline.reserved_high_bytes = replayed.reserved_bytes;
  timeline.reserved_low_bytes =
      std::min(replayed.reserved_bytes, holders.least_reserved() + memory.workspace_bytes);
  timeline.fits = memory.fits;
  return timeline;
}

}  // namespace tilecast
