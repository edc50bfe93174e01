// The attributes that the operator table declares: their types, defaults and ranges.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/number.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Sums of a few attributes and dimensions stay within 64 bits; rules check products.
constexpr int64_t kLargest = int64_t{1} << 60;

void check_range(const OpContext& context, const AttributeDef& def, int64_t value) {
  if (value >= def.min && value <= std::min(def.max, kLargest)) return;
  const std::string range = def.max < kLargest ? fmt::format("from {} to {}", def.min, def.max)
                            : value < def.min  ? fmt::format("≥ {}", def.min)
                                               : fmt::format("≤ {}", kLargest);
  context.fail(
      fmt::format("attribute '{}': expected a whole number {}, found {}", def.name, range, value));
}

void check_value(const OpContext& context, const AttributeDef& def, const AttributeValue& value) {
  const auto found = static_cast<AttributeType>(value.index());
  if (found != def.type)
    context.fail(fmt::format("attribute '{}': expected {}, found {}", def.name,
                             attribute_type_name(def.type), format_value(value)));
  if (const auto* number = std::get_if<int64_t>(&value)) check_range(context, def, *number);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *list) check_range(context, def, number);
  }
}

void check_inputs(const OpContext& context, const OpDef& op) {
  const int count = static_cast<int>(context.input_count());
  if (count >= op.min_inputs && count <= op.max_inputs) return;
  context.fail(
      op.min_inputs == op.max_inputs
          ? fmt::format("expected {} inputs, found {}", op.min_inputs, count)
          : fmt::format("expected {} to {} inputs, found {}", op.min_inputs, op.max_inputs, count));
}

/// "4:2:1"
std::vector<int64_t> parse_list(const std::string& text, const std::string& where) {
  std::vector<int64_t> list;
  for (const std::string& part : split(text, ':')) {
    const auto number = parse_number<int64_t>(part);
    if (!number)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected whole numbers with colons between them (4:2:1), found "
                              "'{}'",
                              where, shown_name(text)));
    list.push_back(*number);
  }
  return list;
}

}  // namespace

std::string_view attribute_type_name(AttributeType type) {
  switch (type) {
    case AttributeType::kInteger:
      return "a whole number";
    case AttributeType::kNumber:
      return "a number";
    case AttributeType::kText:
      return "a text";
    case AttributeType::kDType:
      return "a dtype";
    case AttributeType::kScheme:
      return "a scheme";
    case AttributeType::kIntegers:
      return "a list of whole numbers";
  }
  return "";
}

AttributeValue parse_value(AttributeType type, const std::string& text, const std::string& where) {
  const auto given = [&](const auto& number) {
    if (!number)
      throw Error(ErrorKind::kInput, fmt::format("{}: expected {}, found '{}'", where,
                                                 attribute_type_name(type), shown_name(text)));
    return *number;
  };
  switch (type) {
    case AttributeType::kInteger:
      return given(parse_number<int64_t>(text));
    case AttributeType::kNumber:
      return given(parse_number<double>(text));
    case AttributeType::kText:
      return text;
    case AttributeType::kDType:
      return parse_dtype(text, where);
    case AttributeType::kScheme:
      return text == scheme_info(QuantScheme::kNone).name ? QuantScheme::kNone
                                                          : parse_scheme(text, where);
    case AttributeType::kIntegers:
      return parse_list(text, where);
  }
  throw Error(ErrorKind::kInternal, where + ": a type without values");
}

AttributeDef flag_attribute(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .default_value = int64_t{0}, .max = 1};
}

AttributeDef count_attribute(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .required = true, .min = 1};
}

AttributeDef causal_attribute() {
  return flag_attribute("causal", "1: causal mask, a query attends to no later key");
}

AttributeDef window_attribute() {
  return {.name = "window",
          .doc = "maximum number of keys per query (sliding window); 0: all",
          .default_value = int64_t{0}};
}

const AttributeDef* find_attribute_def(const OpDef& op, std::string_view name) {
  for (const AttributeDef& def : op.attributes) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

std::string attribute_names(const OpDef& op) {
  std::vector<std::string> names;
  for (const AttributeDef& def : op.attributes) names.emplace_back(def.name);
  return names.empty() ? "none" : join(names, ", ");
}

const AttributeValue& attribute_default(OpId op, std::string_view name) {
  const AttributeDef* def = find_attribute_def(op_def(op), name);
  TILECAST_CHECK(def != nullptr && def->default_value)
      << op_def(op).name << " has no default " << name;
  return *def->default_value;
}

void check_operands(const OpContext& context) {
  const OpDef& op = op_def(context.node.op);
  check_inputs(context, op);
  const std::vector<Attribute>& given = context.node.attributes;
  for (size_t i = 0; i < given.size(); ++i) {
    const AttributeDef* def = find_attribute_def(op, given[i].name);
    if (def == nullptr)
      context.fail(fmt::format("unknown attribute '{}'; known: {}", shown_name(given[i].name),
                               attribute_names(op)));
    if (context.node.find_attribute(def->name) != &given[i].value)
      context.fail(fmt::format("attribute '{}' is given twice", def->name));
    check_value(context, *def, given[i].value);
  }
  for (const AttributeDef& def : op.attributes) {
    if (def.required && context.node.find_attribute(def.name) == nullptr)
      context.fail(fmt::format("attribute '{}' is missing: {}", def.name, def.doc));
  }
}

}  // namespace tilecast
