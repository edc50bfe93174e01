#include "measurements/slow_series.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "measured_rows.h"

namespace tilecast {
namespace {

constexpr int kSteps = 24;

/// Layers of experts on H100: TensorRT-LLM in FP8 and vLLM in BF16 take as long as their bytes say.
/// `vllm_fp8_ms` are the times of vLLM's kernel in FP8 along the sweep.
std::string experts_table(const std::vector<double>& vllm_fp8_ms) {
  std::string table =
      "gpu,software,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,tp,ep,distribution,"
      "latency_ms,kernel\n";
  const auto add = [&](const char* software, const char* dtype, size_t step, double ms) {
    table += fmt::format("H100,{},{},{},4096,14336,2,8,2,1,balanced,{},k\n", software, dtype,
                         step + 1, ms);
  };
  for (size_t step = 0; step < vllm_fp8_ms.size(); ++step) {
    const double growth = 1 + 0.1 * static_cast<double>(step);
    add("trtllm 1", "fp8", step, 0.25 * growth);
    add("vllm 1", "bfloat16", step, 0.5 * growth);
    add("vllm 1", "fp8", step, vllm_fp8_ms[step]);
  }
  return table;
}

/// Times that grow by a tenth of the first a step, with every fourth lower by `dip`.
std::vector<double> sweep(double first, double dip) {
  std::vector<double> times;
  for (int step = 0; step < kSteps; ++step)
    times.push_back(first * (1 + 0.1 * step) * (step % 4 == 3 ? 1 - dip : 1));
  return times;
}

size_t rows_in_fp8(const MeasurementSet& set) {
  size_t rows = 0;
  for (const auto& m : set.kernels) rows += m.kernel.scheme == QuantScheme::kFp8 ? 1 : 0;
  return rows;
}

TEST(SlowSeries, OfAnUntunedKernelAreLeftOutAndListed) {
  const MeasurementSet set = table_rows("moe.csv", experts_table(sweep(1.2, 0.4)));
  EXPECT_EQ(rows_in_fp8(set), kSteps) << "TensorRT-LLM's stay";
  EXPECT_EQ(set.kernels.size(), 2u * kSteps);
  EXPECT_NE(reasons(set).find("k of vllm in fp8 on H100 takes 2."), std::string::npos)
      << reasons(set);
  EXPECT_NE(reasons(set).find("(24 rows)"), std::string::npos) << reasons(set);
}

TEST(SlowSeries, OfAKernelThatIsSlowerInOrderStay) {
  const MeasurementSet set = table_rows("moe.csv", experts_table(sweep(1.2, 0)));
  EXPECT_EQ(rows_in_fp8(set), 2u * kSteps);
  EXPECT_EQ(reasons(set), "");
}

TEST(SlowSeries, ThatJumpButAreFasterThanTheWiderPrecisionStay) {
  const MeasurementSet set = table_rows("moe.csv", experts_table(sweep(0.4, 0.4)));
  EXPECT_EQ(rows_in_fp8(set), 2u * kSteps);
}

TEST(SlowSeries, OfAFewRowsStay) {
  std::vector<double> few = sweep(1.2, 0.4);
  few.resize(12);
  EXPECT_EQ(rows_in_fp8(table_rows("moe.csv", experts_table(few))), 24u);
}

TEST(SlowSeries, WithASingleWitnessStay) {
  // Without TensorRT-LLM's rows nothing but vLLM's own BF16 speaks against them.
  std::string table = experts_table(sweep(1.2, 0.4));
  for (size_t at = 0; (at = table.find("H100,trtllm", at)) != std::string::npos;)
    table.erase(at, table.find('\n', at) + 1 - at);
  EXPECT_EQ(rows_in_fp8(table_rows("moe.csv", table)), kSteps);
}

}  // namespace
}  // namespace tilecast
