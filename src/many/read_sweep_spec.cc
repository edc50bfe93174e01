// Reads the file of a sweep.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "base/number.h"
#include "base/text.h"
#include "devices/device_numbers.h"
#include "many/spec_node.h"
#include "many/sweep_spec.h"
#include "request/access.h"
#include "scenario/accelerator/accelerator_scenario.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Kind = JobColumn::Kind;
using DrawKind = SweepDimension::Kind;

/// Whole numbers up to here are exact in a double.
constexpr double kLargestWhole = 9007199254740992;  // 2^53

constexpr const char* kListOrRange =
    "a list of at least one value, or a range like {\"from\": 1, \"to\": 64, \"scale\": \"log2\"}";

std::string spec_word(const SpecNode& node) {
  const Json& value = node.json();
  if (value.is_string()) return node.text();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return fmt::format("{}", node.number());
  node.fail("expected a list of texts or numbers, found " + node.shown() + " in it");
}

/// FNV-1a (Fowler, Noll, Vo): the same on every platform, which std::hash does not promise.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

double spec_number(const std::string& word) {
  if (const auto number = parse_number<double>(word)) return *number;
  const std::optional<int64_t> whole = parse_whole(word);
  return whole ? static_cast<double>(*whole) : NAN;
}

/// Equal for numbers that are written in two ways: 16, "16", "1.6e1".
std::string compared(const std::string& text, Kind kind) {
  if (kind == Kind::kModel || kind == Kind::kGpu) return text;
  const std::optional<double> value = parse_number<double>(text);
  return value ? fmt::format("{}", *value) : text;
}

/// The option of that name, of any kind of request, as the command line writes it (kv-dtype) or as
/// JSON and Python do (kv_dtype); nullptr: there is none.
const OptionDef* option_named(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const auto& options = request_options();
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const OptionDef& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

/// What is told wrong of a value has its line and column.
template <typename Work>
void at_node(const SpecNode& node, const Work& work) {
  try {
    work();
  } catch (const LimitReached&) {
    throw;
  } catch (const Error& error) {
    node.fail(error.what());
  }
}

/// A parameter of a list that the device states as well would have no effect.
void check_stated_once(const AcceleratorRef& device) {
  const size_t colon = device.spec.find(':');
  if (colon == std::string::npos) return;
  for (const std::string& part : split(device.spec.substr(colon + 1), ','))
    for (const auto& [name, value] : device.options.parameters)
      if (trim(part.substr(0, part.find('='))) == name)
        throw Error(ErrorKind::kInput,
                    fmt::format("'{}' states {}, and so do the 'parameters': leave one of them out",
                                shown_name(device.spec), shown_name(name)));
}

}  // namespace

class SweepSpecReader {
 public:
  SweepSpecReader(SweepSpec& spec, const SpecNode& root) : spec_(spec), root_(root) {}

  void read() {
    const std::set<std::string> parts = {"zip", "draw", "where"};
    for (const std::string& key : order_of(root_)) {
      if (parts.contains(key)) continue;
      each_column(root_, key, [&](const SpecNode& node, Kind kind) { add_list(node, kind); });
    }
    if (root_.has("zip")) each_part("zip", [&](const SpecNode& node) { add_zip(node); });
    if (root_.has("draw")) each_part("draw", [&](const SpecNode& node) { add_draw(node); });
    for (const char* needed : {"model", "gpu"})
      if (!has_column(needed)) fail_missing(needed);
    set_strides();
    check_values();
    if (root_.has("where")) read_conditions(root_.at("where"));
  }

 private:
  using TakeColumn = std::function<void(const SpecNode& node, Kind kind)>;

  /// Models and devices first: columns stand in this order.
  static std::vector<std::string> order_of(const SpecNode& node) {
    std::vector<std::string> keys = node.keys();
    std::stable_sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
      const auto rank = [](const std::string& key) {
        return key == "model" ? 0 : key == "gpu" ? 1 : 2;
      };
      return rank(a) < rank(b);
    });
    return keys;
  }

  /// The column under the key, or those of "parameters".
  static void each_column(const SpecNode& parent, const std::string& key, const TakeColumn& take) {
    const SpecNode node = parent.at(key);
    if (key == "parameters") {
      node.require_object("an object with numbers of the device");
      for (const std::string& name : node.keys()) take(node.at(name), Kind::kParameter);
    } else if (key == "model" || key == "gpu") {
      take(node, key == "model" ? Kind::kModel : Kind::kGpu);
    } else if (option_named(key) != nullptr) {
      take(node, Kind::kOption);
    } else {
      std::vector<std::string> known = {"model", "gpu", "parameters", "zip", "draw", "where"};
      for (const OptionDef& option : request_options()) known.push_back(option.name);
      node.fail(
          fmt::format("expected model, gpu, parameters, zip, draw, where, or an option of a "
                      "forecast{}; a dataflow is stated with the device: "
                      "\"systolic-array:dataflow=…\"",
                      did_you_mean(key, known)));
    }
  }

  /// One part or a list of them.
  template <typename Take>
  void each_part(const std::string& key, const Take& take) {
    const SpecNode node = root_.at(key);
    if (node.json().is_object()) return take(node);
    node.require_list("an object with columns, or a list of such objects");
    for (size_t i = 0; i < node.json().size(); ++i) {
      node.at(i).require_object("an object with columns");
      take(node.at(i));
    }
  }

  [[noreturn]] void fail_missing(const std::string& needed) const {
    root_.at_missing(needed).fail(
        needed == "model"      ? "is missing: a list of models"
        : root_.has("cluster") ? "is missing: a list of devices, also beside 'cluster': the GPUs "
                                 "of its nodes ('tilecast clusters')"
                               : "is missing: a list of devices");
  }

  bool has_column(const std::string& name) const {
    return std::any_of(spec_.columns_.begin(), spec_.columns_.end(), [&](const SweepColumn& c) {
      return c.kind != Kind::kParameter && c.name == name;
    });
  }

  SweepColumn make_column(const SpecNode& node, Kind kind) const {
    SweepColumn column;
    column.kind = kind;
    column.name = node.key();
    if (kind == Kind::kOption) {
      column.option = option_named(column.name);
      column.unit = column.option->unit;
    }
    for (const SweepColumn& other : spec_.columns_) {
      if (kind == Kind::kOption && other.option == column.option)
        node.fail(fmt::format("is the option {} once more", other.name));
      if (other.kind == kind && other.name == column.name) node.fail("is a column already");
    }
    const DeviceNumber* const number =
        kind == Kind::kParameter ? find_device_number(column.name) : nullptr;
    if (number != nullptr) column.unit = number->unit;
    return column;
  }

  /// The list or range of a column; `twice` says that a list may have a value more than once.
  static SweepValues read_values(const SpecNode& node, const SweepColumn& column, bool drawn,
                                 bool twice) {
    if (node.json().is_object() && column.kind != Kind::kModel && column.kind != Kind::kGpu)
      return read_range(node, column, drawn);
    node.require_list(column.kind == Kind::kModel || column.kind == Kind::kGpu
                          ? "a list of at least one value"
                          : kListOrRange);
    std::vector<std::string> words;
    std::vector<double> numbers;
    std::set<std::string> seen;
    bool all_whole = true, all_numbers = true;
    for (size_t i = 0; i < node.json().size(); ++i) {
      const SpecNode item = node.at(i);
      words.push_back(spec_word(item));
      all_whole = all_whole && item.json().is_number() && parse_number<int64_t>(words.back());
      all_numbers = all_numbers && item.json().is_number();
      numbers.push_back(spec_number(words.back()));
      if (!twice && !seen.insert(compared(words.back(), column.kind)).second)
        item.fail(fmt::format("lists '{}' twice", shown_name(words.back())));
    }
    return {std::move(words), std::move(numbers),
            all_whole     ? SweepType::kWhole
            : all_numbers ? SweepType::kNumber
                          : SweepType::kText};
  }

  /// Whether numbers between the ends are whole ones.
  static bool is_whole(const SpecNode& node, const SweepColumn& column) {
    if (node.has("type")) {
      const std::string type = node.at("type").text();
      if (type != "whole" && type != "number")
        node.at("type").fail("expected whole or number, found " + node.at("type").shown());
      return type == "whole";
    }
    if (column.option != nullptr) return column.option->access.type != OptionType::kNumber;
    if (const DeviceNumber* const number = find_device_number(column.name)) return number->is_whole;
    for (const char* key : {"from", "to", "step"})
      if (node.has(key) && !node.at(key).json().is_number_integer()) return false;
    return true;
  }

  static double end_of(const SpecNode& node, bool whole) {
    const double value = node.number();
    if (whole && (value != std::floor(value) || std::abs(value) > kLargestWhole))
      node.fail("expected a whole number, found " + node.shown());
    return value;
  }

  static SweepValues read_range(const SpecNode& node, const SweepColumn& column, bool drawn) {
    node.reject_unknown({"from", "to", "step", "count", "scale", "type"});
    if (column.option != nullptr && !column.option->choices.empty())
      node.fail(fmt::format("expected a list of the words {}, found a range",
                            join(column.option->choices, ", ")));
    for (const char* needed : {"from", "to"})
      if (!node.has(needed)) node.at_missing(needed).fail("is missing: an end of the range");
    SweepRange range;
    range.whole = is_whole(node, column);
    range.from = end_of(node.at("from"), range.whole);
    range.to = end_of(node.at("to"), range.whole);
    if (range.to <= range.from)
      node.at("to").fail(fmt::format("expected more than 'from', {}, found {}", range.from,
                                     node.at("to").shown()));
    if (node.has("scale")) {
      const std::string scale = node.at("scale").text();
      if (scale != "linear" && scale != "log2")
        node.at("scale").fail("expected linear or log2, found " + node.at("scale").shown());
      range.log2 = scale == "log2";
    }
    if (range.log2 && range.from <= 0)
      node.at("from").fail("expected more than 0 on a scale of logarithms, found " +
                           node.at("from").shown());
    read_steps(node, drawn, range);
    return values_of(node, drawn, range);
  }

  static void read_steps(const SpecNode& node, bool drawn, SweepRange& range) {
    if (node.has("step")) {
      const SpecNode step = node.at("step");
      if (range.log2) step.fail("a scale of logarithms has a 'count' in place of a step");
      range.step = end_of(step, range.whole);
      if (range.step <= 0) step.fail("expected more than 0, found " + step.shown());
    }
    if (node.has("count")) {
      const SpecNode count = node.at("count");
      if (drawn) count.fail("numbers are drawn between the ends: the draw has the count");
      if (range.step > 0) count.fail("the range has a 'step': leave one of them out");
      range.count = count.whole(2, static_cast<int64_t>(SweepSpec::kMostPoints));
      if (range.whole && static_cast<double>(range.count) > range.to - range.from + 1)
        count.fail(fmt::format("there are {} whole numbers from {} to {}, fewer than the count",
                               range.to - range.from + 1, range.from, range.to));
    }
    if (range.whole && !range.log2 && range.count == 0 && range.step == 0) range.step = 1;
  }

  /// Numbers of a scale that need a list: powers of two, and what rounding makes equal.
  static SweepValues listed(const SpecNode& node, const SweepRange& range) {
    constexpr int64_t kMostListed = 100'000;
    if (range.count > kMostListed)
      node.at("count").fail(
          fmt::format("expected at most {} whole numbers on a scale of "
                      "logarithms, found {}; give a range with a step",
                      kMostListed, range.count));
    std::vector<double> numbers;
    if (range.count == 0) {
      for (double value = range.from; value <= range.to; value *= 2) numbers.push_back(value);
    } else {
      const SweepValues rounded(range, static_cast<size_t>(range.count));
      for (size_t i = 0; i < rounded.size(); ++i)
        if (const double value = rounded.number(i); numbers.empty() || value > numbers.back())
          numbers.push_back(value);
    }
    const SweepValues texts(range, numbers.size());
    std::vector<std::string> words;
    for (const double number : numbers) words.push_back(texts.text_of(number));
    return {std::move(words), std::move(numbers),
            range.whole ? SweepType::kWhole : SweepType::kNumber};
  }

  static SweepValues values_of(const SpecNode& node, bool drawn, const SweepRange& range) {
    if (!drawn && range.log2 && (range.count == 0 || range.whole)) return listed(node, range);
    const double size = SweepValues::size_of(range);
    if (!drawn && size == 0)
      node.fail("expected a 'step' or a 'count' of numbers, found " + node.shown());
    if (size > SweepSpec::kMostPoints)
      node.fail(
          fmt::format("has {:.3g} values; a sweep has at most {:.3g} points: give a larger "
                      "step, or a 'count'",
                      size, SweepSpec::kMostPoints));
    return {range, static_cast<size_t>(size)};
  }

  void add(SweepColumn column, const SpecNode& node) {
    column.dimension = spec_.dimensions_.size() - 1;
    spec_.columns_.push_back(std::move(column));
    nodes_.push_back(node);
  }

  void add_list(const SpecNode& node, Kind kind) {
    SweepColumn column = make_column(node, kind);
    column.values = read_values(node, column, false, false);
    spec_.dimensions_.push_back({.kind = DrawKind::kList, .size = column.values.size()});
    add(std::move(column), node);
  }

  void add_zip(const SpecNode& zip) {
    zip.require_object("an object with columns");
    if (zip.keys().empty()) zip.fail("expected columns that advance together, found none");
    spec_.dimensions_.push_back({});
    std::string first;
    for (const std::string& key : order_of(zip)) {
      each_column(zip, key, [&](const SpecNode& node, Kind kind) {
        SweepColumn column = make_column(node, kind);
        column.values = read_values(node, column, false, true);
        size_t& size = spec_.dimensions_.back().size;
        if (size == 0) {
          size = column.values.size();
          first = column.name;
        }
        if (size != column.values.size())
          node.fail(fmt::format("has {} values, '{}' has {}: columns of a zip have as many",
                                column.values.size(), shown_name(first), size));
        add(std::move(column), node);
      });
    }
  }

  void add_draw(const SpecNode& draw) {
    draw.reject_unknown({"count", "seed", "method", "columns"});
    for (const char* needed : {"count", "seed", "columns"})
      if (!draw.has(needed))
        draw.at_missing(needed).fail(
            needed == std::string_view("columns")
                ? "is missing: an object with lists and ranges to draw from"
                : "is missing: a whole number; the same seed draws the same points");
    SweepDimension dimension{.kind = DrawKind::kRandom};
    if (draw.has("method")) {
      const std::string method = draw.at("method").text();
      if (method != "random" && method != "latin_hypercube")
        draw.at("method").fail("expected random or latin_hypercube, found " +
                               draw.at("method").shown());
      if (method == "latin_hypercube") dimension.kind = DrawKind::kLatinHypercube;
    }
    dimension.size = static_cast<size_t>(
        draw.at("count").whole(1, static_cast<int64_t>(SweepSpec::kMostPoints)));
    const auto seed = static_cast<uint64_t>(draw.at("seed").whole(0, INT64_MAX));
    const SpecNode columns = draw.at("columns");
    columns.require_object("an object with columns");
    if (columns.keys().empty()) columns.fail("expected columns to draw, found none");
    spec_.dimensions_.push_back(dimension);
    for (const std::string& key : order_of(columns)) {
      each_column(columns, key, [&](const SpecNode& node, Kind kind) {
        SweepColumn column = make_column(node, kind);
        column.values = read_values(node, column, true, true);
        // By its name: another column beside it changes no number of this one.
        column.seed = seed ^ hash_of(column.name);
        add(std::move(column), node);
      });
    }
  }

  void set_strides() {
    double all = 1;
    for (const SweepDimension& dimension : spec_.dimensions_)
      all *= static_cast<double>(dimension.size);
    if (all > SweepSpec::kMostPoints)
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: {:.3g} combinations; at most {:.3g}: draw some of them ('draw'), "
                      "or divide the spec",
                      root_.where(), all, SweepSpec::kMostPoints));
    spec_.size_ = static_cast<size_t>(all);
    size_t stride = spec_.size_;
    for (SweepDimension& dimension : spec_.dimensions_) dimension.stride = stride /= dimension.size;
  }

  /// The values to look at: all words, and the ends of a range.
  std::vector<std::pair<std::string, SpecNode>> checked_values(size_t c) const {
    const SweepColumn& column = spec_.columns_[c];
    std::vector<std::pair<std::string, SpecNode>> values;
    if (nodes_[c].json().is_array()) {
      for (size_t i = 0; i < column.values.size(); ++i)
        values.emplace_back(column.values.words()[i], nodes_[c].at(i));
    } else {
      for (const char* end : {"from", "to"}) {
        const double number = nodes_[c].at(end).number();
        values.emplace_back(column.values.type() == SweepType::kWhole
                                ? fmt::format("{}", static_cast<int64_t>(number))
                                : fmt::format("{}", number),
                            nodes_[c].at(end));
      }
    }
    return values;
  }

  size_t column_of(Kind kind) const {
    const auto found = std::find_if(spec_.columns_.begin(), spec_.columns_.end(),
                                    [&](const SweepColumn& c) { return c.kind == kind; });
    return static_cast<size_t>(found - spec_.columns_.begin());
  }

  /// Each value once, so that no point fails by a value that none can use.
  void check_values() {
    const std::string& device = spec_.columns_[column_of(Kind::kGpu)].values.words().front();
    for (size_t c = 0; c < spec_.columns_.size(); ++c) {
      const SweepColumn& column = spec_.columns_[c];
      if (column.kind == Kind::kGpu || column.kind == Kind::kParameter) {
        check_devices(c);
        continue;
      }
      for (const auto& [value, node] : checked_values(c)) {
        at_node(node, [&] {
          if (column.kind == Kind::kModel) {
            load_model_ref(value);
            return;
          }
          Request request;
          set_option(request, *column.option, value);
          if (is_accelerator(device)) check_runs_on_accelerators(request);
        });
      }
    }
  }

  /// The device of the first point, but for the value of column `c`.
  AcceleratorRef device_with(size_t c, const std::string& value, size_t place) const {
    AcceleratorRef device;
    const size_t index = place * spec_.dimensions_[spec_.columns_[c].dimension].stride;
    for (size_t i = 0; i < spec_.columns_.size(); ++i) {
      const SweepColumn& column = spec_.columns_[i];
      const std::string text = i == c ? value : spec_.text_at(column, index);
      if (column.kind == Kind::kGpu) device.spec = text;
      if (column.kind == Kind::kParameter)
        device.options.parameters.emplace_back(column.name, parameter_value(text, column.name));
    }
    return device;
  }

  void check_devices(size_t c) {
    SweepColumn& column = spec_.columns_[c];
    std::set<std::string> timings;
    const auto values = checked_values(c);
    const bool is_listed =
        nodes_[c].json().is_array() && spec_.dimensions_[column.dimension].kind == DrawKind::kList;
    for (size_t i = 0; i < values.size(); ++i) {
      at_node(values[i].second, [&] {
        const AcceleratorRef device = device_with(c, values[i].first, is_listed ? i : 0);
        if (is_accelerator(device.spec)) {
          check_stated_once(device);
          timings.insert(timing_key(device));
          return;
        }
        with_numbers(load_gpu_ref(device.spec), device.options.parameters);
      });
    }
    column.keeps_times = column.kind == Kind::kParameter && is_listed && timings.size() == 1;
  }

  void read_conditions(const SpecNode& where) {
    if (where.json().is_string()) return read_condition(where);
    where.require_list("a condition like \"tp * pp <= 8\", or a list of them");
    for (size_t i = 0; i < where.json().size(); ++i) read_condition(where.at(i));
  }

  void read_condition(const SpecNode& node) {
    at_node(node, [&] {
      const Expression expression = Expression::parse_condition(node.text(), "condition");
      SweepSpec::Condition condition;
      condition.expression = expression.bind(
          [&](std::string_view name) -> std::optional<size_t> {
            condition.columns.push_back(numeric_column(std::string(name)));
            return condition.columns.size() - 1;
          },
          "condition");
      spec_.conditions_.push_back(std::move(condition));
    });
  }

  /// The column of a name in a condition, where hyphens are a minus.
  size_t numeric_column(const std::string& name) const {
    std::vector<std::string> names;
    for (size_t c = 0; c < spec_.columns_.size(); ++c) {
      const SweepColumn& column = spec_.columns_[c];
      std::string known = column.name;
      std::replace(known.begin(), known.end(), '-', '_');
      names.push_back(known);
      if (known != name) continue;
      for (const std::string& word : column.values.words())
        if (std::isnan(spec_number(word)))
          throw Error(ErrorKind::kInput,
                      fmt::format("'{}' has the value '{}': a condition compares numbers",
                                  shown_name(name), shown_name(word)));
      return c;
    }
    throw Error(ErrorKind::kInput,
                fmt::format("'{}' is no column of this sweep{}; known: {}", shown_name(name),
                            did_you_mean(name, names), join(names, ", ")));
  }

  SweepSpec& spec_;
  const SpecNode& root_;
  std::vector<SpecNode> nodes_;  ///< by column
};

SweepSpec::SweepSpec(std::string text, std::string where) {
  const SpecNode root(std::move(text), std::move(where));
  SweepSpecReader(*this, root).read();
}

}  // namespace tilecast
