// Builds with TILECAST_TUNING=OFF have this file in place of tuning.cc.

#include "base/left_out.h"
#include "evaluate/tables.h"
#include "tilecast/learn.h"

namespace tilecast {

std::optional<std::vector<TuneEvaluation>> evaluate_tuning(const std::string& path) {
  return evaluate_tables<TuneEvaluation>(
      path, kFindPrefix, lists_solvers,
      [](const CsvTable&, const std::filesystem::path&) -> TuneEvaluation {
        fail_left_out("tuning", "TILECAST_TUNING");
      });
}

}  // namespace tilecast
