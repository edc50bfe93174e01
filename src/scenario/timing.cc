#include "scenario/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/number.h"
#include "laws/constants.h"
#include "ops/op_def.h"
#include "scenario/intervals.h"
#include "tilecast/error.h"

namespace tilecast {

void add_sums(Forecast& forecast) {
  for (const KernelForecast& row : forecast.kernels) {
    forecast.kernels_s += row.latency_s * static_cast<double>(row.count);
    forecast.flops = checked_add(forecast.flops, checked_multiply(row.flops, row.count));
    forecast.bytes = checked_add(forecast.bytes, checked_multiply(row.bytes, row.count));
    forecast.model_flops = checked_add(
        forecast.model_flops, checked_multiply(row.flops - row.recomputed_flops, row.count));
  }
}

HostCosts host_costs(const Execution& execution) {
  HostCosts costs = software_def(*execution.software).costs;
  if (execution.host == HostClass::kTypical) return costs;
  const HostConstants& host = bundled_laws().host;
  const double ratio = execution.host == HostClass::kFast ? host.fast_ratio : host.slow_ratio;
  for (double* cost : {&costs.host_launch_s, &costs.hip_graph_launch_s, &costs.step_overhead_s,
                       &costs.sequence_overhead_s, &costs.request_overhead_s, &costs.request_turn_s,
                       &costs.ngram_token_s})
    *cost *= ratio;
  return costs;
}

void complete(Execution& execution, Software default_software) {
  const Software software = software_version(execution.software.value_or(default_software),
                                             execution.software_version, "`software-version`");
  execution.software = software;
  if (!execution.host_launch_s) execution.host_launch_s = host_costs(execution).host_launch_s;
}

Conditions conditions_of(const Execution& execution, const Device& device) {
  return {.software = *execution.software,
          .clock_hz = clock_of(execution.clocks, device),
          .moe_backend = execution.moe_backend};
}

std::optional<double> clock_of(const std::string& clocks, const Device& device) {
  if (clocks.empty() || clocks == "boost" || clocks == "sustained") return std::nullopt;
  const Gpu& gpu = device.gpu();
  if (clocks == "base") {
    if (!gpu.base_clock_hz)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`clocks` base: the device file of {} states no base clock; give the "
                              "clock in MHz (its boost clock: {:.0f})",
                              device.id, gpu.boost_clock_hz / 1e6));
    return gpu.base_clock_hz;
  }
  const double hz = 1e6 * parse_number<double>(clocks).value();  // checked when the option was set
  // Twice the boost clock is far beyond what any card can be set to: another unit, or another card.
  constexpr double kMost = 2;
  if (hz > kMost * gpu.boost_clock_hz)
    throw Error(
        ErrorKind::kInput,
        fmt::format("`clocks`: {} MHz is more than twice the boost clock of {}, {:.0f} MHz; "
                    "give the clock of its SMs in MHz",
                    clocks, device.id, gpu.boost_clock_hz / 1e6));
  return hz;
}

Timeline run_program(const Program& program, const std::vector<KernelTime>& times,
                     double host_launch_s) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const KernelTime& time : times) seconds.push_back(time.seconds);
  return simulate(program, seconds, host_launch_s);
}

Totals totals_of(const Timeline& timeline, const std::vector<double>& kernel_counts,
                 const std::vector<KernelTime>& times) {
  Totals totals{.seconds = {.value = timeline.end_s()}};
  SummedErrors errors;
  for (size_t i = 0; i < times.size(); ++i) {
    const KernelTime& t = times[i];
    totals.kernels_s += t.seconds * kernel_counts[i];
    errors.add(t.predictor, t.common_share, (t.seconds - t.low_s) * kernel_counts[i],
               (t.high_s - t.seconds) * kernel_counts[i]);
  }
  totals.seconds.low = totals.seconds - errors.low();
  totals.seconds.high = totals.seconds + errors.high();
  totals.host_wait_s = std::max(0.0, totals.seconds - totals.kernels_s);
  return totals;
}

KernelForecast describe(const Kernel& kernel, const KernelTime& time) {
  KernelForecast row;
  row.op = op_def(kernel.op).name;
  row.dtype = precision_name(kernel);
  const KernelTypeInfo& type = type_info(kernel);
  row.shape = {type.name, type.text, type.sizes, sizes_of(kernel)};
  row.latency_s = interval_of(time);
  row.flops = kernel.flops;
  row.bytes = kernel.bytes();
  row.limit = limit_name(time.limit);
  if (time.tile) row.tile = {time.tile->m, time.tile->n};
  row.waves = time.waves.waves;
  row.sm_share = time.waves.occupancy;
  row.utilization_ratio = time.utilization_ratio;
  row.predictor = time.predictor;
  row.extrapolated = time.extrapolated;
  row.extrapolated_feature = time.extrapolated_feature;
  row.computed = dtype_name(kernel.compute_dtype());
  row.switched_j = time.energy.switched_j;
  row.power_measured = time.energy.measured;
  row.memory_j = time.energy.memory_j;
  row.clock_share = time.energy.clock_share;
  return row;
}

std::vector<Roof> roofs_of(const std::vector<KernelForecast>& kernels, const Device& device) {
  std::vector<Roof> roofs;
  for (const KernelForecast& kernel : kernels) {
    const auto known = [&](const Roof& roof) { return roof.dtype == kernel.computed; };
    const std::optional<DType> dtype = find_dtype(kernel.computed);
    if (!dtype || std::any_of(roofs.begin(), roofs.end(), known)) continue;
    const double peak = device.matmul_peak(*dtype);
    if (peak > 0) roofs.push_back({dtype_name(*dtype), peak, device.memory_bytes_per_s});
  }
  return roofs;
}

int64_t recomputed_flops(const Node& node, const Kernel& kernel) {
  // An optimizer's products (Muon's) are no more part of the model.
  const bool of_step = node.phase == Phase::kOptimizer && kernel.is_product();
  if (node.recomputed || of_step) return kernel.flops;
  const Attention* attention = kernel.as<Attention>();
  // One of five products: work_attention_backward in ops/attention.cc.
  constexpr int64_t kBackwardProducts = 5;
  return attention != nullptr && attention->backward ? kernel.flops / kBackwardProducts : 0;
}

std::vector<KernelForecast> describe_events(const Timeline& timeline, const Program& program,
                                            const std::vector<KernelTime>& times,
                                            TextArena& names) {
  std::vector<KernelForecast> rows;
  rows.reserve(timeline.events.size());
  for (const Event& event : timeline.events) {
    const Node& node = *program.launches[event.launch].node;
    KernelForecast row = describe(program.kernels[event.kernel], times[event.kernel]);
    row.name = names.add(node.name);
    row.phase = phase_name(node.phase);
    row.count = event.count;
    row.recomputed_flops = recomputed_flops(node, program.kernels[event.kernel]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tilecast
