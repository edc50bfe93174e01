#include "ops/sizes.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/rng.h"
#include "base/text.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string size_names(const OpDef& op) {
  std::vector<std::string> names;
  for (const SizeDef& size : op.sizes) names.emplace_back(size.name);
  return names.empty() ? "none" : join(names, ", ");
}

void check_value(const GivenSizes& sizes, const SizeDef& size, const AttributeValue& value) {
  if (static_cast<AttributeType>(value.index()) != size.type)
    sizes.fail(fmt::format("{}: expected {}, found {}", size.name, attribute_type_name(size.type),
                           format_value(value)));
  const auto check_number = [&](int64_t number) {
    if (number < size.min)
      sizes.fail(fmt::format("{} must be at least {}, found {}", size.name, size.min, number));
    if (number > size.max)
      sizes.fail(fmt::format("{} must be at most {}, found {}", size.name, size.max, number));
  };
  if (const auto* number = std::get_if<int64_t>(&value)) check_number(*number);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *list) check_number(number);
  }
}

}  // namespace

GivenSizes::GivenSizes(const OpDef& op, DType dtype, const SizeList& given)
    : op_(op), dtype_(dtype), values_(op.sizes.size(), nullptr) {
  for (const Attribute& entry : given) {
    const SizeDef* size = find_size(op, entry.name);
    if (size == nullptr)
      throw Error(ErrorKind::kInput, fmt::format("{} takes no {}; it takes {}", op.name,
                                                 shown_name(entry.name), size_names(op)));
    const AttributeValue*& value = values_[static_cast<size_t>(size - op.sizes.data())];
    if (value != nullptr) fail(fmt::format("{} is given twice", size->name));
    check_value(*this, *size, entry.value);
    value = &entry.value;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const SizeDef& size = op.sizes[i];
    if (values_[i] == nullptr && size.default_value) values_[i] = &*size.default_value;
    if (values_[i] == nullptr && size.default_rule.empty())
      fail(fmt::format("{} is needed: {}", size.name,
                       size.type == AttributeType::kScheme ? join(scheme_names(), ", ")
                                                           : std::string(size.doc)));
  }
}

const AttributeValue* GivenSizes::find(std::string_view name) const {
  const SizeDef* size = find_size(op_, name);
  TILECAST_CHECK(size != nullptr) << op_.name << " declares no size " << name;
  return values_[static_cast<size_t>(size - op_.sizes.data())];
}

int64_t GivenSizes::value_or(std::string_view name, int64_t fallback) const {
  const AttributeValue* value = find(name);
  return value == nullptr ? fallback : std::get<int64_t>(*value);
}

DType GivenSizes::dtype_or(std::string_view name, DType fallback) const {
  const AttributeValue* value = find(name);
  return value == nullptr ? fallback : std::get<DType>(*value);
}

const std::vector<int64_t>& GivenSizes::list(std::string_view name) const {
  static const std::vector<int64_t> kNone;
  const AttributeValue* value = find(name);
  return value == nullptr ? kNone : std::get<std::vector<int64_t>>(*value);
}

void GivenSizes::fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", op_.name, message));
}

int64_t& integer_in(SizeList& sizes, std::string_view name) {
  for (Attribute& size : sizes) {
    if (size.name == name) return std::get<int64_t>(size.value);
  }
  TILECAST_CHECK(false) << "no size " << name;
  std::abort();  // not reached
}

std::vector<SizeDef> row_sizes() {
  constexpr int kDrawnBits = 14;
  return {{.name = "rows",
           .doc = "rows",
           .other_names = {"m"},
           .drawn_bits = kDrawnBits,
           .grows = true},
          {.name = "columns",
           .doc = "elements of a row",
           .other_names = {"n"},
           .drawn_bits = kDrawnBits,
           .grows = true}};
}

SizeDef kv_dtype_size(std::string_view doc, std::string_view default_rule) {
  return {.name = "kv_dtype",
          .doc = doc,
          .type = AttributeType::kDType,
          .default_value = std::nullopt,
          .default_rule = default_rule,
          .choices = {"fp32", "bf16", "fp16", "fp8", "int8"}};
}

Operands row_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands;
  for (int i = 0; i < s.op().min_inputs; ++i)
    operands.inputs.push_back(b.input("x", {s["rows"], s["columns"]}, s.dtype()));
  return operands;
}

const SizeDef* find_size(const OpDef& op, std::string_view name) {
  for (const SizeDef& size : op.sizes) {
    if (size.name == name) return &size;
    for (const std::string_view other : size.other_names) {
      if (other == name) return &size;
    }
  }
  return nullptr;
}

std::vector<Kernel> kernels_of_sizes(std::string_view op, DType dtype, const SizeList& sizes) {
  const OpDef& definition = op_def(require_op(op));
  if (definition.work == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} launches no kernel: it is a view of its input", op));
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_segment("main", 1);
  Operands operands = definition.operands(builder, GivenSizes(definition, dtype, sizes));
  builder.add(op, std::move(operands.inputs), std::string(op), std::move(operands.attributes));
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes.back(), kernels);  // creating the operands may have added nodes
  return kernels;
}

SizeList draw_sizes(const OpDef& op, Rng& rng) {
  SizeList sizes;
  for (const SizeDef& size : op.sizes) {
    if (size.drawn_bits > 0)
      sizes.push_back({std::string(size.name), rng.log_uniform(size.drawn_bits)});
  }
  if (op.random_sizes && op.random_sizes->draw != nullptr) op.random_sizes->draw(rng, sizes);
  return sizes;
}

}  // namespace tilecast
