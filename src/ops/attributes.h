#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tilecast {

/// The type of an attribute, in the order of AttributeValue's alternatives.
enum class AttributeType : uint8_t { kInteger, kNumber, kText, kDType, kScheme, kIntegers };

/// The type in words: "a whole number", "a dtype", …
std::string_view attribute_type_name(AttributeType type);

/// Parses a value of this type; a list is "4:2:1". Throws Error{kInput} that starts with `where`.
AttributeValue parse_value(AttributeType type, const std::string& text, const std::string& where);

/// Declares one attribute of an operator.
struct AttributeDef {
  std::string_view name;
  std::string_view doc;
  std::string_view old_name;  ///< also read in graph notation; "": none
  AttributeType type = AttributeType::kInteger;
  bool required = false;
  /// Used if a node does not have the attribute. nullopt: it is required, or it follows from the
  /// shapes of the inputs.
  std::optional<AttributeValue> default_value;
  int64_t min = 0;  ///< range of whole numbers and of the elements of lists
  int64_t max = std::numeric_limits<int64_t>::max();
};

/// A flag: 0 (the default) or 1.
AttributeDef flag_attribute(std::string_view name, std::string_view doc);
/// A required whole number of at least 1.
AttributeDef count_attribute(std::string_view name, std::string_view doc);
/// Which keys a query attends to: "causal" and "window".
AttributeDef causal_attribute();
AttributeDef window_attribute();

}  // namespace tilecast
