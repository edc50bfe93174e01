#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attributes.h"
#include "ops/kernel.h"

namespace tilecast {

struct OpDef;
class GraphBuilder;
class Rng;

/// No size beyond this is meant.
inline constexpr int64_t kLargestSize = int64_t{1} << 40;

/// One size or setting by which an operator's kernel is asked for without a graph. Flags and help
/// of `tilecast kernel`, the façade and the readers of measurements derive from it.
struct SizeDef {
  std::string_view name;
  std::string_view doc;
  std::vector<std::string_view> other_names;  ///< also read: of older versions and of measurements
  AttributeType type = AttributeType::kInteger;
  /// What holds where it is not given; nullopt: `otherwise` says it, or it has to be given.
  std::optional<AttributeValue> default_value = int64_t{1};
  std::string_view default_rule;  ///< a default that follows from other sizes, in words
  int64_t min = 1;
  int64_t max = kLargestSize;
  std::vector<std::string_view> choices;  ///< of dtypes: those that make sense; empty: all
  int drawn_bits = 0;  ///< random kernels have 1 to 2^drawn_bits of it; 0: the default
  bool grows = false;  ///< more of it is more work, whatever the other sizes

  /// Off, and on where it is given.
  bool is_switch() const { return default_value == AttributeValue(int64_t{0}) && max == 1; }
};

/// The sizes of one kernel by name, as they are given.
using SizeList = std::vector<Attribute>;

/// A whole number in a list that has it.
int64_t& integer_in(SizeList& sizes, std::string_view name);

/// Sizes that were checked, with the operator's defaults.
class GivenSizes {
 public:
  /// Throws Error{kInput} that names the operator and the size where one is unknown, given twice,
  /// missing, or of another type or range. `given` must outlive this.
  GivenSizes(const OpDef& op, DType dtype, const SizeList& given);

  const OpDef& op() const { return op_; }
  DType dtype() const { return dtype_; }  ///< of the operands

  /// A whole number, given or by default.
  int64_t operator[](std::string_view name) const { return std::get<int64_t>(*find(name)); }
  QuantScheme scheme(std::string_view name) const { return std::get<QuantScheme>(*find(name)); }
  /// Of sizes whose default follows from others.
  int64_t value_or(std::string_view name, int64_t fallback) const;
  DType dtype_or(std::string_view name, DType fallback) const;

  /// Throws Error{kInput} that names the operator.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const AttributeValue* find(std::string_view name) const;

  const OpDef& op_;
  DType dtype_;
  std::vector<const AttributeValue*> values_;  ///< of op_.sizes; nullptr: neither given nor default
};

/// What the builder adds a node with.
struct Operands {
  std::vector<TensorId> inputs;
  std::vector<Attribute> attributes;
};

/// How random sizes that fit each other are drawn.
struct RandomSizes {
  /// Completes what was drawn by `drawn_bits`; null: nothing depends on another size.
  void (*draw)(Rng&, SizeList&) = nullptr;
  /// Mends the others after one has grown; may be null.
  void (*fit)(SizeList&) = nullptr;
  /// Whether training draws pairs of it, of which the larger may not be forecast faster.
  bool in_training = false;
};

/// `rows` of `columns` elements (also: m, n), which most operators work on.
std::vector<SizeDef> row_sizes();
/// The dtype of keys and values in a cache; `otherwise` says what stands for it.
SizeDef kv_dtype_size(std::string_view doc, std::string_view default_rule);
/// As many such tensors as the operator takes at least.
Operands row_operands(GraphBuilder& b, const GivenSizes& sizes);

/// By name or other name; nullptr where the operator takes no such size.
const SizeDef* find_size(const OpDef& op, std::string_view name);

/// Kernels that the operator launches on operands of a dtype and of these sizes. Throws
/// Error{kNotFound} for an unknown operator, Error{kInput} for sizes that it does not take or that
/// do not fit each other, Error{kUnsupported} for an operator that launches nothing.
std::vector<Kernel> kernels_of_sizes(std::string_view op, DType dtype, const SizeList& sizes);

/// Log-uniform sizes, wider than what is measured: they say where a law has to be sane.
SizeList draw_sizes(const OpDef& op, Rng& rng);

}  // namespace tilecast
