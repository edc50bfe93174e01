#pragma once

// The measurements that a learned model was trained on: training writes them into the weights, and
// a forecast is flagged as extrapolated where its kernel is something else.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernel.h"
#include "predict/conditions.h"

namespace tilecast {

/// Whose kernels were measured in which precision. FP16 counts as BF16: libraries have the same
/// kernels for both.
struct Combination {
  Software software{};
  DType dtype = DType::kBf16;
  DType kv_dtype = DType::kBf16;  ///< of attention; else as dtype
  QuantScheme scheme = QuantScheme::kNone;

  bool operator==(const Combination&) const = default;
};
Combination combination_of(const Kernel& kernel, const Conditions& conditions);
/// By the names of its parts in files; nullopt where one is unknown.
std::optional<Combination> combination_of_words(const std::string& software,
                                                const std::string& dtype,
                                                const std::string& kv_dtype,
                                                const std::string& scheme);

/// Forms of a kernel for which libraries have code of their own.
enum class Form : uint8_t { kBatch, kBackward, kConvolution };

/// A set of forms, one bit each.
class Forms {
 public:
  void add(Form form) { bits_ |= static_cast<uint8_t>(1u << static_cast<unsigned>(form)); }
  bool has(Form form) const { return (bits_ >> static_cast<unsigned>(form)) & 1u; }
  void add(Forms other) { bits_ |= other.bits_; }
  /// The forms that `other` lacks.
  Forms without(Forms other) const;
  bool empty() const { return bits_ == 0; }
  bool operator==(const Forms&) const = default;

 private:
  uint8_t bits_ = 0;
};
/// The forms that a kernel has: a batched product, a backward pass of fused attention, a
/// convolution.
Forms forms_of(const Kernel& kernel);

/// "batch", "backward", "convolution".
std::vector<std::string> form_names(Forms forms);
std::optional<Form> find_form(std::string_view name);
/// The name of the last form of a set that is not empty.
std::string_view last_form_name(Forms forms);

/// The rows of a kind, beside the ranges of its features and the combinations of each device
/// (weights.h).
struct TrainedOn {
  std::vector<std::string> operators;  ///< of measurements; for people
  std::vector<std::string> vendors;    ///< of the devices
  Forms forms;

  bool operator==(const TrainedOn&) const = default;
};

}  // namespace tilecast
