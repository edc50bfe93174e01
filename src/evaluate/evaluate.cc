#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "base/text.h"
#include "evaluate/errors.h"
#include "evaluate/training_runs.h"
#include "measurements/collective_rows.h"
#include "measurements/measurements.h"
#include "predict/bound.h"
#include "predict/residual.h"
#include "scenario/internal.h"
#include "software/software.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

/// NeuSight's options of several GPUs of one node: "dp4" (DistributedDataParallel), "tp4"
/// (Megatron), "pp4_2" (GPipe with two micro-batches). False for any other option.
bool set_ranks(Request& request, const std::string& option) {
  static const std::regex kRanks(R"(^(dp|tp|pp)(\d{1,4})(?:_(\d{1,4}))?$)");
  std::smatch match;
  if (!std::regex_match(option, match, kRanks)) return false;
  const int64_t ranks = std::stoll(match[2]);
  if (match[1] == "dp") request.execution.dp = ranks;
  if (match[1] == "tp") request.execution.tp = ranks;
  if (match[1] == "pp") request.execution.pp = ranks;
  if (match[3].matched) request.execution.microbatches = std::stoll(match[3]);
  request.parallel.schedule = PipelineSchedule::kGPipe;
  return true;
}

/// "m 4096, n 1024, k 1024"
std::string sizes_text_of(const Kernel& kernel) {
  const auto& names = type_info(kernel).sizes;
  const auto values = sizes_of(kernel);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", names[i], values[i]);
  return text;
}

class Evaluator {
 public:
  /// `points`: how many measured kernels to list.
  Evaluator(const Forecaster& forecaster, PredictorKind predictor, size_t points)
      : forecaster_(forecaster), predictor_(predictor), most_points_(points) {}

  Evaluation run(const MeasurementSet& set) {
    result_.unmatched = set.unmatched;
    result_.unmatched.insert(result_.unmatched.end(), set.changes.begin(), set.changes.end());
    kernels(set);
    collectives(set);
    keep_worst_points();
    TrainingRuns runs(predictor_, [this](const ModelMeasurement& m, const Request& request) {
      return forecaster_.forecast(model_of(m), *gpu(m.gpu), request);
    });
    for (const ModelMeasurement& m : set.models) {
      if (m.options.empty()) {
        model(m);
      } else {
        training_run(m, runs);
      }
    }
    result_.peaks = runs.peaks();
    for (const auto& [line, count] : skipped_)
      result_.unmatched.push_back(count == 1 ? printable(line)
                                             : fmt::format("{} ({} rows)", printable(line), count));
    return std::move(result_);
  }

 private:
  /// nullptr where no device has the name: the caller lists the measurement as not evaluated.
  const GpuRef* gpu(const std::string& name) {
    const auto [it, fresh] = gpus_.emplace(name, std::nullopt);
    if (fresh) {
      try {
        it->second = load_gpu_ref(name);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kInternal) throw;
      }
    }
    return it->second ? &*it->second : nullptr;
  }

  void kernels(const MeasurementSet& set) {
    std::map<const Device*, std::vector<const KernelMeasurement*>> by_device;
    for (const KernelMeasurement& m : set.kernels) {
      const GpuRef* found = gpu(m.gpu);
      if (found == nullptr) {
        skipped_[set.sources[m.source] + ": unknown GPU '" + shown_name(m.gpu) + "'"] += 1;
      } else if (!has_unit_for(m.kernel, found->content->device)) {
        skipped_[fmt::format("{}: {} has no {} unit", set.sources[m.source], found->id(),
                             dtype_name(m.kernel.compute_dtype()))] += 1;
      } else {
        by_device[&found->content->device].push_back(&m);
      }
    }
    std::map<Key, std::vector<ErrorSample>> samples;
    for (const auto& [found, rows] : by_device) {
      std::vector<Kernel> kernels;
      std::vector<Conditions> conditions;
      for (const KernelMeasurement* m : rows) {
        kernels.push_back(m->kernel);
        conditions.push_back(m->conditions);
      }
      std::vector<KernelTime> times(kernels.size());
      predict_each(forecaster_.impl().predictor(predictor_), kernels, conditions, *found, times);
      for (size_t i = 0; i < rows.size(); ++i) {
        CallOverhead overhead;
        const std::optional<KernelKind> kind = find_kernel_kind(kernels[i]);
        if (kind && rows[i]->protocol == Protocol::kSingleCall &&
            predictor_ != PredictorKind::kRoofline)
          overhead =
              call_overhead(forecaster_.impl().weights.model(*kind), *kind, *found, rows[i]->op);
        const std::string op = rows[i]->algorithm.empty()
                                   ? rows[i]->op
                                   : rows[i]->op + " (" + rows[i]->algorithm + ")";
        const Key key = {found->id, op, std::string(precision_name(kernels[i])),
                         std::string(software_name(conditions[i].software))};
        const ErrorSample sample = {rows[i]->measured_s, times[i].seconds + overhead.seconds,
                                    times[i].low_s + overhead.low_s,
                                    times[i].high_s + overhead.high_s};
        samples[key].push_back(sample);
        if (most_points_ > 0) add_point(key, sizes_text_of(kernels[i]), sample);
      }
    }
    add_rows(samples);
  }

  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  void add_point(const Key& key, const std::string& sizes, const ErrorSample& sample) {
    const auto& [gpu, op, dtype, software] = key;
    result_.points.push_back({gpu, op, dtype, software, sizes, sample.measured,
                              Interval{sample.forecast, sample.low, sample.high},
                              error_percent(sample.forecast, sample.measured)});
    // What is left out is dropped from time to time, so that memory does not grow with the file.
    constexpr size_t kRoom = 4;
    if (result_.points.size() >= kRoom * most_points_) keep_worst_points();
  }

  void keep_worst_points() {
    std::vector<EvaluationPoint>& points = result_.points;
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
      return a.error_percent > b.error_percent;
    });
    if (points.size() <= most_points_) return;
    result_.points_left_out += static_cast<int64_t>(points.size() - most_points_);
    points.erase(points.begin() + static_cast<ptrdiff_t>(most_points_), points.end());
  }

  void add_rows(const std::map<Key, std::vector<ErrorSample>>& samples) {
    for (const auto& [key, list] : samples) {
      EvaluationRow row = errors_of(list);
      std::tie(row.gpu, row.op, row.dtype, row.software) = key;
      result_.rows.push_back(std::move(row));
    }
  }

  void collectives(const MeasurementSet& set) {
    MeasuredClusters clusters;
    std::map<Key, std::vector<ErrorSample>> samples;
    for (const CollectiveMeasurement& m : set.collectives) {
      const Cluster* cluster = clusters.find(m);
      if (cluster == nullptr) {
        skipped_[set.sources[m.source] + ": unknown GPU or links: '" + shown_name(m.gpu) + "'"] +=
            1;
        continue;
      }
      const CollectiveTime time = forecast_of(m, *cluster);
      const Key key = {cluster->device.id, label_of(m), std::string(dtype_name(m.dtype)),
                       m.exchange ? "deepep" : std::string(software_name(m.software))};
      const ErrorSample sample = {m.measured_s, time.seconds, time.low_s, time.high_s};
      samples[key].push_back(sample);
      if (most_points_ > 0) add_point(key, format_bytes(m.bytes), sample);
    }
    add_rows(samples);
  }

  static ModelRef model_of(const ModelMeasurement& m) {
    if (!m.config_text.empty()) return model_from_text(m.config_text, m.model + "/config.json");
    return load_model_ref(m.config.empty() ? m.model : m.config);
  }

  /// As labels were measured where they say nothing else: fp32, attention step by step, no loss, no
  /// optimizer.
  Request request_of(const ModelMeasurement& m) const {
    Request request;
    const auto set = [&](const char* option, const std::string& value) {
      set_option(request, *find_option(option, request.kind), value);
    };
    request.mode = m.mode == "training" ? Mode::kTraining : Mode::kInference;
    request.batch = m.batch;
    if (m.seq > 0) request.seq = m.seq;
    request.execution.fusion = m.option == "fusion" ? Fusion::kPointwise : Fusion::kNone;
    request.execution.dtype = m.dtype.empty() ? "fp32" : m.dtype;  // not the checkpoint's
    set("attention", "eager");
    if (request.mode == Mode::kTraining) {
      set("optimizer", m.optimizer);
      set("optimizer-impl", m.optimizer_impl);
      set("loss", m.loss ? "full" : "memory");
      set("main-params-dtype", "as-model");
      if (m.checkpointing) set("checkpointing", "full");
    }
    request.execution.predictor = predictor_;
    return request;
  }

  void training_run(const ModelMeasurement& m, TrainingRuns& runs) {
    if (gpu(m.gpu) == nullptr) {
      skipped_[m.source + ": unknown GPU '" + shown_name(m.gpu) + "'"] += 1;
      return;
    }
    try {
      runs.add(m, result_.models);
    } catch (const Error& error) {
      skipped_[m.source + ": " + error.what()] += 1;
    }
  }

  void model(const ModelMeasurement& m) {
    // PyTorch's scaled_dot_product_attention picks the fused kernel.
    const bool fused = m.option == "sdpa" || m.option == "flash";
    Request ranks;
    if (m.option != "" && m.option != "fusion" && !fused && !set_ranks(ranks, m.option)) {
      skipped_[m.source + ": option '" + m.option + "' is not forecast"] += 1;
      return;
    }
    const GpuRef* found = gpu(m.gpu);
    if (found == nullptr) {
      skipped_[m.source + ": unknown GPU '" + shown_name(m.gpu) + "'"] += 1;
      return;
    }
    try {
      const ModelRef measured = model_of(m);
      Request request = request_of(m);
      set_ranks(request, m.option);
      if (fused) request.execution.attention = AttentionKind::kFlash;
      const Forecast f = forecaster_.forecast(measured, *found, request);
      const std::string option = m.checkpointing && !m.option.empty() ? m.option + ", checkpointing"
                                 : m.checkpointing                    ? "checkpointing"
                                                                      : m.option;
      result_.models.push_back({f.gpu, m.model, m.mode, m.seq, m.batch, m.dtype, option,
                                m.measured_s, f.latency_s,
                                error_percent(f.latency_s, m.measured_s)});
    } catch (const Error& error) {
      skipped_[m.source + ": " + error.what()] += 1;
    }
  }

  const Forecaster& forecaster_;
  const PredictorKind predictor_;
  const size_t most_points_;
  Evaluation result_;
  std::map<std::string, std::optional<GpuRef>> gpus_;
  std::map<std::string, int> skipped_;
};

}  // namespace

Evaluation evaluate(const Forecaster& forecaster, const std::string& path,
                    const std::string& predictor, size_t points) {
  Evaluator evaluator(forecaster, parse_predictor(predictor), points);
  const MeasurementSet set = read_measurements(path);
  if (set.kernels.empty() && set.collectives.empty() && set.models.empty() && set.unmatched.empty())
    throw Error(ErrorKind::kInput,
                printable(path) +
                    ": no measurements found; expected a file or a folder with CSV tables of "
                    "Tilecast, NeuSight, aiconfigurator, Vidur, rocBLAS, PipeWeave, training runs, "
                    "MIOpen's find_ARCH.csv or cycles of an accelerator");
  return evaluator.run(set);
}

}  // namespace tilecast
