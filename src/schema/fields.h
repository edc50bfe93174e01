#pragma once

// Makes the table of a record from its `fields`. Only the files that list records include this.

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <type_traits>

#include "schema/convert.h"
#include "tilecast/result.h"

namespace tilecast {

/// The fields of an interval.
struct IntervalNames {
  std::string_view value, low, high;
};
struct BoundNames {
  std::string_view low, high;
};

/// What `T::fields` calls. A getter is a member, a member function or a function of the record.
template <typename S>
class Fields {
 public:
  explicit Fields(RecordDef& def) : def_(def) {}

  void is(std::string_view name, std::string_view doc) {
    def_.name = name;
    def_.doc = doc;
  }

  /// A record that is a whole document.
  void is_document(std::string_view name, std::string_view doc) {
    is(name, doc);
    (*this)("schema_version", "", "of this schema", [](const S&) { return 1; });
  }

  /// `words`: all values that a text may have.
  template <typename Getter>
  void operator()(std::string_view name, std::string_view unit, std::string_view doc, Getter getter,
                  std::initializer_list<std::string_view> words = {}) {
    add(name, unit, doc, getter, words, false);
  }

  /// JSON leaves the field out where it has no value.
  template <typename Getter>
  void if_set(std::string_view name, std::string_view unit, std::string_view doc, Getter getter,
              std::initializer_list<std::string_view> words = {}) {
    add(name, unit, doc, getter, words, true);
  }

  /// A value with its interval: three fields. `ends`: what low and high are.
  template <typename Getter>
  void interval(const IntervalNames& names, std::string_view unit, std::string_view doc,
                Getter getter, std::string_view ends = "80 % interval") {
    (*this)(names.value, unit, doc, end_getter(getter, &Interval::value));
    (*this)(names.low, unit, ends, end_getter(getter, &Interval::low));
    (*this)(names.high, unit, ends, end_getter(getter, &Interval::high));
  }

  /// The ends of an interval without its value; JSON leaves them out where it is absent.
  template <typename Getter>
  void bounds(const BoundNames& names, std::string_view unit, std::string_view doc, Getter getter) {
    constexpr bool left_out =
        !std::convertible_to<std::invoke_result_t<const Getter&, const S&>, double>;
    add(names.low, unit, doc, end_getter(getter, &Interval::low), {}, left_out);
    add(names.high, unit, "80 % interval", end_getter(getter, &Interval::high), {}, left_out);
  }

  /// The list of warnings: as sentences and, where they have codes, by their codes.
  template <typename Getter>
  void warnings(Getter getter) {
    constexpr std::string_view doc = "sentences that readers of the numbers should know";
    using List = std::remove_cvref_t<std::invoke_result_t<const Getter&, const S&>>;
    if constexpr (std::same_as<List, std::vector<std::string>>) {
      (*this)("warnings", "", doc, getter);
    } else {
      (*this)("warnings", "", doc,
              [getter](const S& record) { return warning_texts(std::invoke(getter, record)); });
      (*this)(
          "warning_codes", "", "code of each warning, in the order of warnings",
          [getter](const S& record) { return warning_code_names(std::invoke(getter, record)); });
    }
  }

  /// The request with all defaults.
  template <typename Getter>
  void options(Getter getter) {
    (*this)("options", "",
            "the request with all defaults: values by the names of the command-line options (with "
            "_ for -), in their units; options without a value are omitted",
            [getter](const S& record) { return option_values(std::invoke(getter, record)); });
  }

  /// The fields of a part of the record but those in `without`, as fields of this one. Of a part
  /// that is absent, all are left out.
  template <typename Getter>
  void flat(Getter getter, std::initializer_list<std::string_view> without = {}) {
    add_part(getter, [&](std::string_view name) {
      return std::find(without.begin(), without.end(), name) == without.end();
    });
  }

  /// Some fields of a part of the record, as fields of this one.
  template <typename Getter>
  void pick(Getter getter, std::initializer_list<std::string_view> names) {
    add_part(getter, [&](std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  }

 private:
  static double end_of(const Interval& interval, double Interval::* end) { return interval.*end; }
  static std::optional<double> end_of(const std::optional<Interval>& interval,
                                      double Interval::* end) {
    return interval ? std::optional((*interval).*end) : std::nullopt;
  }

  template <typename Getter>
  static auto end_getter(Getter getter, double Interval::* end) {
    return [getter, end](const S& record) { return end_of(std::invoke(getter, record), end); };
  }

  template <typename Getter, typename Wanted>
  void add_part(Getter getter, const Wanted& wanted) {
    using Part = std::remove_cvref_t<decltype(part(std::invoke(getter, std::declval<const S&>())))>;
    using Record = std::remove_cv_t<std::remove_pointer_t<Part>>;
    for (FieldDef field : record_of<Record>().fields) {
      if (!wanted(field.name)) continue;
      if (!is_plain<Getter>()) {
        field.left_out = field.type.nullable = true;
      }
      field.get = [getter, inner = std::move(field.get)](const void* record) -> Value {
        const Record* found = part(std::invoke(getter, *static_cast<const S*>(record)));
        return found != nullptr ? inner(found) : Value{};
      };
      def_.fields.push_back(std::move(field));
    }
  }

  template <typename T>
  static const T* part(const std::optional<T>& part) {
    return part ? &*part : nullptr;
  }
  template <typename T>
  static const T* part(const T* part) {
    return part;
  }
  template <typename T>
  static const T* part(const T& part) {
    return &part;
  }
  template <typename Getter>
  static constexpr bool is_plain() {
    using Result = std::invoke_result_t<const Getter&, const S&>;
    static_assert(std::is_reference_v<Result> || std::is_pointer_v<Result>,
                  "a part must not be a copy");
    return requires { &std::remove_cvref_t<Result>::template fields<int>; };
  }

  template <typename Getter>
  void add(std::string_view name, std::string_view unit, std::string_view doc, Getter getter,
           std::initializer_list<std::string_view> words, bool left_out) {
    using Result = std::invoke_result_t<const Getter&, const S&>;
    using T = std::remove_cvref_t<Result>;
    FieldType type = Convert<T>::type();
    if (words.size() > 0) (type.kind == FieldKind::kList ? type.items.front() : type).words = words;
    def_.fields.push_back({.name = std::string(name),
                           .unit = unit,
                           .doc = doc,
                           .type = std::move(type),
                           .left_out = left_out,
                           .get = [getter](const void* record) {
                             return read<Result, T>(getter, *static_cast<const S*>(record));
                           }});
  }

  template <typename Result, typename T, typename Getter>
  static Value read(const Getter& getter, const S& record) {
    constexpr bool refers = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> ||
                            std::same_as<T, std::string_view>;
    if constexpr (std::is_reference_v<Result> || refers) {
      return Convert<T>::value(std::invoke(getter, record));
    } else {
      auto made = std::make_shared<const T>(std::invoke(getter, record));
      Value value = Convert<T>::value(*made);
      value.owner = std::move(made);
      return value;
    }
  }

  RecordDef& def_;
};

template <typename T>
RecordDef make_record() {
  RecordDef def;
  Fields<T> fields(def);
  T::fields(fields);
  def.by_name.resize(def.fields.size());
  std::iota(def.by_name.begin(), def.by_name.end(), uint16_t{0});
  std::sort(def.by_name.begin(), def.by_name.end(),
            [&](size_t a, size_t b) { return def.fields[a].name < def.fields[b].name; });
  return def;
}

template <typename T>
const RecordDef& record_of() {
  static const RecordDef def = make_record<T>();
  return def;
}

}  // namespace tilecast
