// Two forecasts side by side. Both are read from their JSON, so that a forecast of today and a file
// of an earlier one are the same.

#include "many/two_forecasts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

constexpr const char* kNeeded[] = {"model", "gpu", "latency_s", "kernels", "memory", "options"};

/// A number of a JSON object; nullopt: null or missing.
std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// The seconds of an estimate: {"seconds": 0.1, …}.
std::optional<double> seconds_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return std::nullopt;
  return number_of(*found, "seconds");
}

std::string text_of(const Json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? "" : text_of(*found);
}

/// Replaces the numbers of a request on an idle server by those under load: of the steady part, or
/// of the whole run where there is none.
void set_load(ComparedForecast& side, const Json& serving) {
  const auto part_of = [&](const char* name) -> const Json* {
    const auto found = serving.find(name);
    return found != serving.end() && found->is_object() ? &*found : nullptr;
  };
  const Json* const steady = part_of("steady");
  const Json* const part = steady != nullptr ? steady : part_of("all");
  if (part == nullptr) return;
  const auto p99_of = [&](const char* name) -> std::optional<double> {
    const auto found = part->find(name);
    return found != part->end() && found->is_object() ? seconds_of(*found, "p99") : std::nullopt;
  };
  side.ttft_s = p99_of("time_to_first_token");
  side.tpot_s = p99_of("time_per_output_token");
  side.tokens_per_s = number_of(*part, "output_tokens_per_s");
}

ComparedForecast summary_of(const Json& forecast, const std::string& name) {
  const Json& memory = forecast["memory"];
  ComparedForecast side{.name = name,
                        .model = text_at(forecast, "model"),
                        .gpu = text_at(forecast, "gpu"),
                        .dtype = text_at(forecast, "dtype")};
  side.latency_s.value = number_of(forecast, "latency_s").value_or(0);
  side.latency_s.low = number_of(forecast, "latency_low_s").value_or(side.latency_s.value);
  side.latency_s.high = number_of(forecast, "latency_high_s").value_or(side.latency_s.value);
  side.ttft_s = seconds_of(forecast, "time_to_first_token");
  side.tpot_s = seconds_of(forecast, "time_per_output_token");
  side.tokens_per_s = number_of(forecast, "tokens_per_s");
  if (const auto serving = forecast.find("serving");
      serving != forecast.end() && serving->is_object())
    set_load(side, *serving);
  side.peak_bytes = std::llround(number_of(memory, "peak_bytes").value_or(0));
  const auto fits = memory.find("fits");
  side.fits = fits == memory.end() || !fits->is_boolean() || fits->get<bool>();
  return side;
}

using KernelSums = std::map<std::pair<std::string, std::string>, KernelDifference>;

void add_kernels(KernelSums& sums, const Json& kernels,
                 std::optional<double> KernelDifference::* seconds,
                 int64_t KernelDifference::* count) {
  for (const Json& kernel : kernels) {
    if (!kernel.is_object()) continue;
    const std::string phase = text_at(kernel, "phase"), name = text_at(kernel, "name");
    KernelDifference& sum = sums[{phase, name.substr(repeated_prefix(name))}];
    const double times = number_of(kernel, "count").value_or(1);
    if (sum.op.empty()) sum.op = text_at(kernel, "op");
    sum.*seconds = (sum.*seconds).value_or(0) + times * number_of(kernel, "latency_s").value_or(0);
    sum.*count += std::llround(times);
  }
}

std::vector<KernelDifference> kernel_differences(const Json& a, const Json& b) {
  KernelSums sums;
  add_kernels(sums, a["kernels"], &KernelDifference::a_s, &KernelDifference::a_count);
  add_kernels(sums, b["kernels"], &KernelDifference::b_s, &KernelDifference::b_count);
  std::vector<KernelDifference> rows;
  for (auto& [key, row] : sums) {
    std::tie(row.phase, row.name) = key;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.difference_s()) > std::abs(y.difference_s());
  });
  return rows;
}

/// What the peak holds; forecasts of text generation have its parts beside the peak.
std::vector<std::pair<std::string, double>> memory_parts(const Json& memory) {
  std::vector<std::pair<std::string, double>> parts;
  const auto add = [&](const Json& object, const char* name) {
    if (const auto bytes = number_of(object, (std::string(name) + "_bytes").c_str()))
      parts.emplace_back(name, *bytes);
  };
  const auto at_peak = memory.find("at_peak");
  const Json& held = at_peak != memory.end() && at_peak->is_object() ? *at_peak : memory;
  for (const char* name : {"weights", "optimizer", "inputs", "cache", "gradients", "activations",
                           "temporaries", "loss"})
    add(held, name);
  for (const char* name : {"workspace", "framework"}) add(memory, name);
  return parts;
}

std::vector<MemoryDifference> memory_differences(const Json& a, const Json& b) {
  std::vector<MemoryDifference> rows;
  const auto row_of = [&](const std::string& name) -> MemoryDifference& {
    const auto known =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
    return known != rows.end() ? *known : rows.emplace_back(MemoryDifference{.name = name});
  };
  for (const auto& [name, bytes] : memory_parts(a["memory"]))
    row_of(name).a_bytes = std::llround(bytes);
  for (const auto& [name, bytes] : memory_parts(b["memory"]))
    row_of(name).b_bytes = std::llround(bytes);
  std::erase_if(rows, [](const auto& row) { return row.a_bytes == 0 && row.b_bytes == 0; });
  return rows;
}

std::vector<OptionDifference> option_differences(const Json& a, const Json& b) {
  std::map<std::string, OptionDifference> all;
  for (const auto& item : a["options"].items()) all[item.key()].a = text_of(item.value());
  for (const auto& item : b["options"].items()) all[item.key()].b = text_of(item.value());
  std::vector<OptionDifference> rows;
  for (auto& [option, row] : all) {
    row.option = printable(option);
    if (row.a != row.b) rows.push_back(std::move(row));
  }
  return rows;
}

Json read_forecast(const NamedForecast& forecast) {
  Json json = parse_json(forecast.json, forecast.name);
  const JsonObject object(json, forecast.name);
  for (const char* key : kNeeded) {
    if (!object.has(key))
      object.fail(key,
                  "is missing: expected a forecast of a model on a GPU, as --format json "
                  "writes it");
  }
  object.object("memory");
  object.object("options");
  if (!json["kernels"].is_array()) object.fail("kernels", "expected a list");
  return json;
}

}  // namespace

bool is_forecast(const Json& json) {
  return json.is_object() && std::all_of(std::begin(kNeeded), std::end(kNeeded),
                                         [&](const char* key) { return json.contains(key); });
}

Comparison compare_forecasts(const NamedForecast& first, const NamedForecast& second) {
  const Json a = read_forecast(first), b = read_forecast(second);
  return {.a = summary_of(a, first.name),
          .b = summary_of(b, second.name),
          .options = option_differences(a, b),
          .kernels = kernel_differences(a, b),
          .memory = memory_differences(a, b)};
}

}  // namespace tilecast
