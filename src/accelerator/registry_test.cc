#include "accelerator/registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "test_support.h"

namespace tilecast::accelerator {
namespace {

TEST(Registry, NamesOfGpusAreToldApartQuickly) {
  // Every forecast asks whether its GPU is an accelerator. A parse of the descriptions took 900 us.
  EXPECT_TRUE(names_accelerator("Gemmini"));
  EXPECT_TRUE(names_accelerator("gemmini:DIM=8"));
  EXPECT_TRUE(names_accelerator("nothing:DIM=8"));
  EXPECT_FALSE(names_accelerator("H100:1g.10gb"));
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < 10'000; ++call) EXPECT_FALSE(names_accelerator("H100"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 2.0) << "sanitizers and a loaded machine are allowed for";
}

// --- Bad input.

TEST(Registry, SpacesAroundParametersAreNoPartOfThem) {
  const Design design =
      open_accelerator("systolic-array: ROWS = 4 ,\tdataflow = weight_stationary ");
  EXPECT_EQ(design.flow.name, "weight_stationary");
  EXPECT_EQ(
      design.machine.pe_count(),
      open_accelerator("systolic-array:ROWS=4,dataflow=weight_stationary").machine.pe_count());
  EXPECT_NE(message_of([] { open_accelerator("gemmini: DIM M=8"); }).find("'DIM M'"),
            std::string::npos);
}

}  // namespace
}  // namespace tilecast::accelerator
