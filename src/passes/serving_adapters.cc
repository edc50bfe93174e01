// Low-rank adapters of the requests of a step. The matrices of all adapters of a layer are one
// tensor each, with a slot for each adapter that memory is kept for. Layers that are merged into
// one product have one call of each kernel (vLLM's slices). Not modelled: adapters of experts, of
// the output layer and of the embedding.

#include "base/checked.h"
#include "passes/adapted_layers.h"
#include "passes/serving_step.h"

namespace tilecast {

std::vector<int32_t> ServingStep::adapted_layers(const std::vector<int32_t>& linears) const {
  std::vector<int32_t> layers;
  if (request_.adapters.rank == 0) return layers;
  for (const int32_t linear : linears) {
    const Node& node = node_at(linear);
    if (linear != fusions_.output_layer && may_have_adapter(from_, node) &&
        is_target(request_.adapters.targets, layer_name(node)))
      layers.push_back(linear);
  }
  return layers;
}

TensorId ServingStep::adapt(TensorId y, TensorId x, const std::string& name,
                            const std::vector<int32_t>& layers) {
  const StepAdapters& a = request_.adapters;
  const auto parts = static_cast<int64_t>(layers.size());
  const DType dtype = to_.tensor(x).dtype;
  int64_t out = 0;
  for (const int32_t layer : layers)
    out = checked_add(out, module_shape(node_at(layer).outputs[0]).back());
  const TensorId down =
      b_.weight(name + ".lora_A",
                {a.slots, checked_multiply(parts, a.kept_rank), to_.tensor(x).shape.back()}, dtype);
  const TensorId up = b_.weight(name + ".lora_B", {a.slots, out, a.kept_rank}, dtype);
  const TensorId low = op("lora_shrink", {x, down}, name + ".lora_shrink",
                          {{"adapters", a.used},
                           {"columns", checked_multiply(parts, a.rank)},
                           {"clears", static_cast<int64_t>(a.clears_buffer)}});
  return op("lora_expand", {y, low, up}, name + ".lora_expand",
            {{"adapters", a.used}, {"columns", a.rank}});
}

}  // namespace tilecast
