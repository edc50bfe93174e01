// Which job goes where: jobs of a file on a pool of GPUs, now or as they arrive.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "command/job_source.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "many/pool_speeds.h"
#include "scenario/prices.h"
#include "tilecast/allocate.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct AllocateQuestion {
  std::string jobs, arrivals, prices;
  std::vector<std::string> hosts;
  std::vector<std::string> pool;
  AllocationObjective objective = AllocationObjective::kThroughput;
  bool share = false, whole = false;
  ShareHow how = ShareHow::kTimeSlice;
  int64_t threads = 0;
  ForecasterSource forecaster;
};

template <typename Choice>
CommandOption choice_option(const std::string& name, const std::string& help, SetValue set,
                            size_t count) {
  constexpr auto kWords = choice_words(Choice{});
  return {.names = name,
          .default_value = std::string(kWords.front()),
          .help = help,
          .choices = {kWords.begin(), kWords.begin() + static_cast<std::ptrdiff_t>(count)},
          .set = set};
}

std::vector<OptionGroup> allocate_groups() {
  using Asked = AllocateQuestion;
  constexpr int64_t kMostThreads = 1024;
  constexpr size_t kObjectives = 7, kWaysToShare = 3;  // without slices
  CommandOption pool = list_option("pool", "",
                                   "GPUs of each kind; also clusters, whose links "
                                   "jobs of several GPUs use: 8xH100,32xL4,2xdgx-a100",
                                   into<&Asked::pool>(), ValueType::kText);
  pool.required = true;
  pool.value = "NxGPU,NxGPU";
  std::vector<OptionGroup> groups = {
      {"Options",
       {{.names = "JOBS",
         .help = "{\"jobs\": [{\"model\": \"resnet-50\", \"mode\": \"training\", \"batch\": 64, "
                 "\"steps\": 5000}]}: options of a forecast, and name, steps, deadline_s, weight, "
                 "gpus ([1, 2, 4]), dtypes ([\"bf16\", \"fp32\"]), steps_per_s (measured: "
                 "{\"L4\": 3.2}), loader_s",
         .kind = ValueKind::kFile,
         .required = true,
         .set = into<&Asked::jobs>()},
        pool,
        choice_option<AllocationObjective>(
            "--objective",
            "sum of speeds relative to the fastest place; time until the last job ends; the least "
            "speed, or the longest time, relative to an equal share of the pool; cost of all "
            "steps, deadlines first; most deadlines met; energy of all steps, deadlines first",
            into<&Asked::objective>(), kObjectives),
        switch_option("share", "two jobs may share a GPU", into<&Asked::share>()),
        choice_option<ShareHow>("--how", "they share it, as in 'tilecast share'",
                                into<&Asked::how>(), kWaysToShare),
        switch_option("whole", "each job has one place for itself, not in turns with others",
                      into<&Asked::whole>()),
        {.names = "--arrivals",
         .value = "FILE",
         .help = "CSV with columns job (a name of JOBS), arrival_s, and steps, deadline_s (from "
                 "the arrival), weight where they differ from that job: the pool over time",
         .kind = ValueKind::kFile,
         .set = into<&Asked::arrivals>()},
        {.names = "--price-per-gpu-hour",
         .value = "PRICE|TABLE",
         .help = "a number, a list (H100=2.5,dgx-a100=1.2), a file (.json, .csv), or a price table "
                 "that comes with Tilecast (aws-on-demand)",
         .set = into<&Asked::prices>()},
        list_option(
            "host-factor", "1",
            "how many times as long as jobs state (loader_s, host_launch_us) the hosts of a "
            "kind take: P100=2.3,K80=2.3",
            into<&Asked::hosts>(), ValueType::kText),
        whole_option("--threads", "all cores", "forecasts that run at once",
                     into<&Asked::threads>(), 1, kMostThreads)}}};
  const std::vector<CommandOption> last = forecaster_options<Asked>();
  groups.front().options.insert(groups.front().options.end(), last.begin(), last.end());
  return groups;
}

/// "8xH100", "H100", "2xdgx-h100".
PoolKind pool_kind(const std::string& text) {
  const size_t times = text.find('x');
  const std::optional<int64_t> count =
      times == std::string::npos ? std::nullopt : parse_number<int64_t>(text.substr(0, times));
  const std::string name = count ? text.substr(times + 1) : text;
  PoolKind kind{.gpu = {}, .cluster = "", .gpus = count.value_or(1), .price_per_gpu_hour = {}};
  if (count && *count < 0)
    throw OptionError(fmt::format("`pool`: expected 0 or more GPUs, found {}", *count));
  std::optional<Cluster> cluster;
  try {
    kind.gpu = load_gpu_ref(name);
    return kind;
  } catch (const Error& error) {
    try {
      cluster = find_cluster(name);
    } catch (const Error&) {
      throw Error(error.kind(), fmt::format("`pool`: {}; clusters are allowed too ('tilecast "
                                            "clusters' lists them)",
                                            error.what()));
    }
  }
  kind.gpu = load_cluster_gpu_ref(name);
  kind.cluster = cluster->id;
  kind.gpus = count.value_or(cluster->nodes) * cluster->gpus_per_node;
  return kind;
}

/// "P100=2.3".
void set_host(const std::string& text, std::vector<PoolKind>& pool) {
  const size_t equals = text.find('=');
  const std::optional<double> factor =
      equals == std::string::npos ? std::nullopt : parse_number<double>(text.substr(equals + 1));
  if (!factor || !std::isfinite(*factor) || *factor <= 0)
    throw OptionError(
        fmt::format("`host-factor`: expected GPU=NUMBER,... with numbers above 0, "
                    "found '{}'",
                    shown_name(text)));
  const std::string name = text.substr(0, equals);
  bool found = false;
  const auto set_where = [&](const auto& is) {
    for (PoolKind& kind : pool) {
      if (!is(kind)) continue;
      kind.host_factor = *factor;
      found = true;
    }
  };
  set_where([&](const PoolKind& kind) {
    return !kind.cluster.empty() && normalized_name(kind.cluster) == normalized_name(name);
  });
  if (found) return;
  const std::string id = find_device(name).id;
  set_where([&](const PoolKind& kind) { return kind.gpu.id() == id; });
  if (!found) throw OptionError(fmt::format("`host-factor`: the pool has no {}", id));
}

[[noreturn]] void refuse_key(const AskedJob& job, const std::string& key,
                             const std::string& expected) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}: expected {}, found {}", job.where, key,
                                             expected, shown_name(job.further.at(key).dump())));
}

std::optional<double> number_in(const AskedJob& job, const std::string& key) {
  const auto found = job.further.find(key);
  if (found == job.further.end()) return std::nullopt;
  if (found->second.is_number()) return found->second.get<double>();
  if (found->second.is_string())
    if (const auto number = parse_number<double>(found->second.get<std::string>())) return number;
  refuse_key(job, key, "a number");
}

template <typename T, typename Is>
std::vector<T> list_in(const AskedJob& job, const std::string& key, const std::string& expected,
                       Is is) {
  std::vector<T> values;
  const auto found = job.further.find(key);
  if (found == job.further.end()) return values;
  if (!found->second.is_array() || found->second.empty()) refuse_key(job, key, expected);
  for (const Json& value : found->second) {
    if (!is(value)) refuse_key(job, key, expected);
    values.push_back(value.get<T>());
  }
  return values;
}

/// A number is of all kinds, an object has numbers by GPU. `ids`: of the names that were looked up.
void read_speeds(const AskedJob& asked, std::map<std::string, std::string>& ids, PoolJob& job) {
  const std::string key = "steps-per-s";
  const auto found = asked.further.find(key);
  if (found == asked.further.end()) return;
  if (!found->second.is_object()) {
    job.job.bounds.steps_per_s = number_in(asked, key);
    return;
  }
  for (const auto& [gpu, speed] : found->second.items()) {
    if (!speed.is_number()) refuse_key(asked, key, "numbers by GPU");
    try {
      auto id = ids.find(gpu);
      if (id == ids.end()) id = ids.emplace(gpu, find_device(gpu).id).first;
      job.speeds[id->second] = speed.get<double>();
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}: {}", asked.where, key, error.what()));
    }
  }
}

std::vector<PoolJob> pool_jobs(const std::string& file) {
  JobReader reader({"steps", "deadline-s", "weight", "gpus", "dtypes", "steps-per-s"});
  reader.add_file(file);
  std::vector<PoolJob> jobs;
  std::map<std::string, std::string> ids;
  for (AskedJob& asked : reader.take()) {
    PoolJob job{.job = asked.job,
                .weight = number_in(asked, "weight").value_or(1),
                .steps = number_in(asked, "steps"),
                .deadline_s = number_in(asked, "deadline-s"),
                .gpus = list_in<int64_t>(asked, "gpus", "a list of numbers of GPUs, [1, 2, 4]",
                                         [](const Json& value) {
                                           return whole_number(value, 1, kMostGpus).has_value();
                                         }),
                .dtypes = list_in<std::string>(asked, "dtypes", "a list of dtypes, [\"bf16\"]",
                                               [](const Json& value) { return value.is_string(); }),
                .speeds = {}};
    read_speeds(asked, ids, job);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<JobArrival> read_arrivals(const std::string& file) {
  const CsvTable table = parse_csv(read_file(file), printable(file));
  const size_t job = table.require_column("job"), arrival = table.require_column("arrival_s");
  const auto number = [&](size_t row, const char* name) {
    const std::optional<size_t> column = table.column(name);
    return column && !table.rows[row][*column].empty() ? std::optional(table.number(row, *column))
                                                       : std::nullopt;
  };
  std::vector<JobArrival> arrivals;
  for (size_t row = 0; row < table.rows.size(); ++row)
    arrivals.push_back({.job = table.rows[row][job],
                        .arrival_s = table.number(row, arrival),
                        .steps = number(row, "steps"),
                        .deadline_s = number(row, "deadline_s"),
                        .weight = number(row, "weight")});
  return arrivals;
}

Reply answer_allocate(AllocateQuestion&& asked, const Given& given, const Asking&) {
  if (has(given, "how") && !asked.share)
    throw OptionError("`how` needs `share`: without it no two jobs share a GPU");
  AllocationQuery query{
      .jobs = {}, .pool = {}, .objective = asked.objective, .share = {}, .whole = asked.whole};
  if (asked.share) query.share = asked.how;
  std::vector<PricedGpu> gpus;
  for (const std::string& text : asked.pool) {
    query.pool.push_back(pool_kind(text));
    gpus.push_back({query.pool.back().gpu.id(), query.pool.back().cluster});
  }
  if (!asked.prices.empty()) {
    const std::vector<GpuPrice> prices = prices_of(asked.prices, gpus);
    for (size_t i = 0; i < prices.size(); ++i) {
      query.pool[i].price_per_gpu_hour = prices[i].price_per_gpu_hour;
      if (!prices[i].gpu.empty()) query.pool[i].gpu_price = prices[i];
    }
  }
  for (const std::string& text : asked.hosts) set_host(text, query.pool);
  query.jobs = pool_jobs(asked.jobs);
  const ManyOptions options{.threads = static_cast<int>(asked.threads), .poll = {}};
  const std::shared_ptr<const Forecaster> forecaster = asked.forecaster.load();
  if (!asked.arrivals.empty()) {
    ClusterSimulation result =
        simulate_cluster(*forecaster, query, read_arrivals(asked.arrivals), options);
    std::vector<std::string> warnings = result.warnings;
    return {.answer = std::move(result), .warnings = std::move(warnings)};
  }
  AllocationForecast result = allocate(*forecaster, query, options);
  std::vector<std::string> warnings = result.warnings;
  const bool none = std::all_of(result.jobs.begin(), result.jobs.end(),
                                [](const AllocatedJob& job) { return job.fits_nowhere(); });
  return {.answer = std::move(result),
          .warnings = std::move(warnings),
          .shortfall = none ? "no job fits the pool" : ""};
}

}  // namespace

Question allocate_question() {
  return question_of<AllocateQuestion, allocate_groups, answer_allocate>(
      "allocate", "Which job goes where on a pool of several kinds of GPU, now or over time",
      {{"arrivals", "ClusterSimulation"}, {"", "AllocationForecast"}});
}

}  // namespace tilecast
