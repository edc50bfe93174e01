// Reads the file of a sweep.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/text.h"
#include "devices/device_numbers.h"
#include "many/read_sweep_values.h"
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

/// FNV-1a (Fowler, Noll, Vo): the same on every platform, which std::hash does not promise.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
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
    spec_.hash_ = hash_of(root_.json().dump(-1, ' ', false, Json::error_handler_t::replace));
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

  void add(SweepColumn column, const SpecNode& node) {
    column.dimension = spec_.dimensions_.size() - 1;
    spec_.columns_.push_back(std::move(column));
    nodes_.push_back(node);
  }

  void add_list(const SpecNode& node, Kind kind) {
    SweepColumn column = make_column(node, kind);
    column.values = read_sweep_values(node, column, ValuesOf::kList);
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
        column.values = read_sweep_values(node, column, ValuesOf::kZip);
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
        column.values = read_sweep_values(node, column, ValuesOf::kDraw);
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
      root_.fail(
          fmt::format("{:.3g} combinations; at most {:.3g}: draw some of them ('draw'), or "
                      "divide the spec",
                      all, SweepSpec::kMostPoints));
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

  /// Each value once, so that no point fails by a value that none can use. What is wrong with a
  /// device by itself is told of it, what is wrong with a number of it of the number.
  void check_values() {
    const std::string& device = spec_.columns_[column_of(Kind::kGpu)].values.words().front();
    check_all(Kind::kGpu, [](const std::string& gpu) {
      if (!is_accelerator(gpu)) load_gpu_ref(gpu);
    });
    check_all(Kind::kModel, [](const std::string& model) { load_model_ref(model); });
    for (const Kind kind : {Kind::kParameter, Kind::kGpu})
      for (size_t c = 0; c < spec_.columns_.size(); ++c)
        if (spec_.columns_[c].kind == kind) check_devices(c);
    for (size_t c = 0; c < spec_.columns_.size(); ++c) {
      if (spec_.columns_[c].kind != Kind::kOption) continue;
      for (const auto& [value, node] : checked_values(c)) {
        at_node(node, [&] {
          Request request;
          set_option(request, *spec_.columns_[c].option, value);
          if (is_accelerator(device)) check_runs_on_accelerators(request);
        });
      }
    }
  }

  template <typename Check>
  void check_all(Kind kind, const Check& check) const {
    for (const auto& [value, node] : checked_values(column_of(kind)))
      at_node(node, [&] { check(value); });
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
        if (std::isnan(number_of_word(word)))
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
