#pragma once

// How options read and write the fields of a request.

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "request/values.h"
#include "software/software.h"
#include "tilecast/request.h"

namespace tilecast {

/// The names of an enum of choices.h, in the order of its values.
template <typename Choice>
const std::vector<std::string>& choice_names() {
  static constexpr auto kWords = choice_words(Choice{});
  static const std::vector<std::string> names(kWords.begin(), kWords.end());
  return names;
}

/// The names in the table of software.
template <>
inline const std::vector<std::string>& choice_names<Software>() {
  return software_names();
}

template <typename Choice>
const std::string& choice_name(Choice choice) {
  return choice_names<Choice>()[static_cast<size_t>(choice)];
}
/// Earlier versions have the name of their software.
template <>
inline const std::string& choice_name<Software>(Software software) {
  return software_def(software).name;
}

/// The values of `--dtype`; "amp", "amp-fp16" and "tf32" only if `autocast` is true.
std::vector<std::string> precision_names(bool autocast);

namespace internal {

template <typename T>
struct Plain {
  using type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using type = T;
};

template <typename T>
T parse(const OptionDef& option, const std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    return text == "on";
  } else if constexpr (std::is_enum_v<T>) {
    const std::vector<std::string>& names = choice_names<T>();  // contains it: checked before
    return static_cast<T>(std::find(names.begin(), names.end(), text) - names.begin());
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return whole_value(option, text);
  } else if constexpr (std::is_same_v<T, double>) {
    return number_value(option, text) / option.per_unit;
  } else {
    return text;
  }
}

template <typename T>
std::string text_of(const OptionDef& option, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "on" : "off";
  } else if constexpr (std::is_enum_v<T>) {
    return choice_name(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    return number_text(value * option.per_unit);
  } else {
    return number_text(value);
  }
}

}  // namespace internal

/// Access to the field of a request that `Field` returns: an enum, bool ("on", "off"), string or
/// number, or an optional of one.
template <auto Field>
OptionAccess field() {
  using Stored = std::remove_cvref_t<decltype(Field(std::declval<Request&>()))>;
  using T = typename internal::Plain<Stored>::type;
  OptionAccess access;
  if (std::is_same_v<T, int64_t>) access.type = OptionType::kWhole;
  if (std::is_same_v<T, double>) access.type = OptionType::kNumber;
  access.set = [](Request& request, const OptionDef& option, const std::string& text) {
    Field(request) = internal::parse<T>(option, text);
  };
  access.get = [](const Request& request, const OptionDef& option) -> std::string {
    const Stored& value = Field(request);
    if constexpr (std::is_same_v<Stored, T>) {
      // A number without a default is 0 if it was not given.
      const bool left_out = option.default_value.empty() && value == Stored{} && !std::is_enum_v<T>;
      return left_out ? "" : internal::text_of(option, value);
    } else {
      return value ? internal::text_of(option, *value) : "";
    }
  };
  return access;
}

/// Access to sizes by name, "seq=128,past=0".
template <auto Field>
OptionAccess named_sizes() {
  OptionAccess access = field<Field>();
  access.set = [](Request& request, const OptionDef&, const std::string& text) {
    parse_dims(text);
    Field(request) = text;
  };
  return access;
}

/// Access to a length in two fields: "800", or "800:1000" for a server. Setting it makes the
/// request one for text generation.
template <auto Low, auto High>
OptionAccess length_range() {
  OptionAccess access;
  access.set = [](Request& request, const OptionDef& option, const std::string& text) {
    std::tie(Low(request), High(request)) = range_value(option, text);
    request.load.lengths_given = true;
    if (request.kind == RequestKind::kPass) request.kind = RequestKind::kGenerate;
  };
  access.get = [](const Request& request, const OptionDef&) -> std::string {
    if (request.kind == RequestKind::kPass) return "";
    const int64_t low = Low(request), high = High(request);  // high: 0 if all lengths are equal
    return high == 0 || high == low ? number_text(low) : number_text(low) + ":" + number_text(high);
  };
  return access;
}

/// "static" or "continuous": the kind of a request for text generation.
OptionAccess schedule();

/// "boost", "base" or a number of MHz.
OptionAccess clocks();

/// The file of a trace, which is read when the option is set.
OptionAccess trace_file();

}  // namespace tilecast
