#pragma once

// COIN-OR's solvers as they are loaded: Clp for linear programs (the simplex method, with a basis
// to begin at), Cbc for programs with whole numbers.

#include <csignal>
#include <mutex>

#include "allocation/quiet_output.h"

namespace tilecast {

/// The functions of the C interfaces (coin/Cbc_C_Interface.h of 2.10, coin/Clp_C_Interface.h of
/// 1.17, both EPL-2.0) that are called. They are declared here, and the libraries are loaded by the
/// first allocation: a program that is linked with them takes 6 ms longer to start, forecasts too.
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
};

struct ClpApi {
  using Model = void*;
  Model (*new_model)();
  void (*delete_model)(Model);
  void (*load_problem)(Model, int columns, int rows, const int* start, const int* index,
                       const double* value, const double* low, const double* high,
                       const double* objective, const double* row_low, const double* row_high);
  void (*add_rows)(Model, int count, const double* low, const double* high, const int* starts,
                   const int* columns, const double* factors);
  void (*set_objective)(Model, const double* factors);
  void (*set_column_lows)(Model, const double* lows);
  void (*set_sense)(Model, double sense);
  void (*set_log_level)(Model, int level);
  void (*copy_in_status)(Model, const unsigned char* columns_then_rows);
  unsigned char* (*status_array)(Model);  ///< as copy_in_status takes it
  int (*initial_dual_solve)(Model);       ///< with presolve
  int (*dual)(Model, int values_pass);    ///< from the present basis
  int (*primal)(Model, int values_pass);
  int (*status)(Model);  ///< 0: optimal, 1: not feasible, others: given up
  int (*steps)(Model);   ///< of the last solve
  const double* (*column_solution)(Model);
  const double* (*row_price)(Model);
};

/// Throw Error{kUnsupported} where the libraries cannot be loaded.
const CbcApi& cbc();
const ClpApi& clp();

/// While it lives, a thread may call the solvers, which take Ctrl-C for themselves, keep state in
/// global variables and write messages.
class SolverTurn {
 public:
  SolverTurn() : lock_(loaded_mutex()) { sigaction(SIGINT, nullptr, &before_); }
  ~SolverTurn() { sigaction(SIGINT, &before_, nullptr); }
  SolverTurn(const SolverTurn&) = delete;
  SolverTurn& operator=(const SolverTurn&) = delete;

 private:
  /// The libraries are loaded before the output is quiet: in a process without C++ streams, as
  /// Python is, std::cout begins with them and keeps the stdout that it finds.
  static std::mutex& loaded_mutex() {
    cbc();
    clp();
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  QuietOutput quiet_;
  struct sigaction before_{};
};

}  // namespace tilecast
