#include "scenario/generation/served_stages.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "scenario/generation/expert_precision.h"
#include "scenario/warnings.h"

namespace tilecast {
namespace {

void add_limits(StepForecast& f, double kernels_s) {
  std::map<std::string_view, double> shares;
  for (const KernelForecast& k : f.kernels)
    shares[k.limit] += k.latency_s * static_cast<double>(k.count);
  for (const auto& [limit, seconds] : shares) f.limits.emplace_back(limit, seconds / kernels_s);
  std::sort(f.limits.begin(), f.limits.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
}

void add_new(std::vector<Warning>& warnings, std::optional<Warning> warning) {
  if (!warning) return;
  const bool known = std::any_of(warnings.begin(), warnings.end(), [&](const Warning& w) {
    return w.code == warning->code && w.subject == warning->subject;
  });
  if (!known) warnings.push_back(*std::move(warning));
}

void add_warnings(StepForecast& f, const ServedModel& served, const std::string& name,
                  const TimedStep& s) {
  add_new(f.warnings, extrapolation_warning(name, s.timeline, s.times));
  add_new(f.warnings, no_model_warning(name, f.kernels));
  add_new(f.warnings, slower_experts(name, s.graph, s.program, s.times, served.predictor(),
                                     served.device, served.conditions()));
  std::optional<Warning> wait = host_wait_warning(name, s.totals.host_wait_s, s.totals.seconds);
  if (!wait) return;
  wait->facts.push_back({"cuda_graphs", int64_t{served.asked.execution.cuda_graphs}});
  add_new(f.warnings, std::move(wait));
}

}  // namespace

Interval sum(const Interval& a, const Interval& b, double times) {
  return {a.value + times * b.value, a.low + times * b.low, a.high + times * b.high};
}

void add_rows(std::vector<KernelForecast>& rows, std::vector<KernelForecast> more) {
  const auto key = [](const KernelForecast& k) {
    return std::tuple(k.latency_s.value, k.bytes, k.flops, k.phase, k.name, k.op);
  };
  using Key = decltype(key(rows.front()));
  const auto hash = [](const Key& k) {
    constexpr size_t kFactor = 0x9e3779b97f4a7c15;  // spreads the bits (Knuth)
    const auto& [seconds, bytes, flops, phase, name, op] = k;
    size_t all = std::hash<double>()(seconds);
    for (const int64_t more_bits : {bytes, flops})
      all = (all ^ static_cast<size_t>(more_bits)) * kFactor;
    return all ^ std::hash<std::string_view>()(name);
  };
  std::unordered_map<Key, size_t, decltype(hash)> places(rows.size() + more.size(), hash);
  for (size_t i = 0; i < rows.size(); ++i) places.emplace(key(rows[i]), i);
  for (KernelForecast& row : more) {
    const auto [place, fresh] = places.emplace(key(row), rows.size());
    if (fresh) {
      rows.push_back(std::move(row));
    } else {
      int64_t& count = rows[place->second].count;
      count = checked_add(count, row.count);
    }
  }
}

StepForecast describe_step(const ServedModel& served, const std::string& name, const TimedStep& s,
                           std::vector<KernelForecast> rows) {
  StepForecast f;
  f.time = s.totals.seconds;
  f.host_wait_s = s.totals.host_wait_s;
  f.kernels = std::move(rows);
  add_warnings(f, served, name, s);
  add_limits(f, s.totals.kernels_s);
  return f;
}

StagedStep::StagedStep(const ServedModel& served, const std::vector<StepGroup>& groups,
                       StepLaunch launch)
    : served_(served) {
  for (size_t part = 0; part < served.stages.size(); ++part)
    parts_.push_back(time_step(served, groups, launch, part));
}

Interval StagedStep::through() const {
  Interval all;
  for (size_t i = 0; i < parts_.size(); ++i)
    all = sum(all, parts_[i].totals.seconds, static_cast<double>(served_.stages[i].count));
  return all;
}

Interval StagedStep::slowest() const {
  Interval most;
  for (const TimedStep& s : parts_) {
    const Interval& own = s.totals.seconds;
    most = {std::max(most.value, own.value), std::max(most.low, own.low),
            std::max(most.high, own.high)};
  }
  return most;
}

Interval StagedStep::round(int64_t batches) const {
  const Interval one = through(), stage = slowest();
  const auto count = static_cast<double>(batches);
  return {std::max(one.value, count * stage.value), std::max(one.low, count * stage.low),
          std::max(one.high, count * stage.high)};
}

double StagedStep::send_s() const {
  double all = 0;
  for (size_t i = 0; i < parts_.size(); ++i)
    all += parts_[i].send_s * static_cast<double>(served_.stages[i].count);
  return all;
}

double StagedStep::host_wait_s() const {
  double all = 0;
  for (size_t i = 0; i < parts_.size(); ++i)
    all += parts_[i].totals.host_wait_s * static_cast<double>(served_.stages[i].count);
  return all;
}

std::vector<KernelForecast> StagedStep::rows(TextArena& names) const {
  const auto of = [&](const TimedStep& s) {
    return describe_events(s.timeline, s.program, s.times, names);
  };
  if (parts_.size() == 1) return of(parts_.front());
  std::vector<KernelForecast> all;
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::vector<KernelForecast> rows = of(parts_[i]);
    for (KernelForecast& row : rows)
      row.count = checked_multiply(row.count, served_.stages[i].count);
    add_rows(all, std::move(rows));
  }
  return all;
}

StepForecast StagedStep::describe(const std::string& name, std::vector<KernelForecast> rows) const {
  StepForecast f;
  f.time = through();
  f.host_wait_s = host_wait_s();
  f.kernels = std::move(rows);
  double kernels_s = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    add_warnings(f, served_, name, parts_[i]);
    kernels_s += parts_[i].totals.kernels_s * static_cast<double>(served_.stages[i].count);
  }
  add_limits(f, kernels_s);
  return f;
}

}  // namespace tilecast
