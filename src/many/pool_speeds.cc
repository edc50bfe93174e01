#include "many/pool_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "base/threads.h"
#include "many/job_table.h"
#include "scenario/internal.h"
#include "scenario/power.h"
#include "scenario/prices.h"
#include "sharing/alone.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

/// Programs with more columns take Cbc more than a minute.
constexpr size_t kMostPairColumns = 100'000;
/// Pairs of more different jobs take seconds to forecast.
constexpr size_t kMostPairedTypes = 400;

[[noreturn]] void refuse_pool(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

constexpr NumberRange kPriceRange{"price", 0, kMostPricePerGpuHour},
    kHostRange{"host_factor", 1e-6, 1e6};

void check_numbers(const PoolJob& job, const std::string& where) {
  check_number(where, kWeightRange, job.weight);
  if (job.steps) check_number(where, kStepsRange, *job.steps);
  if (job.deadline_s) check_number(where, kDeadlineRange, *job.deadline_s);
  if (job.job.bounds.steps_per_s) check_number(where, kSpeedRange, *job.job.bounds.steps_per_s);
  for (const auto& [gpu, speed] : job.speeds)
    check_number(fmt::format("{}: {}", where, gpu), kSpeedRange, speed);
  for (const int64_t count : job.gpus)
    if (count < 1 || count > kMostGpus)
      refuse_pool(fmt::format("{}: gpus: expected numbers from 1 to {}, found {}", where, kMostGpus,
                              count));
}

void check_dtypes(const PoolJob& job, const std::string& where) {
  const OptionDef* option = find_option("dtype", job.job.request.kind);
  for (const std::string& dtype : job.dtypes) {
    Request request = job.job.request;
    try {
      set_option(request, *option, dtype);
    } catch (const Error& error) {
      std::string_view what = error.what();
      constexpr std::string_view kOption = "`dtype`: ";
      if (what.starts_with(kOption)) what.remove_prefix(kOption.size());
      refuse_pool(fmt::format("{}: dtypes: {}", where, what));
    }
  }
}

void check_kind(const PoolKind& kind) {
  const std::string where = "pool: " + name_of(kind);
  if (kind.gpus < 0 || kind.gpus > kMostGpus)
    refuse_pool(fmt::format("{}: expected 0 to {} GPUs, found {}", where, kMostGpus, kind.gpus));
  if (kind.price_per_gpu_hour) check_number(where, kPriceRange, *kind.price_per_gpu_hour);
  check_number(where, kHostRange, kind.host_factor);
}

/// Jobs with the same text have the same forecast, which their bounds are no part of.
std::string request_text(const Job& job) {
  std::string text = fmt::format("{}", static_cast<const void*>(job.model.content.get()));
  for (const auto& [name, value] : option_values(job.request))
    std::visit([&](const auto& v) { text += fmt::format(" {}={}", name, v); }, value);
  return text;
}

/// Jobs with the same text are as fast as each other everywhere.
std::string text_of(const PoolJob& job, std::string text) {
  const JobBounds& bounds = job.job.bounds;
  text += fmt::format(" {} {} {} {} {} {}", bounds.loader_s.value_or(-1),
                      bounds.steps_per_s.value_or(-1), bounds.prefetch, bounds.processes,
                      bounds.slice, bounds.mps_share.value_or(-1));
  for (const int64_t gpus : job.gpus) text += fmt::format(" {}", gpus);
  for (const std::string& dtype : job.dtypes) text += " " + dtype;
  for (const auto& [gpu, speed] : job.speeds) text += fmt::format(" {}:{}", gpu, speed);
  return text;
}

/// A step on several GPUs, and the memory of one of them.
struct SeveralGpus {
  Interval step_s;
  int64_t peak_bytes = 0, usable_bytes = 0;
};

SeveralGpus several(const Forecast& f) {
  return {f.latency_s, f.memory.peak_bytes, f.memory.usable_bytes};
}

SeveralGpus several(const GenerationForecast& f) {
  if (!f.serving) return {f.latency, f.memory.peak_bytes, f.memory.device_bytes};
  const double step = 1 / f.serving->steady_or_all().requests_per_s;
  return {{step, step, step}, f.memory.peak_bytes, f.memory.device_bytes};
}

SeveralGpus several(const AcceleratorForecast&) {
  throw Error(ErrorKind::kUnsupported, "runs on an accelerator: a pool has GPUs only");
}

/// Seconds of a step by the forecast alone.
double step_in(const Result& result) {
  return std::visit([](const auto& f) { return several(f).step_s.value; }, result);
}

int64_t ranks_of(const Request& request) {
  return request.execution.dp * request.execution.tp * request.execution.pp;
}

Interval speed_of(const Interval& step_s) {
  return {1 / step_s.value, 1 / step_s.high, 1 / step_s.low};
}

/// The forecast of a job on several GPUs of a kind. Throws Error where they have no links or the
/// job does not take so many.
Result ask_several(const Forecaster& forecaster, Job job, const PoolKind& kind, int64_t gpus) {
  Request& request = job.request;
  if (kind.cluster.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{} GPUs need links: name a cluster in the pool, as in "
                            "2xdgx-h100 ('tilecast clusters' lists them)",
                            gpus));
  const int64_t each = request.execution.tp * request.execution.pp;
  if (gpus % each != 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{} GPUs are no multiple of tp x pp = {}", gpus, each));
  if (request.kind == RequestKind::kPass && request.mode != Mode::kTraining &&
      !job.model.content->model.recommendation)
    throw Error(ErrorKind::kInput,
                fmt::format("{} GPUs: several GPUs need \"mode\": \"training\"", gpus));
  request.parallel.cluster = kind.cluster;
  request.execution.dp = gpus / each;
  try {
    return ask(forecaster, job.model, kind.gpu, request, Detail::kNumbers);
  } catch (const Error& error) {
    // The job states numbers of GPUs, and no dp.
    throw Error(error.kind(), fmt::format("{} GPUs at `tp` x `pp` = {} are `dp` {}: {}", gpus, each,
                                          request.execution.dp, error.what()));
  }
}

}  // namespace

const std::string& name_of(const PoolKind& kind) {
  return kind.cluster.empty() ? kind.gpu.id() : kind.cluster;
}

std::vector<PoolUse> unused(const std::vector<PoolKind>& pool) {
  std::vector<PoolUse> kinds;
  for (const PoolKind& kind : pool)
    kinds.push_back({.gpu = name_of(kind),
                     .gpu_name = kind.gpu.content->device.name,
                     .gpus = kind.gpus,
                     .price_per_gpu_hour = kind.price_per_gpu_hour,
                     .gpu_price = kind.gpu_price});
  return kinds;
}

void check_pool(const AllocationQuery& query) {
  if (query.jobs.empty()) refuse_pool("no job is given: expected at least one");
  int64_t gpus = 0;
  std::set<std::string> names;
  for (const PoolKind& kind : query.pool) {
    check_kind(kind);
    gpus += kind.gpus;
    if (!names.insert(kind.cluster + "/" + kind.gpu.id()).second)
      refuse_pool(fmt::format("pool: {} is there twice: give one number of them", name_of(kind)));
  }
  if (gpus == 0) refuse_pool("the pool has no GPU: expected one like 8xH100,16xA100-80GB");
  names.clear();
  for (const PoolJob& job : query.jobs) {
    if (!names.insert(job.job.name).second)
      refuse_pool(
          fmt::format("two jobs are called '{}': give each a name of its own", job.job.name));
    const std::string where = fmt::format("job '{}'", job.job.name);
    check_numbers(job, where);
    check_dtypes(job, where);
    if (job.job.bounds.steps_per_s && query.pool.size() > 1)
      refuse_pool(fmt::format(
          "job '{}': steps_per_s is of one GPU, the pool has {} kinds: give an object as in "
          "{{\"{}\": {}}}",
          job.job.name, query.pool.size(), query.pool.front().gpu.id(),
          *job.job.bounds.steps_per_s));
  }
}

PoolSpeeds::PoolSpeeds(const Forecaster& forecaster, const AllocationQuery& query,
                       const ManyOptions& options)
    : query_(query) {
  find_types();
  add_ways();
  forecast(forecaster, options);
  if (query.share) forecast_pairs(options);
}

void PoolSpeeds::find_types() {
  std::map<std::string, size_t> known, requests;
  for (size_t j = 0; j < query_.jobs.size(); ++j) {
    const std::string request = request_text(query_.jobs[j].job);
    const auto [at, is_new] = known.try_emplace(text_of(query_.jobs[j], request), types_.size());
    if (is_new)
      types_.push_back({.job = j,
                        .request = requests.try_emplace(request, requests.size()).first->second,
                        .ways = {},
                        .best = {}});
    type_of_.push_back(at->second);
  }
}

void PoolSpeeds::add_ways() {
  for (Type& type : types_) {
    const PoolJob& job = query_.jobs[type.job];
    std::vector<int64_t> counts = job.gpus;
    if (counts.empty()) counts.push_back(ranks_of(job.job.request));
    std::vector<std::string> dtypes = job.dtypes;
    if (dtypes.empty()) dtypes.push_back(job.job.request.execution.dtype);
    for (size_t kind = 0; kind < query_.pool.size(); ++kind) {
      const PoolKind& gpus = query_.pool[kind];
      for (const int64_t count : counts)
        for (const std::string& dtype : dtypes)
          if (count <= gpus.gpus)
            type.ways.push_back({.kind = kind,
                                 .option = {.gpu = name_of(gpus),
                                            .dtype = dtype,
                                            .gpus = count,
                                            .steps_per_s = {},
                                            .seconds = {},
                                            .cost = {},
                                            .error = {}},
                                 .alone = {}});
    }
  }
}

void PoolSpeeds::forecast(const Forecaster& forecaster, const ManyOptions& options) {
  // Ways of jobs that differ only in their bounds have one forecast.
  std::map<std::tuple<size_t, size_t, int64_t, std::string>, Ways> by_forecast;
  for (Type& type : types_)
    for (Way& way : type.ways)
      by_forecast[{type.request, way.kind, way.option.gpus, way.option.dtype}].emplace_back(&type,
                                                                                            &way);
  std::vector<const Ways*> tasks;
  for (const auto& [key, ways] : by_forecast) tasks.push_back(&ways);
  run_parallel(tasks.size(), options.threads, options.poll,
               [&](size_t i) { forecast_ways(forecaster, *tasks[i]); });
  for (Type& type : types_) {
    std::map<std::pair<size_t, int64_t>, const Way*> fastest;
    for (const Way& way : type.ways) {
      if (!way.option.steps_per_s || !way.option.fits) continue;
      const Way*& best = fastest[{way.kind, way.option.gpus}];
      if (best == nullptr || way.option.steps_per_s->value > best->option.steps_per_s->value)
        best = &way;
    }
    for (const auto& [key, way] : fastest) type.best.push_back(way);
  }
}

void PoolSpeeds::forecast_ways(const Forecaster& forecaster, const Ways& ways) const {
  const auto& [first_type, first] = ways.front();
  const PoolKind& kind = query_.pool[first->kind];
  const bool several_gpus = first->option.gpus > 1;
  std::optional<Result> result;
  std::string error;
  bool names_job = several_gpus;  // or needs none
  try {
    Job job = query_.jobs[first_type->job].job;
    job.request.execution.dtype = first->option.dtype;
    result = several_gpus ? ask_several(forecaster, job, kind, first->option.gpus)
                          : ask(forecaster, job.model, kind.gpu, job.request, Detail::kNumbers);
  } catch (const OptionError& failed) {
    error = failed.what();
    names_job = true;
  } catch (const Error& failed) {
    error = failed.what();
  }
  for (const auto& [type, way] : ways) {
    const PoolJob& job = query_.jobs[type->job];
    const auto fail = [&, of = way](const std::string& what, bool named) {
      of->option.error = named ? what : fmt::format("job '{}': {}", job.job.name, what);
      of->option.steps_per_s.reset();
      of->option.fits = false;
    };
    if (!result) {
      fail(error, names_job);
      continue;
    }
    try {
      set_speed(job, *result, *way);
    } catch (const Error& failed) {
      fail(failed.what(), several_gpus);
      continue;
    }
    try {
      check_number("forecast", kSpeedRange, way->option.steps_per_s->value);
    } catch (const Error& failed) {
      fail(failed.what(), true);
    }
  }
}

/// What a job does where its forecast is this one.
void PoolSpeeds::set_speed(const PoolJob& job, const Result& result, Way& way) const {
  const PoolKind& kind = query_.pool[way.kind];
  PlaceOption& option = way.option;
  JobBounds bounds = job.job.bounds;
  const auto measured = job.speeds.find(kind.gpu.id());
  if (measured != job.speeds.end() && job.dtypes.empty()) bounds.steps_per_s = measured->second;
  if (bounds.loader_s) *bounds.loader_s *= kind.host_factor;
  if (option.gpus == 1) {
    const AloneForecast alone =
        alone_by(result, kind.gpu, bounds, query_.share.value_or(ShareHow::kTimeSlice));
    way.alone = alone.job;
    way.usable_bytes = alone.usable_bytes;
    option.steps_per_s = speed_of(alone.job.step_s);
    option.memory_bytes = alone.job.memory_bytes;
  } else {
    const SeveralGpus on = std::visit([](const auto& f) { return several(f); }, result);
    way.usable_bytes = on.usable_bytes;
    option.steps_per_s = speed_of(step_time(on.step_s, bounds));
    option.memory_bytes = on.peak_bytes;
  }
  option.fits = option.memory_bytes <= way.usable_bytes;
  const std::optional<PowerForecast> power = power_in(result);
  if (!power) return;
  // A job that waits for its loader, or is as fast as measured, takes the energy of its steps and
  // that of the waits.
  const double share = std::min(1.0, option.steps_per_s->value * step_in(result));
  const double watts = power->idle_w + share * (power->power_w.value - power->idle_w);
  option.power_w = static_cast<double>(option.gpus) * watts;
}

void PoolSpeeds::forecast_pairs(const ManyOptions& options) {
  pairs_.resize(types_.size());
  if (types_.size() > kMostPairedTypes) {
    warnings_.push_back(
        fmt::format("{} different jobs: pairs of at most {} are forecast, so no two share a GPU",
                    types_.size(), kMostPairedTypes));
    return;
  }
  run_parallel(types_.size(), options.threads, options.poll, [&](size_t a) {
    for (size_t b = 0; b < types_.size(); ++b) {
      for (const Way* way : types_[a].best) {
        const Way* other = way->option.gpus == 1 ? best(b, way->kind, 1) : nullptr;
        if (other == nullptr ||
            way->option.memory_bytes + other->option.memory_bytes > way->usable_bytes)
          continue;
        const std::vector<double> speeds = relative_speeds({way->alone, other->alone});
        // In turns with whole GPUs they would be as fast.
        if (speeds[0] + speeds[1] <= 1 && !query_.whole) continue;
        pairs_[a].push_back({a, b, way->kind, speeds[0], speeds[1]});
      }
    }
    std::stable_sort(pairs_[a].begin(), pairs_[a].end(), [](const auto& x, const auto& y) {
      return x.of_a + x.of_b > y.of_a + y.of_b;
    });
  });
}

const PoolSpeeds::Way* PoolSpeeds::best(size_t type, size_t kind, double gpus) const {
  for (const Way* way : types_[type].best)
    if (way->kind == kind && static_cast<double>(way->option.gpus) == gpus) return way;
  return nullptr;
}

std::vector<PlaceOption> PoolSpeeds::options(size_t job) const {
  std::vector<PlaceOption> options;
  const std::optional<double>& steps = query_.jobs[job].steps;
  for (const Way& way : types_[type_of_[job]].ways) {
    options.push_back(way.option);
    PlaceOption& option = options.back();
    if (!steps || !option.steps_per_s) continue;
    option.seconds = *steps / option.steps_per_s->value;
    if (option.power_w) option.energy_j = *option.seconds * *option.power_w;
    if (const auto& price = query_.pool[way.kind].price_per_gpu_hour)
      option.cost = *option.seconds * static_cast<double>(option.gpus) * *price / 3600;
  }
  return options;
}

bool PoolSpeeds::fits_somewhere(size_t job) const { return !types_[type_of_[job]].best.empty(); }

double PoolSpeeds::watts(size_t job, size_t kind, double gpus) const {
  const std::optional<double>& watts = best(type_of_[job], kind, gpus)->option.power_w;
  if (watts) return *watts;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("the objective energy: the power of job '{}' on {} is not forecast",
                          query_.jobs[job].job.name, name_of(query_.pool[kind])));
}

const std::string& PoolSpeeds::dtype(size_t job, size_t kind, double gpus) const {
  return best(type_of_[job], kind, gpus)->option.dtype;
}

std::vector<AllocationProblem::Kind> PoolSpeeds::kinds() const {
  std::vector<AllocationProblem::Kind> kinds;
  for (const PoolKind& kind : query_.pool)
    kinds.push_back({static_cast<double>(kind.gpus), kind.price_per_gpu_hour.value_or(0) / 3600});
  return kinds;
}

std::vector<Column> PoolSpeeds::columns(const std::vector<size_t>& jobs) const {
  std::vector<Column> columns;
  for (size_t i = 0; i < jobs.size(); ++i)
    for (const Way* way : types_[type_of_[jobs[i]]].best)
      columns.push_back({{{i, way->option.steps_per_s->value}},
                         {{way->kind, static_cast<double>(way->option.gpus)}}});
  if (query_.share) add_pairs(jobs, columns);
  return columns;
}

/// All pairs, or of each job those with the highest sums of speeds.
void PoolSpeeds::add_pairs(const std::vector<size_t>& jobs, std::vector<Column>& columns) const {
  const size_t most = std::max<size_t>(1, kMostPairColumns / jobs.size());
  std::vector<std::vector<size_t>> by_type(types_.size());
  for (size_t i = 0; i < jobs.size(); ++i) by_type[type_of_[jobs[i]]].push_back(i);
  std::set<std::tuple<size_t, size_t, size_t>> added;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const size_t type = type_of_[jobs[i]];
    size_t count = 0;
    for (const PairSpeeds& pair : pairs_[type]) {
      const std::vector<size_t>& others = by_type[pair.b];
      // Each job begins at another one, so that not all have the same partners.
      for (size_t k = 0; k < others.size() && count < most; ++k) {
        const size_t other = others[(i + k) % others.size()];
        if (other == i || !added.insert({std::min(i, other), std::max(i, other), pair.kind}).second)
          continue;
        ++count;
        const double speed = best(type, pair.kind, 1)->option.steps_per_s->value,
                     beside = best(pair.b, pair.kind, 1)->option.steps_per_s->value;
        columns.push_back(
            {{{i, speed * pair.of_a}, {other, beside * pair.of_b}}, {{pair.kind, 1}}});
      }
    }
  }
}

}  // namespace tilecast
