// Forecasts of one pass: model → graph → passes → kernels → times → totals.

#include "scenario/pass/pass_scenario.h"

#include <fmt/format.h>

#include <cmath>

#include "base/checked.h"
#include "devices/cluster.h"
#include "request/access.h"
#include "scenario/fit.h"
#include "scenario/generation/expert_precision.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
#include "scenario/parallel/adapter_remarks.h"
#include "scenario/parallel/parallel.h"
#include "scenario/pass/model_facts.h"
#include "scenario/pass/pass.h"
#include "scenario/pass/pass_images.h"
#include "scenario/pass/teacher.h"
#include "scenario/power.h"
#include "scenario/recommendation/recommendation.h"
#include "scenario/remedies.h"
#include "scenario/timed_pass.h"
#include "scenario/warnings.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Fills in the rows, times and work.
void add_times(Forecast& forecast, const TimedPass& pass) {
  const auto names = std::make_shared<TextArena>();
  forecast.kernels = describe_events(pass.timeline, pass.program(), pass.times, *names);
  forecast.names = names;
  add_sums(forecast);
  forecast.latency_s = pass.totals.seconds;
  forecast.host_wait_s = pass.totals.host_wait_s;
  forecast.forward_s = pass.timeline.phase_s(Phase::kForward);
  forecast.backward_s = pass.timeline.phase_s(Phase::kBackward);
  forecast.optimizer_s = pass.timeline.phase_s(Phase::kOptimizer);
}

/// Fills in the request and the defaults that were used.
void describe_request(Forecast& forecast, const Request& used, const Precision& precision) {
  forecast.mode = choice_name(used.mode);
  forecast.batch = used.batch;
  forecast.seq = *used.seq;
  forecast.dtype = precision.name;
  forecast.dtype_source = precision.source;
  forecast.used = used;
  forecast.used.execution.dtype = precision.name;
}

/// The ranks of a forecast, if there is only one.
ParallelForecast on_one_rank(const Forecast& f, const Request& used) {
  const Cluster cluster = find_cluster(used.parallel.cluster);
  return {.cluster = cluster.id,
          .cluster_name = cluster.name,
          .micro_batch_size = used.batch,
          .stages = {{.forward_s = f.forward_s,
                      .backward_s = f.backward_s,
                      .optimizer_s = f.optimizer_s,
                      .compute_s = f.latency_s,
                      .memory = f.memory}}};
}

/// One rank, one micro-batch.
void forecast_one_rank(Forecast& forecast, const Inquiry& inquiry, const PassSetup& setup,
                       const TimingSetup& timing) {
  const auto& [model, device, used, precision] = setup;
  const TimedPass pass =
      time_pass(inquiry.passes != nullptr
                    ? inquiry.passes->get(inquiry.model, used, precision)
                    : inquiry.forecaster.impl().passes.get(inquiry.model, used, precision),
                timing);
  forecast.parameters = pass.graph().parameter_count();
  if (!used.teacher.empty()) forecast.parameters -= teacher_parameters(used, precision);
  forecast.input = input_text(model, pass.graph(), forecast.seq, used.decoder_seq);
  add_times(forecast, pass);
  std::vector<Warning>& warnings = forecast.warnings;
  add_messages(warnings, WarningCode::kModelFile, model.name,
               unmapped_operators({{pass.timeline, pass.program()}}));
  add_warning(warnings, unmeasured_operators({{pass.timeline, pass.program()}}));
  add_messages(warnings, WarningCode::kModelFile, model.name,
               adapter_remarks(pass.graph(), used, precision));
  add_warning(warnings, slower_experts("", pass.graph(), pass.program(), pass.times,
                                       timing.predictor, device, timing.conditions));
  add_messages(warnings, WarningCode::kDeviceFile, device.id, device.warnings);
  add_warning(warnings, extrapolation_warning("", pass.timeline, pass.times));
  add_warning(warnings, no_model_warning("", forecast.kernels));
  add_warning(warnings, host_wait_warning("", pass.totals.host_wait_s, pass.totals.seconds));
  forecast.memory = forecast_memory(pass.graph(), pass.work->memory, setup);
  if (!used.parallel.cluster.empty()) forecast.parallel = on_one_rank(forecast, used);
}

void warn_of_shortage(Forecast& forecast, const PassSetup& setup, Detail detail) {
  PassMemory& memory = forecast.memory;
  const int64_t ranks = forecast.parallel ? forecast.parallel->ranks : 1;
  if (ranks > 1 ? is_tight(memory) : may_not_fit(memory))
    forecast.warnings.push_back(tight_memory(memory, setup.device, ranks));
  if (memory.fits) return;
  Shortage shortage{
      .needed_bytes = memory.peak_bytes, .usable_bytes = memory.usable_bytes, .largest_batch = {}};
  // A graph file fixes its batch, so there is no largest one.
  if (setup.model.takes_batch() && !forecast.parallel && detail != Detail::kNumbers) {
    memory.largest_batch =
        largest_fitting_batch(setup, BatchBytes{setup.request.batch, memory.peak_bytes});
    shortage.largest_batch = memory.largest_batch.value_or(0);
  }
  forecast.warnings.push_back(does_not_fit(shortage, setup.device));
}

/// Options of ranks that there are not.
void warn_of_idle_options(std::vector<Warning>& warnings, const Request& used) {
  const Parallel& p = used.parallel;
  const auto add = [&](const char* option, const std::string& value, const char* reason) {
    warnings.push_back({WarningCode::kNoEffect, option, 0, {{"value", value}, {"reason", reason}}});
  };
  if (p.zero != Zero::kNone && used.execution.dp == 1 && p.cp == 1)
    add("zero", choice_name(p.zero), "there is one data-parallel rank (--dp 1)");
  if (p.sequence_parallel && used.execution.tp == 1)
    add("sequence-parallel", "on", "there is one tensor-parallel rank (--tp 1)");
}

/// Whether a step takes tokens of sequences.
bool takes_tokens(const Model& model, const Forecast& f) {
  return !model.fixed_seq && !model.recommendation && !f.fixed_shapes;
}

/// Utilization, and the rates of training.
void add_rates(Forecast& f, const Model& model, double peak) {
  if (f.latency_s <= 0) return;
  const double flops_per_s = static_cast<double>(f.model_flops) / f.latency_s;
  if (peak > 0) {
    f.utilization_ratio = static_cast<double>(f.flops) / (f.latency_s * peak);
    f.mfu_ratio = flops_per_s / peak;
  }
  if (f.used.mode != Mode::kTraining) return;
  f.gpu_flops_per_s = flops_per_s;
  if (!takes_tokens(model, f)) return;
  const double step = static_cast<double>(f.batch) * static_cast<double>(f.seq);
  f.tokens_per_s = step / f.latency_s;
  if (!f.used.tokens) return;
  constexpr double kHour = 3600, kDay = 24 * kHour;
  const auto tokens = static_cast<double>(*f.used.tokens);
  const auto gpus = static_cast<double>(f.parallel ? f.parallel->ranks : 1);
  const double seconds = tokens / *f.tokens_per_s;
  f.training_run = {.tokens = *f.used.tokens,
                    .steps = std::ceil(tokens / step),
                    .days = seconds / kDay,
                    .gpu_hours = gpus * seconds / kHour};
  if (f.power) add_run_energy(*f.training_run, *f.power, f.used.energy, tokens / step);
}

void add_power(Forecast& f, const Model& model, const TimingSetup& timing) {
  // The rows of tables on several ranks are not those of one rank.
  if (f.parallel && !f.parallel->rank_tables.empty()) return;
  std::optional<double> tokens;
  if (takes_tokens(model, f)) tokens = static_cast<double>(f.batch) * static_cast<double>(f.seq);
  f.power = power_of({.kernels = f.kernels,
                      .seconds = f.latency_s,
                      .stages = f.used.execution.pp,
                      .ranks = f.parallel ? f.parallel->ranks : 1,
                      .tokens = tokens},
                     timing.power(), f.used);
}

using RunOnRanks = void (*)(Forecast&, const Inquiry&, const PassSetup&, const TimingSetup&);

/// What all passes have: the request with its defaults, the model's warnings, utilization, memory
/// that is missing. `run` fills in the rest.
Forecast forecast_pass(const Inquiry& inquiry, RunOnRanks run) {
  const Model& model = inquiry.model.content->model;
  const Device& device = inquiry.gpu().content->device;
  const auto [used, precision] = completed_pass(model, device, inquiry.request);
  const PassSetup setup{model, device, used, precision};
  const TimingSetup timing =
      timing_setup(setup, inquiry.forecaster.impl().predictor(used.execution.predictor));
  Forecast forecast;
  forecast.model = model.name;
  forecast.gpu = device.id;
  forecast.gpu_name = device.name;
  forecast.fixed_shapes = model.default_seq == 0 && !model.open_batch;
  forecast.is_decoder = model.decoder.has_value();
  describe_request(forecast, used, precision);
  if (used.tokens && !takes_tokens(model, forecast))
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: `tokens` applies to models of sequences of tokens; omit it", model.name));
  std::vector<Warning>& warnings = forecast.warnings;
  add_messages(warnings, WarningCode::kModelFile, model.name, model.warnings);
  if (model.remarks)
    add_messages(warnings, WarningCode::kModelFile, model.name,
                 model.remarks(graph_request(used, precision)));
  add_messages(warnings, WarningCode::kModelFile, model.name, tower_remarks(model, used));
  forecast.seq = checked_add(forecast.seq, image_tokens(model, used));
  warnings.insert(warnings.end(), precision.warnings.begin(), precision.warnings.end());
  run(forecast, inquiry, setup, timing);
  add_power(forecast, model, timing);
  add_rates(forecast, model, device.matmul_peak(compute_dtype(precision.scheme, precision.dtype)));
  forecast.roofs = roofs_of(forecast.kernels, device);
  warn_of_idle_options(warnings, used);
  warn_of_idle_prices(warnings, used.energy, forecast.power);
  warn_of_shortage(forecast, setup, inquiry.detail);
  if (inquiry.detail == Detail::kRemedies)
    add_remedies(forecast, inquiry.forecaster, inquiry.model, inquiry.gpu(), inquiry.request);
  return forecast;
}

void add_device_warnings(Forecast& forecast, const Device& device) {
  add_messages(forecast.warnings, WarningCode::kDeviceFile, device.id, device.warnings);
}

}  // namespace

Result run_pass(const Inquiry& inquiry) { return forecast_pass(inquiry, forecast_one_rank); }

Result run_parallel_pass(const Inquiry& inquiry) {
  return forecast_pass(inquiry, [](Forecast& forecast, const Inquiry&, const PassSetup& setup,
                                   const TimingSetup& timing) {
    add_device_warnings(forecast, setup.device);
    forecast_parallel(forecast, setup, timing);
  });
}

Result run_recommendation_pass(const Inquiry& inquiry) {
  return forecast_pass(inquiry, [](Forecast& forecast, const Inquiry&, const PassSetup& setup,
                                   const TimingSetup& timing) {
    add_device_warnings(forecast, setup.device);
    forecast_recommendation(forecast, setup, timing);
  });
}

}  // namespace tilecast
