#include "scenario/generation/served_adapters.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "graph/dtype.h"
#include "ops/op_def.h"
#include "request/load.h"
#include "scenario/generation/host_memory.h"
#include "software/software.h"

namespace tilecast {
namespace {

const LoraRule& lora_rule(const Request& request) {
  return software_def(request.execution.software.value_or(default_server())).lora;
}

std::vector<std::string> asked_targets(const Request& request) {
  return split(request.lora_targets, ',');
}

/// The matrices of one adapter on a rank of a stage, two for each layer.
struct AdapterSize {
  int64_t matrices = 0;
  int64_t elements = 0;  ///< for each unit of its rank
};

AdapterSize adapter_on(const ServedModel& served, size_t stage,
                       const std::vector<std::string>& targets) {
  static const OpId shrink = require_op("lora_shrink"), expand = require_op("lora_expand");
  const ServedStage& layers = served.stages[stage];
  const Graph step =
      fuse(layers.share, {.groups = {{1, 1, 1}},
                          .has_output_layer = layers.layers.has_end,
                          .adapters = {.rank = 1, .kept_rank = 1, .targets = targets}});
  AdapterSize size;
  for (const Segment& segment : step.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = step.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.op != shrink && node.op != expand) continue;
      const Shape& shape = step.tensor(node.inputs.back()).shape;
      size.elements =
          checked_add(size.elements, checked_multiply(element_count(shape), segment.repeat));
      // The low-rank input of a product of several layers has a column for each.
      if (node.op == shrink)
        size.matrices = checked_add(size.matrices, checked_product({2, shape[1], segment.repeat}));
    }
  }
  return size;
}

int64_t adapter_bytes(const ServedModel& served, const AdapterSize& size, int64_t rank) {
  return checked_product({size.elements, rank, dtype_bits(served.dtype())}) / kBitsPerByte;
}

/// The host launches a copy of each matrix, and the link carries them meanwhile. Of the stages, the
/// one that takes longest.
double adapter_load_s(const ServedModel& served) {
  const double bytes_per_s = host_bytes_per_s(served, "lora-rank");
  double longest = 0;
  for (size_t stage = 0; stage < served.stages.size(); ++stage) {
    const AdapterSize size = adapter_on(served, stage, asked_targets(served.asked));
    const auto bytes = static_cast<double>(adapter_bytes(served, size, served.asked.lora_rank));
    longest =
        std::max({longest, bytes / bytes_per_s,
                  static_cast<double>(size.matrices) * lora_rule(served.asked).load_matrix_s});
  }
  return longest;
}

}  // namespace

AdapterOptions adapter_options(const Request& request) {
  const ServedAdapters& asked = request.adapters;
  const LoraRule& rule = lora_rule(request);
  return {.count = adapter_count(request),
          .rank = request.lora_rank,
          .max_loras = asked.max_loras.value_or(rule.max_loras),
          .max_lora_rank = asked.max_lora_rank.value_or(rule.kept_rank(request.lora_rank))};
}

int64_t most_adapters(const Request& request, int64_t sequences) {
  if (request.lora_rank == 0) return 0;
  const AdapterOptions options = adapter_options(request);
  return std::min({options.count, options.max_loras, sequences});
}

StepAdapters step_adapters(const Request& request, int64_t used) {
  if (request.lora_rank == 0) return {};
  const AdapterOptions options = adapter_options(request);
  const LoraRule& rule = lora_rule(request);
  return {
      .rank = rule.computes_kept_rank ? options.max_lora_rank : options.rank,
      .kept_rank = options.max_lora_rank,
      .slots = options.max_loras,
      .used = std::max<int64_t>(1, used),
      .clears_buffer = rule.clears_buffer,
      .targets = rule.adapts_all ? std::vector<std::string>{"all-linear"} : asked_targets(request)};
}

int64_t adapter_slots_bytes(const ServedModel& served, size_t stage) {
  const StepAdapters adapters = step_adapters(served.asked, 1);
  if (adapters.rank == 0) return 0;
  const AdapterSize size = adapter_on(served, stage, adapters.targets);
  return checked_multiply(adapters.slots, adapter_bytes(served, size, adapters.kept_rank));
}

void add_adapters(ServerLimits& limits, const ServedModel& served) {
  if (served.asked.lora_rank == 0) return;
  limits.max_adapters = adapter_options(served.asked).max_loras;
  limits.adapter_load_s = adapter_load_s(served);
}

std::optional<AdaptersForecast> describe_adapters(const ServedModel& served) {
  if (served.asked.lora_rank == 0) return std::nullopt;
  const AdapterOptions options = adapter_options(served.asked);
  AdaptersForecast f{.adapters = options.count,
                     .rank = options.rank,
                     .max_loras = options.max_loras,
                     .max_lora_rank = options.max_lora_rank,
                     .load_s = adapter_load_s(served)};
  for (size_t stage = 0; stage < served.stages.size(); ++stage) {
    f.bytes = std::max(f.bytes,
                       adapter_bytes(served, adapter_on(served, stage, asked_targets(served.asked)),
                                     options.rank));
    f.reserved_bytes = std::max(f.reserved_bytes, adapter_slots_bytes(served, stage));
  }
  return f;
}

}  // namespace tilecast
