// Jobs beside each other on one GPU: by turns, on SMs of their own, or on slices.

#include "tilecast/share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "laws/constants.h"
#include "scenario/internal.h"
#include "sharing/alone.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Sums of shares may exceed 1 by so much: 0.1 + 0.2 + 0.7 does.
constexpr double kRounding = 1e-9;

GpuRef ref_of_device(Device device) {
  GpuRef ref;
  ref.content = std::make_shared<const GpuRef::Content>(GpuRef::Content{std::move(device)});
  return ref;
}

std::string_view how_word(ShareHow how) {
  return choice_words(ShareHow{})[static_cast<size_t>(how)];
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kInput, message); }

void check_bounds(const Job& job, ShareHow how) {
  const JobBounds& bounds = job.bounds;
  const auto fail = [&](const std::string& what) {
    refuse(fmt::format("job '{}': {}", job.name, what));
  };
  const auto check_finite = [&](const char* name, std::optional<double> value, bool zero) {
    if (value && (!std::isfinite(*value) || *value < 0 || (*value == 0 && !zero)))
      fail(fmt::format("{}: expected a number {}, found {}", name,
                       zero ? "of at least 0" : "above 0", *value));
  };
  check_finite("loader_s", bounds.loader_s, true);
  check_finite("steps_per_s", bounds.steps_per_s, false);
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
          .relative_speed = {1, 1, 1}};
}

/// The speed with the intervals of the step alone and of the relative speed.
void set_speed(SharedJob& job, const Interval& relative) {
  job.relative_speed = relative;
  const Interval& step = job.alone.step_s;
  const double low = std::hypot(std::log(step.high / step.value),
                                std::log(relative.value / relative.low)),
               high = std::hypot(std::log(step.value / step.low),
                                 std::log(relative.high / relative.value));
  // An open job answers what arrives as long as it keeps up.
  const double rate =
      (job.alone.open ? std::min(1.0, relative.value / job.alone.gpu_share) : relative.value) /
      step.value;
  job.steps_per_s = {rate, rate * std::exp(-low), rate * std::exp(high)};
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
  return 1 / (1 + (1 / r - 1) * std::exp(log));
}

void share_by_turns(ShareForecast& f, ShareHow how, const PairEffects& pairs) {
  std::vector<JobAlone> alone;
  for (const SharedJob& job : f.jobs) alone.push_back(job.alone);
  const std::vector<double> speeds = relative_speeds(alone);
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    SharedJob& job = f.jobs[i];
    const double r = corrected(speeds[i], f.jobs, i, pairs);
    Interval relative = relative_speed_interval(r, how, f.gpu_demand - job.alone.gpu_share);
    if (pairs.find(job.name) != nullptr) {
      constexpr double kTenthPercentile = 1.2816;  // of the normal distribution
      const double spread = std::exp(kTenthPercentile * pairs.spread_log), slow_down = 1 / r - 1;
      relative = {r, 1 / (1 + slow_down * spread), 1 / (1 + slow_down / spread)};
    }
    set_speed(job, relative);
    job.keeps_up = !job.alone.open || job.alone.gpu_share < r;
  }
}

Interval slice_interval(double r) {
  const double spread = std::exp(bundled_laws().sharing.slice_speed_log);
  return {r, r < 1 ? r / spread : r, std::min(1.0, r * spread)};
}

/// A job on a part of the GPU that it has for itself.
struct OnPart {
  double speed = 1;
  int64_t memory_bytes = 0, usable_bytes = 0;
  double filled() const {
    return static_cast<double>(memory_bytes) / static_cast<double>(usable_bytes);
  }
  bool fits() const { return memory_bytes <= usable_bytes; }
};

OnPart on_part(const Forecaster& forecaster, Device part, const Job& job, ShareHow how,
               const AloneForecast& whole) {
  const AloneForecast there = alone_on(forecaster, ref_of_device(std::move(part)), job, how);
  return {.speed = speed_with_kernels(whole.job, there.kernels_s / whole.kernels_s),
          .memory_bytes = there.job.memory_bytes,
          .usable_bytes = there.usable_bytes};
}

/// Each job on the SMs that its percentage leaves to it; all share the memory.
void share_by_sms(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                  const ShareQuery& query, const std::vector<AloneForecast>& alone) {
  double shares = 0;
  for (const Job& job : query.jobs) {
    if (!job.bounds.mps_share)
      refuse(
          fmt::format("job '{}': mps_percent is missing, which other jobs have: give it to all "
                      "jobs, or to none",
                      job.name));
    shares += *job.bounds.mps_share;
  }
  if (shares > 1 + kRounding)
    refuse(
        fmt::format("the jobs' mps_percent sum up to {:.0f}: expected at most 100, as jobs that "
                    "have SMs in common are forecast without percentages only",
                    shares * 100));
  const Device& device = gpu.content->device;
  double dram = 0;
  std::vector<double> speeds;
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    const auto sms = std::max<int64_t>(1, std::llround(*query.jobs[i].bounds.mps_share *
                                                       static_cast<double>(device.gpu().sm_count)));
    speeds.push_back(
        on_part(forecaster, with_sms(device, sms), query.jobs[i], query.how, alone[i]).speed);
    dram += speeds.back() * alone[i].job.dram_share;
  }
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    set_speed(f.jobs[i], slice_interval(speeds[i] / std::max(1.0, dram)));
    f.jobs[i].keeps_up = !f.jobs[i].alone.open || f.jobs[i].alone.gpu_share < speeds[i];
  }
}

/// The slices of all jobs that give the largest sum of relative speeds, those that fit first.
class SliceChoice {
 public:
  /// `parts` has a row for each job and a column for each profile.
  SliceChoice(const std::vector<Slice>& slices,
              const std::vector<std::vector<std::optional<OnPart>>>& parts)
      : slices_(slices), parts_(parts), chosen_(parts.size()), used_(slices.size(), 0) {
    for (const Slice& slice : slices) sms_ = std::max(sms_, slice.sm_count);
  }

  /// Empty: the jobs do not have room together.
  std::vector<size_t> best() {
    search(0, sms_, kEighths, 0);
    return best_;
  }

 private:
  static constexpr int64_t kEighths = 8;  // of the memory

  void search(size_t job, int64_t sms, int64_t eighths, double value) {
    if (job == parts_.size()) {
      if (value > best_value_) {
        best_value_ = value;
        best_ = chosen_;
      }
      return;
    }
    for (size_t s = 0; s < slices_.size(); ++s) {
      const std::optional<OnPart>& part = parts_[job][s];
      if (!part || slices_[s].sm_count > sms || slices_[s].memory_eighths > eighths ||
          used_[s] >= slices_[s].instances)
        continue;
      ++used_[s];
      chosen_[job] = s;
      // A job that fits counts more than the speeds of all jobs.
      search(job + 1, sms - slices_[s].sm_count, eighths - slices_[s].memory_eighths,
             value + part->speed + (part->fits() ? static_cast<double>(parts_.size()) : 0));
      --used_[s];
    }
  }

  const std::vector<Slice>& slices_;
  const std::vector<std::vector<std::optional<OnPart>>>& parts_;
  int64_t sms_ = 0;
  std::vector<size_t> chosen_, best_;
  std::vector<int64_t> used_;
  double best_value_ = -1;
};

void share_by_slices(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                     const ShareQuery& query, const std::vector<AloneForecast>& alone) {
  const Device& device = gpu.content->device;
  if (device.slices.empty()) slice_of(device, "MIG");  // throws: it has none
  std::vector<std::vector<std::optional<OnPart>>> parts(f.jobs.size());
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    const Job& job = query.jobs[i];
    if (!job.bounds.slice.empty()) slice_of(device, job.bounds.slice);  // throws if unknown
    for (const Slice& slice : device.slices) {
      const bool wanted = job.bounds.slice.empty() ||
                          normalized_name(job.bounds.slice) == normalized_name(slice.name);
      parts[i].push_back(wanted ? std::optional(on_part(forecaster, slice_of(device, slice.name),
                                                        job, query.how, alone[i]))
                                : std::nullopt);
    }
  }
  const std::vector<size_t> chosen = SliceChoice(device.slices, parts).best();
  if (chosen.empty())
    refuse(
        fmt::format("{} jobs have no room on the slices of {}: give fewer jobs or smaller "
                    "slices ('tilecast gpus {}' lists them)",
                    f.jobs.size(), device.id, device.id));
  double filled = -1;
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    const OnPart& part = *parts[i][chosen[i]];
    f.jobs[i].slice = device.slices[chosen[i]].name;
    set_speed(f.jobs[i], slice_interval(part.speed));
    f.jobs[i].keeps_up = !f.jobs[i].alone.open || f.jobs[i].alone.gpu_share < part.speed;
    if (part.filled() > filled) {
      filled = part.filled();
      f.memory_bytes = part.memory_bytes;
      f.usable_bytes = part.usable_bytes;
    }
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
  if (!f.fits)
    f.warnings.push_back(fmt::format("the jobs take {} together, {} are usable{}: {}",
                                     format_bytes(f.memory_bytes), format_bytes(f.usable_bytes),
                                     f.how == "mig" ? " on the fullest slice" : "",
                                     "give one of them a smaller batch, or another GPU"));
  else if (f.memory_is_tight)
    f.warnings.push_back(fmt::format(
        "the jobs take {:.0f} % of the memory together: of measured pairs above {:.0f} %, 4 of 5 "
        "did "
        "not run",
        100.0 * static_cast<double>(f.memory_bytes) / static_cast<double>(f.usable_bytes),
        100 * bundled_laws().sharing.memory_share));
  for (const SharedJob& job : f.jobs) {
    if (!job.keeps_up)
      f.warnings.push_back(fmt::format(
          "{} does not keep up with its requests beside the others: its queue grows", job.name));
  }
}

void add_assumptions(ShareForecast& f, const ShareQuery& query) {
  switch (query.how) {
    case ShareHow::kTimeSlice:
      f.assumptions.push_back("processes take turns in slices of time (no MPS)");
      break;
    case ShareHow::kMps:
      f.assumptions.push_back("MPS: kernels of all jobs in one queue, one at a time");
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
      .gpu = device.id, .gpu_name = device.name, .how = std::string(how_word(query.how))};
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
                      static_cast<double>(f.memory_bytes) >
                          bundled_laws().sharing.memory_share * static_cast<double>(f.usable_bytes);
  add_assumptions(f, query);
  add_warnings(f);
  return f;
}

}  // namespace tilecast
