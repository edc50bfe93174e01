#pragma once

// How an option writes its value to a member of a question: `into<&Question::member>()`, or
// `into<&Question::part, &Part::member>()`. The member's type says how the text is read.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <type_traits>
#include <vector>

#include "command/option.h"
#include "command/sources.h"

namespace tilecast {

// Values of one text. Throw OptionError that names the option.

/// A whole number within the option's range.
int64_t whole_of(const CommandOption& option, const std::string& text);
/// A number above 0 and at most 1; also 0 where the option's range begins there.
double share_of(const CommandOption& option, const std::string& text);
/// The index of the word.
size_t word_of(const CommandOption& option, const std::string& text,
               const std::vector<std::string>& words);

namespace internal {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
T parse_text(const CommandOption& option, const std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    return word_of(option, text, {"on", "off"}) == 0;
  } else if constexpr (std::is_enum_v<T>) {
    constexpr auto kWords = choice_words(T{});
    return static_cast<T>(word_of(option, text, {kWords.begin(), kWords.end()}));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(whole_of(option, text));
  } else if constexpr (std::is_same_v<T, double>) {
    return share_of(option, text);
  } else {
    return T(text);  // a string or a path
  }
}

/// The last text. Throws OptionError if something else was given.
const std::string& last_text(const CommandOption& option, const GivenValue& value);
/// "512MiB" is 512Mi, and "5B" is 5.
std::string without_unit_of_bytes(std::string text);

template <typename T>
void assign(T& member, const CommandOption& option, const GivenValue& value) {
  if constexpr (std::is_same_v<T, ModelSource>) {
    member = {.name = value.texts.empty() ? "" : value.texts.back(), .read = value.model};
  } else if constexpr (std::is_same_v<T, GpuSource>) {
    member = gpu_source(value);
  } else if constexpr (std::is_same_v<T, std::vector<GpuSource>>) {
    member = gpu_sources(value);
  } else if constexpr (IsOptional<T>::value) {
    member = parse_text<typename T::value_type>(option, last_text(option, value));
  } else if constexpr (IsVector<T>::value) {
    for (const std::string& text : option.list ? listed(value) : value.texts)
      member.push_back(parse_text<typename T::value_type>(option, text));
  } else {
    member = parse_text<T>(option, last_text(option, value));
  }
}

template <typename T>
struct MemberPointer;
template <typename C, typename M>
struct MemberPointer<M C::*> {
  using Class = C;
};

}  // namespace internal

/// A function that writes a value to the member that the chain of members names.
template <auto First, auto... Rest>
SetValue into() {
  using Question = typename internal::MemberPointer<decltype(First)>::Class;
  return [](void* question, const CommandOption& option, const GivenValue& value) {
    internal::assign(((static_cast<Question*>(question)->*First).*....*Rest), option, value);
  };
}

/// A function that keeps the words of an option of a request, for `make_request`.
template <auto Words>
SetValue into_request() {
  using Question = typename internal::MemberPointer<decltype(Words)>::Class;
  return [](void* question, const CommandOption& option, const GivenValue& value) {
    (static_cast<Question*>(question)->*Words).push_back(given_option(option, value));
  };
}

}  // namespace tilecast
