#include "sharing/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Sums of shares may exceed 1 by so much: 0.1 + 0.2 + 0.7 does.
constexpr double kRounding = 1e-9;

[[noreturn]] void refuse_parts(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

/// A job on a part of the GPU that it has for itself.
struct OnPart {
  double speed = 0;      ///< relative to the whole GPU; 0: it does not start
  double gpu_share = 0;  ///< of the time in which the job wants the part
  bool starts = true, keeps_up = true;
  int64_t memory_bytes = 0, usable_bytes = 0;
  double filled() const {
    return static_cast<double>(memory_bytes) / static_cast<double>(usable_bytes);
  }
  bool fits() const { return starts && memory_bytes <= usable_bytes; }
};

OnPart on_part(const Forecaster& forecaster, Device part, const Job& job, ShareHow how,
               const AloneForecast& whole) {
  const AloneForecast there = alone_on(forecaster, ref_of_device(std::move(part)), job, how);
  OnPart result{.starts = there.mode == whole.mode,  // a server without room for its cache does not
                .memory_bytes = there.job.memory_bytes,
                .usable_bytes = there.usable_bytes};
  if (!result.starts) return result;
  const double ratio = there.job.kernels_s / whole.job.kernels_s;
  result.speed = speed_with_kernels(whole.job, ratio);
  result.gpu_share = whole.job.gpu_share * ratio;
  result.keeps_up = there.keeps_up && (!whole.job.open || result.gpu_share < 1);
  return result;
}

/// The slices of all jobs that give the largest sum of relative speeds, those that fit first.
class SliceChoice {
 public:
  /// `parts` has a row for each job and a column for each profile.
  SliceChoice(const Device& device, const std::vector<std::vector<std::optional<OnPart>>>& parts)
      : slices_(device.slices),
        parts_(parts),
        sms_(largest_slice(device).sm_count),
        chosen_(parts.size()),
        used_(device.slices.size(), 0) {}

  /// Empty: the jobs do not have room together.
  std::vector<size_t> best() {
    search(0, sms_, kMemorySlices, 0);
    return best_;
  }

 private:
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
  const int64_t sms_;
  std::vector<size_t> chosen_, best_;
  std::vector<int64_t> used_;
  double best_value_ = -1;
};

}  // namespace

void set_speed(SharedJob& job, const Interval& relative) {
  job.relative_speed = relative;
  job.steps_per_s = {};
  if (relative.value <= 0) return;  // it does not start
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

void share_by_sms(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                  const ShareQuery& query, const std::vector<AloneForecast>& alone) {
  double shares = 0;
  for (const Job& job : query.jobs) {
    if (!job.bounds.mps_share)
      refuse_parts(
          fmt::format("job '{}': mps_percent is missing, which other jobs have: give it to all "
                      "jobs, or to none",
                      job.name));
    shares += *job.bounds.mps_share;
  }
  if (shares > 1 + kRounding)
    refuse_parts(
        fmt::format("the jobs' mps_percent sum up to {:.0f}: expected at most 100, as jobs that "
                    "have SMs in common are forecast without percentages only",
                    shares * 100));
  const Device& device = gpu.content->device;
  double dram = 0;
  std::vector<OnPart> on_sms;
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    const auto sms = std::max<int64_t>(1, std::llround(*query.jobs[i].bounds.mps_share *
                                                       static_cast<double>(device.gpu().sm_count)));
    on_sms.push_back(
        on_part(forecaster, with_sms(device, sms), query.jobs[i], query.how, alone[i]));
    dram += on_sms.back().speed * alone[i].job.dram_share;
  }
  const double slower = std::max(1.0, dram);  // where the memory's bandwidth does not suffice
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    set_speed(f.jobs[i], slice_speed_interval(on_sms[i].speed / slower));
    f.jobs[i].keeps_up =
        on_sms[i].keeps_up && (!f.jobs[i].alone.open || on_sms[i].gpu_share * slower < 1);
  }
}

void share_by_slices(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                     const ShareQuery& query, const std::vector<AloneForecast>& alone) {
  const Device& device = gpu.content->device;
  largest_slice(device);  // throws where there is none
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
  const std::vector<size_t> chosen = SliceChoice(device, parts).best();
  if (chosen.empty())
    refuse_parts(
        fmt::format("{} jobs have no room on the slices of {}: give fewer jobs or smaller "
                    "slices ('tilecast gpus {}' lists them)",
                    f.jobs.size(), device.id, device.id));
  double filled = -1;
  for (size_t i = 0; i < f.jobs.size(); ++i) {
    const OnPart& part = *parts[i][chosen[i]];
    f.jobs[i].slice = device.slices[chosen[i]].name;
    set_speed(f.jobs[i], slice_speed_interval(part.speed));
    f.jobs[i].keeps_up = part.keeps_up;
    f.jobs[i].memory_bytes = part.memory_bytes;
    if (part.filled() > filled) {
      filled = part.filled();
      f.memory_bytes = part.memory_bytes;
      f.usable_bytes = part.usable_bytes;
    }
  }
}

}  // namespace tilecast
