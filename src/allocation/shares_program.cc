#include "allocation/shares_program.h"

#include "tilecast/error.h"

namespace tilecast {

Allocation require_found(Allocation allocation) {
  if (allocation.feasible) return allocation;
  throw Error(ErrorKind::kUnsupported,
              "the solver Cbc gave up before it found an allocation: give fewer jobs, or weights, "
              "steps, speeds and deadlines that are closer to each other");
}

SharesUnits units_of(const AllocationProblem& problem, const std::vector<double>& demands) {
  const std::vector<double> fastest = fastest_speeds(problem);
  double slowest = kNoEnd;
  for (size_t j = 0; j < demands.size(); ++j)
    if (demands[j] > 0 && fastest[j] > 0) slowest = std::min(slowest, fastest[j] / demands[j]);
  return {.least = slowest < kNoEnd ? slowest : 1, .weight = heaviest_weight(problem)};
}

SharesProgram::SharesProgram(const AllocationProblem& problem, const std::vector<double>& demands,
                             const SharesUnits& units) {
  // A job that needs less of its time gets this part: a smaller one is the solver's rounding.
  constexpr double kMostOfLeast = 1e6;
  const std::vector<double> fastest = fastest_speeds(problem);
  for (const AllocationProblem::Job& job : problem.jobs)
    job_rows.push_back(program.add_row(-LinearProgram::kNoLimit, job.count));
  for (const AllocationProblem::Kind& kind : problem.kinds)
    kind_rows.push_back(program.add_row(-LinearProgram::kNoLimit, kind.gpus));
  demand_rows.assign(problem.jobs.size(), -1);
  for (size_t j = 0; j < demands.size(); ++j)
    if (demands[j] > 0 && fastest[j] > 0)
      demand_rows[j] = program.add_row(0, LinearProgram::kNoLimit);
  std::vector<LinearProgram::Entry> entries;
  for (const AllocationProblem::Column& column : problem.columns) {
    entries.clear();
    double worth = 0, of_first = 0;
    for (const auto& part : column.parts) entries.push_back({job_rows[part.job], 1});
    for (const auto& [kind, gpus] : column.uses) entries.push_back({kind_rows[kind], gpus});
    for (const auto& [job, speed] : column.parts) {
      if (fastest[job] > 0) worth += problem.jobs[job].weight / units.weight * speed / fastest[job];
      if (demand_rows[job] < 0) continue;
      const double factor =
          std::min(kMostOfLeast, speed / demands[job] / units.least) / problem.jobs[job].count;
      entries.push_back({demand_rows[job], factor});
      if (job == column.parts[0].job) of_first = factor;
    }
    program.add_column(0, problem.jobs[column.parts[0].job].count, entries,
                       whole_if(problem.whole));
    throughput.push_back(worth);
    of_demand.push_back(of_first);
  }
  entries.clear();
  for (const int row : demand_rows)
    if (row >= 0) entries.push_back({row, -1});
  program.add_column(0, entries.empty() ? 0 : LinearProgram::kNoLimit, entries);
  throughput.push_back(0);
  least.assign(throughput.size(), 0);
  least.back() = 1;
}

}  // namespace tilecast
