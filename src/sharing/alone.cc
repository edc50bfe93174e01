// What a job takes alone: its forecast, what bounds it from outside, and what a measured speed says
// of both.

#include "sharing/alone.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "devices/vendor.h"
#include "laws/constants.h"
#include "scenario/internal.h"
#include "scenario/intervals.h"
#include "sharing/turns.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Jobs that want the GPU all the time have no host time, with which the chain has no solution.
constexpr double kLargestShare = 0.999, kLeastShare = 0.001;

/// The kernels of a step in sums.
struct StepWork {
  Interval step_s;  ///< with the waiting for the host, without the loader
  Interval kernels_s;
  std::span<const KernelForecast> kernels;
  double repeats = 1;   ///< of the kernels in a step
  double launches = 0;  ///< by the host, of a step: a captured graph is none of them
  int64_t peak_bytes = 0, framework_bytes = 0, usable_bytes = 0;
  bool open = false, is_server = false, keeps_up = true;
  std::string mode;
};

double sum_s(std::span<const KernelForecast> kernels) {
  double sum = 0;
  for (const KernelForecast& kernel : kernels)
    sum += static_cast<double>(kernel.count) * kernel.latency_s.value;
  return sum;
}

/// Kernels that the host launches one by one.
double launches_of(std::span<const KernelForecast> kernels, bool cuda_graphs) {
  double count = 0;
  for (const KernelForecast& kernel : kernels) {
    if (!cuda_graphs || kernel.phase != "decode") count += static_cast<double>(kernel.count);
  }
  return count;
}

StepWork work_of(const Forecast& f) {
  if (f.parallel && f.parallel->ranks > 1)
    throw Error(
        ErrorKind::kUnsupported,
        "takes several GPUs: jobs that share a GPU run on that one; leave out dp, tp and pp");
  return {.step_s = f.latency_s,
          .kernels_s = scaled(f.latency_s, f.kernels_s / f.latency_s.value),
          .kernels = f.kernels,
          .launches = launches_of(f.kernels, false),
          .peak_bytes = f.memory.peak_bytes,
          .framework_bytes = f.memory.framework_bytes,
          .usable_bytes = f.memory.usable_bytes,
          .mode = f.mode};
}

StepWork work_of(const GenerationForecast& f) {
  if (f.gpus > 1)
    throw Error(
        ErrorKind::kUnsupported,
        "takes several GPUs: jobs that share a GPU run on that one; leave out tp, pp and dp");
  StepWork work{.kernels = f.kernels,
                .launches = launches_of(f.kernels, f.used.execution.cuda_graphs),
                .peak_bytes = f.memory.peak_bytes,
                .framework_bytes = f.memory.framework_bytes,
                .usable_bytes = f.memory.device_bytes,
                .mode = f.serving ? "server" : "generation"};
  if (!f.serving) {
    work.step_s = f.latency;
    work.kernels_s = scaled(f.latency, std::min(1.0, sum_s(f.kernels) / f.latency.value));
    return work;
  }
  // A server is busy for a share of the time between two answers.
  const double step = 1 / f.serving->steady_or_all().requests_per_s;
  const double spread_low = f.tpot.low / f.tpot.value, spread_high = f.tpot.high / f.tpot.value;
  const double busy = step * std::min(1.0, f.serving->busy_share);
  work.is_server = true;
  work.keeps_up = f.serving->keeps_up;
  work.open = f.serving->rate > 0 || f.serving->trace;
  work.step_s = work.open ? Interval{step, step, step}
                          : Interval{step, step * spread_low, step * spread_high};
  work.kernels_s = {busy, busy * spread_low, busy * spread_high};
  work.repeats = busy / std::max(sum_s(f.kernels), 1e-9);
  work.launches *= work.repeats;
  return work;
}

StepWork work_of(const AcceleratorForecast&) {
  throw Error(ErrorKind::kUnsupported, "runs on an accelerator: jobs share GPUs only");
}

/// How sure it is that the input binds a step of this time: 0 to 1, without a jump.
double input_binds(const JobBounds& bounds, double step_s, const SharingConstants& c) {
  if (!bounds.loader_s) return 1;
  const double x = std::clamp(
      (*bounds.loader_s / step_s - c.input_free_share) / (c.input_binds_share - c.input_free_share),
      0.0, 1.0);
  return x * x * (3 - 2 * x);
}

/// Sums over the kernels of a step.
struct KernelSums {
  double overlap = 0, filled_s = 0, seconds = 0, bytes = 0;
};

/// How processes take turns on a GPU.
struct Turns {
  double quantum_s = 0;
  bool interrupt = false;  ///< a turn ends within a kernel
  double switch_s = 0;
};

/// NVIDIA's GPUs interrupt kernels from Pascal on (compute preemption). Others were not measured:
/// they are taken to have the long turns of the one that was.
Turns turns_of(ShareHow how, const Device& device) {
  const SharingConstants& c = bundled_laws().sharing;
  if (how != ShareHow::kTimeSlice) return {.quantum_s = c.kernel_turn_s};
  const Architecture architecture = device.gpu().architecture;
  const bool interrupts =
      !is_amd(architecture) && !is_systolic(architecture) && architecture >= Architecture::kPascal;
  if (!interrupts) return {.quantum_s = c.slice_turn_s};
  return {.quantum_s = c.short_slice_turn_s, .interrupt = true, .switch_s = c.switch_s};
}

KernelSums sums_of(const StepWork& work, const Turns& turns, double stretch) {
  KernelSums sums;
  for (const KernelForecast& kernel : work.kernels) {
    const double n = static_cast<double>(kernel.count) * work.repeats,
                 l = kernel.latency_s.value * stretch;
    sums.overlap += n * l / ((turns.interrupt ? 0 : l) + turns.quantum_s);
    sums.seconds += n * l;
    // A kernel without blocks is taken to fill the GPU.
    sums.filled_s += n * l * (kernel.sm_share > 0 ? kernel.sm_share : 1.0);
    sums.bytes += n * static_cast<double>(kernel.bytes);
  }
  return sums;
}

/// The step, where it takes no less than this.
Interval at_least(const Interval& step, const Interval& least, double more) {
  return {std::max(step.value, least.value + more), std::max(step.low, least.low + more),
          std::max(step.high, least.high + more)};
}

JobAlone alone_of(const StepWork& work, const JobBounds& bounds, ShareHow how,
                  const Device& device) {
  const SharingConstants& c = bundled_laws().sharing;
  const bool slices = how == ShareHow::kTimeSlice;
  JobAlone job{.step_s = step_time(work.step_s, bounds),
               .measured = bounds.steps_per_s.has_value(),
               .processes = bounds.processes,
               .open = work.open && !bounds.steps_per_s,
               .memory_bytes = bounds.processes * work.peak_bytes};
  const double processes = static_cast<double>(bounds.processes);
  // A measured step has the gaps of a slow host; a forecast one those that it waits for.
  const double waits = work.is_server ? 0 : std::max(0.0, work.step_s.value - work.kernels_s.value);
  // Processes that all want the GPU wait for each other.
  if (!job.measured)
    job.step_s =
        at_least(job.step_s, scaled(work.kernels_s, processes), slices ? processes * waits : 0);
  const double step = job.step_s.value;
  job.launches = work.launches;
  job.kernels_s = work.kernels_s.value;

  // What neither kernels nor launches nor the input explain of a measured step is time of the GPU.
  const double binds = input_binds(bounds, step, c);
  const double kernels = work.kernels_s.value;
  double gpu = kernels;
  if (job.measured) {
    gpu += (1 - binds) * (std::max(kernels, step - job.launches * c.launch_s) - kernels);
    gpu = std::min(gpu, step / processes);  // a measured time is believed
  }
  const double stretch = gpu / kernels;
  job.gpu_s = {gpu, std::min(gpu, std::max(work.kernels_s.low, gpu * work.kernels_s.low / kernels)),
               gpu * work.kernels_s.high / kernels};

  const Turns turns = turns_of(how, device);
  const KernelSums sums = sums_of(work, turns, stretch);
  job.turn_s = mean_turn_s(gpu, sums.overlap);
  job.switch_s = turns.switch_s;
  const double gaps = job.measured ? job.launches * c.launch_s : waits;
  job.held_s = gpu + (slices && !work.is_server ? gaps : 0);
  job.gpu_share = std::clamp(processes * job.held_s / step, kLeastShare, kLargestShare);
  job.sm_share = sums.seconds > 0 ? sums.filled_s / sums.seconds : 0;
  job.dram_share = std::min(1.0, processes * sums.bytes / (step * device.memory_bytes_per_s));

  // Steps in flight beyond the first.
  if (!slices && bounds.processes == 1) {
    const double host = std::min(1.0, job.launches * c.launch_s / std::max(step - gpu, 1e-9));
    const double loader =
        std::clamp(static_cast<double>(bounds.prefetch) - 1, 0.0, c.deepest_prefetch - 1);
    const double loads = bounds.loader_s ? binds : bounds.prefetch > 0 ? 1.0 : 0.0;
    job.steps_ahead = loads * std::max(loader, host) + (1 - loads) * host;
  }
  return job;
}

}  // namespace

Interval step_time(const Interval& step_s, const JobBounds& bounds) {
  if (bounds.steps_per_s) {
    const double step = 1 / *bounds.steps_per_s;
    return {step, step, step};
  }
  const double loader = bounds.loader_s.value_or(0);
  const auto with_loader = [&](double step) {
    return bounds.prefetch > 0 ? std::max(step, loader) : step + loader;
  };
  return {with_loader(step_s.value), with_loader(step_s.low), with_loader(step_s.high)};
}

TurnTaker turn_taker(const JobAlone& job) {
  return {.share = job.gpu_share,
          .turn_s = job.turn_s,
          .held_s = job.held_s,
          .depth = 1 + job.steps_ahead,
          .processes = static_cast<int>(job.processes),
          .open = job.open,
          .switch_s = job.switch_s};
}

AloneForecast alone_by(const Result& forecast, const GpuRef& gpu, const JobBounds& bounds,
                       ShareHow how) {
  return std::visit(
      [&](const auto& f) {
        const StepWork work = work_of(f);
        return AloneForecast{.job = alone_of(work, bounds, how, gpu.content->device),
                             .mode = work.mode,
                             .keeps_up = work.keeps_up,
                             .framework_bytes = work.framework_bytes,
                             .usable_bytes = work.usable_bytes};
      },
      forecast);
}

AloneForecast alone_on(const Forecaster& forecaster, const GpuRef& gpu, const Job& job,
                       ShareHow how) {
  try {
    return alone_by(ask(forecaster, job.model, gpu, job.request, Detail::kNumbers), gpu, job.bounds,
                    how);
  } catch (const OptionError&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("job '{}': {}", job.name, error.what()));
  }
}

double speed_with_kernels(const JobAlone& job, double ratio) {
  if (job.open) return std::min(1.0, 1 / ratio);  // of its work while there is some
  const double share = static_cast<double>(job.processes) * job.gpu_s.value / job.step_s.value;
  const double busy = std::min(1.0, share);
  return std::min(1.0, 1 / (1 - busy + busy * ratio));
}

Interval slice_speed_interval(double r) {
  const double spread = std::exp(bundled_laws().sharing.slice_speed_log);
  return {r, r < 1 ? r / spread : r, std::min(1.0, r * spread)};
}

bool is_tight_together(int64_t memory_bytes, int64_t usable_bytes) {
  return static_cast<double>(memory_bytes) >
         bundled_laws().sharing.memory_share * static_cast<double>(usable_bytes);
}

std::vector<double> relative_speeds(const std::vector<JobAlone>& jobs) {
  std::vector<TurnTaker> takers;
  for (const JobAlone& job : jobs) takers.push_back(turn_taker(job));
  return speeds_by_turns(takers);
}

Interval relative_speed_interval(double r, ShareHow how, double others_share) {
  const SharingConstants& c = bundled_laws().sharing;
  const bool slices = how == ShareHow::kTimeSlice;
  const double factor = std::exp(slices ? c.slice_slow_down_log : c.kernel_slow_down_log);
  // Beside a job that hardly wants the GPU, nothing is unsure.
  const double term = (slices ? c.slice_slow_down : c.kernel_slow_down) *
                      std::min(1.0, others_share / c.sure_share);
  const double slow_down = 1 / r - 1;
  return {r, 1 / (1 + slow_down * factor + term),
          1 / (1 + std::max(0.0, slow_down / factor - term))};
}

}  // namespace tilecast
