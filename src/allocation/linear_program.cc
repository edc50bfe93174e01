#include "allocation/linear_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "allocation/solver_library.h"
#include "base/budget.h"
#include "base/check.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct DeleteModel {
  void operator()(void* model) const { cbc().delete_model(model); }
};

/// The solver's numbers have 16 digits; Clp ends the process at 1e25.
double checked_factor(double factor) {
  constexpr double kMost = 1e20;
  if (!(std::abs(factor) < kMost))
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("an allocation's numbers are too far apart for the solver Cbc: expected "
                    "factors below {:g}, found {:g}: give weights, steps, speeds, prices "
                    "and deadlines that are closer to each other",
                    kMost, factor));
  return factor;
}

double value_of(const std::vector<double>& objective, const std::vector<double>& values) {
  return std::inner_product(objective.begin(), objective.end(), values.begin(), 0.0);
}

/// Of the value that an earlier objective keeps: above the solver's tolerance of 1e-7.
double kept_value(double value) {
  constexpr double kKept = 1e-6;
  return value - kKept * std::max(std::abs(value), 1e-3);
}

/// The variable that an objective is, which a range keeps without a row.
std::optional<size_t> only_column(const std::vector<double>& objective) {
  std::optional<size_t> one;
  for (size_t column = 0; column < objective.size(); ++column) {
    if (objective[column] == 0) continue;
    if (one || objective[column] < 0) return std::nullopt;
    one = column;
  }
  return one;
}

void add_least(void* model, const std::vector<double>& objective, double least) {
  std::vector<int> columns;
  std::vector<double> factors;
  for (size_t column = 0; column < objective.size(); ++column) {
    if (objective[column] == 0) continue;
    columns.push_back(static_cast<int>(column));
    factors.push_back(objective[column]);
  }
  const double most = LinearProgram::kNoLimit;
  const std::array<int, 2> starts{0, static_cast<int>(columns.size())};
  clp().add_rows(model, 1, &least, &most, starts.data(), columns.data(), factors.data());
}

}  // namespace

void require_cbc() {
  cbc();
  clp();
}

int LinearProgram::add_row(double low, double high) {
  row_low_.push_back(low);
  row_high_.push_back(high);
  return static_cast<int>(row_low_.size()) - 1;
}

int LinearProgram::add_column(double low, double high, std::span<const Entry> entries,
                              Values values) {
  low_.push_back(low);
  high_.push_back(high);
  values_.push_back(values);
  for (const Entry& entry : entries) {
    TILECAST_CHECK(entry.row >= 0 && static_cast<size_t>(entry.row) < row_low_.size())
        << "an entry in row " << entry.row << " of " << row_low_.size();
    row_of_.push_back(entry.row);
    factor_.push_back(checked_factor(entry.factor));
  }
  start_.push_back(static_cast<int>(row_of_.size()));
  return static_cast<int>(low_.size()) - 1;
}

void LinearProgram::set_range(int column, double low, double high) {
  low_[static_cast<size_t>(column)] = low;
  high_[static_cast<size_t>(column)] = high;
}

LinearProgram::Solution LinearProgram::maximize(const std::vector<std::vector<double>>& objectives,
                                                double gap, const Start& start) const {
  for (const std::vector<double>& objective : objectives)
    for (const double factor : objective) checked_factor(factor);
  std::vector<int> whole;
  for (size_t column = 0; column < columns(); ++column)
    if (values_[column] == Values::kWhole && low_[column] < high_[column])
      whole.push_back(static_cast<int>(column));
  return whole.empty() ? maximize_shares(objectives, start)
                       : maximize_whole(objectives, whole, gap);
}

/// The simplex method on a program without whole numbers, one objective after the other.
class LinearProgram::Simplex {
 public:
  Simplex(const LinearProgram& program, const std::vector<double>& objective)
      : model_(clp().new_model()), lows_(program.low_) {
    const ClpApi& api = clp();
    api.set_log_level(model_.get(), 0);
    api.load_problem(
        model_.get(), static_cast<int>(program.columns()), static_cast<int>(program.rows()),
        program.start_.data(), program.row_of_.data(), program.factor_.data(), program.low_.data(),
        program.high_.data(), objective.data(), program.row_low_.data(), program.row_high_.data());
    api.set_sense(model_.get(), -1);
  }

  /// The value that an objective has reached stays while the next one is maximized.
  void go_on(const std::vector<double>& reached, double value, const std::vector<double>& next) {
    const double least = kept_value(value);
    if (const std::optional<size_t> one = only_column(reached)) {
      lows_[*one] = std::max(lows_[*one], least / reached[*one]);
      clp().set_column_lows(model_.get(), lows_.data());
    } else {
      add_least(model_.get(), reached, least);
      further_.push_back(Status::kBasic);
    }
    clp().set_objective(model_.get(), next.data());
    is_feasible_ = true;  // the best one before is
  }

  /// Whether it is solved. `basis`: to begin at, if it is not empty.
  bool solve(Basis basis, Solution& solution) {
    const ClpApi& api = clp();
    const auto has_ended = [&] {
      solution.steps += api.steps(model_.get());
      return api.status(model_.get()) == 0;
    };
    if (!basis.empty()) {
      basis.rows.insert(basis.rows.end(), further_.begin(), further_.end());
      basis.columns.insert(basis.columns.end(), basis.rows.begin(), basis.rows.end());
      static_assert(sizeof(Status) == 1);
      api.copy_in_status(model_.get(),
                         reinterpret_cast<const unsigned char*>(basis.columns.data()));
      api.dual(model_.get(), 0);
      if (has_ended()) return true;
    } else if (is_feasible_) {
      api.primal(model_.get(), 0);
      if (has_ended()) return true;
    }
    api.initial_dual_solve(model_.get());
    return has_ended();
  }

  bool is_proven_infeasible() const { return clp().status(model_.get()) == 1; }
  const double* values() const { return clp().column_solution(model_.get()); }
  const double* prices() const { return clp().row_price(model_.get()); }

 private:
  struct Delete {
    void operator()(void* model) const { clp().delete_model(model); }
  };

  std::unique_ptr<void, Delete> model_;
  std::vector<double> lows_;
  std::vector<Status> further_;  ///< of the rows of objectives before
  bool is_feasible_ = false;     ///< where the method stands
};

LinearProgram::Solution LinearProgram::maximize_shares(
    const std::vector<std::vector<double>>& objectives, const Start& start) const {
  Solution solution;
  std::optional<Simplex> simplex;
  for (size_t level = 0; level < objectives.size(); ++level) {
    Budget::here().check("allocating jobs");
    Basis basis = start ? start(level, solution) : Basis{};
    const SolverTurn turn;
    if (level == 0)
      simplex.emplace(*this, objectives[0]);
    else
      simplex->go_on(objectives[level - 1], solution.objective_values.back(), objectives[level]);
    const bool proven = simplex->solve(std::move(basis), solution);
    if (!proven && level == 0)
      return {.feasible = false, .proven = simplex->is_proven_infeasible()};
    // A later objective that the solver gives up leaves the solution of the one before.
    if (solution.proven && proven) ++solution.proven_objectives;
    solution.proven = solution.proven && proven;
    std::vector<double>& prices = solution.row_prices.emplace_back(rows());
    if (proven) {
      solution.values.assign(simplex->values(), simplex->values() + columns());
      prices.assign(simplex->prices(), simplex->prices() + rows());
    }
    solution.feasible = true;
    solution.objective_values.push_back(value_of(objectives[level], solution.values));
  }
  return solution;
}

LinearProgram::Solution LinearProgram::maximize_whole(
    const std::vector<std::vector<double>>& objectives, const std::vector<int>& whole,
    double gap) const {
  const CbcApi& api = cbc();
  const SolverTurn turn;
  Solution solution;
  for (size_t level = 0; level < objectives.size(); ++level) {
    Budget::here().check("allocating jobs");
    // The rows, and one for each objective before this.
    std::vector<int> start{0}, rows;
    std::vector<double> factors, row_low = row_low_, row_high = row_high_;
    for (size_t before = 0; before < level; ++before) {
      row_low.push_back(kept_value(solution.objective_values[before]));
      row_high.push_back(kNoLimit);
    }
    for (size_t column = 0; column < columns(); ++column) {
      rows.insert(rows.end(), row_of_.begin() + start_[column],
                  row_of_.begin() + start_[column + 1]);
      factors.insert(factors.end(), factor_.begin() + start_[column],
                     factor_.begin() + start_[column + 1]);
      for (size_t before = 0; before < level; ++before) {
        if (objectives[before][column] == 0) continue;
        rows.push_back(static_cast<int>(row_low_.size() + before));
        factors.push_back(objectives[before][column]);
      }
      start.push_back(static_cast<int>(rows.size()));
    }
    const std::unique_ptr<void, DeleteModel> model(api.new_model());
    api.set_log_level(model.get(), 0);
    api.load_problem(model.get(), static_cast<int>(columns()), static_cast<int>(row_low.size()),
                     start.data(), rows.data(), factors.data(), low_.data(), high_.data(),
                     objectives[level].data(), row_low.data(), row_high.data());
    api.set_sense(model.get(), -1);
    for (const int column : whole) api.set_integer(model.get(), column);
    api.set_parameter(model.get(), "ratioGap", fmt::format("{}", gap).c_str());
    api.set_parameter(model.get(), "maxNodes", "20000");
    api.solve(model.get());
    const bool proven = api.is_proven_optimal(model.get()) != 0;
    const double* values = api.best_solution(model.get());
    // A later objective that the solver gives up leaves the solution of the one before.
    if (solution.proven && proven) ++solution.proven_objectives;
    solution.proven = solution.proven && proven;
    if (values == nullptr && level == 0)
      return {.feasible = false, .proven = api.is_proven_infeasible(model.get()) != 0};
    if (values != nullptr) solution.values.assign(values, values + columns());
    solution.feasible = true;
    solution.objective_values.push_back(value_of(objectives[level], solution.values));
  }
  return solution;
}

}  // namespace tilecast
