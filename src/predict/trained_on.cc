#include "predict/trained_on.h"

#include <array>

#include "ops/op_def.h"

namespace tilecast {
namespace {

/// In the order of Form.
constexpr std::array<std::string_view, 3> kFormNames = {"batch", "backward", "convolution"};

}  // namespace

Combination combination_of(const Kernel& kernel, const Conditions& conditions) {
  const auto wide = [](DType dtype) { return dtype == DType::kFp16 ? DType::kBf16 : dtype; };
  const DType dtype = wide(kernel.dtype);
  const Attention* attention = kernel.as<Attention>();
  // The compiler of PyTorch writes such kernels, whoever runs them.
  static const OpId compiled = require_op("compiled_gated_activation");
  const Software software =
      kernel.op == compiled ? Software{} : measured_kernels(conditions.software);
  return {software, dtype, attention != nullptr ? wide(attention->kv_dtype) : dtype, kernel.scheme};
}

std::optional<Combination> combination_of_words(const std::string& software,
                                                const std::string& dtype,
                                                const std::string& kv_dtype,
                                                const std::string& scheme) {
  const std::optional<Software> known_software = find_software(software);
  const std::optional<DType> known_dtype = find_dtype(dtype), known_kv = find_dtype(kv_dtype);
  const bool none = scheme == scheme_info(QuantScheme::kNone).name;
  const std::optional<QuantScheme> known_scheme = none ? QuantScheme::kNone : find_scheme(scheme);
  if (!known_software || !known_dtype || !known_kv || !known_scheme) return std::nullopt;
  return Combination{*known_software, *known_dtype, *known_kv, *known_scheme};
}

Forms Forms::without(Forms other) const {
  Forms rest;
  rest.bits_ = static_cast<uint8_t>(bits_ & ~other.bits_);
  return rest;
}

Forms forms_of(const Kernel& kernel) {
  Forms forms;
  if (kernel.is_product() && gemm_of(kernel).batch != 1) forms.add(Form::kBatch);
  const Attention* attention = kernel.as<Attention>();
  if (attention != nullptr && attention->backward) forms.add(Form::kBackward);
  if (kernel.is<Convolution>()) forms.add(Form::kConvolution);
  return forms;
}

std::vector<std::string> form_names(Forms forms) {
  std::vector<std::string> names;
  for (size_t f = 0; f < kFormNames.size(); ++f) {
    if (forms.has(static_cast<Form>(f))) names.emplace_back(kFormNames[f]);
  }
  return names;
}

std::optional<Form> find_form(std::string_view name) {
  for (size_t f = 0; f < kFormNames.size(); ++f) {
    if (kFormNames[f] == name) return static_cast<Form>(f);
  }
  return std::nullopt;
}

std::string_view last_form_name(Forms forms) {
  std::string_view last;
  for (size_t f = 0; f < kFormNames.size(); ++f) {
    if (forms.has(static_cast<Form>(f))) last = kFormNames[f];
  }
  return last;
}

}  // namespace tilecast
