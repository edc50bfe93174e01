#pragma once

// From C++ types to the types and values of fields.

#include <array>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "schema/record.h"

namespace tilecast {

/// `type()` and `value(const T&)` of a type; the value points into its argument.
template <typename T>
struct Convert;

inline FieldType scalar_type(FieldKind kind, const RecordDef* record = nullptr) {
  FieldType type;
  type.kind = kind;
  type.record = record;
  return type;
}
template <typename T>
FieldType field_type(FieldKind kind) {
  FieldType type = scalar_type(kind);
  type.items.push_back(Convert<T>::type());
  return type;
}

template <>
struct Convert<bool> {
  static FieldType type() { return scalar_type(FieldKind::kBool); }
  static Value value(bool v) { return {.data = v, .owner = nullptr}; }
};

template <std::integral T>
struct Convert<T> {
  static FieldType type() { return scalar_type(FieldKind::kWhole); }
  static Value value(T v) { return {.data = static_cast<int64_t>(v), .owner = nullptr}; }
};

template <std::floating_point T>
struct Convert<T> {
  static FieldType type() { return scalar_type(FieldKind::kNumber); }
  static Value value(T v) { return {.data = static_cast<double>(v), .owner = nullptr}; }
};

template <typename T>
  requires std::convertible_to<const T&, std::string_view>
struct Convert<T> {
  static FieldType type() { return scalar_type(FieldKind::kText); }
  static Value value(const T& v) { return {.data = std::string_view(v), .owner = nullptr}; }
};

/// An option with a closed list of values (choices.h).
template <typename T>
  requires std::is_enum_v<T>
struct Convert<T> {
  static FieldType type() {
    const auto words = choice_words(T{});
    FieldType type = scalar_type(FieldKind::kText);
    type.words.assign(words.begin(), words.end());
    return type;
  }
  static Value value(T v) {
    static constexpr auto kWords = choice_words(T{});
    return {.data = kWords[static_cast<size_t>(v)], .owner = nullptr};
  }
};

template <typename T>
  requires requires { &T::template fields<int>; }
struct Convert<T> {
  static FieldType type() { return scalar_type(FieldKind::kRecord, &record_of<T>()); }
  static Value value(const T& v) { return value_of(v); }
};

/// No value: null.
template <typename T>
struct Convert<std::optional<T>> {
  static FieldType type() {
    FieldType type = Convert<T>::type();
    type.nullable = true;
    return type;
  }
  static Value value(const std::optional<T>& v) { return v ? Convert<T>::value(*v) : Value{}; }
};

/// The member or value that a getter refers to, or nothing.
template <typename T>
  requires(!std::same_as<T, char>)
struct Convert<const T*> {
  static FieldType type() { return Convert<std::optional<T>>::type(); }
  static Value value(const T* v) { return v != nullptr ? Convert<T>::value(*v) : Value{}; }
};

template <typename List, typename T>
struct ConvertList {
  static FieldType type() { return field_type<T>(FieldKind::kList); }
  static Value value(const List& v) {
    return {.data = ListRef{&v, v.size(),
                            [](const void* list, size_t i) -> Value {
                              if constexpr (std::same_as<T, bool>)
                                return Convert<bool>::value((*static_cast<const List*>(list))[i]);
                              else
                                return Convert<T>::value((*static_cast<const List*>(list))[i]);
                            }},
            .owner = nullptr};
  }
};
template <typename T>
struct Convert<std::vector<T>> : ConvertList<std::vector<T>, T> {};

template <typename T, size_t n>
struct Convert<std::array<T, n>> : ConvertList<std::array<T, n>, T> {
  static FieldType type() {
    FieldType type = field_type<T>(FieldKind::kList);
    type.length = n;
    return type;
  }
};

/// Two numbers: a list.
template <typename T>
struct Convert<std::pair<T, T>> {
  static FieldType type() {
    FieldType type = field_type<T>(FieldKind::kList);
    type.length = 2;
    return type;
  }
  static Value value(const std::pair<T, T>& v) {
    return {.data = ListRef{&v, 2,
                            [](const void* at, size_t i) {
                              const auto& both = *static_cast<const std::pair<T, T>*>(at);
                              return Convert<T>::value(i == 0 ? both.first : both.second);
                            }},
            .owner = nullptr};
  }
};

/// Values by name.
template <typename Key, typename T>
  requires std::convertible_to<const Key&, std::string_view>
struct Convert<std::vector<std::pair<Key, T>>> {
  using Map = std::vector<std::pair<Key, T>>;
  static FieldType type() { return field_type<T>(FieldKind::kMap); }
  static Value value(const Map& v) {
    return {.data = MapRef{&v, v.size(),
                           [](const void* map, size_t i) -> std::string_view {
                             return (*static_cast<const Map*>(map))[i].first;
                           },
                           [](const void* map, size_t i) {
                             return Convert<T>::value((*static_cast<const Map*>(map))[i].second);
                           }},
            .owner = nullptr};
  }
};
template <typename T>
struct Convert<std::map<std::string, T>> {
  using Map = std::map<std::string, T>;
  static FieldType type() { return field_type<T>(FieldKind::kMap); }
  static auto entry(const void* map, size_t i) {
    return std::next(static_cast<const Map*>(map)->begin(), static_cast<std::ptrdiff_t>(i));
  }
  static Value value(const Map& v) {
    return {.data = MapRef{
                &v, v.size(),
                [](const void* map, size_t i) -> std::string_view { return entry(map, i)->first; },
                [](const void* map, size_t i) { return Convert<T>::value(entry(map, i)->second); }},
            .owner = nullptr};
  }
};
/// A type with lists of names and values, as NamedSizes.
template <typename T>
  requires requires(const T& v) {
    v.names[0];
    v.values[0];
  }
struct Convert<T> {
  using Item = std::remove_cvref_t<decltype(std::declval<const T&>().values[0])>;
  static FieldType type() { return field_type<Item>(FieldKind::kMap); }
  static Value value(const T& v) {
    return {.data = MapRef{&v, v.names.size(),
                           [](const void* map, size_t i) -> std::string_view {
                             return static_cast<const T*>(map)->names[i];
                           },
                           [](const void* map, size_t i) {
                             return Convert<Item>::value(static_cast<const T*>(map)->values[i]);
                           }},
            .owner = nullptr};
  }
};

template <typename... Ts>
struct Convert<std::variant<Ts...>> {
  static FieldType type() {
    FieldType type = scalar_type(FieldKind::kOneOf);
    (type.items.push_back(Convert<Ts>::type()), ...);
    return type;
  }
  static Value value(const std::variant<Ts...>& v) {
    return std::visit(
        [](const auto& held) { return Convert<std::remove_cvref_t<decltype(held)>>::value(held); },
        v);
  }
};

}  // namespace tilecast
