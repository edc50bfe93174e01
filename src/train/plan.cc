#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "predict/near.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A kind of kernel is learned from at least so many rows.
constexpr size_t kFewestNetRows = 100;

/// A device residual is learned from at least so many of its device, a forest from so many of a
/// software.
constexpr size_t kFewestResidualRows = 50;
constexpr size_t kFewestForestRows = 500;

/// A combination of software and precision counts as measured from so many rows on: some layers at
/// several sizes.
constexpr size_t kFewestCombinationRows = 200;

/// Seeds of different runs are this far apart, so that no two networks share one.
constexpr uint64_t kSeedStride = 7919;

void count_kinds(TrainingPlan& plan) {
  std::array<size_t, kNetCount> counts{};
  for (const TrainingRow& row : plan.data.rows) counts[static_cast<size_t>(net_of(row.kernel))]++;
  for (size_t n = 0; n < kNetCount; ++n) {
    plan.enough[n] = counts[n] >= kFewestNetRows;
    if (plan.enough[n]) continue;
    plan.data.report.push_back(
        fmt::format("too little to learn '{}' from: {} usable rows, at least {} are needed; add "
                    "measurement folders with --data",
                    net_name(static_cast<NetKind>(n)), counts[n], kFewestNetRows));
  }
  if (std::count(plan.enough.begin(), plan.enough.end(), true) == 0)
    throw Error(ErrorKind::kInput, join(plan.data.report, "; "));
}

void make_folds(TrainingPlan& plan) {
  const std::vector<Device>& devices = plan.data.devices;
  plan.folds.push_back(std::make_unique<Fold>());
  plan.folds.back()->name = "all";
  if (plan.options.leave_one_out && devices.size() > 2) {
    for (size_t d = 0; d < devices.size(); ++d) {
      plan.folds.push_back(std::make_unique<Fold>());
      plan.folds.back()->name = devices[d].id;
      plan.folds.back()->left_out = d;
    }
  }
  for (auto& fold : plan.folds) fill_fold(*fold, plan.data, plan.options.seed);
}

/// Combinations of software and precision in the order in which the rows show them.
using Counts = std::vector<std::pair<Combination, size_t>>;

Counts count_combinations(const FoldPart& part, const TrainingData& data, size_t device) {
  Counts counts;
  for (size_t r = 0; r < part.device.size(); ++r) {
    if (part.device[r] != device) continue;
    const TrainingRow& row = data.rows[part.index[r]];
    const Combination combination = combination_of(row.kernel, row.conditions);
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& c) { return c.first == combination; });
    if (found == counts.end()) {
      counts.emplace_back(combination, 1);
    } else {
      found->second += 1;
    }
  }
  return counts;
}

/// A forest for each software that the device has enough rows of.
void plan_forests(DeviceResidual& residual, const Counts& counts) {
  std::map<Software, size_t> by_software;
  for (const auto& [combination, count] : counts) by_software[combination.software] += count;
  for (const auto& [software, count] : by_software) {
    if (count >= kFewestForestRows) residual.forests.push_back({software, {}});
  }
  for (const auto& [combination, count] : counts) {
    if (by_software[combination.software] >= kFewestForestRows && count >= kFewestCombinationRows)
      residual.measured.push_back(combination);
  }
}

/// Whether a fold learns a residual of the device: the first fold of all, the others of those
/// that the left-out one resembles.
bool learns_residual(const Fold& fold, const TrainingData& data, const FoldPart& train,
                     size_t device) {
  if (device == fold.left_out) return false;
  const auto rows = std::count(train.device.begin(), train.device.end(), device);
  if (static_cast<size_t>(rows) < kFewestResidualRows) return false;
  return !fold.left_out || similarity(signature_of(data.devices[device]),
                                      signature_of(data.devices[*fold.left_out])) >= kNegligible;
}

/// Networks of an ensemble. Folds that only measure errors do with one.
size_t members_of(const TrainingPlan& plan, const Fold& fold) {
  return fold.left_out ? 1 : static_cast<size_t>(plan.options.members);
}

void plan_residuals(TrainingPlan& plan, Fold& fold, size_t n) {
  Net& net = fold.weights.nets[n];
  const FoldPart& train = fold.nets[n].train;
  for (size_t d = 0; d < plan.data.devices.size(); ++d) {
    if (!learns_residual(fold, plan.data, train, d)) continue;
    DeviceResidual residual{.source = plan.data.devices[d].id,
                            .signature = signature_of(plan.data.devices[d])};
    const Counts counts = count_combinations(train, plan.data, d);
    if (net_def(static_cast<NetKind>(n)).learning.forests) {
      plan_forests(residual, counts);
      if (residual.forests.empty()) continue;
    } else {
      for (const auto& [combination, count] : counts) residual.measured.push_back(combination);
      residual.members.resize(members_of(plan, fold));
      plan.networks += residual.members.size();
    }
    plan.residuals.push_back({.fold = &fold, .net = n, .index = net.residuals.size(), .device = d});
    net.residuals.push_back(std::move(residual));
  }
  solve_kriging(net);
}

/// What a kind is learned from, as forecasts ask for it.
TrainedOn trained_on(const TrainingPlan& plan, const Fold& fold, NetKind kind) {
  std::set<std::string> operators, vendors;
  TrainedOn result;
  for (const TrainingRow& row : plan.data.rows) {
    if (row.device == fold.left_out || net_of(row.kernel) != kind) continue;
    operators.insert(plan.data.groups[row.group].op);
    vendors.insert(plan.data.devices[row.device].vendor);
    result.forms.add(forms_of(row.kernel));
  }
  result.operators.assign(operators.begin(), operators.end());
  result.vendors.assign(vendors.begin(), vendors.end());
  return result;
}

NetTask network_task(const TrainingPlan& plan, std::string name, std::vector<int> widths,
                     uint64_t salt) {
  NetTask task;
  task.name = std::move(name);
  task.widths = std::move(widths);
  task.epochs = plan.options.epochs;
  task.seed = plan.options.seed * kSeedStride + salt;
  task.data_hash = plan.data.hash;
  task.checkpoint = plan.checkpoints / (task.name + ".checkpoint");
  return task;
}

NetTask base_model_task(const TrainingPlan& plan, const Fold& fold, size_t n, size_t member) {
  const FoldNet& rows = fold.nets[n];
  const bool small = net_def(static_cast<NetKind>(n)).learning.small_base_model;
  const int hidden = small ? std::max(4, plan.options.hidden / 2) : plan.options.hidden;
  NetTask task = network_task(
      plan, fmt::format("{}-{}-{}", fold.name, net_name(static_cast<NetKind>(n)), member),
      {static_cast<int>(rows.base_train.width), hidden, hidden, 1}, member * 104729 + n);
  if (small) task.epochs = std::max(1, plan.options.epochs / 5);
  task.train = &rows.base_train;
  task.held_out = &rows.base_held_out;
  task.pairs = &rows.base_pairs;
  return task;
}

Job net_job(NetTask task, Mlp* result) {
  return [task = std::move(task), result](const ReportEpoch& report) {
    *result = train_net(task, report);
  };
}

void add_forest_jobs(const TrainingPlan& plan, const PlannedResidual& planned,
                     std::vector<Job>& jobs) {
  for (SoftwareForest& f : planned.residual().forests) {
    jobs.push_back([&plan, &planned, &f](const ReportEpoch&) {
      ForestTask task =
          forest_task(planned.fold->nets[planned.net].train, plan.data, planned.device, f.software);
      task.seed = plan.options.seed * kSeedStride + planned.net;
      f.forest = train_forest(task);
    });
  }
}

void add_network_jobs(const TrainingPlan& plan, PlannedResidual& planned, std::vector<Job>& jobs) {
  DeviceResidual& residual = planned.residual();
  if (residual.members.empty()) return;
  const FoldNet& parts = planned.fold->nets[planned.net];
  planned.train = rows_of_device(parts.train, planned.device);
  planned.held_out = rows_of_device(parts.held_out, planned.device);
  planned.pairs = {rows_of_device(parts.smaller, planned.device),
                   rows_of_device(parts.larger, planned.device)};
  const auto width = static_cast<int>(planned.train.width);
  const int hidden = plan.options.hidden;
  for (size_t m = 0; m < residual.members.size(); ++m) {
    NetTask task =
        network_task(plan,
                     fmt::format("{}-{}-{}-{}", planned.fold->name,
                                 net_name(static_cast<NetKind>(planned.net)), residual.source, m),
                     {width, hidden, hidden, 1}, 977 + planned.net + m * 104729);
    task.train = &planned.train;
    task.held_out = &planned.held_out;
    task.pairs = &planned.pairs;
    jobs.push_back(net_job(std::move(task), &residual.members[m]));
  }
}

}  // namespace

bool TrainingPlan::learns(const Fold& fold, size_t net) const {
  return enough[net] && (!fold.left_out || fold.nets[net].left.rows.count() > 0);
}

TrainingPlan plan_training(const TrainOptions& options, const std::filesystem::path& checkpoints) {
  TrainingPlan plan{.options = options, .checkpoints = checkpoints};
  std::vector<MeasurementSet> sets;
  for (const std::filesystem::path& path : options.data) sets.push_back(read_measurements(path));
  plan.data = prepare_training_data(sets, options.exclude_gpus);
  count_kinds(plan);
  make_folds(plan);
  for (auto& fold : plan.folds) {
    for (size_t n = 0; n < kNetCount; ++n) {
      if (!plan.learns(*fold, n)) continue;
      Net& net = fold->weights.nets[n];
      if (!fold->left_out) net.trained_on = trained_on(plan, *fold, static_cast<NetKind>(n));
      net.members.resize(members_of(plan, *fold));
      plan.networks += net.members.size();
      plan_residuals(plan, *fold, n);
    }
  }
  return plan;
}

std::vector<Job> base_model_jobs(TrainingPlan& plan) {
  std::vector<Job> jobs;
  for (auto& fold : plan.folds) {
    for (size_t n = 0; n < kNetCount; ++n) {
      std::vector<Mlp>& members = fold->weights.nets[n].members;
      for (size_t m = 0; m < members.size(); ++m)
        jobs.push_back(net_job(base_model_task(plan, *fold, n, m), &members[m]));
    }
  }
  return jobs;
}

std::vector<Job> residual_jobs(TrainingPlan& plan) {
  for (auto& fold : plan.folds) apply_base_model(*fold);
  std::vector<Job> jobs;
  for (PlannedResidual& planned : plan.residuals) {
    add_forest_jobs(plan, planned, jobs);
    add_network_jobs(plan, planned, jobs);
  }
  return jobs;
}

}  // namespace tilecast
