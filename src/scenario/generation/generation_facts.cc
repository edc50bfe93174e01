// Parameters, FLOPs of a token and bytes of its cache.

#include "scenario/generation/generation_facts.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "scenario/generation/step_graph.h"

namespace tilecast {
namespace {

void add_cache_sizes(GenerationForecast& f, const ServedModel& served) {
  const Decoder& decoder = served.decoder();
  f.state_bytes_per_sequence = decoder.state_bytes;
  for (const Decoder::Cache& cache : decoder.caches) {
    const int64_t bits = dtype_bits(cache.dtype.value_or(served.kv_dtype));
    const int64_t entries = checked_product({cache.layers, cache.dim, bits}) / kBitsPerByte;
    const int64_t bytes = ceil_divide(entries, cache.ratio);
    f.kv_bytes_per_token = checked_add(f.kv_bytes_per_token, bytes);
    if (cache.window == 0) continue;
    f.window_bytes_per_token = checked_add(f.window_bytes_per_token, bytes);
    f.window_tokens = std::max(f.window_tokens, cache.window);
  }
}

}  // namespace

void add_facts(GenerationForecast& f, const ServedModel& served) {
  const Graph graph = whole_step_graph(served, {{1, 1, served.asked.prompt}});
  f.parameters = graph.parameter_count();
  f.active_parameters = f.parameters;
  const Program program = lower(graph);
  for (const Launch& launch : program.launches) {
    const Kernel& k = program.kernels[launch.kernel];
    const int64_t count = program.count(launch);
    const int64_t flops = checked_multiply(k.flops, count);
    f.flops_per_token = checked_add(f.flops_per_token, flops);
    if (k.is<Attention>())
      f.attention_flops_per_token = checked_add(f.attention_flops_per_token, flops);
    const Experts* experts = k.as<Experts>();
    if (experts == nullptr) continue;
    int64_t held = 0;
    for (size_t w = 1; w < 3; ++w)
      held += element_count(graph.tensor(launch.node->inputs[w]).shape);
    f.active_parameters -=
        held / experts->num_experts * (experts->num_experts - experts->top_k) * count;
  }
  f.multiplied_parameters = f.active_parameters - served.decoder().embedding_parameters;
  add_cache_sizes(f, served);
}

}  // namespace tilecast
