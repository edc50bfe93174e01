// Builds with TILECAST_ACCELERATOR=OFF have this file in place of accelerator.cc.

#include "base/left_out.h"
#include "evaluate/tables.h"
#include "tilecast/learn.h"

namespace tilecast {

std::optional<std::vector<AcceleratorEvaluation>> evaluate_accelerators(const std::string& path,
                                                                        const std::string&) {
  return evaluate_tables<AcceleratorEvaluation>(
      path, "", is_cycles_table,
      [](const CsvTable&, const std::filesystem::path&) -> AcceleratorEvaluation {
        fail_left_out("accelerators", "TILECAST_ACCELERATOR");
      });
}

}  // namespace tilecast
