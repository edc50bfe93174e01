// Prices of GPUs: one number, a list, or a file.

#include "plan/prices.h"

#include <fmt/format.h>

#include <cmath>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "devices/registry.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

std::optional<double> number_of(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

struct Entry {
  std::string gpu, where;
  double price = 0;
};

std::vector<Entry> entries_of_list(const std::string& text) {
  std::vector<Entry> entries;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    const auto price =
        equals == std::string::npos ? std::nullopt : number_of(part.substr(equals + 1));
    if (!price)
      throw OptionError(
          fmt::format("`price-per-gpu-hour`: expected a number, GPU=NUMBER,... or a "
                      "file, found '{}'",
                      shown_name(part)));
    entries.push_back({part.substr(0, equals), "`price-per-gpu-hour`", *price});
  }
  return entries;
}

std::vector<Entry> entries_of_json(const std::string& content, const std::string& where) {
  const Json json = parse_json(content, where);
  const JsonObject object(json, where);
  std::vector<Entry> entries;
  for (const auto& [gpu, price] : json.items()) {
    const double value = object.number(gpu);
    if (value < 0) object.fail(gpu, "expected a price of 0 or more");
    entries.push_back({gpu, where, value});
  }
  return entries;
}

std::vector<Entry> entries_of_csv(const std::string& content, const std::string& where) {
  const CsvTable table = parse_csv(content, where);
  const size_t gpu = table.require_column("gpu"),
               price = table.require_column("price_per_gpu_hour");
  std::vector<Entry> entries;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const double value = table.number(row, price);
    if (value < 0)
      throw Error(ErrorKind::kInput, fmt::format("{}: expected a price of 0 or more, found {}",
                                                 table.place(row), value));
    entries.push_back({table.rows[row][gpu], table.place(row), value});
  }
  return entries;
}

std::vector<Entry> read_entries(const std::string& text) {
  if (text.find('=') != std::string::npos) return entries_of_list(text);
  const bool json = text.ends_with(".json"), csv = text.ends_with(".csv");
  if (!json && !csv)
    throw OptionError(
        fmt::format("`price-per-gpu-hour`: expected a number of 0 or more, "
                    "GPU=NUMBER,... or a file (.json, .csv), found '{}'",
                    shown_name(text)));
  const std::string content = read_file(text), where = printable(text);
  return json ? entries_of_json(content, where) : entries_of_csv(content, where);
}

}  // namespace

std::vector<double> prices_of(const std::string& text, const std::vector<PricedGpu>& gpus) {
  if (const auto one = number_of(text)) return std::vector<double>(gpus.size(), *one);
  const std::vector<Entry> entries = read_entries(text);
  std::vector<std::optional<double>> by_gpu(gpus.size()), by_name(gpus.size());
  std::string names;
  const auto add_name = [&](const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  };
  for (const Entry& entry : entries) {
    bool named = false;
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (gpus[i].name.empty() || normalized_name(gpus[i].name) != normalized_name(entry.gpu))
        continue;
      by_name[i] = entry.price;
      if (!named) add_name(gpus[i].name);
      named = true;
    }
    if (named) continue;
    std::string id;
    try {
      id = find_device(entry.gpu).id;
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", entry.where, error.what()));
    }
    add_name(id);
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (gpus[i].gpu == id) by_gpu[i] = entry.price;
    }
  }
  std::vector<double> prices;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const std::optional<double>& price = by_name[i] ? by_name[i] : by_gpu[i];
    if (!price)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no price of {}; add it, or give one number for all (prices "
                              "are there of: {})",
                              entries.empty() ? printable(text) : "`price-per-gpu-hour`",
                              gpus[i].name.empty() ? gpus[i].gpu : gpus[i].name,
                              names.empty() ? "none" : names));
    prices.push_back(*price);
  }
  return prices;
}

std::vector<double> gpu_prices(const std::string& text, const std::vector<GpuRef>& gpus) {
  std::vector<PricedGpu> priced;
  for (const GpuRef& gpu : gpus) priced.push_back({gpu.id(), ""});
  return prices_of(text, priced);
}

}  // namespace tilecast
