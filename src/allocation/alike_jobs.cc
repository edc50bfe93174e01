#include "allocation/alike_jobs.h"

#include <algorithm>
#include <map>

#include "allocation/shares_program.h"

namespace tilecast {

AlikeJobs::AlikeJobs(const AllocationProblem& problem, const std::vector<double>& all_demands)
    : columns_(problem.jobs.size()) {
  merged.kinds = problem.kinds;
  merged.near = problem.near;
  for (const AllocationProblem::Job& job : problem.jobs) count_of_.push_back(job.count);
  for (size_t c = 0; c < problem.columns.size(); ++c)
    columns_[problem.columns[c].parts[0].job].push_back(c);
  std::map<std::vector<double>, size_t> known;
  for (size_t j = 0; j < problem.jobs.size(); ++j) {
    const double demand = all_demands.empty() ? 0 : all_demands[j];
    std::vector<double> key{demand, problem.jobs[j].weight, problem.jobs[j].fastest_per_s};
    for (const size_t c : columns_[j]) {
      key.push_back(problem.columns[c].parts[0].steps_per_s);
      for (const auto& [kind, gpus] : problem.columns[c].uses)
        key.insert(key.end(), {static_cast<double>(kind), gpus});
    }
    const auto [at, is_new] = known.try_emplace(std::move(key), members_.size());
    if (is_new) add(problem, j, demand);
    members_[at->second].push_back(j);
    if (!is_new) merged.jobs[at->second].count += problem.jobs[j].count;
  }
  if (all_demands.empty()) demands.clear();
}

bool AlikeJobs::apply_to(const AllocationProblem& problem) {
  return !problem.whole && std::all_of(problem.columns.begin(), problem.columns.end(),
                                       [](const auto& column) { return column.parts.size() == 1; });
}

void AlikeJobs::add(const AllocationProblem& problem, size_t job, double demand) {
  first_column_.push_back(merged.columns.size());
  for (const size_t c : columns_[job]) {
    merged.columns.push_back(problem.columns[c]);
    merged.columns.back().parts[0].job = members_.size();
  }
  merged.jobs.push_back(problem.jobs[job]);
  demands.push_back(demand);
  members_.emplace_back();
}

Allocation AlikeJobs::divided(const Allocation& allocation, Divide how) const {
  Allocation all = allocation;
  all.placements.clear();
  // Of each merged job: the member whose turn it is, and how much of its time is taken.
  std::vector<size_t> turn(members_.size());
  std::vector<double> taken(members_.size());
  for (const TimedColumn& timed : allocation.placements) {
    const size_t type = merged.columns[timed.column].parts[0].job;
    const size_t nth = timed.column - first_column_[type];
    const std::vector<size_t>& members = members_[type];
    if (how == Divide::kEqually) {
      for (const size_t job : members)
        all.placements.push_back({.column = columns_[job][nth],
                                  .share = timed.share * count_of_[job] / merged.jobs[type].count});
      continue;
    }
    for (double left = timed.share; left > kLeastShare && turn[type] < members.size();) {
      const double most = count_of_[members[turn[type]]];
      const double share = std::min(left, most - taken[type]);
      all.placements.push_back({.column = columns_[members[turn[type]]][nth], .share = share});
      left -= share;
      taken[type] += share;
      if (taken[type] < most - kLeastShare) continue;
      ++turn[type];
      taken[type] = 0;
    }
  }
  return all;
}

}  // namespace tilecast
