#pragma once

// Traces of PyTorch's profiler, of Nsight Systems and of operators alone (Chakra): what was
// measured, beside what it should take, and on another GPU.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// How an operator of a trace is known.
enum class TracedKind : uint8_t {
  kForecast,    ///< by a model of its kernels
  kTraffic,     ///< by the bytes of its tensors alone
  kUnknown,     ///< measured only: no operator, or one without sizes
  kTransfer,    ///< copies and fills
  kCollective,  ///< communication between GPUs
};

constexpr auto choice_words(TracedKind) {
  return std::array<std::string_view, 5>{"forecast", "traffic", "unknown", "transfer",
                                         "collective"};
}

/// Kernels of one operator with the same arguments, over the whole trace.
struct TracedOperator {
  std::string name, sizes, dtype, kernel;
  TracedKind kind{};
  double calls = 0;  ///< those whose kernels began before the trace are a part of one
  int64_t kernels = 0;
  double measured_s = 0, total_s = 0, share = 0;
  std::optional<Interval> forecast;
  double ratio = 0;  ///< measured over forecast; 0: no forecast
  int64_t flops = 0, bytes = 0;
  std::string limit, predictor;
  bool extrapolated = false;
  bool slow = false;
  std::string reason;
  double gain_s = 0;
  std::optional<Interval> carried;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TracedOperator;
    field.is("TracedOperator", "Kernels of an operator with the same arguments.");
    field("name", "", "the operator of PyTorch; of kernels without one, the kernel", &Self::name);
    field("sizes", "", "of its tensors", &Self::sizes);
    field("dtype", "", "of the first tensor; empty: the trace does not state it", &Self::dtype);
    field("kernel", "", "the kernel that takes most of its time", &Self::kernel);
    field("kind", "",
          "how it is known: forecast by a model, by the traffic of its tensors, measured only, a "
          "copy or fill, a collective",
          &Self::kind);
    field("calls", "", "of the operator", &Self::calls);
    field("kernels", "", "that they launched", &Self::kernels);
    field("measured_s", "s", "kernels of one call", &Self::measured_s);
    field("total_s", "s", "of all calls", &Self::total_s);
    field("share", "", "of the time of all kernels", &Self::share);
    field.if_set("forecast", "s", "what a call should take on this GPU", &Self::forecast);
    field("ratio", "", "measured over forecast; 0: there is no forecast", &Self::ratio);
    field("flops", "", "of one call; 0: not known", &Self::flops);
    field("bytes", "bytes", "of one call; 0: not known", &Self::bytes);
    field("limit", "", "what bounds the forecast", &Self::limit);
    field("predictor", "", "the model that it comes from", &Self::predictor);
    field("extrapolated", "", "outside of what the model was trained on", &Self::extrapolated);
    field("slow", "", "measured above the interval of the forecast", &Self::slow);
    field("reason", "", "why, as far as the trace tells; empty: it is not slow", &Self::reason);
    field("gain_s", "s", "what all calls would save at the forecast time", &Self::gain_s);
    field.if_set("carried", "s", "what a call takes on the other GPU", &Self::carried);
  }
};

/// Time in which the GPU ran nothing.
struct TracedIdle {
  std::string why;
  double seconds = 0, share = 0;
  int64_t gaps = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TracedIdle;
    field.is("TracedIdle", "Time in which the GPU ran nothing.");
    field("why", "",
          "the host launched late; it launched late as it waited for the GPU before; the gap "
          "between kernels that were launched in time; the trace does not tell",
          &Self::why, {"host", "synchronization", "between kernels", "unknown"});
    field("seconds", "s", "of all gaps", &Self::seconds);
    field("share", "", "of the trace's span", &Self::share);
    field("gaps", "", "their number", &Self::gaps);
  }
};

/// A step that the profiler marked.
struct TracedStep {
  std::string name;
  double span_s = 0, busy_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TracedStep;
    field.is("TracedStep", "A step that the profiler marked.");
    field("name", "", "its mark", &Self::name);
    field("span_s", "s", "of the host", &Self::span_s);
    field("busy_s", "s", "in which the GPU ran work that the step launched", &Self::busy_s);
  }
};

/// The trace on another GPU.
struct CarriedTrace {
  std::string gpu, gpu_name, host, cluster;
  Interval kernels_s, span_s;
  double unknown_share = 0;
  int64_t traced_batch = 0, batch = 0;
  std::string traced_dtype, dtype;
  double kept_share = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = CarriedTrace;
    field.is("CarriedTrace", "The trace on another GPU.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("host", "", "what was assumed of the host", &Self::host);
    field.interval({"kernels_s", "kernels_low_s", "kernels_high_s"}, "s",
                   "sum of the kernels, copies and collectives", &Self::kernels_s);
    field.interval({"span_s", "span_low_s", "span_high_s"}, "s",
                   "from the first launch to the end of the last kernel", &Self::span_s);
    field("unknown_share", "",
          "share of the measured time that was carried by the ratio of bandwidths alone",
          &Self::unknown_share);
    field("cluster", "", "of the collectives; empty: they take their measured time",
          &Self::cluster);
    field("traced_batch", "",
          "leading size that the activations of the trace have in common; 0: the batch is not "
          "changed",
          &Self::traced_batch);
    field("batch", "", "the same there", &Self::batch);
    field("traced_dtype", "",
          "dtype in which the trace's products take most of their time; empty: it is not changed",
          &Self::traced_dtype);
    field("dtype", "", "the same there", &Self::dtype);
    field("kept_share", "",
          "share of the measured time of operators that do not say how another batch or dtype "
          "changes them: they are carried as they are",
          &Self::kept_share);
  }
};

/// Memory by the trace's events, beside what Tilecast's models say of the same operators.
struct TracedMemoryUse {
  bool of_host = false;
  int64_t peak_bytes = 0, reserved_bytes = 0, held_bytes = 0, results_bytes = 0,
          workspace_bytes = 0;
  int64_t model_reserved_bytes = 0, model_weights_bytes = 0, known_results_bytes = 0,
          model_results_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TracedMemoryUse;
    field.is("TracedMemoryUse",
             "Memory by the trace's events, beside what Tilecast says of the same operators.");
    field("of_host", "", "of the host: no GPU's was recorded", &Self::of_host);
    field("peak_bytes", "bytes", "most that tensors had", &Self::peak_bytes);
    field("reserved_bytes", "bytes", "most that PyTorch's allocator held; 0: of the host",
          &Self::reserved_bytes);
    field("held_bytes", "bytes", "in use when the trace begins, as parameters are",
          &Self::held_bytes);
    field("results_bytes", "bytes", "taken in the trace and in use at the peak",
          &Self::results_bytes);
    field("workspace_bytes", "bytes", "most that one operator took and gave back",
          &Self::workspace_bytes);
    field(
        "model_reserved_bytes", "bytes",
        "what Tilecast's model of PyTorch's allocator holds for the same requests; 0: of the host",
        &Self::model_reserved_bytes);
    field("model_weights_bytes", "bytes",
          "weights of the operators of a step; 0: the trace does not tell them from other tensors",
          &Self::model_weights_bytes);
    field("known_results_bytes", "bytes", "part of the results whose operators are known",
          &Self::known_results_bytes);
    field("model_results_bytes", "bytes", "the same part by the sizes of these operators' results",
          &Self::model_results_bytes);
  }
};

/// What a trace shows.
struct TraceReport {
  std::string file, gpu, gpu_name, traced_gpu;
  double span_s = 0, kernels_s = 0, busy_s = 0, idle_s = 0, idle_share = 0;
  double exposed_communication_s = 0;
  std::vector<TracedIdle> idle;
  std::vector<TracedStep> steps;
  double step_s = 0, step_spread = 0;
  int64_t kernels = 0, streams = 0, graph_kernels = 0;
  std::vector<TracedOperator> operators;
  double gain_s = 0, forecast_share = 0, unknown_share = 0;
  std::optional<Interval> should_take;
  int64_t memory_peak_bytes = 0, memory_reserved_bytes = 0;
  std::optional<TracedMemoryUse> memory;
  std::optional<CarriedTrace> carried;
  std::vector<std::string> assumptions, warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TraceReport;
    field.is_document("TraceReport", "What a trace of PyTorch's profiler shows.");
    field("file", "", "the trace", &Self::file);
    field("gpu", "", "id of the GPU that it is compared with; empty: none is known", &Self::gpu);
    field("gpu_name", "", "its product name", &Self::gpu_name);
    field("traced_gpu", "", "the GPU as the trace names it", &Self::traced_gpu);
    field("span_s", "s", "from the first launch to the end of the last kernel", &Self::span_s);
    field("kernels_s", "s", "sum of all kernels, copies and fills", &Self::kernels_s);
    field("busy_s", "s", "in which the GPU ran any of them", &Self::busy_s);
    field("idle_s", "s", "the rest of the span", &Self::idle_s);
    field("idle_share", "", "of the span", &Self::idle_share);
    field("exposed_communication_s", "s", "in which it ran collectives and nothing else",
          &Self::exposed_communication_s);
    field("idle", "", "why it was idle, the largest part first", &Self::idle);
    field("steps", "", "that the profiler marked", &Self::steps);
    field("step_s", "s", "median of their spans; 0: none was marked", &Self::step_s);
    field("step_spread", "", "longest over shortest step, less 1", &Self::step_spread);
    field("kernels", "", "number of kernels, copies and fills", &Self::kernels);
    field("streams", "", "on which they ran", &Self::streams);
    field("graph_kernels", "", "that a CUDA graph launched", &Self::graph_kernels);
    field("operators", "", "the one that takes longest first", &Self::operators);
    field.if_set("should_take", "s",
                 "sum of the operators' forecasts on this GPU, where nothing was measured",
                 &Self::should_take);
    field("gain_s", "s", "what the slow ones would save at their forecast times", &Self::gain_s);
    field("forecast_share", "", "share of the kernels' time that has a forecast",
          &Self::forecast_share);
    field("unknown_share", "", "share that is measured only, without copies and collectives",
          &Self::unknown_share);
    field("memory_peak_bytes", "bytes",
          "most that tensors had of one GPU's memory; 0: the trace does not state it",
          &Self::memory_peak_bytes);
    field("memory_reserved_bytes", "bytes", "most that PyTorch's allocator held of it",
          &Self::memory_reserved_bytes);
    field.if_set("memory", "", "by its events (profile_memory=True), beside Tilecast's models",
                 &Self::memory);
    field.if_set("carried", "", "the trace on another GPU, or with another batch or dtype",
                 &Self::carried);
    field("assumptions", "", "what matters to the numbers", &Self::assumptions);
    field("warnings", "", "what is not certain, and what to do", &Self::warnings);
  }
};

/// What is asked of a trace.
struct TraceQuery {
  std::string path;  ///< .json, .json.gz or .sqlite
  /// The GPU that it was made on; not given: the trace names it.
  std::optional<GpuRef> traced;
  std::optional<GpuRef> gpu;  ///< the GPU to carry it to; not given with a change: its own
  /// How often faster the host is there; infinity: all kernels are launched in time, as from a
  /// CUDA graph. At least 0.001.
  double host_speed = 1;
  /// A trace of the same program on the other GPU, whose host, launches and kernels are replayed
  /// with the carried times; "": this trace.
  std::string host_trace;
  /// Samples of a step over those of the trace.
  double batch_factor = 1;
  /// "bf16", "fp16", "fp32" or "tf32" of the tensors that have the dtype of the trace's products;
  /// "": as in the trace.
  std::string dtype;
  /// Id, alias or file of the cluster whose links the collectives take; "": as measured.
  std::string cluster;
};

/// The operations of a trace as they were measured and as they are carried, for ui.perfetto.dev.
struct TracedTimeline {
  std::string json;
};

/// What the trace shows, beside what it should take. Kernels are forecast with the forecaster's
/// weights and bounded by the 80 % interval. Throws Error{kInput} for what is no trace, one without
/// work of a GPU to carry, or one whose operators show no batch that such a factor changes to a
/// whole number; Error{kNotFound} for no such file; Error{kUnsupported} for more events than a
/// trace may have.
TraceReport report_trace(const Forecaster& forecaster, const TraceQuery& query);

/// The same as a timeline: kernels by stream and calls of the runtime by thread, measured, and if
/// the trace is carried, beside it as it is there. Throws as `report_trace`.
TracedTimeline timeline_of_trace(const Forecaster& forecaster, const TraceQuery& query);

/// Whether a path names a trace of a profiler, by its name or the beginning of its text.
bool is_profiler_trace(const std::string& path);

/// Two traces operator by operator: `a` with each operator's time in `b` as what it is carried to.
/// Operators are matched by their work (kind, dtype, FLOPs, bytes and sizes of their kernels);
/// those without known work by name, sizes and dtype, or by the kernel's name. `traced`: the GPU
/// that `a` was made on; not given: the trace names it. Throws as `report_trace`, and Error{kInput}
/// for a `b` without work of a GPU.
TraceReport compare_traces(const Forecaster& forecaster, const std::string& a, const std::string& b,
                           const std::optional<GpuRef>& traced = {});

}  // namespace tilecast
