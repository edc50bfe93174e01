#include "importers/onnx/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The module, or a name that exporters make up: "/layer/MatMul" → "layer", "node_linear_3" stays.
std::string name_of(const OnnxNode& node) {
  if (!node.module.empty()) return node.module;
  std::string name = node.name;
  const bool scoped = name.starts_with("/");
  if (scoped && name.rfind('/') > 0) name.resize(name.rfind('/'));
  if (scoped) name.erase(0, 1);
  std::replace(name.begin(), name.end(), '/', '.');
  constexpr size_t kLongestLabel = 200;
  return name.empty() ? node.op.substr(0, kLongestLabel) : name;
}

}  // namespace

OnnxCall::OnnxCall(OnnxTranslator& translator, const OnnxNode& node, OnnxScope& scope)
    : t_(translator), node_(node), scope_(scope), name_(name_of(node)) {
  for (const std::string& input : node.inputs)
    inputs_.push_back(input.empty() ? OnnxValue{} : t_.value_of(node, input, scope));
}

void OnnxCall::fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("{}: node '{}' ({}): {}", t_.where_,
                                             shown_name(node_.name), node_.op, message));
}

OnnxValue& OnnxCall::value(size_t i) {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  return inputs_[i];
}

TensorId OnnxCall::tensor(size_t i) {
  OnnxValue& found = value(i);
  if (found.is_sequence) fail(fmt::format("input {} is a sequence, expected a tensor", i));
  if (found.tensor >= 0) return found.tensor;
  // Kept in the scope that defines it, so that later nodes read the same tensor.
  OnnxValue* stored = scope_.find(node_.inputs[i]);
  const TensorId id = t_.tensor_of(stored != nullptr ? *stored : found);
  return found.tensor = id;
}

Shape OnnxCall::shape(size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  const OnnxValue& value = inputs_[i];
  if (value.is_sequence) fail(fmt::format("input {} is a sequence, expected a tensor", i));
  if (value.constant != nullptr) return value.constant->shape;
  if (value.initializer != nullptr) return value.initializer->shape;
  return shape_of(value.tensor);
}

DType OnnxCall::dtype(size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  const OnnxValue& value = inputs_[i];
  if (value.tensor >= 0) return t_.graph_.tensor(value.tensor).dtype;
  return t_.dtype_of(value.constant != nullptr ? value.constant->type : value.initializer->type,
                     node_.inputs[i]);
}

const OnnxConstant* OnnxCall::constant(size_t i) const {
  return has(i) && !inputs_[i].is_sequence ? inputs_[i].constant.get() : nullptr;
}

const OnnxConstant& OnnxCall::known(size_t i) const {
  const OnnxConstant* found = constant(i);
  if (found == nullptr) fail(fmt::format("input {} is missing", i));
  return *found;
}

bool OnnxCall::is_scalar(size_t i) const {
  const OnnxConstant* c = constant(i);
  return c != nullptr && c->size() == 1;
}

Shape OnnxCall::integers(size_t i, const char* what) const {
  const OnnxConstant* c = constant(i);
  if (c != nullptr && !c->is_float()) return c->integers;
  if (!has(i)) fail(fmt::format("{} (input {}) is missing", what, i));
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: node '{}' ({}): {} ('{}') is computed from the data of the model's "
                          "inputs; expected a constant or a computation on shapes",
                          t_.where_, shown_name(node_.name), node_.op, what,
                          i < node_.inputs.size() ? shown_name(node_.inputs[i]) : ""));
}

int64_t OnnxCall::one_integer(size_t i, const char* what) const {
  const Shape found = integers(i, what);
  if (found.size() != 1) fail(fmt::format("{}: expected one value, found {}", what, found.size()));
  return found[0];
}

const OnnxTensor* OnnxCall::weight(size_t i) const {
  return has(i) && inputs_[i].initializer != nullptr && is_float(inputs_[i].initializer->type) &&
                 !inputs_[i].initializer->shape.empty()
             ? inputs_[i].initializer
             : nullptr;
}

bool OnnxCall::only_in_products(size_t i) const {
  const auto found = t_.uses_.find(inputs_[i].initializer->name);
  if (found == t_.uses_.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(),
                     [](const std::string& use) { return use == "MatMul"; });
}

TensorId OnnxCall::swapped_weight(size_t i) {
  return t_.initializer_tensor(*inputs_[i].initializer, true);
}

const OnnxAttribute* OnnxCall::attribute(std::string_view name) const {
  const OnnxAttribute* found = node_.find(name);
  if (found == nullptr || found->refers_to.empty()) return found;
  for (const OnnxScope* scope = &scope_; scope != nullptr; scope = scope->outer) {
    if (scope->attributes == nullptr) continue;
    for (const OnnxAttribute& given : *scope->attributes) {
      if (given.name == found->refers_to) return &given;
    }
    return nullptr;
  }
  return nullptr;
}

int64_t OnnxCall::integer(std::string_view name, int64_t otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->integer ? *found->integer : otherwise;
}

double OnnxCall::number(std::string_view name, double otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->number ? *found->number : otherwise;
}

std::string OnnxCall::text(std::string_view name, const std::string& otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->text ? *found->text : otherwise;
}

Shape OnnxCall::list(std::string_view name) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr ? found->integers : Shape{};
}

std::optional<Shape> OnnxCall::axes(size_t i, size_t rank) const {
  Shape found = list("axes");
  if (found.empty() && has(i)) found = integers(i, "axes");
  if (found.empty()) return std::nullopt;
  for (int64_t& a : found) a = static_cast<int64_t>(axis(a, rank));
  std::sort(found.begin(), found.end());
  if (std::adjacent_find(found.begin(), found.end()) != found.end())
    fail(fmt::format("axes {}: one is given twice", format_shape(found)));
  return found;
}

size_t OnnxCall::axis(int64_t given, size_t rank) const {
  const auto n = static_cast<int64_t>(rank);
  if (given < -n || given >= n)
    fail(fmt::format("axis {} of a tensor of {} dimensions", given, rank));
  return static_cast<size_t>(given < 0 ? given + n : given);
}

DType OnnxCall::dtype_of(int64_t onnx_type) const {
  constexpr auto kLast = static_cast<int64_t>(OnnxType::kFloat4);
  if (onnx_type < 0 || onnx_type > kLast) fail(fmt::format("unknown data type {}", onnx_type));
  return t_.dtype_of(static_cast<OnnxType>(onnx_type), node_.name);
}

std::vector<TensorId> OnnxCall::add(std::string_view op, std::vector<TensorId> inputs,
                                    std::vector<Attribute> attributes) {
  // Kernels are not launched for nothing, and sizes are divided by numbers of elements.
  for (const TensorId id : inputs) {
    if (op != "view" && op != "transpose" && op != "slice" && element_count(shape_of(id)) == 0)
      fail(fmt::format("an input {} has no elements", format_shape(shape_of(id))));
  }
  return t_.b_.add(op, std::move(inputs), name_, std::move(attributes));
}

TensorId OnnxCall::op(std::string_view op, std::vector<TensorId> inputs,
                      std::vector<Attribute> attributes) {
  return add(op, std::move(inputs), std::move(attributes)).front();
}

TensorId OnnxCall::reshape(TensorId x, Shape shape) {
  if (shape_of(x) == shape) return x;
  return op("view", {x}, {{"shape", std::move(shape)}});
}

TensorId OnnxCall::transpose(TensorId x, const Shape& order) {
  return std::is_sorted(order.begin(), order.end()) ? x : op("transpose", {x}, {{"order", order}});
}

TensorId OnnxCall::expand(TensorId x, const Shape& shape) {
  return shape_of(x) == shape ? x : op("expand", {x}, {{"shape", shape}});
}

TensorId OnnxCall::slice(TensorId x, size_t dim, int64_t count) {
  if (shape_of(x)[dim] == count) return x;
  return op("slice", {x}, {{"dim", static_cast<int64_t>(dim)}, {"count", count}});
}

TensorId OnnxCall::reduce(std::string_view name, TensorId x, const Shape& axes, bool keep) {
  Shape kept = shape_of(x), left;
  for (const int64_t a : axes) kept[static_cast<size_t>(a)] = 1;
  for (size_t d = 0; d < kept.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end())
      left.push_back(kept[d]);
  }
  const TensorId reduced = op(name, {x}, {{"shape", kept}});
  return keep || left == kept ? reduced : op("view", {reduced}, {{"shape", left}});
}

TensorId OnnxCall::cat(std::vector<TensorId> parts, size_t dim) {
  std::erase_if(parts,
                [&](TensorId id) { return parts.size() > 1 && element_count(shape_of(id)) == 0; });
  constexpr size_t kMost = 64;  // inputs of `cat`
  while (parts.size() > 1) {
    std::vector<TensorId> joined;
    for (size_t first = 0; first < parts.size(); first += kMost) {
      const size_t last = std::min(parts.size(), first + kMost);
      const std::vector<TensorId> some(parts.begin() + static_cast<std::ptrdiff_t>(first),
                                       parts.begin() + static_cast<std::ptrdiff_t>(last));
      joined.push_back(some.size() == 1 ? some[0]
                                        : op("cat", some, {{"dim", static_cast<int64_t>(dim)}}));
    }
    parts = std::move(joined);
  }
  if (parts.empty()) fail("nothing to join");
  return parts[0];
}

OnnxValue OnnxCall::stack(std::vector<OnnxValue>& parts) {
  std::vector<TensorId> tensors;
  for (OnnxValue& part : parts) {
    const TensorId id = t_.tensor_of(part);
    Shape shape = shape_of(id);
    shape.insert(shape.begin(), 1);
    tensors.push_back(reshape(id, shape));
  }
  return {.tensor = cat(std::move(tensors), 0)};
}

void OnnxCall::name_after(size_t i) {
  if (i >= node_.inputs.size()) return;
  const std::string& weight = node_.inputs[i];
  for (const std::string_view ending : {".weight", ".weight_ih_l0"}) {
    if (weight.size() > ending.size() && weight.ends_with(ending))
      name_ = weight.substr(0, weight.size() - ending.size());
  }
}

void OnnxCall::set(size_t i, OnnxValue value) {
  t_.count_elements(value.sequence.size());
  if (wants(i)) scope_.values[node_.outputs[i]] = std::move(value);
}

void OnnxCall::set(size_t i, TensorId tensor) { set(i, OnnxValue{.tensor = tensor}); }

void OnnxCall::set(size_t i, OnnxConstant constant) {
  t_.count_elements(constant.size());
  OnnxValue value;
  value.constant = std::make_shared<const OnnxConstant>(std::move(constant));
  set(i, std::move(value));
}

}  // namespace tilecast
