// Norms, activations, softmax and biases that are spelled out.

#include <algorithm>

#include "ops/op_def.h"
#include "passes/recognize.h"

namespace tilecast {
namespace {

int64_t last_size(const Tensor& tensor) { return tensor.shape.empty() ? 0 : tensor.shape.back(); }

/// x², as a power or a product. Returns x; -1: another node.
TensorId squared(const Pattern& p, TensorId id) {
  if (const Node* power = p.made(id, "integer_pow")) return power->inputs[0];
  const Node* product = p.made(id, "mul");
  return product != nullptr && product->inputs[0] == product->inputs[1] ? product->inputs[0] : -1;
}

/// The mean over the last dimension, kept. Returns its input; -1: another node.
TensorId row_mean(const Pattern& p, TensorId id) {
  const Node* mean = p.made(id, "reduce_mean");
  if (mean == nullptr) return -1;
  Shape rows = p.tensor(mean->inputs[0]).shape;
  if (rows.empty()) return -1;
  rows.back() = 1;
  return p.tensor(id).shape == rows ? mean->inputs[0] : -1;
}

/// The mean of x² from 1 / sqrt(mean + c); -1: another node. `root`: from sqrt(mean + c).
TensorId mean_under_root(const Pattern& p, TensorId id, bool root) {
  const Node* node = p.made(id, "sqrt");
  if (!root) {
    const Node* inverse = p.made(id, "reciprocal");
    node = inverse != nullptr ? p.made(inverse->inputs[0], "sqrt") : p.made(id, "rsqrt");
  }
  const Node* sum = node == nullptr ? nullptr : p.made(node->inputs[0], "add_scalar");
  return sum == nullptr ? -1 : sum->inputs[0];
}

/// A product of rows with the inverse of their deviation, or their quotient.
struct Normalized {
  TensorId x = -1;     ///< what is divided
  TensorId mean = -1;  ///< of the squares
};

Normalized normalized(const Pattern& p, const Node& node) {
  if (p.is(node, "div")) return {node.inputs[0], mean_under_root(p, node.inputs[1], true)};
  if (!p.is(node, "mul")) return {};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const TensorId mean = mean_under_root(p, node.inputs[i], false);
    if (mean >= 0) return {node.inputs[1 - i], mean};
  }
  return {};
}

/// The node that applies a stored vector to every row of `id`, and the vector.
struct Applied {
  const Node* node = nullptr;
  TensorId vector = -1;
};

Applied applied(const Pattern& p, TensorId id, std::string_view op) {
  const Node* node = p.only_reader(id, op);
  if (node == nullptr) return {};
  const TensorId vector = Pattern::other(*node, id);
  return p.is_vector(vector, last_size(p.tensor(id))) ? Applied{node, vector} : Applied{};
}

/// The name of the module that a weight belongs to.
std::string module_name(const Pattern& p, const Node& node, TensorId weight) {
  const std::string& name = p.tensor(weight).name;
  constexpr std::string_view kEnd = ".weight";
  return name.size() > kEnd.size() && name.ends_with(kEnd)
             ? name.substr(0, name.size() - kEnd.size())
             : node.name;
}

}  // namespace

/// (x - mean(x)) / sqrt(mean((x - mean(x))²) + c), times a weight, plus a bias.
std::optional<Replacement> recognize_layer_norm(const Pattern& p, const Node& node) {
  const Normalized n = normalized(p, node);
  if (n.mean < 0) return std::nullopt;
  const Node* centred = p.made(n.x, "sub");
  if (centred == nullptr) return std::nullopt;
  const TensorId x = centred->inputs[0];
  const TensorId square = squared(p, row_mean(p, n.mean));
  const bool fits = row_mean(p, centred->inputs[1]) == x && square >= 0 &&
                    (square == n.x || (p.made(square, "sub") != nullptr &&
                                       p.made(square, "sub")->inputs == centred->inputs));
  if (!fits) return std::nullopt;
  Replacement r{.last = &node, .op = "layer_norm", .inputs = {x}, .name = node.name};
  const Applied scale = applied(p, node.outputs[0], "mul");
  if (scale.node == nullptr) return r;
  r.last = scale.node;
  r.inputs.push_back(scale.vector);
  r.name = module_name(p, node, scale.vector);
  const Applied shift = applied(p, scale.node->outputs[0], "add");
  if (shift.node == nullptr) return r;
  r.last = shift.node;
  r.inputs.push_back(shift.vector);
  return r;
}

namespace {

/// As `applied`, for a vector by channels, [c, 1, ...], which may be computed.
Applied applied_to_channels(const Pattern& p, TensorId id, std::string_view op) {
  const Node* node = p.only_reader(id, op);
  if (node == nullptr) return {};
  const Shape& shape = p.tensor(id).shape;
  const TensorId vector = Pattern::other(*node, id);
  if (vector < 0 || shape.size() < 3) return {};
  Shape expected(shape.size() - 1, 1);
  expected[0] = shape[1];
  if (p.tensor(vector).shape != expected) return {};
  const Node* wide = p.made(vector, "view");
  return {node, wide == nullptr ? vector : wide->inputs[0]};
}

}  // namespace

/// Exporters write a group norm as an instance norm of x viewed as [b, groups, rest], times a
/// weight and plus a bias by channel.
std::optional<Replacement> recognize_group_norm(const Pattern& p, const Node& node) {
  if (!p.is(node, "group_norm")) return std::nullopt;
  const Node* flat = p.made(node.inputs[0], "view");
  const Node* back = p.only_reader(node.outputs[0], "view");
  if (flat == nullptr || back == nullptr) return std::nullopt;
  const TensorId x = flat->inputs[0], y = back->outputs[0];
  const Shape &grouped = p.tensor(node.inputs[0]).shape, &shape = p.tensor(x).shape;
  if (p.tensor(y).shape != shape || shape.size() < 3 || grouped.size() < 2 ||
      grouped[0] != shape[0] || shape[1] % grouped[1] != 0 ||
      attribute<int64_t>(node, "groups") != grouped[1])
    return std::nullopt;
  const Applied scale = applied_to_channels(p, y, "mul");
  if (scale.node == nullptr) return std::nullopt;
  const Applied shift = applied_to_channels(p, scale.node->outputs[0], "add");
  if (shift.node == nullptr) return std::nullopt;
  return Replacement{.last = shift.node,
                     .op = "group_norm",
                     .inputs = {x, scale.vector, shift.vector},
                     .attributes = {{"groups", grouped[1]}},
                     .name = module_name(p, node, scale.vector)};
}

/// x / sqrt(mean(x²) + c), times a weight; in half precision with casts to fp32 and back, before or
/// after the weight.
std::optional<Replacement> recognize_rms_norm(const Pattern& p, const Node& node) {
  const Normalized n = normalized(p, node);
  if (n.mean < 0) return std::nullopt;
  const TensorId of_squares = row_mean(p, n.mean);
  if (of_squares < 0) return std::nullopt;
  const TensorId square = squared(p, of_squares);
  if (square < 0 || p.before_casts(square) != p.before_casts(n.x)) return std::nullopt;
  const TensorId x = p.before_casts(n.x);
  const DType dtype = p.tensor(x).dtype;
  Replacement r{.last = &node, .op = "rms_norm", .inputs = {x}, .name = node.name};
  const auto back = [&](const Node* last) {
    const Node* cast = p.only_reader(last->outputs[0], "cast");
    return cast != nullptr && p.tensor(cast->outputs[0]).dtype == dtype ? cast : nullptr;
  };
  const Node* narrow = back(&node);
  if (narrow != nullptr) r.last = narrow;
  const Applied scale = applied(p, r.last->outputs[0], "mul");
  if (scale.node != nullptr) {
    r.last = scale.node;
    r.inputs.push_back(p.before_casts(scale.vector));
    r.name = module_name(p, node, r.inputs[1]);
    if (narrow == nullptr && back(scale.node) != nullptr) {
      r.last = back(scale.node);
      r.attributes = {{"wide_weight", 1}};
    }
  }
  if (p.tensor(r.last->outputs[0]).dtype != dtype) return std::nullopt;
  return r;
}

/// exp(x - max(x)) / sum(exp(x - max(x)))
std::optional<Replacement> recognize_softmax(const Pattern& p, const Node& node) {
  if (!p.is(node, "div")) return std::nullopt;
  const Node* exponential = p.made(node.inputs[0], "exp");
  const Node* sum = p.made(node.inputs[1], "reduce_sum");
  if (exponential == nullptr || sum == nullptr || sum->inputs[0] != node.inputs[0])
    return std::nullopt;
  Shape rows = p.tensor(node.inputs[0]).shape;
  if (rows.empty()) return std::nullopt;
  rows.back() = 1;
  if (p.tensor(node.inputs[1]).shape != rows) return std::nullopt;
  const Node* shifted = p.made(exponential->inputs[0], "sub");
  const Node* max = shifted == nullptr ? nullptr : p.made(shifted->inputs[1]);
  const bool from_max = max != nullptr && max->inputs[0] == shifted->inputs[0] &&
                        (p.is(*max, "reduce_extreme") || p.is(*max, "reduce_max"));
  if (!from_max) return std::nullopt;
  return Replacement{
      .last = &node, .op = "softmax", .inputs = {shifted->inputs[0]}, .name = node.name};
}

/// Whether `id` is a number times x.
static bool is_multiple(const Pattern& p, TensorId id, TensorId x) {
  for (const std::string_view op : {"mul_scalar", "div_scalar"}) {
    const Node* scaled = p.made(id, op);
    if (scaled != nullptr && scaled->inputs[0] == x) return true;
  }
  return false;
}

/// x/2 times `curve`, where `curve` is 1 + f(x): in any order of the factors.
static std::optional<Replacement> half_product(const Pattern& p, TensorId x, TensorId curve,
                                               std::string op) {
  const Node* product = p.only_reader(curve, "mul");
  if (product == nullptr) return std::nullopt;
  const TensorId factor = Pattern::other(*product, curve);
  Replacement r{.last = product, .op = std::move(op), .inputs = {x}, .name = product->name};
  if (is_multiple(p, factor, x)) return r;
  if (factor != x) return std::nullopt;
  r.last = p.only_reader(product->outputs[0], "mul_scalar");
  return r.last == nullptr ? std::nullopt : std::optional(r);
}

/// x/2 (1 + erf(x / sqrt 2))
std::optional<Replacement> recognize_gelu(const Pattern& p, const Node& node) {
  if (!p.is(node, "erf")) return std::nullopt;
  const Node* scaled = p.made(node.inputs[0]);
  if (scaled == nullptr || !is_multiple(p, node.inputs[0], scaled->inputs[0])) return std::nullopt;
  const Node* sum = p.only_reader(node.outputs[0], "add_scalar");
  if (sum == nullptr) return std::nullopt;
  const TensorId x = scaled->inputs[0];
  if (std::optional<Replacement> r = half_product(p, x, sum->outputs[0], "gelu")) return r;
  // x times half of the curve.
  const Node* half = p.only_reader(sum->outputs[0], "mul_scalar");
  const Node* product = half == nullptr ? nullptr : p.only_reader(half->outputs[0], "mul");
  if (product == nullptr || Pattern::other(*product, half->outputs[0]) != x) return std::nullopt;
  return Replacement{.last = product, .op = "gelu", .inputs = {x}, .name = product->name};
}

/// x/2 (1 + tanh(a (x + b x³)))
std::optional<Replacement> recognize_gelu_by_tanh(const Pattern& p, const Node& node) {
  if (!p.is(node, "tanh")) return std::nullopt;
  const Node* scaled = p.made(node.inputs[0], "mul_scalar");
  const Node* sum = scaled == nullptr ? nullptr : p.made(scaled->inputs[0], "add");
  const Node* outer = p.only_reader(node.outputs[0], "add_scalar");
  if (sum == nullptr || outer == nullptr) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const TensorId x = sum->inputs[i];
    const Node* cubic = p.made(sum->inputs[1 - i], "mul_scalar");
    if (cubic == nullptr) continue;
    const Node* power = p.made(cubic->inputs[0], "integer_pow");
    const Node* product = p.made(cubic->inputs[0], "mul");
    const bool cube =
        (power != nullptr && power->inputs[0] == x) ||
        (product != nullptr && ((product->inputs[0] == x && squared(p, product->inputs[1]) == x) ||
                                (product->inputs[1] == x && squared(p, product->inputs[0]) == x)));
    if (cube) return half_product(p, x, outer->outputs[0], "gelu_new");
  }
  return std::nullopt;
}

/// x f(x): silu, quick_gelu, hard_swish, mish.
std::optional<Replacement> recognize_gated_function(const Pattern& p, const Node& node) {
  if (!p.is(node, "mul") || node.inputs[0] == node.inputs[1]) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const TensorId x = node.inputs[i];
    const Node* function = p.made(node.inputs[1 - i]);
    if (function == nullptr || p.reader_count(function->outputs[0]) != 1) continue;
    const TensorId argument = function->inputs[0];
    std::string op;
    if (p.is(*function, "sigmoid"))
      op = argument == x ? "silu" : is_multiple(p, argument, x) ? "quick_gelu" : "";
    if (p.is(*function, "hard_sigmoid") && argument == x) op = "hard_swish";
    const Node* softplus = p.made(argument, "softplus");
    if (p.is(*function, "tanh") && softplus != nullptr && softplus->inputs[0] == x) op = "mish";
    if (!op.empty()) return Replacement{.last = &node, .op = op, .inputs = {x}, .name = node.name};
  }
  return std::nullopt;
}

/// A vector that is added to every row of a linear layer's result.
std::optional<Replacement> recognize_bias(const Pattern& p, const Node& node) {
  if (!p.is(node, "linear") || node.inputs.size() != 2) return std::nullopt;
  // Stored, or computed from stored parts (BEiT's biases of queries and values).
  const Node* sum = p.only_reader(node.outputs[0], "add");
  const TensorId bias = sum == nullptr ? -1 : Pattern::other(*sum, node.outputs[0]);
  if (bias < 0 || p.tensor(bias).shape != Shape{last_size(p.tensor(node.outputs[0]))})
    return std::nullopt;
  return Replacement{.last = sum,
                     .op = "linear",
                     .inputs = {node.inputs[0], node.inputs[1], bias},
                     .attributes = node.attributes,
                     .name = node.name};
}

}  // namespace tilecast
