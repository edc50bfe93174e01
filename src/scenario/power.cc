#include "scenario/power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "devices/cluster.h"
#include "scenario/timing.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kJoulesPerKwh = 3.6e6, kSecondsPerHour = 3600, kMillion = 1e6, kGramsPerKg = 1000;

/// `nvidia-smi -pl` takes no cap above the board's limit either.
void check_cap(const Device& device, const BoardPower& board, double cap_w) {
  const double most = device.gpu().board_power_w, least = board.least_limit_w();
  if (cap_w > most)
    throw Error(ErrorKind::kInput,
                fmt::format("`power-cap-w`: {:g} W is more than the limit of {}, {:g} W", cap_w,
                            device.id, most));
  if (cap_w <= least)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "`power-cap-w`: {:g} W leaves nothing for work: {} draws {:.0f} W at its lowest "
            "clock when its kernels do nothing; give more",
            cap_w, device.id, least));
}

/// How far power may be off, as a logarithm, where this share of the time was measured.
double power_log(double coverage, const PowerConstants& c) {
  return coverage * c.measured_log + (1 - coverage) * c.other_log;
}

/// What the cluster file states of servers and their facility.
void add_servers(PowerForecast& power, const PoweredJob& job, const Request& request) {
  if (request.parallel.cluster.empty()) return;
  const Cluster cluster = find_cluster(request.parallel.cluster);
  if (cluster.server_w)
    power.server_energy_j = *cluster.server_w * static_cast<double>(job.ranks) /
                            static_cast<double>(cluster.gpus_per_node) * job.seconds / job.requests;
  if (!cluster.pue) return;
  power.facility_energy_j = *cluster.pue * (power.energy_j + power.server_energy_j.value_or(0));
  if (const auto& price = request.energy.price_per_kwh)
    power.facility_energy_cost = *price * *power.facility_energy_j / kJoulesPerKwh;
}

/// Of power and time, whose errors are taken as independent.
Interval product(const Interval& power, const Interval& seconds, double factor) {
  const double value = power.value * seconds.value * factor;
  const auto deviation = [&](double watts, double time) {
    const double of_power = power.value > 0 ? watts / power.value - 1 : 0;
    const double of_time = seconds.value > 0 ? time / seconds.value - 1 : 0;
    return value * std::hypot(of_power, of_time);
  };
  return {value, std::max(0.0, value - deviation(power.low, seconds.low)),
          value + deviation(power.high, seconds.high)};
}

void add_costs(PowerForecast& power, const PoweredJob& job, const EnergyTerms& prices) {
  const double kwh = power.energy_j / kJoulesPerKwh;
  power.gpu_price = prices.gpu_price;
  if (prices.price_per_gpu_hour)
    power.gpu_cost = *prices.price_per_gpu_hour * static_cast<double>(job.ranks) * job.seconds /
                     job.requests / kSecondsPerHour;
  if (prices.price_per_kwh) power.energy_cost = *prices.price_per_kwh * kwh;
  if (prices.carbon_g_per_kwh) power.carbon_g = *prices.carbon_g_per_kwh * kwh;
  if (!job.tokens || *job.tokens <= 0) return;
  power.energy_per_token_j = power.energy_j / *job.tokens;
  if (power.energy_j > 0) power.tokens_per_kwh = *job.tokens / kwh;
  if (power.gpu_cost || power.energy_cost)
    power.cost_per_million_tokens =
        kMillion * (power.gpu_cost.value_or(0) + power.energy_cost.value_or(0)) / *job.tokens;
}

}  // namespace

void complete_clocks(Request& request, const Device& device, const LawConstants& laws,
                     const char* by_default) {
  std::string& clocks = request.execution.clocks;
  const std::optional<double> cap_w = request.energy.power_cap_w;
  const std::optional<BoardPower> board = board_power(device, laws.power, cap_w);
  if (!board) {
    if (clocks == "sustained" || cap_w)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`{}`: the power of {} is not forecast: {}",
                              cap_w ? "power-cap-w" : "clocks", device.id,
                              device.is_slice ? "it is a part of a GPU"
                                              : "its file states no board_power_w"));
    if (clocks.empty()) clocks = "boost";
    return;
  }
  if (cap_w) {
    check_cap(device, *board, *cap_w);
    if (!clocks.empty() && clocks != "sustained")
      throw Error(ErrorKind::kInput,
                  fmt::format("`power-cap-w` lowers the clock, so `clocks` {} contradicts it; use "
                              "`clocks` sustained",
                              clocks));
  }
  // The baseline knows the data sheet only, and no law of power.
  const bool baseline = request.execution.predictor == PredictorKind::kRoofline;
  if (clocks.empty()) clocks = cap_w ? "sustained" : baseline ? "boost" : by_default;
}

double PowerTerms::clock_share() const {
  const std::optional<double> hz = clock_of(execution.clocks, device);
  return hz ? *hz / device.gpu().boost_clock_hz : 1;
}

std::optional<PowerForecast> power_of(const PoweredJob& job, const PowerTerms& terms,
                                      const Request& request) {
  const std::optional<BoardPower> board = terms.board();
  const double gpu_s = job.seconds * static_cast<double>(job.stages);
  if (!board || gpu_s <= 0) return std::nullopt;
  PowerSum sum{.clock_share_of_waits = terms.clock_share()};
  for (const KernelForecast& row : job.kernels)
    sum.add(*board, {row.switched_j, row.memory_j, row.clock_share, row.power_measured},
            row.latency_s, static_cast<double>(row.count));
  const double share = sum.clock_share();
  const double idle_w = board->idle_w(share);
  const double waits_s = std::max(0.0, gpu_s - sum.busy_s);
  const double limit_w = board->limit_w();
  const double all_s = std::max(gpu_s, sum.busy_s);
  const double watts = sum.mean_w(gpu_s, idle_w, job.warm ? board->warm_w() : 0);
  PowerForecast power{.idle_w = idle_w, .limit_w = limit_w};
  power.power_w.value = std::clamp(watts, idle_w, limit_w);
  power.coverage_ratio = board->is_measured_class() ? (sum.measured_s + waits_s) / all_s : 0;
  const double wide = std::exp(power_log(power.coverage_ratio, terms.constants));
  power.power_w.low = std::max(idle_w, power.power_w.value / wide);
  power.power_w.high = std::min(limit_w, power.power_w.value * wide);
  power.clock_hz = share * terms.device.gpu().boost_clock_hz;
  power.held_back = terms.holds() && share < 1;
  power.energy_j =
      product(power.power_w, job.seconds, static_cast<double>(job.ranks) / job.requests);
  add_costs(power, job, request.energy);
  add_servers(power, job, request);
  return power;
}

PowerForecast power_of_both(const PoolPower& a, const PoolPower& b) {
  const double share = static_cast<double>(b.gpus) / static_cast<double>(a.gpus + b.gpus);
  const auto mean = [&](double of_a, double of_b) { return of_a + share * (of_b - of_a); };
  const auto add = [](std::optional<double>& sum, const std::optional<double>& more) {
    if (sum && more) *sum += *more;
  };
  const PowerForecast& more = b.power;
  PowerForecast both = a.power;
  both.power_w = {mean(both.power_w.value, more.power_w.value),
                  mean(both.power_w.low, more.power_w.low),
                  mean(both.power_w.high, more.power_w.high)};
  both.energy_j = {both.energy_j.value + more.energy_j.value, both.energy_j.low + more.energy_j.low,
                   both.energy_j.high + more.energy_j.high};
  both.idle_w = mean(both.idle_w, more.idle_w);
  both.clock_hz = mean(both.clock_hz, more.clock_hz);
  both.held_back = both.held_back || more.held_back;
  both.coverage_ratio = mean(both.coverage_ratio, more.coverage_ratio);
  for (const auto sum : {&PowerForecast::energy_per_token_j, &PowerForecast::gpu_cost,
                         &PowerForecast::energy_cost, &PowerForecast::carbon_g,
                         &PowerForecast::cost_per_million_tokens, &PowerForecast::server_energy_j,
                         &PowerForecast::facility_energy_j, &PowerForecast::facility_energy_cost})
    add(both.*sum, more.*sum);
  if (both.tokens_per_kwh && both.energy_per_token_j)
    both.tokens_per_kwh = kJoulesPerKwh / *both.energy_per_token_j;
  return both;
}

std::optional<PowerForecast> power_in(const Result& result) {
  return std::visit(
      [](const auto& f) -> std::optional<PowerForecast> {
        if constexpr (requires { f.power->power_w; }) return f.power;
        return std::nullopt;
      },
      result);
}

void warn_of_idle_prices(std::vector<Warning>& warnings, const EnergyTerms& prices,
                         const std::optional<PowerForecast>& power) {
  if (power) return;
  const auto warn = [&](const char* option, const std::optional<double>& value) {
    if (!value) return;
    warnings.push_back({WarningCode::kNoEffect,
                        option,
                        0,
                        {{"value", fmt::format("{:g}", *value)},
                         {"reason", "power and cost are not forecast here"}}});
  };
  warn("price-per-gpu-hour", prices.price_per_gpu_hour);
  warn("price-per-kwh", prices.price_per_kwh);
  warn("carbon-g-per-kwh", prices.carbon_g_per_kwh);
}

void add_run_energy(TrainingRun& run, const PowerForecast& step, const EnergyTerms& prices,
                    double steps) {
  run.energy_kwh = steps * step.energy_j / kJoulesPerKwh;
  if (prices.price_per_gpu_hour || prices.price_per_kwh)
    run.cost = prices.price_per_gpu_hour.value_or(0) * run.gpu_hours +
               prices.price_per_kwh.value_or(0) * *run.energy_kwh;
  if (prices.carbon_g_per_kwh)
    run.carbon_kg = *prices.carbon_g_per_kwh * *run.energy_kwh / kGramsPerKg;
}

}  // namespace tilecast
