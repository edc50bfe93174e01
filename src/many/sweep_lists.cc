#include "many/sweep_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/csv.h"
#include "base/number.h"
#include "base/text.h"
#include "request/access.h"
#include "scenario/accelerator/accelerator_scenario.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Kind = JobColumn::Kind;

constexpr double kMostCombinations = 1e7;

std::string as_text(const Json& value, const JsonObject& file, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  file.fail(key, "expected a list of texts or numbers");
}

/// Equal for numbers that are written in two ways: 16, "16", "1.6e1".
std::string compared(const std::string& text, Kind kind) {
  if (kind == Kind::kModel || kind == Kind::kGpu) return text;
  const std::optional<double> value = parse_number<double>(text);
  return value ? fmt::format("{}", *value) : text;
}

SweepAxis read_axis(const JsonObject& file, const std::string& key, Kind kind) {
  SweepAxis axis{.kind = kind, .name = key, .values = {}};
  const Json& list = file.json()[key];
  if (!list.is_array() || list.empty()) file.fail(key, "expected a list of at least one value");
  std::set<std::string> seen;
  for (const Json& value : list) {
    axis.values.push_back(as_text(value, file, key));
    if (!seen.insert(compared(axis.values.back(), kind)).second)
      file.fail(key, fmt::format("lists '{}' twice", shown_name(axis.values.back())));
  }
  return axis;
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

/// The option of that name, of any kind of request, as the command line writes it (kv-dtype) or as
/// JSON and Python do (kv_dtype); nullptr: there is none.
const OptionDef* option_named(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const auto& options = request_options();
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const OptionDef& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

}  // namespace

SweepLists::SweepLists(const JsonObject& file) {
  for (const char* needed : {"model", "gpu"})
    if (!file.has(needed))
      file.fail(needed, needed == std::string_view("model") ? "is missing: a list of models"
                        : file.has("cluster")
                            ? "is missing: a list of devices, also beside 'cluster': the GPUs of "
                              "its nodes ('tilecast clusters')"
                            : "is missing: a list of devices");
  axes_.push_back(read_axis(file, "model", Kind::kModel));
  axes_.push_back(read_axis(file, "gpu", Kind::kGpu));
  for (const auto& item : file.json().items()) {
    if (item.key() == "model" || item.key() == "gpu") continue;
    if (item.key() == "parameters") {
      const JsonObject parameters = file.object("parameters");
      for (const auto& parameter : parameters.json().items())
        axes_.push_back(read_axis(parameters, parameter.key(), Kind::kParameter));
    } else if (const OptionDef* option = option_named(item.key())) {
      for (const SweepAxis& axis : axes_)
        if (axis.kind == Kind::kOption && option_named(axis.name) == option)
          file.fail(item.key(), fmt::format("is the option {} once more", axis.name));
      axes_.push_back(read_axis(file, item.key(), Kind::kOption));
    } else {
      file.fail(item.key(),
                "expected model, gpu, parameters, or an option of a forecast; a "
                "dataflow is stated with the device: \"systolic-array:dataflow=…\"");
    }
  }
  double all = 1;
  for (const SweepAxis& axis : axes_) all *= static_cast<double>(axis.values.size());
  if (all > kMostCombinations)
    throw Error(ErrorKind::kInput, fmt::format("{}: {:.3g} combinations; at most {:.3g}",
                                               file.where(), all, kMostCombinations));
  size_ = static_cast<size_t>(all);
  size_t stride = size_;
  for (const SweepAxis& axis : axes_) strides_.push_back(stride /= axis.values.size());
  check_values();
}

size_t SweepLists::index_at(size_t place) const {
  size_t index = 0;
  for (const bool keeps : {true, false}) {
    for (size_t a = axes_.size(); a-- > 0;) {
      if (axes_[a].keeps_times != keeps) continue;
      index += place % axes_[a].values.size() * strides_[a];
      place /= axes_[a].values.size();
    }
  }
  return index;
}

std::vector<JobColumn> SweepLists::columns() const {
  std::vector<JobColumn> columns;
  for (size_t a = 0; a < axes_.size(); ++a)
    columns.push_back(
        {.kind = axes_[a].kind,
         .name = axes_[a].kind == Kind::kOption ? option_named(axes_[a].name)->name : axes_[a].name,
         .words = &axes_[a].values,
         .code = [this, a](size_t index) { return static_cast<int32_t>(value_at(a, index)); }});
  return columns;
}

std::string SweepLists::cells(size_t index) const {
  std::string cells;
  for (size_t a = 0; a < axes_.size(); ++a)
    cells += csv_cell(axes_[a].values[value_at(a, index)]) + ",";
  return cells;
}

AcceleratorRef SweepLists::accelerator_at(size_t index) const {
  AcceleratorRef device;
  for (size_t a = 0; a < axes_.size(); ++a) {
    const std::string& value = axes_[a].values[value_at(a, index)];
    if (axes_[a].kind == Kind::kGpu) device.spec = value;
    if (axes_[a].kind == Kind::kParameter)
      device.options.parameters.emplace_back(axes_[a].name, parameter_value(value, axes_[a].name));
  }
  return device;
}

/// Each value once, so that no combination fails by a value that none can use.
void SweepLists::check_values() {
  for (size_t a = 0; a < axes_.size(); ++a) {
    SweepAxis& axis = axes_[a];
    if (axis.kind == Kind::kGpu || axis.kind == Kind::kParameter) {
      check_device(axis, strides_[a]);
      continue;
    }
    for (const std::string& value : axis.values) {
      if (axis.kind == Kind::kModel) {
        load_model_ref(value);
        continue;
      }
      Request request;
      set_option(request, *option_named(axis.name), value);
      if (is_accelerator(axes_[1].values.front())) check_runs_on_accelerators(request);
    }
  }
}

void SweepLists::check_device(SweepAxis& axis, size_t axis_stride) const {
  std::set<std::string> timings;
  for (size_t i = 0; i < axis.values.size(); ++i) {
    const AcceleratorRef device = accelerator_at(i * axis_stride);
    if (is_accelerator(device.spec)) {
      check_stated_once(device);
      timings.insert(timing_key(device));
      continue;
    }
    load_gpu_ref(device.spec);
    if (!device.options.parameters.empty())
      throw Error(ErrorKind::kInput,
                  fmt::format("'parameters' are of accelerators, and '{}' is a GPU: sweep it in a "
                              "file of its own",
                              shown_name(device.spec)));
  }
  axis.keeps_times = axis.kind == Kind::kParameter && timings.size() == 1;
}

}  // namespace tilecast
