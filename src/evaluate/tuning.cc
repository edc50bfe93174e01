// Solver choice and times against rows of MIOpen's find databases: the columns of a convolution,
// solver, time_ms.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/quantile.h"
#include "base/text.h"
#include "devices/registry.h"
#include "evaluate/tables.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"
#include "tuning/layer_fold.h"
#include "tuning/problem_rows.h"
#include "tuning/solver_model.h"

namespace tilecast {
namespace {

namespace fs = std::filesystem;
using tuning::ConvProblem;

/// The solvers that a database lists for one convolution, in seconds.
struct Listed {
  ConvProblem problem;
  std::map<std::string, double> seconds;
};

bool is_find_table(const CsvTable& table) {
  return tuning::has_problem_columns(table) && lists_solvers(table);
}

/// The device of "find_gfx906_60.csv" or "find_gfx906.csv": the alias, or of the aliases
/// "gfx906_<compute units>" the one with the fewest units.
Device device_of(const fs::path& file) {
  std::string name = file.filename().string();
  name = name.substr(0, name.find('.'));
  if (name.starts_with(kFindPrefix)) name = name.substr(kFindPrefix.size());
  std::optional<Device> best;
  for (const Device& device : bundled_devices()) {
    if (device.as_gpu() == nullptr) continue;
    for (const std::string& alias : device.aliases) {
      if (alias == name) return device;
      if (alias.starts_with(name + "_") && (!best || device.gpu().sm_count < best->gpu().sm_count))
        best = device;
    }
  }
  if (best) return *best;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: whose times are these? The file's name is 'find_ARCH.csv' or "
                          "'find_ARCH_UNITS.csv', as in find_gfx90a_104.csv; no GPU has the alias "
                          "'{}'",
                          printable(file.string()), shown_name(name)));
}

/// Sums over problems.
struct Totals {
  int64_t problems = 0, several = 0, near = 0, listed = 0, unranked = 0;
  double log_slow_down = 0;
  std::vector<double> errors;

  void add(const Listed& row, const std::vector<tuning::SolverTime>& ranked) {
    ++problems;
    double best = 0, picked = 0;
    for (const auto& [name, seconds] : row.seconds)
      if (best == 0 || seconds < best) best = seconds;
    for (const tuning::SolverTime& time : ranked) {
      const auto it = row.seconds.find(time.solver->name);
      if (it == row.seconds.end()) continue;
      errors.push_back(100 * std::abs(time.seconds / it->second - 1));
      if (picked == 0) picked = it->second;
    }
    listed += !ranked.empty() && row.seconds.contains(ranked.front().solver->name);
    if (picked == 0) ++unranked;
    if (row.seconds.size() < 2 || picked == 0) return;
    ++several;
    log_slow_down += std::log(picked / best);
    near += picked <= 1.05 * best;
  }
  TuneErrors result(const std::string& rows) const {
    const auto share = [](int64_t part, int64_t of) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(of, 1));
    };
    double sum = 0;
    for (const double error : errors) sum += error;
    const auto count = static_cast<double>(std::max<size_t>(errors.size(), 1));
    return {.rows = rows,
            .problems = problems,
            .problems_with_a_choice = several,
            .slow_down_ratio =
                std::exp(log_slow_down / std::max<double>(1, static_cast<double>(several))),
            .within_5_percent = share(near, several),
            .times = static_cast<int64_t>(errors.size()),
            .mape_percent = sum / count,
            .median_percent = quantile(errors, 0.5),
            .first_listed_percent = share(listed, problems),
            .unranked_problems = unranked};
  }
};

TuneEvaluation evaluate_find_table(const CsvTable& table, const fs::path& file) {
  const Device device = device_of(file);
  TuneEvaluation result{.file = file.filename().string(), .gpu = device.id};
  std::map<std::string, Listed> problems;
  std::set<std::string> unknown;
  const size_t solver = table.require_column("solver"), time = table.require_column("time_ms");
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const double seconds = table.number(i, time) / 1000;
    if (!(seconds > 0))
      throw Error(ErrorKind::kInput, fmt::format("{}: time_ms is '{}'; expected a number above 0",
                                                 table.place(i), shown_name(table.rows[i][time])));
    const std::string& name = table.rows[i][solver];
    if (tuning::SolverTable::bundled().find(name) == nullptr) {
      unknown.insert(name);
      ++result.unknown_rows;
      continue;
    }
    const ConvProblem problem = tuning::problem_of_row(table, i);
    Listed& listed = problems[miopen_key(problem)];
    listed.problem = problem;
    const auto [it, added] = listed.seconds.emplace(name, seconds);
    if (!added) it->second = std::min(it->second, seconds);
  }
  result.unknown_solvers.assign(unknown.begin(), unknown.end());
  const tuning::SolverModel& model = tuning::SolverModel::bundled();
  Totals all, held_out;
  for (const auto& [key, listed] : problems) {
    const tuning::TunedChip chip = tuning::tuned_chip(device, listed.problem.dtype);
    const std::vector<tuning::SolverTime> ranked = model.rank(listed.problem, chip);
    result.extrapolated = chip.kernel_class < 0;
    all.add(listed, ranked);
    if (tuning::layer_fold(listed.problem, model.split().seed, model.split().folds) ==
        model.split().held_out)
      held_out.add(listed, ranked);
  }
  result.errors.push_back(all.result("all"));
  // Every row of another architecture is one that training did not see.
  if (!result.extrapolated && held_out.problems > 0)
    result.errors.push_back(held_out.result("held-out layers"));
  return result;
}

}  // namespace

std::optional<std::vector<TuneEvaluation>> evaluate_tuning(const std::string& path) {
  return evaluate_tables<TuneEvaluation>(path, kFindPrefix, is_find_table, evaluate_find_table);
}

}  // namespace tilecast
