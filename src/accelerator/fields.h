#pragma once

// Fields of architecture descriptions: {"value": number or expression, "unit": …, "source": …}.

#include <optional>
#include <string>

#include "accelerator/machine.h"

namespace tilecast::accelerator {

/// Reads quantities of one file with the values of its parameters.
class FieldReader {
 public:
  explicit FieldReader(const std::vector<Parameter>& parameters) : parameters_(parameters) {}

  /// The number of the field, in [least, most]. Throws Error{kInput}.
  double quantity(const JsonObject& object, const std::string& key, const std::string& unit,
                  double least, double most) const;
  double quantity_or(const JsonObject& object, const std::string& key, const std::string& unit,
                     double fallback, double least, double most) const;
  /// The expression of the field, which may use names other than parameters.
  Expression expression(const JsonObject& object, const std::string& key,
                        const std::string& unit) const;
  /// A number, or the value of a text as an expression of parameters and of `index` names.
  double number(const Json& value, const std::string& where,
                const ParameterValues& index = {}) const;

 private:
  std::optional<double> parameter(std::string_view name) const;
  const std::vector<Parameter>& parameters_;
};

}  // namespace tilecast::accelerator
