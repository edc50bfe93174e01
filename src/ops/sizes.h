#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/attributes.h"
#include "ops/kernel.h"

namespace tilecast {

struct OpDef;
class GraphBuilder;
class Rng;

/// Upper limit for all sizes.
inline constexpr int64_t kLargestSize = int64_t{1} << 40;

/// One size or setting that describes a kernel without a graph. The flags and help of `tilecast
/// kernel`, `Forecaster::kernel` and the readers of measurements are derived from it.
struct SizeDef {
  std::string_view name;
  std::string_view doc;
  /// Also accepted: older names and names in measurements.
  std::vector<std::string_view> other_names;
  AttributeType type = AttributeType::kInteger;
  /// The default. nullopt: `default_rule` describes it, or the size is required.
  std::optional<AttributeValue> default_value = int64_t{1};
  std::string_view default_rule;  ///< a default that depends on other sizes, in words
  int64_t min = 1;
  int64_t max = kLargestSize;
  std::vector<std::string_view> choices;  ///< for dtypes: the allowed ones; empty: all
  int drawn_bits = 0;                     ///< random kernels draw 1 to 2^drawn_bits; 0: the default
  bool grows = false;                     ///< a larger size always means more work

  /// A switch: off by default.
  bool is_switch() const { return default_value == AttributeValue(int64_t{0}) && max == 1; }
};

/// The columns of an image: as many as it has rows, if they are not given. Read by `image_width`.
inline SizeDef width_size(std::vector<std::string_view> other_names = {}) {
  return {.name = "width",
          .doc = "columns of an image",
          .other_names = std::move(other_names),
          .default_value = std::nullopt,
          .default_rule = "as height"};
}

/// A size that is 0 (the default) or 1.
inline SizeDef switch_size(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .default_value = int64_t{0}, .min = 0, .max = 1};
}

/// The sizes of one kernel by name.
using SizeList = std::vector<Attribute>;

/// A whole number in a list; it must be there.
int64_t& integer_in(SizeList& sizes, std::string_view name);

/// Checked sizes, completed by the operator's defaults.
class GivenSizes {
 public:
  /// Throws Error{kInput} that names the operator and the size if one is unknown, repeated,
  /// missing, or of the wrong type or range. `given` must outlive this.
  GivenSizes(const OpDef& op, DType dtype, const SizeList& given);

  const OpDef& op() const { return op_; }
  DType dtype() const { return dtype_; }  ///< dtype of the operands

  /// A whole number, or its default.
  int64_t operator[](std::string_view name) const { return std::get<int64_t>(*find(name)); }
  QuantScheme scheme(std::string_view name) const { return std::get<QuantScheme>(*find(name)); }
  /// For sizes whose default depends on others.
  int64_t value_or(std::string_view name, int64_t fallback) const;
  DType dtype_or(std::string_view name, DType fallback) const;
  /// A list of whole numbers; empty: not given.
  const std::vector<int64_t>& list(std::string_view name) const;

  /// Throws Error{kInput} that names the operator.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const AttributeValue* find(std::string_view name) const;

  const OpDef& op_;
  DType dtype_;
  /// By index in op_.sizes; nullptr: not given and no default.
  std::vector<const AttributeValue*> values_;
};

/// The size that `width_size` describes.
inline int64_t image_width(const GivenSizes& sizes) {
  return sizes.value_or("width", sizes["height"]);
}

/// Inputs and attributes of a node.
struct Operands {
  std::vector<TensorId> inputs;
  std::vector<Attribute> attributes;
};

/// How to draw random sizes that are consistent with each other.
struct RandomSizes {
  /// Adds the sizes that depend on others; null: none do.
  void (*draw)(Rng&, SizeList&) = nullptr;
  /// Adjusts the other sizes after one was increased; may be null.
  void (*fit)(SizeList&) = nullptr;
  /// Whether training draws pairs of kernels, where the larger must not be forecast to be faster.
  bool in_training = false;
};

/// `rows` and `columns` (also: m, n), the sizes of most operators.
std::vector<SizeDef> row_sizes();
/// The dtype of keys and values in a cache; `default_rule` describes the default.
SizeDef kv_dtype_size(std::string_view doc, std::string_view default_rule);
/// As many [rows, columns] tensors as the operator needs.
Operands row_operands(GraphBuilder& b, const GivenSizes& sizes);

/// Looks up a size by its name or another accepted name; nullptr if the operator has no such size.
const SizeDef* find_size(const OpDef& op, std::string_view name);

/// The kernels that an operator launches for these sizes and this dtype. Throws Error{kNotFound}
/// for an unknown operator, Error{kInput} for sizes that it does not have or that contradict each
/// other, Error{kUnsupported} for an operator that launches no kernel.
std::vector<Kernel> kernels_of_sizes(std::string_view op, DType dtype, const SizeList& sizes);

/// Draws log-uniform sizes from a wider range than that of the measurements, to check forecasts
/// outside of it.
SizeList draw_sizes(const OpDef& op, Rng& rng);

}  // namespace tilecast
