#pragma once

// The constants of a struct by name. A struct describes itself: its `describe` adds each member
// under its name, and groups of members under theirs, which gives "attention.launch_us" and
// "decode_attention.tcgen05.block_cycles". The table reads data files into the struct, and gives
// constants to those who look for one by its name, as a fit does.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace tilecast {

/// A list of numbers, tiles or shapes as numbers one after the other.
struct ConstantList {
  size_t width = 1;  ///< numbers of an item
  std::function<void(std::span<const double>)> set;
  std::function<std::vector<double>()> get;
};

/// One constant of a struct: where it is.
struct Constant {
  std::string name;
  std::variant<double*, int64_t*, ConstantList> target;

  /// Its numbers: one, or those of a list.
  std::vector<double> values() const;
  /// False where they do not fit: one number for a number, whole ones for a count, at least one
  /// item for a list.
  bool set(std::span<const double> values) const;
};

class ConstantTable {
 public:
  void add(std::string_view name, double& number) { constants_.push_back({named(name), &number}); }
  void add(std::string_view name, int64_t& count) { constants_.push_back({named(name), &count}); }
  template <class Item>
  void add(std::string_view name, std::vector<Item>& items) {
    constants_.push_back({named(name), list_of(items)});
  }
  template <class Group>
  void group(std::string_view name, Group& group) {
    const size_t outer = prefix_.size();
    prefix_ = named(name) + '.';
    group.describe(*this);
    prefix_.resize(outer);
  }

  /// In the order in which they were added. Valid as long as the struct is where it was.
  const std::vector<Constant>& constants() const { return constants_; }
  /// nullptr where there is none.
  const Constant* find(std::string_view name) const;
  /// A number by its name. Throws Error{kNotFound} with the nearest names.
  double& number(std::string_view name) const;

  /// Reads a file {"schema_version": 1, "what": …, "constants": {…}}; the file of `law` holds the
  /// constants whose names start with it. A constant is {"value", "unit", "what", "source"}, a
  /// group holds constants. A constant without a source has that of its group or of the file.
  /// Throws Error{kInput} for unknown keys, constants that are missing, wrong units, and sources
  /// that are missing or do not start with how the value was found (kinds_of_source).
  void read(std::string_view law, std::string_view json_text, const std::string& where) const;

 private:
  std::string named(std::string_view name) const { return prefix_ + std::string(name); }

  template <class Item>
  static ConstantList list_of(std::vector<Item>& items) {
    std::vector<Item>* list = &items;
    if constexpr (std::is_same_v<Item, double>) {
      return {1, [list](std::span<const double> all) { list->assign(all.begin(), all.end()); },
              [list] { return *list; }};
    } else {
      const size_t width = Item{}.numbers().size();
      return {width,
              [list, width](std::span<const double> all) {
                list->clear();
                for (size_t i = 0; i < all.size(); i += width) list->push_back(Item::of(&all[i]));
              },
              [list] {
                std::vector<double> all;
                for (const Item& item : *list) {
                  for (const double number : item.numbers()) all.push_back(number);
                }
                return all;
              }};
    }
  }

  std::string prefix_;
  std::vector<Constant> constants_;
};

/// The unit that the end of a constant's name states: "us" of launch_us, "1" where there is none.
std::string_view unit_of_constant(std::string_view name);

/// How a value can have been found; each source starts with one of them.
std::span<const std::string_view> kinds_of_source();

}  // namespace tilecast
