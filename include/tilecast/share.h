#pragma once

// Jobs that share a GPU: how fast each is beside the others.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// How the driver lets jobs share a GPU (docs/explanation/sharing.md).
enum class ShareHow : uint8_t {
  kTimeSlice,  ///< processes take turns, each for a slice of time; NVIDIA's default
  kMps,        ///< processes of CUDA's Multi-Process Service: kernels of all are in one queue
  kStreams,    ///< streams of one process: as kMps, with one context
  kMig         ///< each job has a slice of its own
};

constexpr auto choice_words(ShareHow) {
  return std::array<std::string_view, 4>{"time-slice", "mps", "streams", "mig"};
}

/// What bounds a job beside the GPU, and what is known of it.
struct JobBounds {
  /// Time of host and input that a step takes beside its kernels. 0: the input never binds, so that
  /// a measured step which kernels and launches do not explain is time of the GPU. Not given: it is
  /// not known whether the input binds.
  std::optional<double> loader_s;
  std::optional<double> steps_per_s;  ///< measured alone on this GPU; not given: forecast
  int64_t prefetch = 0;   ///< batches that the loader makes ahead; 0: the step waits for its input
  int64_t processes = 1;  ///< of the job on this GPU; each does steps of its own
  std::string slice;      ///< profile of MIG; "": chosen
  /// CUDA_MPS_ACTIVE_THREAD_PERCENTAGE / 100; not given: all SMs.
  std::optional<double> mps_share;
};

/// A request with a name, and what bounds it from outside.
struct Job {
  std::string name;  ///< differs from those of the other jobs
  ModelRef model;
  Request request;
  JobBounds bounds;
};

/// What a job takes alone, as the law of sharing needs it.
struct JobAlone {
  Interval step_s;  ///< measured, or forecast with host and input
  bool measured = false;
  Interval gpu_s;                    ///< of one process
  double kernels_s = 0, held_s = 0;  ///< of one process
  double gpu_share = 0;
  double turn_s = 0, switch_s = 0;
  double steps_ahead = 0;
  int64_t processes = 1;
  bool open = false;
  double sm_share = 0, dram_share = 0;
  double launches = 0;
  int64_t memory_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = JobAlone;
    field.is("JobAlone", "What a job takes alone on the GPU.");
    field.interval({"step_s", "step_low_s", "step_high_s"}, "s",
                   "time of a step: a pass, a batch of generated texts, or a server's time between "
                   "two answered requests",
                   &Self::step_s);
    field("measured", "", "the time of a step is from steps_per_s", &Self::measured);
    field.interval({"gpu_s", "gpu_low_s", "gpu_high_s"}, "s",
                   "kernels of a step of one process; what a measured step leaves unexplained, if "
                   "the input does not bind",
                   &Self::gpu_s);
    field("kernels_s", "s", "the kernels of a step as forecast", &Self::kernels_s);
    field("held_s", "s",
          "time for which a step holds the GPU: with time slices also gaps between launches, which "
          "are too short to pass it on",
          &Self::held_s);
    field("gpu_share", "", "share of the time in which the job wants the GPU", &Self::gpu_share);
    field("turn_s", "s", "how long it keeps the GPU while another job waits", &Self::turn_s);
    field("switch_s", "s", "time after a turn in which nobody has the GPU, where another job waits",
          &Self::switch_s);
    field("steps_ahead", "", "steps that its host or loader may be ahead of the GPU",
          &Self::steps_ahead);
    field("processes", "", "of the job on this GPU", &Self::processes);
    field("open", "", "a server whose requests arrive at a rate, whatever its speed", &Self::open);
    field("sm_share", "", "SMs that its kernels fill while they run", &Self::sm_share);
    field("dram_share", "", "share of the memory's bandwidth, mean over the step",
          &Self::dram_share);
    field("launches", "", "kernels of a step", &Self::launches);
    field("memory_bytes", "bytes", "peak of all its processes, with their contexts",
          &Self::memory_bytes);
  }
};

/// A job beside the others.
struct SharedJob {
  std::string name, model, mode;
  JobAlone alone;
  Interval relative_speed;  ///< over that alone, at most 1
  Interval steps_per_s;
  std::string slice;
  int64_t memory_bytes = 0;
  bool keeps_up = true;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SharedJob;
    field.is("SharedJob", "A job beside the others on one GPU.");
    field("name", "", "of the job", &Self::name);
    field("model", "", "name of the model", &Self::model);
    field("mode", "", "what it does: inference, training, generation or server", &Self::mode);
    field("alone", "", "what it takes alone", &Self::alone);
    field.interval({"relative_speed", "relative_speed_low", "relative_speed_high"}, "",
                   "speed over that alone; of a server with a rate: of its steps",
                   &Self::relative_speed);
    field.interval({"steps_per_s", "steps_per_s_low", "steps_per_s_high"}, "1/s",
                   "steps of each process; of a server: answered requests", &Self::steps_per_s);
    field("slice", "", "profile of MIG; empty: none", &Self::slice);
    field("memory_bytes", "bytes", "peak of all its processes; with slices on its slice",
          &Self::memory_bytes);
    field("keeps_up", "", "a server's queue does not grow without bound", &Self::keeps_up);
  }
};

/// Jobs on one GPU.
struct ShareForecast {
  std::string gpu, gpu_name, how;
  std::vector<SharedJob> jobs;
  Interval sum_of_relative_speeds;
  double gpu_demand = 0, sm_demand = 0, dram_demand = 0;
  int64_t memory_bytes = 0, usable_bytes = 0;
  bool fits = true, memory_is_tight = false;
  std::vector<std::string> assumptions, warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ShareForecast;
    field.is_document("ShareForecast", "Jobs that share a GPU.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("how", "", "how they share it", &Self::how, {"time-slice", "mps", "streams", "mig"});
    field("jobs", "", "in the order of the question", &Self::jobs);
    field.interval(
        {"sum_of_relative_speeds", "sum_of_relative_speeds_low", "sum_of_relative_speeds_high"}, "",
        "above 1: more work is done than by one job after the other",
        &Self::sum_of_relative_speeds);
    field("gpu_demand", "", "sum of the shares of time in which the jobs want the GPU",
          &Self::gpu_demand);
    field("sm_demand", "", "the same, with the SMs that their kernels fill in that time",
          &Self::sm_demand);
    field("dram_demand", "", "sum of the shares of the memory's bandwidth that they take alone",
          &Self::dram_demand);
    field("memory_bytes", "bytes", "of all jobs; with slices: of the job that fills its slice most",
          &Self::memory_bytes);
    field("usable_bytes", "bytes", "memory that programs see; with slices: of that slice",
          &Self::usable_bytes);
    field("fits", "", "whether the memory suffices", &Self::fits);
    field("memory_is_tight", "",
          "it fits, but takes more than the part above which measured pairs did not run",
          &Self::memory_is_tight);
    field("assumptions", "", "what matters to the numbers, given or by default",
          &Self::assumptions);
    field("warnings", "", "what is not certain, and what to do", &Self::warnings);
  }
};

/// What measured pairs say of jobs beside the law: effects on the logarithm of the slow-down
/// 1/r - 1, as a job that is slowed and as one that slows others.
struct PairEffects {
  struct Effect {
    std::string job;
    double slowed_log = 0, slows_log = 0;
  };
  std::vector<Effect> effects;
  double spread_log = 0;  ///< standard deviation of log(measured / fitted) of further pairs

  const Effect* find(std::string_view job) const;
};

struct ShareQuery {
  std::vector<Job> jobs;
  ShareHow how = ShareHow::kTimeSlice;
  PairEffects pairs;  ///< empty: none was measured
};

/// Relative speeds of jobs that take turns on one GPU, each at most 1. A pure function: the order
/// of the jobs does not matter.
std::vector<double> relative_speeds(const std::vector<JobAlone>& jobs);

/// The relative speed `r` with its interval: what pairs that were measured leave of the law's error
/// (data/laws/sharing.json). `others_share`: the sum of the other jobs' shares of GPU time.
Interval relative_speed_interval(double r, ShareHow how, double others_share);

/// Jobs beside each other. Throws Error{kInput} for no job, names that repeat and bounds that
/// contradict each other; Error{kUnsupported} for slices that the GPU lacks.
ShareForecast share_gpu(const Forecaster& forecaster, const GpuRef& gpu, const ShareQuery& query);

}  // namespace tilecast
