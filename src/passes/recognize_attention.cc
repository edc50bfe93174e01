// Attention that is spelled out: products of queries with transposed keys, scale, mask, softmax,
// products with values.

#include <algorithm>
#include <array>

#include "ops/op_def.h"
#include "passes/recognize.h"

namespace tilecast {
namespace {

/// A step back through a scaling by a number; -1: none.
TensorId before_scale(const Pattern& p, TensorId id, std::string* how = nullptr) {
  for (const std::string_view op : {"mul_scalar", "div_scalar"}) {
    if (const Node* scaled = p.made(id, op)) {
      if (how != nullptr) *how = op == "mul_scalar" ? "mul" : "div";
      return scaled->inputs[0];
    }
  }
  return -1;
}

/// Keys or values whose heads were repeated for several query heads: [b, kv, t, d] viewed with a
/// dimension of 1, expanded, and viewed as [b, heads, t, d]. Returns the former.
TensorId before_repeat(const Pattern& p, TensorId id) {
  const Node* joined = p.made(p.before_copies(id), "view");
  if (joined == nullptr) return id;
  const Node* expanded = p.made(p.before_copies(joined->inputs[0]), "expand");
  const Node* single = expanded == nullptr ? nullptr : p.made(expanded->inputs[0], "view");
  if (single == nullptr) return id;
  const Shape &from = p.tensor(single->inputs[0]).shape, &to = p.tensor(joined->outputs[0]).shape,
              &wide = p.tensor(expanded->outputs[0]).shape;
  const bool fits = from.size() == 4 && to.size() == 4 && wide.size() == 5 && from[0] == to[0] &&
                    from[2] == to[2] && from[3] == to[3] && from[1] > 0 && to[1] % from[1] == 0 &&
                    wide[1] == from[1] && wide[1] * wide[2] == to[1];
  return fits ? single->inputs[0] : id;
}

/// Whether a mask hides later keys: it is computed from a triangle or from positions, or stored.
bool is_causal(const Pattern& p, TensorId mask) {
  const Shape& shape = p.tensor(mask).shape;
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || shape.back() < 2) return false;
  std::vector<TensorId> open = {mask};
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < open.size() && i < kMost; ++i) {
    const Node* node = p.made(open[i]);
    if (node == nullptr) continue;
    if (p.is(*node, "triangle")) return true;
    const bool positions = p.is(*node, "compare") && node->inputs.size() == 2 &&
                           p.tensor(node->inputs[0]).dtype == DType::kInt64;
    if (positions) return true;
    open.insert(open.end(), node->inputs.begin(), node->inputs.end());
  }
  const TensorKind kind = p.tensor(p.before_casts(mask)).kind;
  return kind == TensorKind::kBuffer;
}

/// Scores before scale and masks, and what was on the way.
struct Scores {
  TensorId product = -1;
  std::string scale = "none";
  TensorId mask = -1;
  bool stored_mask = false, causal = false, softcap = false, wide = false;
};

/// Which operand of a sum are the scores: the one of full size that follows from a product.
std::optional<size_t> scores_operand(const Pattern& p, const Node& sum) {
  constexpr std::array<std::string_view, 7> kSteps = {"matmul", "mul_scalar", "div_scalar", "cast",
                                                      "where",  "add",        "view"};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Node* maker = p.made(sum.inputs[i]);
    const bool full = p.tensor(sum.inputs[i]).shape == p.tensor(sum.outputs[0]).shape;
    const bool step = maker != nullptr && std::find(kSteps.begin(), kSteps.end(),
                                                    op_def(maker->op).name) != kSteps.end();
    const bool mask = maker != nullptr && p.is(*maker, "where") && i == 0 &&
                      p.made(sum.inputs[1], "matmul") != nullptr;
    if (full && step && !mask) return i;
  }
  return std::nullopt;
}

/// Back from the softmax's input to the product. nullopt: something else is on the way.
std::optional<Scores> scores_of(const Pattern& p, TensorId id) {
  Scores s;
  constexpr int kMostSteps = 8;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* node = p.made(id);
    if (node == nullptr) return std::nullopt;
    if (p.is(*node, "matmul")) {
      s.product = id;
      return s;
    }
    if (p.reader_count(id) != 1) return std::nullopt;
    if (p.is(*node, "cast")) {
      s.wide = true;
      id = node->inputs[0];
    } else if (const TensorId inner = before_scale(p, id, &s.scale); inner >= 0) {
      const Node* cap = p.made(inner, "tanh");
      s.softcap = s.softcap || cap != nullptr;
      id = inner;
      if (cap != nullptr) {  // c tanh(x / c)
        const TensorId before = before_scale(p, cap->inputs[0]);
        if (before < 0) return std::nullopt;
        id = before;
        s.scale = "none";
      }
    } else if (p.is(*node, "add") && node->inputs.size() == 2) {
      const std::optional<size_t> scores = scores_operand(p, *node);
      if (!scores) return std::nullopt;
      if (s.mask >= 0) return std::nullopt;
      s.mask = node->inputs[1 - *scores];
      s.causal = s.causal || is_causal(p, s.mask);
      id = node->inputs[*scores];
    } else if (p.is(*node, "where") && node->inputs.size() == 2) {
      s.stored_mask = true;
      s.causal = s.causal || is_causal(p, node->inputs[0]);
      id = node->inputs[1];
    } else if (p.is(*node, "maximum_scalar") || p.is(*node, "view")) {
      id = node->inputs[0];  // OPT's clamp, and its views between three and four dimensions
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Back from the weights that are multiplied with the values to the softmax. Rows without a visible
/// key are set to 0 (where(isnan(x), x)).
const Node* softmax_of(const Pattern& p, TensorId id, bool& narrow) {
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* node = p.made(p.before_copies(id));
    if (node == nullptr) return nullptr;
    if (p.is(*node, "softmax")) return node;
    if (p.is(*node, "cast")) {
      narrow = true;
      id = node->inputs[0];
    } else if (p.is(*node, "where") && p.made(node->inputs[0], "compare") != nullptr &&
               p.made(node->inputs[0], "compare")->inputs[0] == node->inputs.back()) {
      id = node->inputs.back();
    } else if (p.is(*node, "view")) {
      id = node->inputs[0];
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

/// Keys [.., t, d] behind their transpose [.., d, t], as a transposition of `base`.
struct Keys {
  TensorId base = -1;
  Shape order;  ///< empty: none
  bool scaled = false;
};

/// Keys [b, heads, t, d] that were viewed as [b heads, t, d], transposed, and viewed as [b, heads,
/// d, t] (exporters of torch 2.14 and later). -1: it is something else.
TensorId before_flat_transpose(const Pattern& p, TensorId id) {
  const Node* joined = p.made(id, "view");
  const Node* transpose = joined == nullptr ? nullptr : p.made(joined->inputs[0], "transpose");
  if (transpose == nullptr || attribute<Shape>(*transpose, "order") != Shape{0, 2, 1}) return -1;
  const Node* split = p.made(transpose->inputs[0], "view");
  if (split == nullptr) return -1;
  const Shape &from = p.tensor(split->inputs[0]).shape, &to = p.tensor(id).shape;
  const bool fits = from.size() == 4 && to == Shape{from[0], from[1], from[3], from[2]};
  return fits ? split->inputs[0] : -1;
}

std::optional<Keys> keys_of(const Pattern& p, TensorId id) {
  Keys keys;
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps; ++step) {
    id = p.before_copies(id);
    if (const TensorId inner = before_scale(p, id); inner >= 0) {
      keys.scaled = true;
      id = inner;
      continue;
    }
    if (const TensorId flat = before_flat_transpose(p, id); flat >= 0) {
      keys.base = before_repeat(p, flat);
      return keys;
    }
    const Node* transpose = p.made(id, "transpose");
    if (transpose == nullptr) return std::nullopt;
    keys.base = transpose->inputs[0];
    keys.order = attribute<Shape>(*transpose, "order");
    if (keys.order.size() < 3) return std::nullopt;
    std::swap(keys.order.back(), keys.order[keys.order.size() - 2]);
    if (std::is_sorted(keys.order.begin(), keys.order.end())) keys.order.clear();
    // Keys may be scaled before they are transposed.
    if (const TensorId inner = before_scale(p, keys.base); inner >= 0) {
      keys.scaled = true;
      keys.base = inner;
    }
    if (keys.order.empty()) keys.base = before_repeat(p, keys.base);
    return keys;
  }
  return std::nullopt;
}

/// [b, heads, s, d]; three dimensions are one sequence with all heads.
TensorId four_dims(GraphBuilder& b, TensorId x, const std::string& name) {
  Shape shape = b.graph().tensor(x).shape;
  if (shape.size() == 4) return x;
  shape.insert(shape.begin(), 1);
  return b.op("view", {x}, name, {{"shape", shape}});
}

/// Attention gives [b, s, heads · e]; the product gave [b, heads, s, e].
std::vector<TensorId> build_attention(GraphBuilder& b, const Replacement& r,
                                      std::vector<TensorId> inputs) {
  std::vector<Attribute> attributes = r.attributes;
  const auto order = std::get<Shape>(attributes.back().value);
  attributes.pop_back();
  if (!order.empty()) inputs[1] = b.op("transpose", {inputs[1]}, r.name, {{"order", order}});
  const bool flat = b.graph().tensor(inputs[0]).shape.size() == 3;
  for (TensorId& id : inputs) id = four_dims(b, id, r.name);
  const Shape q = b.graph().tensor(inputs[0]).shape;
  const TensorId context = b.op("sdpa", std::move(inputs), r.name, std::move(attributes));
  const Shape s = b.graph().tensor(context).shape;
  const TensorId rows =
      b.op("view", {context}, r.name, {{"shape", Shape{s[0], s[1], q[1], s[2] / q[1]}}});
  const TensorId heads = b.op("transpose", {rows}, r.name, {{"order", Shape{0, 2, 1, 3}}});
  if (!flat) return {heads};
  Shape shape = b.graph().tensor(heads).shape;
  shape.erase(shape.begin());
  return {b.op("view", {heads}, r.name, {{"shape", shape}})};
}

bool fits(const Pattern& p, TensorId q, const Keys& keys, TensorId v) {
  const Shape &a = p.tensor(q).shape, &c = p.tensor(v).shape;
  Shape b = p.tensor(keys.base).shape;
  if (!keys.order.empty()) {
    const Shape stored = b;
    for (size_t d = 0; d < b.size(); ++d) b[d] = stored[static_cast<size_t>(keys.order[d])];
  }
  if (a.size() != b.size() || b.size() != c.size() || (a.size() != 4 && a.size() != 3))
    return false;
  const size_t h = a.size() - 3;
  return a[0] == b[0] && b[0] == c[0] && b[h] == c[h] && b[h] >= 1 && a[h] % b[h] == 0 &&
         b[h + 1] == c[h + 1] && a.back() == b.back();
}

/// The module's name: of the layer whose parts are on both sides.
std::string attention_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "attention" : name.substr(0, dot) + ".attention";
}

}  // namespace

std::optional<Replacement> recognize_attention(const Pattern& p, const Node& node) {
  if (!p.is(node, "matmul")) return std::nullopt;
  // A module's own attention stays as it is beside calls of fused attention.
  if (p.marks_attention() && !node.attention_core) return std::nullopt;
  bool narrow = false;
  const Node* softmax = softmax_of(p, node.inputs[0], narrow);
  if (softmax == nullptr || softmax->find_attribute("dim") != nullptr) return std::nullopt;
  const std::optional<Scores> scores = scores_of(p, softmax->inputs[0]);
  if (!scores) return std::nullopt;
  const Node& product = *p.made(scores->product);
  const auto plain = [](const Node& n) {
    return attribute<int64_t>(n, "transpose_a") == 0 && attribute<int64_t>(n, "transpose_b") == 0;
  };
  if (!plain(product) || !plain(node)) return std::nullopt;
  std::optional<Keys> keys = keys_of(p, product.inputs[1]);
  if (!keys) return std::nullopt;
  TensorId q = p.before_copies(product.inputs[0]);
  TensorId v = before_repeat(p, p.before_copies(node.inputs[1]));
  v = p.before_copies(v);
  std::string scale = scores->scale;
  if (keys->scaled) {
    // torch's fused attention scales both operands by the root of the scale.
    const TensorId inner = before_scale(p, q);
    if (inner >= 0) q = inner;
    scale = "mul";
  }
  // Heads that are repeated for keys are for values too.
  if (!fits(p, q, *keys, v)) return std::nullopt;
  if (scores->mask >= 0 && p.tensor(scores->mask).shape.size() > 4) return std::nullopt;
  Replacement r{.last = &node,
                .op = "sdpa",
                .inputs = {q, keys->base, v},
                .attributes = {{"scale", scale}},
                .name = attention_name(node.name),
                .build = build_attention};
  if (scores->mask >= 0) {
    const Shape& mask = p.tensor(scores->mask).shape;
    if (mask.size() != p.tensor(q).shape.size()) {
      if (p.tensor(q).shape.size() != 4) return std::nullopt;
    }
    r.inputs.push_back(scores->mask);
  }
  if (scores->causal) r.attributes.push_back({"causal", 1});
  if (scores->stored_mask) r.attributes.push_back({"stored_mask", 1});
  if (scores->softcap) r.attributes.push_back({"softcap", 1});
  if (scores->wide && narrow) r.attributes.push_back({"softmax_fp32", 1});
  r.attributes.push_back({"order", keys->order});
  return r;
}

}  // namespace tilecast
