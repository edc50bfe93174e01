#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "passes.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

TEST(Table, FitsATerminal) {
  const Forecast f = forecast("gpt2_large", "H100", {.mode = Mode::kTraining});
  for (const int width : {60, 80, 120}) {
    for (const std::string& line : split(forecast_table(f, {.width = width}), '\n'))
      EXPECT_LE(display_width(line), static_cast<size_t>(width)) << line;
  }
  EXPECT_EQ(forecast_table(f, {}).find('\x1b'), std::string::npos);
}

// The law's tile is no kernel's: on H100, cuBLAS takes others.
TEST(Table, NamesNoTileThatNobodyMeasured) {
  const Forecast f = forecast("gpt2_large", "H100", {.mode = Mode::kTraining});
  EXPECT_EQ(forecast_table(f, {.width = 160}).find(" tile "), std::string::npos);
}

TEST(Table, ColorsLimitsAndWhatDoesNotFit) {
  const Forecast f = forecast("gpt2_large", "T4", {.batch = 64, .mode = Mode::kTraining});
  const std::string table = forecast_table(f, {.color = true});
  EXPECT_NE(table.find("\x1b[31mDOES NOT FIT into 14.6 GiB"), std::string::npos) << table;
  EXPECT_NE(table.find("\x1b[32mcompute\x1b[0m"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
