#include "allocation/solver_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "tilecast/error.h"

namespace tilecast {
namespace {

void* library() {
  static void* const opened = [] {
    void* found = dlopen("libCbcSolver.so.3", RTLD_NOW | RTLD_LOCAL);  // its name on Debian
    if (found == nullptr) found = dlopen("libCbcSolver.so", RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("an allocation needs the solver Cbc, which cannot be loaded ({}); on "
                              "Debian, install coinor-libcbc3",
                              dlerror()));
    return found;
  }();
  return opened;
}

/// Clp's functions are found in Cbc's library, too, which is linked with Clp.
template <typename Function>
void find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library(), name));
  if (function == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("the Cbc library of this machine has no function {}", name));
}

CbcApi load_cbc() {
  CbcApi api{};
  find("Cbc_newModel", api.new_model);
  find("Cbc_deleteModel", api.delete_model);
  find("Cbc_loadProblem", api.load_problem);
  find("Cbc_setInteger", api.set_integer);
  find("Cbc_setObjSense", api.set_sense);
  find("Cbc_setLogLevel", api.set_log_level);
  find("Cbc_setParameter", api.set_parameter);
  find("Cbc_solve", api.solve);
  find("Cbc_isProvenOptimal", api.is_proven_optimal);
  find("Cbc_isProvenInfeasible", api.is_proven_infeasible);
  find("Cbc_bestSolution", api.best_solution);
  return api;
}

ClpApi load_clp() {
  ClpApi api{};
  find("Clp_newModel", api.new_model);
  find("Clp_deleteModel", api.delete_model);
  find("Clp_loadProblem", api.load_problem);
  find("Clp_addRows", api.add_rows);
  find("Clp_chgObjCoefficients", api.set_objective);
  find("Clp_chgColumnLower", api.set_column_lows);
  find("Clp_setOptimizationDirection", api.set_sense);
  find("Clp_setLogLevel", api.set_log_level);
  find("Clp_copyinStatus", api.copy_in_status);
  find("Clp_statusArray", api.status_array);
  find("Clp_initialDualSolve", api.initial_dual_solve);
  find("Clp_dual", api.dual);
  find("Clp_primal", api.primal);
  find("Clp_status", api.status);
  find("Clp_numberIterations", api.steps);
  find("Clp_getColSolution", api.column_solution);
  find("Clp_getRowPrice", api.row_price);
  return api;
}

}  // namespace

const CbcApi& cbc() {
  static const CbcApi api = load_cbc();
  return api;
}

const ClpApi& clp() {
  static const ClpApi api = load_clp();
  return api;
}

}  // namespace tilecast
