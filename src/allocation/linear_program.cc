#include "allocation/linear_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <memory>
#include <mutex>
#include <numeric>

#include "allocation/quiet_output.h"
#include "base/budget.h"
#include "base/check.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The functions of Cbc's C interface (coin/Cbc_C_Interface.h of 2.10, EPL-2.0) that are called.
/// They are declared here, and the library is loaded by the first allocation: a program that is
/// linked with it takes 6 ms longer to start, forecasts too.
struct CbcApi {
  using Model = void*;
  Model (*new_model)();
  void (*delete_model)(Model);
  void (*load_problem)(Model, int columns, int rows, const int* start, const int* index,
                       const double* value, const double* low, const double* high,
                       const double* objective, const double* row_low, const double* row_high);
  void (*set_integer)(Model, int column);
  void (*set_sense)(Model, double sense);
  void (*set_log_level)(Model, int level);
  void (*set_parameter)(Model, const char* name, const char* value);
  int (*solve)(Model);
  int (*is_proven_optimal)(Model);
  int (*is_proven_infeasible)(Model);
  const double* (*best_solution)(Model);
  const double* (*column_solution)(Model);
};

template <typename Function>
void find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("the Cbc library of this machine has no function {}", name));
}

CbcApi load_cbc() {
  void* library = dlopen("libCbcSolver.so.3", RTLD_NOW | RTLD_LOCAL);  // its name on Debian
  if (library == nullptr) library = dlopen("libCbcSolver.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("an allocation needs the solver Cbc, which cannot be loaded ({}); on "
                            "Debian, install coinor-libcbc3",
                            dlerror()));
  CbcApi api{};
  find_in(library, "Cbc_newModel", api.new_model);
  find_in(library, "Cbc_deleteModel", api.delete_model);
  find_in(library, "Cbc_loadProblem", api.load_problem);
  find_in(library, "Cbc_setInteger", api.set_integer);
  find_in(library, "Cbc_setObjSense", api.set_sense);
  find_in(library, "Cbc_setLogLevel", api.set_log_level);
  find_in(library, "Cbc_setParameter", api.set_parameter);
  find_in(library, "Cbc_solve", api.solve);
  find_in(library, "Cbc_isProvenOptimal", api.is_proven_optimal);
  find_in(library, "Cbc_isProvenInfeasible", api.is_proven_infeasible);
  find_in(library, "Cbc_bestSolution", api.best_solution);
  find_in(library, "Cbc_getColSolution", api.column_solution);
  return api;
}

const CbcApi& cbc() {
  static const CbcApi api = load_cbc();
  return api;
}

struct DeleteModel {
  void operator()(void* model) const { cbc().delete_model(model); }
};

/// Cbc's solver takes Ctrl-C for itself, keeps state in global variables and writes messages.
class SolverTurn {
 public:
  SolverTurn() : lock_(mutex()) { sigaction(SIGINT, nullptr, &before_); }
  ~SolverTurn() { sigaction(SIGINT, &before_, nullptr); }
  SolverTurn(const SolverTurn&) = delete;
  SolverTurn& operator=(const SolverTurn&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  QuietOutput quiet_;
  struct sigaction before_{};
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

}  // namespace

void require_cbc() { cbc(); }

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
                                                double gap) const {
  // Of the value that an earlier objective keeps: above the solver's tolerance of 1e-7.
  constexpr double kKept = 1e-6;
  for (const std::vector<double>& objective : objectives)
    for (const double factor : objective) checked_factor(factor);
  const CbcApi& api = cbc();
  const SolverTurn turn;
  std::vector<int> whole;
  for (size_t column = 0; column < columns(); ++column)
    if (values_[column] == Values::kWhole && low_[column] < high_[column])
      whole.push_back(static_cast<int>(column));
  Solution solution;
  for (size_t level = 0; level < objectives.size(); ++level) {
    Budget::here().check("allocating jobs");
    // The rows, and one for each objective before this.
    std::vector<int> start{0}, rows;
    std::vector<double> factors, row_low = row_low_, row_high = row_high_;
    for (size_t before = 0; before < level; ++before) {
      const double kept = solution.objective_values[before];
      row_low.push_back(kept - kKept * std::max(std::abs(kept), 1e-3));
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
    if (!whole.empty()) {
      for (const int column : whole) api.set_integer(model.get(), column);
      api.set_parameter(model.get(), "ratioGap", fmt::format("{}", gap).c_str());
      api.set_parameter(model.get(), "maxNodes", "20000");
    }
    api.solve(model.get());
    const bool proven = api.is_proven_optimal(model.get()) != 0;
    const double* values = !whole.empty() ? api.best_solution(model.get())
                           : proven       ? api.column_solution(model.get())
                                          : nullptr;
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
