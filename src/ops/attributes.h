#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tilecast {

/// What an attribute holds, in the order of AttributeValue's alternatives.
enum class AttributeType : uint8_t { kInteger, kNumber, kText, kDType, kScheme, kIntegers };

/// "a whole number", "a dtype", …
std::string_view attribute_type_name(AttributeType type);

/// A value of a type from text. Throws Error{kInput} that starts with `where`; lists are not read.
AttributeValue parse_value(AttributeType type, const std::string& text, const std::string& where);

/// One attribute of an operator's nodes.
struct AttributeDef {
  std::string_view name;
  std::string_view doc;
  std::string_view old_name;  ///< also read in graph notation; "": none
  AttributeType type = AttributeType::kInteger;
  bool required = false;
  /// Where a node does not have it; nullopt: it is required, or follows from the inputs' shapes.
  std::optional<AttributeValue> default_value;
  int64_t min = 0;  ///< of whole numbers, also of those in lists
  int64_t max = std::numeric_limits<int64_t>::max();
};

/// A switch: 0, the default, or 1.
AttributeDef flag_attribute(std::string_view name, std::string_view doc);
/// A required number of at least 1.
AttributeDef count_attribute(std::string_view name, std::string_view doc);
/// What attention lets a query see: "causal" and "window".
AttributeDef causal_attribute();
AttributeDef window_attribute();

}  // namespace tilecast
