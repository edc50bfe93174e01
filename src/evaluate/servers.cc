// Forecasts against measured servers under load: each row is asked as a user would ask it.

#include "evaluate/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "evaluate/errors.h"
#include "evaluate/server_settings.h"
#include "evaluate/tables.h"
#include "measurements/served_rows.h"
#include "measurements/xz.h"
#include "scenario/intervals.h"
#include "scenario/scenario.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

using Metrics = ServerMetrics;
using Serving = GenerationForecast::Serving;

/// A model or a device by a name of the table, or why there is none.
template <typename T>
using LoadedOrError = std::variant<T, std::string>;

template <typename T, typename Load>
std::map<std::string, LoadedOrError<T>> load_each(const std::vector<ServedRow>& rows,
                                                  std::string ServedRow::* name, const Load& load) {
  std::map<std::string, LoadedOrError<T>> loaded;
  for (const ServedRow& row : rows) {
    if (loaded.contains(row.*name)) continue;
    try {
      loaded.emplace(row.*name, load(row.*name));
    } catch (const Error& error) {
      loaded.emplace(row.*name, std::string(error.what()));
    }
  }
  return loaded;
}

const Interval& of_row(const ServedRow& row, const Distribution& distribution) {
  return row.medians ? distribution.median : distribution.mean;
}

/// Whether the table's throughput is what its means and a closed loop imply, not a count of
/// tokens: a count is lower by 1.6 to 3.1 %, since fewer clients are left at the end of a run.
bool is_derived(const ServedRow& row) {
  constexpr double kRounding = 1e-3;
  if (row.medians || !row.ttft_s || !row.tpot_s || !row.output) return false;
  const double implied =
      closed_loop_tokens_per_s(row.clients, row.output->mean(), *row.ttft_s, *row.tpot_s) /
      static_cast<double>(row.gpus);
  return std::abs(*row.output_tokens_per_s_per_gpu / implied - 1) < kRounding;
}

/// Throughput of one GPU in the way in which the row's was found.
Interval tokens_per_s_per_gpu(const ServedRow& row, const Metrics& metrics) {
  const auto gpus = static_cast<double>(row.gpus);
  if (is_derived(row)) {
    const auto rate = [&](double Interval::* end) {
      return closed_loop_tokens_per_s(row.clients, row.output->mean(), metrics.ttft.mean.*end,
                                      metrics.tpot.mean.*end) /
             gpus;
    };
    return {rate(&Interval::value), rate(&Interval::high), rate(&Interval::low)};
  }
  // Clients wait for their answers: the rate is inverse to the time of a request.
  const double rate = metrics.output_tokens_per_s / gpus;
  const Interval& time = metrics.e2e.mean;
  return {rate, rate * time.value / time.high, rate * time.value / time.low};
}

std::string tokens_text(const std::vector<GivenOption>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const GivenOption& option) { return option.name == name; });
  return found == options.end() ? "" : found->text;
}

/// Those that are no fields of a point.
std::string options_text(const std::vector<GivenOption>& options) {
  static const std::set<std::string> kFields = {"software",    "tp",     "dp",     "ep",
                                                "concurrency", "prompt", "output", "dtype"};
  std::vector<std::string> words;
  for (const GivenOption& option : options)
    if (!kFields.contains(option.name))
      words.push_back(fmt::format("{}={}", option.name, option.text));
  return join(words, " ");
}

/// Energy of a token is watts over tokens a second.
void add_power(ServerPoint& point, const ServedRow& row, const Metrics& metrics,
               const PowerForecast& power) {
  point.power_measured_w = row.power_w;
  point.power_w = power.power_w;
  const double rate = metrics.output_tokens_per_s / static_cast<double>(row.gpus);
  point.energy_per_token_j = scaled(power.power_w, 1 / rate);
  if (!row.output_tokens_per_s_per_gpu) return;
  const double measured_rate = *row.output_tokens_per_s_per_gpu;
  point.energy_per_token_measured_j = *row.power_w / measured_rate;
  point.energy_per_token_at_measured_rate_j = scaled(power.power_w, 1 / measured_rate);
}

ServerPoint point_of(const ServedRow& row, const std::vector<GivenOption>& options,
                     const GenerationForecast& forecast) {
  const Serving& serving = *forecast.serving;
  const Metrics& metrics = row.steady ? serving.steady_or_all() : serving.all;
  ServerPoint point{.line = static_cast<int64_t>(row.line),
                    .software = row.software,
                    .version = row.version,
                    .model = row.model,
                    .gpu = forecast.gpu,
                    .dtype = row.dtype,
                    .gpus = row.gpus,
                    .tp = row.tp,
                    .dp = row.dp,
                    .ep = row.ep,
                    .clients = row.clients,
                    .prompt = tokens_text(options, "prompt"),
                    .output = tokens_text(options, "output"),
                    .statistic = row.medians ? "median" : "",
                    .tpot_measured_s = row.tpot_s,
                    .itl_measured_s = row.itl_s,
                    .ttft_measured_s = row.ttft_s,
                    .tokens_per_s_per_gpu_measured = row.output_tokens_per_s_per_gpu,
                    .ttft_use = row.ttft_use,
                    .options = options_text(options)};
  if (row.tpot_s) point.tpot_s = of_row(row, metrics.tpot);
  if (row.itl_s && serving.itl) point.itl_s = of_row(row, *serving.itl);
  if (row.ttft_s) point.ttft_s = of_row(row, metrics.ttft);
  if (row.output_tokens_per_s_per_gpu)
    point.tokens_per_s_per_gpu = tokens_per_s_per_gpu(row, metrics);
  if (row.power_w && forecast.power) add_power(point, row, metrics, *forecast.power);
  return point;
}

class ServerEvaluator {
 public:
  ServerEvaluator(const Forecaster& forecaster, ServerSettings settings,
                  const std::vector<ServedRow>& rows)
      : forecaster_(forecaster), settings_(std::move(settings)), rows_(rows) {
    models_ = load_each<ModelRef>(
        rows, &ServedRow::model, [&](const std::string& name) { return settings_.model_of(name); });
    gpus_ = load_each<DeviceRef>(rows, &ServedRow::gpu, [](const std::string& name) {
      return DeviceRef{load_gpu_ref(name)};
    });
  }

  ServerEvaluation run(int threads) {
    std::vector<LoadedOrError<ServerPoint>> points(rows_.size());
    run_all(rows_.size(), threads, [&](size_t i) { points[i] = row(rows_[i]); });
    ServerEvaluation result;
    std::map<std::string, int> unmatched;
    for (auto& point : points) {
      if (const std::string* reason = std::get_if<std::string>(&point))
        ++unmatched[printable(*reason)];
      else
        result.points.push_back(std::move(std::get<ServerPoint>(point)));
    }
    result.unmatched = unmatched_reasons(unmatched);
    return result;
  }

 private:
  LoadedOrError<ServerPoint> row(const ServedRow& row) const {
    if (std::string skipped = settings_.why_skipped(row); !skipped.empty()) return skipped;
    const auto& model = models_.at(row.model);
    const auto& gpu = gpus_.at(row.gpu);
    if (const auto* reason = std::get_if<std::string>(&model)) return *reason;
    if (const auto* reason = std::get_if<std::string>(&gpu)) return *reason;
    const std::vector<GivenOption> options = settings_.options_of(row);
    for (const char* length : {"prompt", "output"}) {
      if (tokens_text(options, length).empty())
        return fmt::format("the length of the {} is not recorded: a rule may assume one", length);
    }
    try {
      const Result result = answer({.forecaster = forecaster_,
                                    .model = std::get<ModelRef>(model),
                                    .device = std::get<DeviceRef>(gpu),
                                    .request = make_request(options),
                                    .detail = Detail::kNumbers});
      const auto& forecast = std::get<GenerationForecast>(result);
      if (!forecast.serving)
        return fmt::format("{} in {} on {} x {}: does not fit", row.model, row.dtype, row.gpus,
                           row.gpu);
      return point_of(row, options, forecast);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      return fmt::format("{} on {}: {}", row.model, row.gpu, error.what());
    }
  }

  const Forecaster& forecaster_;
  const ServerSettings settings_;
  const std::vector<ServedRow>& rows_;
  std::map<std::string, LoadedOrError<ModelRef>> models_;
  std::map<std::string, LoadedOrError<DeviceRef>> gpus_;
};

/// A figure of a point; nullopt where it is not measured or does not count.
struct ServerMetric {
  const char* name;
  std::optional<ErrorSample> (*sample)(const ServerPoint&);
};

std::optional<ErrorSample> sample_of(const std::optional<double>& measured,
                                     const std::optional<Interval>& forecast) {
  if (!measured || !forecast) return std::nullopt;
  return ErrorSample{*measured, forecast->value, forecast->low, forecast->high};
}

constexpr ServerMetric kMetrics[] = {
    {"tpot", [](const ServerPoint& p) { return sample_of(p.tpot_measured_s, p.tpot_s); }},
    {"itl", [](const ServerPoint& p) { return sample_of(p.itl_measured_s, p.itl_s); }},
    {"ttft",
     [](const ServerPoint& p) {
       return p.ttft_counts() ? sample_of(p.ttft_measured_s, p.ttft_s) : std::nullopt;
     }},
    {"tokens_per_s_per_gpu",
     [](const ServerPoint& p) {
       return sample_of(p.tokens_per_s_per_gpu_measured, p.tokens_per_s_per_gpu);
     }},
    {"power", [](const ServerPoint& p) { return sample_of(p.power_measured_w, p.power_w); }},
    {"energy_per_token",
     [](const ServerPoint& p) {
       return sample_of(p.energy_per_token_measured_j, p.energy_per_token_j);
     }},
    {"energy_per_token_at_measured_rate",
     [](const ServerPoint& p) {
       return sample_of(p.energy_per_token_measured_j, p.energy_per_token_at_measured_rate_j);
     }},
};

/// Software, model, GPU and dtype of a group; "": all.
using GroupKey = std::tuple<std::string, std::string, std::string, std::string>;

void add_groups(std::vector<ServerErrors>& errors, const std::vector<ServerPoint>& points,
                GroupKey (*key_of)(const ServerPoint&)) {
  std::map<GroupKey, std::vector<const ServerPoint*>> groups;
  for (const ServerPoint& point : points) groups[key_of(point)].push_back(&point);
  for (const auto& [key, members] : groups) {
    for (const ServerMetric& metric : kMetrics) {
      std::vector<ErrorSample> samples;
      for (const ServerPoint* point : members)
        if (const auto sample = metric.sample(*point)) samples.push_back(*sample);
      if (samples.empty()) continue;
      const auto& [software, model, gpu, dtype] = key;
      errors.push_back({.metric = metric.name,
                        .software = software,
                        .model = model,
                        .gpu = gpu,
                        .dtype = dtype});
      set_errors(errors.back(), samples);
      errors.back().kendall_tau = kendall_tau(samples);
    }
  }
}

}  // namespace

std::vector<ServerErrors> server_errors(const std::vector<ServerPoint>& points) {
  std::vector<ServerErrors> errors;
  add_groups(errors, points, [](const ServerPoint&) { return GroupKey{}; });
  add_groups(errors, points, [](const ServerPoint& p) { return GroupKey{p.software, "", "", ""}; });
  add_groups(errors, points, [](const ServerPoint& p) { return GroupKey{"", "", p.gpu, ""}; });
  add_groups(errors, points,
             [](const ServerPoint& p) { return GroupKey{p.software, p.model, p.gpu, p.dtype}; });
  return errors;
}

bool is_server_table(const std::string& path) {
  const std::optional<CsvTable> header = table_header(path);
  return header && is_served_table(*header);
}

ServerEvaluation evaluate_servers(const Forecaster& forecaster, const std::string& path,
                                  const std::string& settings, int threads) {
  const CsvTable table = parse_csv(read_measurement_text(path), printable(path));
  const std::vector<ServedRow> rows = read_served_rows(table);
  ServerEvaluation result =
      ServerEvaluator(forecaster,
                      settings.empty() ? ServerSettings{} : ServerSettings::read(settings), rows)
          .run(threads);
  result.file = printable(std::filesystem::path(path).filename().string());
  if (result.points.empty()) refuse_unmatched(path, result.unmatched);
  result.errors = server_errors(result.points);
  return result;
}

}  // namespace tilecast
