// Layers with a recurrent state in a serving step: each group of sequences has its own kernels,
// which read the sequences' states and write them back.

#include "ops/decompose.h"
#include "ops/op_def.h"
#include "passes/serving_step.h"

namespace tilecast {

TensorId ServingStep::states(const std::string& name, Shape shape, DType dtype) {
  return b_.tensor({.name = name,
                    .shape = std::move(shape),
                    .dtype = dtype,
                    .kind = TensorKind::kCache,
                    .segment = b_.current_segment()});
}

void ServingStep::convolution(int32_t index) {
  const Node& node = node_at(index);
  const TensorId x = get(node.inputs[0]), weight = get(node.inputs[1]);
  const int64_t channels = to_.tensor(x).shape.back(), width = to_.tensor(weight).shape[1];
  const std::string p = name_prefix(node.name);
  const TensorId buffer = buffer_like(x, channels, p + "outputs");
  std::vector<TensorId> outputs;
  for (const StepRequest::Group& g : request_.groups) {
    const RoleScope role(b_, Role::kGroup);
    const TensorId rows = view(rows_of(x, g, p + "rows"), {g.sequences, g.tokens, channels});
    const TensorId kept =
        states(p + "conv_states", {g.sequences, channels, width - 1}, to_.tensor(x).dtype);
    const TensorId y = op("causal_conv1d", {rows, weight, kept}, node.name);
    outputs.push_back(view(y, {g.sequences * g.tokens, channels}));
  }
  set(node.outputs[0], join(buffer, std::move(outputs), p + "joined"));
}

void ServingStep::scan(int32_t index) {
  const Node& node = node_at(index);
  const Shape &vs = module_shape(node.inputs[0]), &ks = module_shape(node.inputs[1]);
  const int64_t heads = vs[2], size = vs[3], groups = ks[2], state_dim = ks[3];
  // Of a head, or of each element of its keys.
  const Shape decay(module_shape(node.inputs[3]).begin() + 2, module_shape(node.inputs[3]).end());
  const std::string p = name_prefix(node.name);
  std::vector<TensorId> whole;
  for (const TensorId id : node.inputs) whole.push_back(get(id));
  const TensorId buffer = buffer_like(whole[0], heads * size, p + "scan_outputs");
  std::vector<TensorId> outputs;
  for (const StepRequest::Group& g : request_.groups) {
    const RoleScope role(b_, Role::kGroup);
    const auto part = [&](size_t input, Shape shape) {
      shape.insert(shape.begin(), {g.sequences, g.tokens});
      return view(rows_of(whole[input], g, p + "rows"), std::move(shape));
    };
    std::vector<TensorId> inputs = {part(0, {heads, size}), part(1, {groups, state_dim}),
                                    part(2, {groups, state_dim}), part(3, decay)};
    // vLLM and SGLang keep the states in fp32.
    inputs.push_back(states(p + "states", {g.sequences, heads, size, state_dim}, DType::kFp32));
    const TensorId y = op("linear_scan", std::move(inputs), node.name, node.attributes);
    outputs.push_back(view(y, {g.sequences * g.tokens, heads * size}));
  }
  const TensorId y = join(buffer, std::move(outputs), p + "scan_joined");
  set(node.outputs[0], view(y, {tokens_, heads, size}));
}

}  // namespace tilecast
