#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/decompose.h"
#include "ops/op_def.h"

namespace tilecast {

/// Writes the steps of one module.
class Decomposition {
 public:
  Decomposition(GraphBuilder& builder, const Node& node)
      : b(builder), n(node), prefix_(name_prefix(node.name)) {}

  /// A step named like the module.
  TensorId own(std::string_view op, std::vector<TensorId> inputs,
               std::vector<Attribute> attributes = {}) {
    return b.op(op, std::move(inputs), n.name, std::move(attributes));
  }
  /// A step with its own name under the module's prefix.
  TensorId op(std::string_view op, std::vector<TensorId> inputs, const char* name,
              std::vector<Attribute> attributes = {}) {
    return b.op(op, std::move(inputs), prefix_ + name, std::move(attributes));
  }
  TensorId view(TensorId x, Shape shape) {
    return b.op("view", {x}, "view", {{"shape", std::move(shape)}});
  }
  TensorId transpose(TensorId x, Shape order) {
    return b.op("transpose", {x}, "transpose", {{"order", std::move(order)}});
  }
  TensorId slice(TensorId x, int64_t columns, const char* name) {
    return op("slice_columns", {x}, name, {{"columns", columns}});
  }
  /// Returns a copy: adding a tensor may move the existing ones.
  Shape shape(TensorId id) const { return b.graph().tensor(id).shape; }
  bool flag(std::string_view name) const { return attribute<int64_t>(n, name) != 0; }

  /// [b, s, heads · size] → [b, heads, s, size], a view.
  TensorId split_heads(TensorId x, int64_t heads) {
    const Shape s = shape(x);
    return transpose(view(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
  }

  /// [b, heads, s, size] → [b, s, heads · size], one copy.
  TensorId merge_heads(TensorId x) {
    const Shape s = shape(x);
    const TensorId swapped = transpose(x, {0, 2, 1, 3});
    const bool dense = b.graph().tensor(swapped).contiguous;
    return view(dense ? swapped : op("copy", {swapped}, "merge"), {s[0], s[2], s[1] * s[3]});
  }

  /// torch.matmul of four-dimensional operands. It copies operands that cannot be flattened to [b ·
  /// heads, …] as views (batch > 1 and strided).
  TensorId matmul(TensorId left, TensorId right, const char* name) {
    const auto operand = [&](TensorId t) {
      const Tensor& tensor = b.graph().tensor(t);
      if (tensor.shape[0] == 1) return t;
      if (!tensor.contiguous) return op("copy", {t}, name);
      // Heads of a part (q of a product for q, k and v) are strided too. The older models whose
      // times were published had their copies elsewhere.
      const Tensor& whole = b.graph().tensor(tensor.storage);
      if (element_count(whole.shape) == element_count(tensor.shape)) return t;
      b.set_counts(Counts::kMemoryOnly);
      const TensorId copy = op("copy", {t}, name);
      b.set_counts(Counts::kAll);
      return copy;
    };
    const TensorId a = operand(left);
    return op("matmul", {a, operand(right)}, name);
  }

  /// Grouped-query attention: key and value heads are repeated by a copy, once per query head.
  TensorId repeat_heads(TensorId x, int64_t heads, const char* name) {
    const Shape s = shape(x);
    if (s[1] == heads) return x;
    const TensorId grouped = view(x, {s[0], s[1], 1, s[2], s[3]});
    const TensorId wide =
        op("expand", {grouped}, name, {{"shape", Shape{s[0], s[1], heads / s[1], s[2], s[3]}}});
    return view(op("copy", {wide}, name), {s[0], heads, s[2], s[3]});
  }

  TensorId dropout(TensorId x, const EagerForm& form) {
    if (!form.training || !flag("dropout")) return x;
    return b.add("dropout", {x}, prefix_ + "dropout").front();
  }

  /// x cos + rotate_half(x) sin
  TensorId rotate(TensorId x, TensorId cos, TensorId sin, const std::string& name) {
    const std::vector<TensorId> halves = b.add("split", {x}, name, {{"parts", 2}});
    const TensorId turned =
        b.op("cat", {b.op("neg", {halves[1]}, name), halves[0]}, name, {{"dim", 3}});
    const TensorId first = b.op("mul", {x, cos}, name);
    return b.op("add", {first, b.op("mul", {turned, sin}, name)}, name);
  }

  const std::string& prefix() const { return prefix_; }

  GraphBuilder& b;
  const Node& n;

 private:
  std::string prefix_;
};

}  // namespace tilecast
