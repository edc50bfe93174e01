#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::vector<GpuRef> gpus_of(const std::vector<std::string>& names) {
  std::vector<GpuRef> gpus;
  for (const std::string& name : names) gpus.push_back(load_gpu_ref(name));
  return gpus;
}

Request compared_request(const std::vector<GivenOption>& options) {
  return as_published(make_request(options));
}

TEST(CompareGpus, RowsAreTheForecastsOfSingleGpusFastestFirst) {
  const ModelRef model = load_model_ref("gpt2_large");
  const Request request = compared_request({{"batch", "4"}, {"mode", "training"}});
  const GpuComparison c =
      compare_gpus(forecaster(), model, gpus_of({"P4", "V100", "H100"}), request, {.threads = 3});
  ASSERT_EQ(c.gpus.size(), 3u);
  EXPECT_EQ(c.gpus[0].gpu, "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(c.gpus[2].gpu, "nvidia-p4");
  for (const ComparedGpu& row : c.gpus) {
    const Forecast single = forecaster().forecast(model, load_gpu_ref(row.gpu), request);
    EXPECT_EQ(row.totals.latency_s, single.latency_s);
    EXPECT_EQ(row.totals.peak_bytes, single.memory.peak_bytes);
  }
}

TEST(CompareGpus, GpusThatDoNotFitComeAfterThoseThatDo) {
  // It takes 52 GiB.
  const GpuComparison c =
      compare_gpus(forecaster(), load_model_ref("gpt2_large"), gpus_of({"H100", "P4", "MI210"}),
                   compared_request({{"batch", "4"}, {"mode", "training"}}));
  EXPECT_TRUE(c.gpus[1].fits());
  EXPECT_FALSE(c.gpus[2].fits());
  EXPECT_NE(comparison_table(c).find("!52."), std::string::npos);
  EXPECT_NE(comparison_table(c).find("! does not fit"), std::string::npos);
}

TEST(CompareGpus, AGpuThatCannotRunTheModelSaysWhy) {
  const GpuComparison c =
      compare_gpus(forecaster(), load_model_ref("llama-3-8b"), gpus_of({"V100", "H100"}),
                   compared_request({{"prompt", "128"}, {"dtype", "fp8"}}));
  EXPECT_FALSE(c.gpus[0].totals.error);
  ASSERT_TRUE(c.gpus[1].totals.error);
  EXPECT_NE(comparison_table(c).find("v100-sxm2-32gb: no forecast: "), std::string::npos);
  const Json json = Json::parse(to_json(c));
  EXPECT_TRUE(json["gpus"][1]["latency_s"].is_null());
  EXPECT_EQ(json["gpus"][1]["error"], *c.gpus[1].totals.error);
}

TEST(CompareGpus, OverlappingIntervalsAreMarked) {
  const GpuComparison c =
      compare_gpus(forecaster(), load_model_ref("llama-3-8b"), gpus_of({"H100", "H800", "L40S"}),
                   compared_request({{"prompt", "512"}, {"output", "16"}}));
  // H100 and H800 differ in their links only: the same time on one GPU. L40S takes far longer.
  EXPECT_EQ(c.gpus[0].overlaps_row_above, std::nullopt);
  EXPECT_EQ(c.gpus[1].overlaps_row_above, true);
  EXPECT_EQ(c.gpus[2].overlaps_row_above, false);
  const std::string table = comparison_table(c);
  EXPECT_NE(table.find(" 1.00 "), std::string::npos) << table;
  EXPECT_NE(table.find("~1.00"), std::string::npos) << table;
  const Json json = Json::parse(to_json(c));
  EXPECT_TRUE(json["gpus"][0]["overlaps_row_above"].is_null());
  EXPECT_EQ(json["gpus"][1]["overlaps_row_above"], true);
  const std::string near = comparison_table(
      compare_gpus(forecaster(), load_model_ref("gpt2_large"), gpus_of({"H100", "H200"}),
                   compared_request({{"batch", "4"}, {"mode", "training"}})));
  EXPECT_NE(near.find("\n~ the interval overlaps that of the row above"), std::string::npos)
      << near;
}

/// Two neighbours far below the first row: only one of them is certain to be slower than the row
/// above it.
TEST(CompareGpus, NeighboursAreComparedWithEachOtherNotWithTheFirstRow) {
  const GpuComparison c = compare_gpus(
      forecaster(), load_model_ref("gpt2_large"), gpus_of({"H100", "P100", "L4", "T4"}),
      compared_request({{"batch", "1"}, {"seq", "512"}, {"mode", "training"}}));
  for (size_t i = 1; i < c.gpus.size(); ++i) {
    const ForecastTotals &above = c.gpus[i - 1].totals, &row = c.gpus[i].totals;
    ASSERT_TRUE(c.gpus[i].overlaps_row_above);
    EXPECT_EQ(*c.gpus[i].overlaps_row_above, row.latency_s->low <= above.latency_s->high) << i;
    EXPECT_GT(row.latency_s->low, c.gpus[0].totals.latency_s->high) << "of the first row: certain";
  }
  EXPECT_TRUE(*c.gpus[2].overlaps_row_above) << comparison_table(c);
  EXPECT_FALSE(*c.gpus[3].overlaps_row_above) << comparison_table(c);
}

TEST(CompareGpus, TheHeadlineSaysTheOrder) {
  const auto title = [](const std::vector<std::string>& gpus,
                        const std::vector<GivenOption>& options) {
    std::string text = comparison_table(compare_gpus(forecaster(), load_model_ref("gpt2_large"),
                                                     gpus_of(gpus), compared_request(options)));
    text = text.substr(0, text.find("\n\n"));
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  const std::vector<GivenOption> options = {{"batch", "4"}, {"mode", "training"}};
  EXPECT_NE(title({"H100", "MI210"}, options).find("2 GPUs, the fastest first"), std::string::npos);
  EXPECT_NE(title({"H100", "P4"}, options).find("2 GPUs, those that fit first, then the fastest"),
            std::string::npos);
}

TEST(CompareGpus, MemoryThatIsNearlyFullIsMarkedInTheRow) {
  const ModelRef model = load_model_ref("gpt2");
  const GpuRef gpu = load_gpu_ref("T4");
  Request request = compared_request({{"mode", "training"}, {"seq", "128"}});
  request.batch = *forecaster().largest_batch(model, gpu, request);
  const GpuComparison c = compare_gpus(forecaster(), model, {gpu, load_gpu_ref("H200")}, request);
  EXPECT_FALSE(c.gpus[0].memory_is_tight);
  EXPECT_TRUE(c.gpus[1].fits() && c.gpus[1].memory_is_tight);
  const std::string table = comparison_table(c);
  EXPECT_NE(table.find(" ?14."), std::string::npos) << table;
  EXPECT_NE(table.find("\n? hardly fits"), std::string::npos) << table;
  EXPECT_EQ(Json::parse(to_json(c))["gpus"][1]["memory_is_tight"], true);
}

TEST(CompareGpus, AServerHasItsSteadyState) {
  const Request request = compared_request(
      {{"prompt", "256"}, {"output", "32"}, {"schedule", "continuous"}, {"concurrency", "4"}});
  const ModelRef model = load_model_ref("llama-3-8b");
  const GpuComparison c = compare_gpus(forecaster(), model, gpus_of({"L40S"}), request);
  const GenerationForecast single =
      forecast_generation(forecaster(), model, load_gpu_ref("L40S"), request);
  ASSERT_TRUE(single.serving && single.serving->steady);
  EXPECT_EQ(c.gpus[0].totals.tokens_per_s, single.serving->steady->output_tokens_per_s);
  EXPECT_EQ(c.gpus[0].ttft->value, single.serving->steady->ttft.p99.value);
}

TEST(CompareGpus, AServerThatDoesNotStartHasNoTimes) {
  const GpuComparison c =
      compare_gpus(forecaster(), load_model_ref("llama-3-8b"), gpus_of({"T4", "L40S"}),
                   compared_request({{"prompt", "1024"}, {"output", "32"}, {"concurrency", "16"}}));
  EXPECT_EQ(c.gpus[0].gpu, "nvidia-l40s");
  EXPECT_FALSE(c.gpus[1].fits());
  EXPECT_FALSE(c.gpus[1].has_time());
  const Json json = Json::parse(to_json(c));
  EXPECT_TRUE(json["gpus"][1]["ttft_s"].is_null());
  EXPECT_EQ(json["gpus"][0]["ttft_s"], json["gpus"][0]["ttft"]["seconds"]);
}

TEST(CompareGpus, OverloadedServersComeLastAndAreMarked) {
  const GpuComparison c = compare_gpus(
      forecaster(), load_model_ref("llama-3-8b"), gpus_of({"L40S", "H200"}),
      compared_request({{"prompt", "1024"}, {"output", "64"}, {"rate", "16"}, {"tpot-s", "0.1"}}));
  EXPECT_EQ(c.gpus[0].gpu, "nvidia-h200-sxm-141gb");
  EXPECT_TRUE(c.gpus[0].keeps_up);
  EXPECT_FALSE(c.gpus[1].keeps_up);
  const std::string table = comparison_table(c);
  EXPECT_NE(table.find("^ does not keep up"), std::string::npos) << table;
  EXPECT_NE(table.find("good/s"), std::string::npos) << table;
}

TEST(CompareGpus, WarningsWithoutAMarkAreNotes) {
  const GpuComparison c =
      compare_gpus(forecaster(), load_model_ref("gpt2_large"), gpus_of({"H100", "H200"}),
                   compared_request({{"batch", "1"}, {"seq", "64"}, {"clocks", "1200"}}));
  const std::string table = comparison_table(c);
  EXPECT_NE(table.find("1200 MHz"), std::string::npos) << table;
  EXPECT_NE(table.find("waits for the host"), std::string::npos) << table;
}

}  // namespace
}  // namespace tilecast
