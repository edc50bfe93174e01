#include "scenario/diffusion/diffusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "collectives/collective.h"
#include "ops/op_def.h"
#include "predict/collective.h"
#include "request/access.h"
#include "scenario/diffusion/diffusion_batch.h"
#include "scenario/fit.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
#include "scenario/parallel/collective_costs.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/power.h"
#include "scenario/timed_pass.h"
#include "scenario/warnings.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Stage = DiffusionPipeline::Stage;

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kEncode:
      return "encode";
    case Stage::kDenoise:
      return "denoise";
    case Stage::kDecode:
      break;
  }
  return "decode";
}

/// Ranks `stride` apart, on the nodes of `all` ranks.
CommGroup group_of(int64_t ranks, int64_t stride, int64_t all, const Cluster& cluster) {
  const int64_t node = std::min(cluster.gpus_per_node, all);
  int64_t inside = std::max<int64_t>(1, std::min(ranks, node / stride));
  // Groups that begin inside a node may go on in the next one.
  while (inside > 1 && (ranks % inside != 0 || node % (inside * stride) != 0)) --inside;
  return {.ranks = ranks,
          .ranks_per_node = inside,
          .concurrent = std::max<int64_t>(1, node / inside),
          .stride = std::min(stride, node)};
}

/// Two neighbours of a ring. All ranks wait for the slowest pair, which lies on two nodes where the
/// ring does.
CommGroup ring_pair(int64_t ranks, int64_t stride, int64_t all, const Cluster& cluster) {
  CommGroup pair = group_of(ranks, stride, all, cluster);
  pair.ranks_per_node = pair.ranks_per_node == pair.ranks ? 2 : 1;
  pair.ranks = 2;
  return pair;
}

bool has_dtype(const Graph& graph, DType dtype) {
  return std::any_of(graph.tensors.begin(), graph.tensors.end(),
                     [&](const Tensor& tensor) { return tensor.dtype == dtype; });
}

/// Prices the exchanges of ranks that share sequences. Around a ring, keys and values could travel
/// while attention computes; xDiT's batches on rings of 4 and 8 GPUs (ML.ENERGY Benchmark V3) take
/// longer than if nothing was hidden.
class SequenceCosts {
 public:
  SequenceCosts(const Cluster& cluster, const DiffusionPipeline::Batch& batch)
      : cluster_(cluster), batch_(batch) {}

  void price(const Program& program, std::vector<KernelTime>& times) {
    std::vector<bool> priced(times.size(), false);
    for (const Launch& launch : program.launches) {
      const Kernel& kernel = program.kernels[launch.kernel];
      if (!kernel.is<Collective>() || priced[launch.kernel]) continue;
      priced[launch.kernel] = true;
      set_time(times[launch.kernel], time_of(kernel));
    }
  }
  bool extrapolated() const { return extrapolated_; }

 private:
  CollectiveTime time_of(const Kernel& kernel) {
    static const OpId ring = require_op("ring_exchange");
    const int64_t ranks = std::get<Collective>(kernel.shape).ranks;
    // Ulysses ranks are neighbours; a ring joins one of each of their groups.
    const bool in_ring = kernel.op == ring;
    const int64_t all = batch_.ulysses * batch_.ring * batch_.cfg;
    const CommGroup group = in_ring ? ring_pair(ranks, batch_.ulysses, all, cluster_)
                                    : group_of(ranks, 1, all, cluster_);
    const CollectiveTime time = collective_time(collective_kind(kernel), collective_bytes(kernel),
                                                kernel.dtype, group, cluster_);
    extrapolated_ = extrapolated_ || time.extrapolated;
    return time;
  }

  const Cluster& cluster_;
  const DiffusionPipeline::Batch& batch_;
  bool extrapolated_ = false;
};

/// One part with its times.
struct TimedPart {
  DiffusionPipeline::Part part;
  TimedPass pass;
  PassMemory memory;
  int64_t runs = 1;  ///< in the whole batch

  double seconds() const { return pass.totals.seconds * static_cast<double>(runs); }
};

class DiffusionRun {
 public:
  DiffusionRun(const PassSetup& setup, const TimingSetup& timing,
               const DiffusionPipeline::Batch& batch)
      : setup_(setup),
        timing_(timing),
        batch_(batch),
        cluster_(cluster_of_batch(setup)),
        costs_(cluster_, batch_) {
    timing_.price_collectives = [this](const Program& program, std::vector<KernelTime>& times) {
      costs_.price(program, times);
    };
    for (DiffusionPipeline::Part& part : setup.model.pipeline->parts(batch_)) add(std::move(part));
  }

  void fill(Forecast& f) {
    const auto names = std::make_shared<TextArena>();
    f.names = names;
    for (const TimedPart& part : parts_) add_rows(f, part, *names);
    add_sums(f);
    f.forward_s = f.latency_s;
    add_memory(f);
    if (tf32_decoder_) f.input += ", VAE in tf32";
    describe(f);
    warn(f);
  }

 private:
  static Cluster cluster_of_batch(const PassSetup& setup) {
    Request ranks = setup.request;
    ranks.parallel.cp = setup.request.diffusion.ranks();
    return cluster_of(setup.device, ranks);
  }

  void add(DiffusionPipeline::Part part) {
    const bool wide = setup_.precision.autocast;
    Graph graph = part.build(wide ? DType::kFp32 : setup_.precision.dtype);
    if (setup_.precision.dtype != DType::kTf32 && has_dtype(graph, DType::kTf32)) {
      tf32_decoder_ = setup_.device.matmul_peak(DType::kTf32) > 0;
      if (!tf32_decoder_) graph = part.build(DType::kFp32);
    }
    // Every rank of a pass has a share of its result.
    if (part.stage == Stage::kDenoise)
      noise_bytes_ = checked_product(
          {tensor_bytes(graph.tensor(graph.outputs.front())), batch_.ulysses, batch_.ring});
    graph.name = part.name;
    graph = complete_graph(std::move(graph), setup_.model, setup_.request, setup_.precision);
    const int64_t steps = part.stage == Stage::kDenoise ? *setup_.request.diffusion.steps : 1;
    TimedPart timed{.part = std::move(part), .pass = {}, .memory = {}, .runs = 1};
    timed.runs = checked_multiply(timed.part.runs, steps);
    timed.pass =
        time_pass(std::make_shared<const PassWork>(std::move(graph), LifetimeOptions{}), timing_);
    timed.memory = forecast_memory(timed.pass.graph(), timed.pass.work->memory, setup_);
    parts_.push_back(std::move(timed));
  }

  void add_rows(Forecast& f, const TimedPart& part, TextArena& names) {
    std::vector<KernelForecast> rows =
        describe_events(part.pass.timeline, part.pass.program(), part.pass.times, names);
    std::vector<KernelForecast>& own = rows_of(part.part.component);
    for (KernelForecast& row : rows) {
      row.count = checked_multiply(row.count, part.runs);
      f.kernels.push_back(row);
      own.push_back(row);
    }
    const auto runs = static_cast<double>(part.runs);
    const Interval& seconds = part.pass.totals.seconds;
    f.latency_s.value += runs * seconds.value;
    f.latency_s.low += runs * seconds.low;
    f.latency_s.high += runs * seconds.high;
    f.host_wait_s += runs * part.pass.totals.host_wait_s;
  }

  /// The weights of all networks, and the activations of the one that needs most.
  void add_memory(Forecast& f) const {
    std::set<std::string> counted;
    int64_t weights = 0;
    for (const TimedPart& part : parts_) {
      if (!counted.insert(part.part.component).second) continue;
      weights = checked_add(weights, part.memory.weights_bytes);
      f.parameters = checked_add(f.parameters, part.pass.graph().parameter_count());
    }
    const auto most =
        std::max_element(parts_.begin(), parts_.end(), [](const TimedPart& a, const TimedPart& b) {
          return a.memory.peak_bytes - a.memory.weights_bytes <
                 b.memory.peak_bytes - b.memory.weights_bytes;
        });
    f.memory = most->memory;
    f.memory.weights_bytes = f.memory.at_peak.weights_bytes = weights;
    // Results of a network, and frames that a decoder keeps.
    MemoryParts& peak = f.memory.at_peak;
    peak.temporaries_bytes = checked_add(peak.temporaries_bytes, std::exchange(peak.loss_bytes, 0));
    f.memory.peak_node = most->part.name + ": " + f.memory.peak_node;
    set_peak(f.memory);
  }

  double seconds_of(Stage stage) const {
    double seconds = 0;
    for (const TimedPart& part : parts_) seconds += part.part.stage == stage ? part.seconds() : 0;
    return seconds;
  }

  /// Results of guidance's passes that ran on different ranks, in each step.
  CollectiveTime exchange_of_guidance() const {
    if (batch_.cfg == 1) return {};
    const int64_t stride = batch_.ulysses * batch_.ring;
    return collective_time(CollectiveKind::kAllGather, checked_multiply(batch_.cfg, noise_bytes_),
                           setup_.precision.dtype,
                           group_of(batch_.cfg, stride, stride * batch_.cfg, cluster_), cluster_);
  }

  void describe(Forecast& f) const {
    const DiffusionTerms& terms = setup_.request.diffusion;
    const DiffusionPipeline& pipeline = *setup_.model.pipeline;
    DiffusionForecast d;
    d.steps = *terms.steps;
    d.height = batch_.height;
    d.width = batch_.width;
    if (pipeline.video) {
      d.frames = batch_.frames;
      d.fps = terms.fps;
    }
    d.guidance = *terms.guidance;
    d.passes = batch_.guided ? 2 : 1;
    d.ranks = terms.ranks();
    const auto steps = static_cast<double>(d.steps);
    const double guidance_s = exchange_of_guidance().seconds;
    for (double* end : {&f.latency_s.value, &f.latency_s.low, &f.latency_s.high})
      *end += guidance_s * steps;
    f.forward_s = f.latency_s;
    d.encode_s = seconds_of(Stage::kEncode);
    d.decode_s = seconds_of(Stage::kDecode);
    d.step_s = seconds_of(Stage::kDenoise) / steps + guidance_s;
    d.communication_s = guidance_s * steps;
    for (const TimedPart& part : parts_) {
      d.communication_s += exchanged_s(part);
      int64_t flops = 0;
      for (const Launch& launch : part.pass.program().launches)
        flops =
            checked_add(flops, checked_multiply(part.pass.program().kernels[launch.kernel].flops,
                                                part.pass.program().count(launch)));
      d.parts.push_back({.name = part.part.name,
                         .stage = stage_name(part.part.stage),
                         .runs = part.runs,
                         .run_s = part.pass.totals.seconds,
                         .total_s = part.seconds(),
                         .parameters = part.pass.graph().parameter_count(),
                         .flops = flops});
    }
    const auto outputs = static_cast<double>(batch_.outputs);
    d.seconds_per_output = f.latency_s / outputs;
    d.outputs_per_s = f.latency_s > 0 ? outputs / f.latency_s : 0;
    if (d.fps)
      d.seconds_per_video_second =
          d.seconds_per_output * *d.fps / static_cast<double>(batch_.frames);
    f.diffusion = std::move(d);
  }

  static double exchanged_s(const TimedPart& part) {
    double seconds = 0;
    const Program& program = part.pass.program();
    for (const Launch& launch : program.launches) {
      if (program.kernels[launch.kernel].is<Collective>())
        seconds += part.pass.times[launch.kernel].seconds *
                   static_cast<double>(program.count(launch) * part.runs);
    }
    return seconds;
  }

  void warn(Forecast& f) const {
    std::vector<CountedTimeline> all;
    for (const TimedPart& part : parts_)
      all.push_back({part.pass.timeline, part.pass.program(), part.runs});
    // Of whole networks: decoders have many sizes of tiles, each with a small share.
    for (const auto& [component, rows] : rows_) {
      double seconds = 0;
      for (const KernelForecast& row : rows)
        seconds += row.latency_s * static_cast<double>(row.count);
      if (seconds >= kNoticedShare * f.latency_s)
        add_warning(f.warnings, extrapolation_warning(component, rows));
    }
    add_warning(f.warnings, unmeasured_operators(all));
    add_warning(f.warnings, no_model_warning("", f.kernels));
    add_warning(f.warnings, host_wait_warning("", f.host_wait_s, f.latency_s));
    const double share = f.latency_s > 0 ? f.diffusion->communication_s / f.latency_s : 0;
    if (f.diffusion->ranks == 1) return;
    const bool unmeasured = costs_.extrapolated() || exchange_of_guidance().extrapolated;
    for (Warning& warning :
         link_warnings(cluster_, f.diffusion->ranks, {.unmeasured = unmeasured}, share))
      f.warnings.push_back(std::move(warning));
  }

  std::vector<KernelForecast>& rows_of(const std::string& component) {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const auto& entry) { return entry.first == component; });
    return found != rows_.end()
               ? found->second
               : rows_.emplace_back(component, std::vector<KernelForecast>()).second;
  }

  const PassSetup& setup_;
  TimingSetup timing_;
  const DiffusionPipeline::Batch& batch_;
  Cluster cluster_;
  SequenceCosts costs_;
  std::vector<TimedPart> parts_;
  std::vector<std::pair<std::string, std::vector<KernelForecast>>> rows_;  ///< of each network
  int64_t noise_bytes_ = 0;  ///< the result of one pass of the denoiser, on all its ranks
  bool tf32_decoder_ = false;
};

/// Fills in what every forecast of a pass has.
void describe_request(Forecast& f, const PassSetup& setup) {
  f.model = setup.model.name;
  f.gpu = setup.device.id;
  f.gpu_name = setup.device.name;
  f.mode = choice_name(setup.request.mode);
  f.batch = setup.request.batch;
  f.seq = 1;
  f.dtype = setup.precision.name;
  f.dtype_source = setup.precision.source;
  f.used = setup.request;
  f.used.execution.dtype = setup.precision.name;
}

void add_diffusion_power(Forecast& f, const TimingSetup& timing) {
  DiffusionForecast& d = *f.diffusion;
  f.power = power_of({.kernels = f.kernels, .seconds = f.latency_s, .ranks = d.ranks},
                     timing.power(), f.used);
  if (f.power) d.energy_per_output_j = f.power->energy_j / static_cast<double>(f.batch);
}

}  // namespace

Result run_diffusion(const Inquiry& inquiry) {
  const Model& model = inquiry.model.content->model;
  const Device& device = inquiry.gpu().content->device;
  Request request = inquiry.request;
  const DiffusionPipeline::Batch batch = complete_batch(model, request);
  std::optional<Warning> replaced;
  const bool chosen = request.execution.dtype.empty();
  if (chosen) replaced = choose_dtype(device, request);
  // Work of seconds, at the clock that the board's power allows.
  complete_clocks(request, device, bundled_laws(), "sustained");
  const auto [used, precision] = completed_pass(model, device, request);
  const PassSetup setup{model, device, used, precision};
  const TimingSetup timing =
      timing_setup(setup, inquiry.forecaster.impl().predictor(used.execution.predictor));
  Forecast f;
  describe_request(f, setup);
  if (chosen) f.dtype_source = "default";
  add_warning(f.warnings, replaced);
  f.input = describe_batch(batch, *model.pipeline, used.diffusion);
  add_messages(f.warnings, WarningCode::kModelFile, model.name, model.warnings);
  add_messages(f.warnings, WarningCode::kDeviceFile, device.id, device.warnings);
  f.warnings.insert(f.warnings.end(), precision.warnings.begin(), precision.warnings.end());
  DiffusionRun(setup, timing, batch).fill(f);
  add_diffusion_power(f, timing);
  const double peak = device.matmul_peak(compute_dtype(precision.scheme, precision.dtype));
  if (peak > 0 && f.latency_s > 0)
    f.utilization_ratio = f.mfu_ratio = static_cast<double>(f.flops) / (f.latency_s * peak);
  f.roofs = roofs_of(f.kernels, device);
  warn_of_idle_prices(f.warnings, used.energy, f.power);
  if (may_not_fit(f.memory)) f.warnings.push_back(tight_memory(f.memory, device, f.gpus()));
  if (!f.memory.fits)
    f.warnings.push_back(does_not_fit({.needed_bytes = f.memory.peak_bytes,
                                       .usable_bytes = f.memory.usable_bytes,
                                       .largest_batch = {}},
                                      device));
  return f;
}

}  // namespace tilecast
