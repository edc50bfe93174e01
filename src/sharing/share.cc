// Jobs beside each other on one GPU: by turns, on SMs of their own, or on slices.

#include "tilecast/share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "laws/constants.h"
#include "scenario/internal.h"
#include "sharing/alone.h"
#include "sharing/pair_fit.h"
#include "sharing/parts.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kDay = 86'400;
constexpr NumberRange kLoaderRange{"loader_s", 0, kDay}, kRateRange{"steps_per_s", 1 / kDay, 1e6};
constexpr size_t kMostJobs = 64;  ///< on one GPU

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kInput, message); }

void check_bounds(const Job& job, ShareHow how) {
  const JobBounds& bounds = job.bounds;
  const auto fail = [&](const std::string& what) {
    refuse(fmt::format("job '{}': {}", job.name, what));
  };
  const std::string where = fmt::format("job '{}'", job.name);
  if (bounds.loader_s) check_number(where, kLoaderRange, *bounds.loader_s);
  if (bounds.steps_per_s) check_number(where, kRateRange, *bounds.steps_per_s);
  if (bounds.prefetch < 0 || bounds.prefetch > 1'000'000)
    fail(fmt::format("prefetch: expected 0 to 1000000 batches, found {}", bounds.prefetch));
  if (bounds.processes < 1 || bounds.processes > 64)
    fail(fmt::format("processes: expected 1 to 64, found {}", bounds.processes));
  if (!bounds.slice.empty() && how != ShareHow::kMig)
    fail(fmt::format("slice {} is of MIG: ask with how mig, or leave it out", bounds.slice));
  if (bounds.mps_share && how != ShareHow::kMps)
    fail("mps_percent is of MPS: ask with how mps, or leave it out");
  if (bounds.mps_share && !(*bounds.mps_share > 0 && *bounds.mps_share <= 1))
    fail(fmt::format("mps_percent: expected a number above 0 and at most 100, found {}",
                     *bounds.mps_share * 100));
}

void check_query(const GpuRef& gpu, const ShareQuery& query) {
  if (query.jobs.empty()) refuse("no job is given: expected at least one");
  if (query.jobs.size() > kMostJobs)
    refuse(fmt::format("{} jobs on one GPU: expected at most {}", query.jobs.size(), kMostJobs));
  std::set<std::string> names;
  for (const Job& job : query.jobs) {
    if (!names.insert(job.name).second)
      refuse(fmt::format("two jobs are called '{}': give each a name of its own", job.name));
    check_bounds(job, query.how);
  }
  const Device& device = gpu.content->device;
  const bool is_nvidia = normalized_name(device.vendor) == "nvidia";
  if (!is_nvidia && (query.how == ShareHow::kMps || query.how == ShareHow::kMig))
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{} is of {}: {} is of NVIDIA's GPUs; ask with how time-slice or streams",
                    device.id, device.vendor, query.how == ShareHow::kMps ? "MPS" : "MIG"));
}

/// A job in the forecast, alone.
SharedJob shared_job(const Job& job, const AloneForecast& alone) {
  return {.name = job.name,
          .model = job.model.name(),
          .mode = alone.mode,
          .alone = alone.job,
          .relative_speed = {1, 1, 1},
          .memory_bytes = alone.job.memory_bytes,
          .keeps_up = alone.keeps_up};
}

Interval sum_of_speeds(const std::vector<SharedJob>& jobs) {
  double sum = 0, low = 0, high = 0;
  for (const SharedJob& job : jobs) {
    const Interval& r = job.relative_speed;
    sum += r.value;
    low = std::hypot(low, r.value - r.low);
    high = std::hypot(high, r.high - r.value);
  }
  return {sum, sum - low, sum + high};
}

/// Of a pair: what measured pairs add to the law.
double corrected(double r, const std::vector<SharedJob>& jobs, size_t i, const PairEffects& pairs) {
  if (pairs.effects.empty() || r >= 1) return r;
  double log = 0;
  if (const auto* own = pairs.find(jobs[i].name)) log += own->slowed_log;
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (const auto* other = j == i ? nullptr : pairs.find(jobs[j].name))
      log += other->slows_log / static_cast<double>(jobs.size() - 1);
  }
  return with_pair_effects(r, log);
}

void share_by_turns(ShareForecast& f, ShareHow how, const PairEffects& pairs) {
  std::vector<JobAlone> alone;
  for (const SharedJob& job : f.jobs) alone.push_back(job.alone);
  const std::vector<double> speeds = relative_speeds(alone);
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    SharedJob& job = f.jobs[i];
    const double r = corrected(speeds[i], f.jobs, i, pairs);
    Interval relative = relative_speed_interval(r, how, f.gpu_demand - job.alone.gpu_share);
    if (pairs.find(job.name) != nullptr) relative = fitted_interval(r, pairs.spread_log);
    set_speed(job, relative);
    job.keeps_up = job.keeps_up && (!job.alone.open || job.alone.gpu_share < r);
  }
}

void add_memory(ShareForecast& f, const ShareQuery& query,
                const std::vector<AloneForecast>& alone) {
  for (const AloneForecast& job : alone) {
    f.memory_bytes += job.job.memory_bytes;
    f.usable_bytes = std::max(f.usable_bytes, job.usable_bytes);
  }
  if (query.how != ShareHow::kStreams) return;
  // One process has one context.
  int64_t largest = 0;
  for (const AloneForecast& job : alone) {
    f.memory_bytes -= job.framework_bytes;
    largest = std::max(largest, job.framework_bytes);
  }
  f.memory_bytes += largest;
}

void add_warnings(ShareForecast& f) {
  const auto warn = [&](std::string text) { f.warnings.push_back(std::move(text)); };
  const std::string memory = format_bytes(f.memory_bytes), usable = format_bytes(f.usable_bytes);
  if (!f.fits && f.how == "mig")
    warn(
        fmt::format("a job takes {} on its slice, where {} are usable: give it a larger slice or a "
                    "smaller batch",
                    memory, usable));
  else if (!f.fits)
    warn(
        fmt::format("the jobs take {} together, {} are usable: give one of them a smaller batch, "
                    "or another GPU",
                    memory, usable));
  else if (f.memory_is_tight)
    warn(fmt::format(
        "the jobs take {:.0f} % of the memory together: of measured pairs above {:.0f} "
        "%, 4 of 5 did not run",
        100.0 * static_cast<double>(f.memory_bytes) / static_cast<double>(f.usable_bytes),
        100 * bundled_laws().sharing.memory_share));
  for (const SharedJob& job : f.jobs) {
    if (!job.keeps_up)
      warn(fmt::format("{} does not keep up with its requests: its queue grows", job.name));
    // Forecasts of kernels are 20 % off, in the mean, on GPUs that were not measured.
    constexpr double kDoubt = 1.2;
    const double kernels = job.alone.kernels_s * static_cast<double>(job.alone.processes);
    if (job.alone.measured && kernels > kDoubt * job.alone.step_s)
      warn(
          fmt::format("{}: its step was measured in {}, its kernels are forecast to take {}; the "
                      "measured time is believed: check steps_per_s, options and GPU",
                      job.name, format_seconds(job.alone.step_s), format_seconds(kernels)));
  }
}

void add_assumptions(ShareForecast& f, const ShareQuery& query) {
  switch (query.how) {
    case ShareHow::kTimeSlice:
      f.assumptions.push_back("processes take turns in slices of time (no MPS)");
      break;
    case ShareHow::kMps:
      f.assumptions.push_back(query.jobs.front().bounds.mps_share
                                  ? "MPS: each job on the SMs of its percentage"
                                  : "MPS: kernels of all jobs in one queue, one at a time");
      break;
    case ShareHow::kStreams:
      f.assumptions.push_back("streams of one process: kernels in one queue, one at a time");
      break;
    case ShareHow::kMig:
      f.assumptions.push_back("MIG; relative to the whole GPU without it");
      break;
  }
  const auto names = [&](auto wanted) {
    std::vector<std::string> found;
    for (const Job& job : query.jobs) {
      if (wanted(job)) found.push_back(job.name);
    }
    return join(found, ", ");
  };
  if (const std::string list = names([](const Job& job) { return !job.bounds.steps_per_s; });
      !list.empty())
    f.assumptions.push_back("step time alone forecast: " + list);
  if (const std::string list = names([](const Job& job) { return !job.bounds.loader_s; });
      !list.empty())
    f.assumptions.push_back("no time of loader and host given: " + list);
  if (const std::string list =
          names([&](const Job& job) { return query.pairs.find(job.name) != nullptr; });
      !list.empty())
    f.assumptions.push_back("measured pairs correct the law: " + list);
}

}  // namespace

const PairEffects::Effect* PairEffects::find(std::string_view job) const {
  for (const Effect& effect : effects) {
    if (effect.job == job) return &effect;
  }
  return nullptr;
}

ShareForecast share_gpu(const Forecaster& forecaster, const GpuRef& gpu, const ShareQuery& query) {
  check_query(gpu, query);
  const Device& device = gpu.content->device;
  ShareForecast f{
      .gpu = device.id, .gpu_name = device.name, .how = std::string(choice_word(query.how))};
  std::vector<AloneForecast> alone;
  for (const Job& job : query.jobs) {
    alone.push_back(alone_on(forecaster, gpu, job, query.how));
    f.jobs.push_back(shared_job(job, alone.back()));
    f.gpu_demand += alone.back().job.gpu_share;
    f.sm_demand += alone.back().job.gpu_share * alone.back().job.sm_share;
    f.dram_demand += alone.back().job.dram_share;
  }
  const bool has_parts = std::any_of(query.jobs.begin(), query.jobs.end(),
                                     [](const Job& job) { return job.bounds.mps_share; });
  if (query.how == ShareHow::kMig) {
    share_by_slices(f, forecaster, gpu, query, alone);
  } else {
    add_memory(f, query, alone);
    if (has_parts)
      share_by_sms(f, forecaster, gpu, query, alone);
    else
      share_by_turns(f, query.how, query.pairs);
  }
  f.sum_of_relative_speeds = sum_of_speeds(f.jobs);
  f.fits = f.memory_bytes <= f.usable_bytes;
  f.memory_is_tight = f.fits && f.jobs.size() > 1 && query.how != ShareHow::kMig &&
                      is_tight_together(f.memory_bytes, f.usable_bytes);
  add_assumptions(f, query);
  add_warnings(f);
  return f;
}

}  // namespace tilecast
