#include "scenario/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "scenario/price_table.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

constexpr const char* kPriceOption = "`price-per-gpu-hour`";

std::optional<double> price_number(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::vector<PriceRow> rows_of_list(const std::string& text) {
  std::vector<PriceRow> rows;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    const auto price =
        equals == std::string::npos ? std::nullopt : price_number(part.substr(equals + 1));
    if (!price)
      throw OptionError(
          fmt::format("{}: expected a number, GPU=NUMBER,..., a file or a price table, found '{}'",
                      kPriceOption, shown_name(part)));
    rows.push_back({{.price_per_gpu_hour = *price, .gpu = part.substr(0, equals)}, kPriceOption});
  }
  return rows;
}

std::vector<PriceRow> rows_of_json(const std::string& content, const std::string& where) {
  const Json json = parse_json(content, where);
  const JsonObject object(json, where);
  std::vector<PriceRow> rows;
  for (const auto& [gpu, price] : json.items()) {
    const double value = object.number(gpu);
    if (value < 0) object.fail(gpu, "expected a price of 0 or more");
    rows.push_back({{.price_per_gpu_hour = value, .gpu = gpu, .table = where}, where});
  }
  return rows;
}

bool is_price_file(const std::string& text) {
  return text.ends_with(".json") || text.ends_with(".csv");
}

std::vector<PriceRow> read_rows(const std::string& text) {
  if (text.find('=') != std::string::npos) return rows_of_list(text);
  if (!is_price_file(text)) return find_price_table(text);
  const std::string content = read_file(text), where = printable(text);
  return text.ends_with(".json") ? rows_of_json(content, where) : parse_price_table(content, where);
}

/// What the rows are from, for messages about all of them.
std::string place_of(const PriceRow& row) {
  return row.price.table.empty() ? kPriceOption
                                 : fmt::format("{} {}", kPriceOption, row.price.table);
}

/// Whether a row is of a cluster with this name.
bool is_cluster_row(const PriceRow& row, const PricedGpu& gpu) {
  return !gpu.name.empty() && normalized_name(gpu.name) == normalized_name(row.price.gpu);
}

/// What a row is of.
struct PriceSubject {
  std::string id;
  bool is_cluster = false;
  bool is_asked = true;  ///< false: a cluster that is not asked for
};

/// GPUs that are asked for come first: they may be those of a device file.
PriceSubject subject_of(const PriceRow& row, const std::vector<PricedGpu>& gpus) {
  for (const PricedGpu& gpu : gpus) {
    if (is_cluster_row(row, gpu)) return {.id = gpu.name, .is_cluster = true};
  }
  for (const PricedGpu& gpu : gpus) {
    if (normalized_name(gpu.gpu) == normalized_name(row.price.gpu)) return {.id = gpu.gpu};
  }
  try {
    return {.id = find_device(row.price.gpu).id};
  } catch (const Error& error) {
    const std::vector<Cluster>& clusters = bundled_clusters();
    const auto cluster = std::find_if(clusters.begin(), clusters.end(),
                                      [&](const Cluster& c) { return is_named(c, row.price.gpu); });
    if (cluster != clusters.end())
      return {.id = cluster->id, .is_cluster = true, .is_asked = false};
    throw Error(error.kind(), fmt::format("{}: {}", row.where, error.what()));
  }
}

/// As the option's one number.
void check_price(const std::string& where, double price) {
  check_number(where, {"price", 0, kMostPricePerGpuHour}, price);
}

/// By row. Throws where two are of the same, whatever their names are, or a price is too high.
std::vector<PriceSubject> subjects_of(const std::vector<PriceRow>& rows,
                                      const std::vector<PricedGpu>& gpus) {
  std::vector<PriceSubject> subjects;
  for (const PriceRow& row : rows) {
    check_price(fmt::format("{}: {}", row.where, shown_name(row.price.gpu)),
                row.price.price_per_gpu_hour);
    const PriceSubject subject = subject_of(row, gpus);
    for (size_t i = 0; i < subjects.size(); ++i) {
      if (subjects[i].is_cluster == subject.is_cluster && subjects[i].id == subject.id)
        throw Error(
            ErrorKind::kInput,
            fmt::format("{}: '{}' is {}, which has a price already, as '{}'", row.where,
                        shown_name(row.price.gpu), subject.id, shown_name(rows[i].price.gpu)));
    }
    subjects.push_back(subject);
  }
  return subjects;
}

}  // namespace

void check_one_currency(const std::vector<GpuPrice>& prices) {
  for (const GpuPrice& price : prices) {
    const GpuPrice& first = prices.front();
    if (price.currency != first.currency)
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: the price of {} is in {}, that of {} in {}; give all in one "
                      "currency",
                      kPriceOption, printable(first.gpu),
                      first.currency.empty() ? "no currency" : first.currency, printable(price.gpu),
                      price.currency.empty() ? "no currency" : price.currency));
  }
}

std::vector<GpuPrice> prices_of(const std::string& text, const std::vector<PricedGpu>& gpus) {
  if (const auto one = price_number(text)) {
    check_price(kPriceOption, *one);
    return std::vector<GpuPrice>(gpus.size(), GpuPrice{.price_per_gpu_hour = *one});
  }
  const std::vector<PriceRow> rows = read_rows(text);
  const std::vector<PriceSubject> subjects = subjects_of(rows, gpus);
  std::vector<std::optional<GpuPrice>> by_gpu(gpus.size()), by_name(gpus.size());
  std::vector<std::string> names;
  for (size_t row = 0; row < rows.size(); ++row) {
    const PriceSubject& subject = subjects[row];
    if (!subject.is_asked) continue;
    names.push_back(subject.id);
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (subject.is_cluster && is_cluster_row(rows[row], gpus[i])) by_name[i] = rows[row].price;
      if (!subject.is_cluster && gpus[i].gpu == subject.id) by_gpu[i] = rows[row].price;
    }
  }
  std::vector<GpuPrice> prices;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const std::optional<GpuPrice>& price = by_name[i] ? by_name[i] : by_gpu[i];
    if (!price)
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: no price of {}; add it, or give one number for all (prices "
                      "are there of: {})",
                      rows.empty() ? printable(text) : place_of(rows.front()),
                      gpus[i].name.empty() ? gpus[i].gpu
                                           : fmt::format("{} ({})", gpus[i].name, gpus[i].gpu),
                      names.empty() ? "none" : join(names, ", ")));
    prices.push_back(*price);
  }
  check_one_currency(prices);
  return prices;
}

std::vector<GpuPrice> gpu_prices(const std::string& text, const std::vector<GpuRef>& gpus) {
  std::vector<PricedGpu> priced;
  for (const GpuRef& gpu : gpus) priced.push_back({gpu.id(), ""});
  return prices_of(text, priced);
}

Request with_gpu_price(const Request& request, const std::string& gpu) {
  Request priced = request;
  if (request.energy.gpu_prices.empty()) return priced;
  const std::string& cluster = request.parallel.cluster;
  const std::string name = cluster.empty() ? "" : find_cluster(cluster).id;
  priced.energy.gpu_price = prices_of(request.energy.gpu_prices, {{gpu, name}}).front();
  priced.energy.price_per_gpu_hour = priced.energy.gpu_price->price_per_gpu_hour;
  return priced;
}

}  // namespace tilecast
