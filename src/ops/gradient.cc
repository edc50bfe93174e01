#include "ops/gradient.h"

#include <algorithm>

#include "ops/op_def.h"

namespace tilecast {

GradientBuilder::GradientBuilder(Graph& graph) : graph_(graph), builder_(graph) {
  builder_.set_phase(Phase::kBackward);
}

void GradientBuilder::mark_requires_grad(const std::vector<TensorId>& others) {
  requires_grad_.assign(graph_.tensors.size(), false);
  for (size_t i = 0; i < graph_.tensors.size(); ++i)
    requires_grad_[i] = graph_.tensors[i].kind == TensorKind::kWeight && !graph_.tensors[i].frozen;
  for (const TensorId id : others) requires_grad_[static_cast<size_t>(id)] = true;
  // From the second repetition on, a carried tensor replaces the segment's first input. If the
  // carried tensor requires a gradient, so does that input, even if it is an input of the model.
  // Each iteration propagates this by one segment.
  bool changed = true;
  while (changed) {
    changed = false;
    for (const Node& node : graph_.nodes) {
      if (op_def(node.op).backward == nullptr) continue;
      bool needed = op_def(node.op).updates_in_backward;
      for (TensorId id : node.inputs) needed = needed || requires_grad_[static_cast<size_t>(id)];
      if (!needed) continue;
      for (TensorId id : node.outputs) requires_grad_[static_cast<size_t>(id)] = true;
    }
    for (const Segment& segment : graph_.segments) {
      for (const Carry& carry : segment.carries) {
        if (segment.repeat == 1 || !requires_grad(carry.next) || requires_grad(carry.initial))
          continue;
        requires_grad_[static_cast<size_t>(carry.initial)] = true;
        changed = true;
      }
    }
  }
}

void GradientBuilder::stand_in(TensorId copy, TensorId original) {
  if (originals_.size() <= static_cast<size_t>(copy))
    originals_.resize(static_cast<size_t>(copy) + 1, -1);
  originals_[static_cast<size_t>(copy)] = original;
}

TensorId GradientBuilder::original(TensorId id) const {
  const auto i = static_cast<size_t>(id);
  return i < originals_.size() && originals_[i] >= 0 ? originals_[i] : id;
}

bool GradientBuilder::requires_grad(TensorId id) const {
  id = original(id);
  return static_cast<size_t>(id) < requires_grad_.size() && requires_grad_[static_cast<size_t>(id)];
}

TensorId GradientBuilder::gradient(TensorId id) const {
  id = original(id);
  return static_cast<size_t>(id) < gradients_.size() ? gradients_[static_cast<size_t>(id)] : -1;
}

void GradientBuilder::set_gradient(TensorId id, TensorId gradient) {
  id = original(id);
  if (gradients_.size() <= static_cast<size_t>(id))
    gradients_.resize(static_cast<size_t>(id) + 1, -1);
  gradients_[static_cast<size_t>(id)] = gradient;
}

void GradientBuilder::add_gradient(TensorId id, TensorId gradient) {
  if (!requires_grad(id)) return;
  // The autograd engine casts a gradient to the tensor's dtype (mixed precision).
  if (tensor(gradient).dtype != tensor(id).dtype)
    gradient = op("cast", {gradient}, {{"dtype", tensor(id).dtype}});
  if (tensor(id).kind == TensorKind::kWeight) {
    accumulate(id, gradient);
    return;
  }
  const TensorId before = this->gradient(id);
  set_gradient(id, before < 0 ? gradient : op("add", {before, gradient}));
}

TensorId GradientBuilder::op(std::string_view name, std::vector<TensorId> inputs,
                             std::vector<Attribute> attributes) {
  return builder_.op(name, std::move(inputs), name_, std::move(attributes));
}

std::vector<TensorId> GradientBuilder::add(std::string_view name, std::vector<TensorId> inputs,
                                           std::vector<Attribute> attributes) {
  return builder_.add(name, std::move(inputs), name_, std::move(attributes));
}

void GradientBuilder::accumulate(TensorId weight, TensorId gradient) {
  // A copy: adding tensors may move them.
  const Tensor parameter = tensor(weight);
  if (totals_.size() <= static_cast<size_t>(weight))
    totals_.resize(static_cast<size_t>(weight) + 1, -1);
  TensorId& total = totals_[static_cast<size_t>(weight)];
  if (total < 0) {
    total = builder_.tensor({.name = parameter.name + ".grad",
                             .shape = parameter.shape,
                             .dtype = parameter.dtype,
                             .kind = TensorKind::kGradient,
                             .segment = parameter.segment,
                             .origin = weight});
  }
  op("add_", {total, gradient});
}

TensorId GradientBuilder::reduce_to(TensorId gradient, TensorId like) {
  if (element_count(tensor(gradient).shape) == element_count(tensor(like).shape)) return gradient;
  return op("reduce_sum", {gradient}, {{"shape", tensor(like).shape}});
}

const Node* GradientBuilder::maker(TensorId id) {
  makers_.resize(graph_.tensors.size(), -1);
  for (; indexed_ < graph_.nodes.size(); ++indexed_)
    for (const TensorId output : graph_.nodes[indexed_].outputs)
      makers_[static_cast<size_t>(output)] = static_cast<int32_t>(indexed_);
  const int32_t at = makers_[static_cast<size_t>(id)];
  return at < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(at)];
}

TensorId GradientBuilder::kept(TensorId id) {
  if (tensor(id).kind == TensorKind::kWeight) return id;
  const Node* made_by = maker(id);
  if (made_by == nullptr || !op_def(made_by->op).recomputed_in_backward) return id;
  // A copy: adding a node may move it.
  const Node node = *made_by;  // NOLINT(performance-unnecessary-copy-initialization)
  const RoleScope role(builder_, node.role);
  return builder_.op(op_def(node.op).name, node.inputs, node.name, node.attributes);
}

TensorId GradientBuilder::dense(TensorId gradient) {
  return tensor(gradient).contiguous ? gradient : op("copy", {gradient});
}

}  // namespace tilecast
