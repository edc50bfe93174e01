#include "scenario/prices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "scenario/price_table.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/request.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

std::vector<PriceRow> read_table(const std::string& text) {
  return parse_price_table(text, "prices.csv");
}

TEST(PriceTables, EachRowOfThoseThatComeWithTheProgramIsOfAGpuAndSaysWhereItIsFrom) {
  ASSERT_FALSE(price_table_names().empty());
  for (const std::string& name : price_table_names()) {
    const std::vector<PriceRow> rows = find_price_table(name);
    EXPECT_FALSE(rows.empty()) << name;
    for (const PriceRow& row : rows) {
      EXPECT_NO_THROW(find_device(row.price.gpu)) << row.where;
      EXPECT_GT(row.price.price_per_gpu_hour, 0) << row.where;
      EXPECT_EQ(row.price.table, name);
      EXPECT_EQ(row.price.currency, rows.front().price.currency) << row.where;
      EXPECT_FALSE(row.price.date.empty()) << row.where;
      // A price from memory is a guess; a link can be looked up.
      const std::string& source = row.price.source;
      EXPECT_TRUE(row.price.is_guess() || source.find("https://") != std::string::npos)
          << row.where << ": " << source;
    }
  }
}

TEST(PriceTables, AFileNeedsTwoColumnsOnly) {
  const std::vector<PriceRow> rows = read_table("gpu,price_per_gpu_hour\nH100,2.5\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].price.price_per_gpu_hour, 2.5);
  EXPECT_EQ(rows[0].price.currency, "");
  EXPECT_FALSE(rows[0].price.is_guess());
}

TEST(PriceTables, BadRowsAreNamedByLineAndColumn) {
  const std::string head = "gpu,price_per_gpu_hour,currency,date,source\n";
  EXPECT_ERROR(read_table("gpu,price\nH100,2\n"), kInput, "column 'price_per_gpu_hour' is missing");
  EXPECT_ERROR(read_table(head + "H100,2,USD,2025,a\nA100,cheap,USD,2025,b\n"), kInput,
               "prices.csv: line 3: column 'price_per_gpu_hour': expected a price of 0 or more, "
               "found 'cheap'");
  EXPECT_ERROR(read_table(head + "H100,-1,USD,2025,a\n"), kInput, "found '-1'");
  EXPECT_ERROR(read_table(head + ",1,USD,2025,a\n"), kInput, "line 2: column 'gpu'");
  EXPECT_ERROR(read_table(head + "H100,1,dollars,2025,a\n"), kInput, "column 'currency'");
  for (const char* date : {"June", "25", "2025-13", "2025-06-00", "2025/06", "2025-6"})
    EXPECT_ERROR(read_table(head + "H100,1,USD," + date + ",a\n"), kInput, "column 'date'");
  for (const char* date : {"2025", "2025-12", "2025-06-30"})
    EXPECT_EQ(read_table(head + "H100,1,USD," + date + ",a\n")[0].price.date, date);
}

TEST(Prices, AreFoundByGpuOrByCluster) {
  const std::vector<GpuPrice> prices = prices_of(
      "dgx-h100=2,H100=3", {{"nvidia-h100-sxm5-80gb", "dgx-h100"}, {"nvidia-h100-sxm5-80gb", ""}});
  EXPECT_EQ(prices[0].price_per_gpu_hour, 2);
  EXPECT_EQ(prices[1].price_per_gpu_hour, 3);
  // Rows of other clusters and GPUs are left out, unknown names are errors.
  EXPECT_EQ(prices_of("dgx-a100=2,H100=3", {{"nvidia-h100-sxm5-80gb", ""}})[0].gpu, "H100");
  EXPECT_ERROR(prices_of("H1000=2", {{"nvidia-h100-sxm5-80gb", ""}}), kNotFound, "H1000");
  EXPECT_THROW(prices_of("aws", {{"nvidia-h100-sxm5-80gb", ""}}), OptionError);
  EXPECT_ERROR(prices_of("aws-on-demand", {{"amd-mi300x", ""}}), kInput,
               "`price-per-gpu-hour` aws-on-demand: no price of amd-mi300x");
}

TEST(Prices, OfOneGpuAreNotGivenTwice) {
  const std::vector<PricedGpu> gpus = {{"nvidia-h100-sxm5-80gb", ""}};
  EXPECT_ERROR(prices_of("H100=2,h100=99", gpus), kInput,
               "`price-per-gpu-hour`: 'h100' is nvidia-h100-sxm5-80gb, which has a price already, "
               "as 'H100'");
  EXPECT_ERROR(prices_of("H100=2,A100=1,nvidia-a100-sxm4-80gb=2", gpus), kInput, "already");
  EXPECT_ERROR(prices_of("H100=2,dgx-a100=1,DGX A100=2", gpus), kInput, "dgx-a100, which has");
  const TemporaryFolder folder;
  const std::string csv = (folder.path() / "prices.csv").string(),
                    json = (folder.path() / "prices.json").string();
  write_file(csv, "gpu,price_per_gpu_hour,currency\nH100,2,USD\nnvidia-h100-sxm5-80gb,99,EUR\n");
  EXPECT_ERROR(prices_of(csv, gpus), kInput, "prices.csv: line 3: 'nvidia-h100-sxm5-80gb' is");
  write_file(json, R"({"H100": 2, "nvidia-h100-sxm5-80gb": 99})");
  EXPECT_ERROR(prices_of(json, gpus), kInput, "already");
  // A cluster's price is not that of its GPU.
  EXPECT_NO_THROW(prices_of("H100=2,dgx-h100=3", gpus));
}

TEST(Prices, HaveOneUpperBound) {
  const std::vector<PricedGpu> gpus = {{"nvidia-h100-sxm5-80gb", ""}};
  const TemporaryFolder folder;
  const std::string csv = (folder.path() / "prices.csv").string(),
                    json = (folder.path() / "prices.json").string();
  write_file(csv, "gpu,price_per_gpu_hour\nH100,1e308\n");
  write_file(json, R"({"H100": 1e308})");
  for (const std::string& text : {std::string("1e308"), std::string("H100=1e308"), csv, json})
    EXPECT_ERROR(prices_of(text, gpus), kInput, "price: expected a number from 0 to 1e+06");
  EXPECT_EQ(find_option("price-per-gpu-hour", RequestKind::kPass)->max, kMostPricePerGpuHour);
}

TEST(Prices, OfAGpuOfADeviceFileAreFoundByItsId) {
  EXPECT_EQ(prices_of("my-gpu=2,H100=3", {{"my-gpu", ""}})[0].price_per_gpu_hour, 2);
  EXPECT_ERROR(prices_of("my-gpu=2", {{"nvidia-h100-sxm5-80gb", ""}}), kNotFound, "my-gpu");
}

TEST(Prices, OfSeveralCurrenciesAreNotCompared) {
  const std::string path = ::testing::TempDir() + "/two_currencies.csv";
  write_file(path, "gpu,price_per_gpu_hour,currency\nH100,2,USD\nA100,1,EUR\n");
  EXPECT_EQ(prices_of(path, {{"nvidia-h100-sxm5-80gb", ""}})[0].currency, "USD");
  EXPECT_ERROR(prices_of(path, {{"nvidia-h100-sxm5-80gb", ""}, {"nvidia-a100-sxm4-80gb", ""}}),
               kInput, "the price of H100 is in USD, that of A100 in EUR");
}

TEST(Prices, OfATableAreUsedToTheDigitAndNamedInTheForecast) {
  Request request{.batch = 8, .seq = 512};
  const auto priced = [&](const std::string& prices, std::optional<double> number) {
    request.energy.gpu_prices = prices;
    request.energy.price_per_gpu_hour = number;
    return std::get<Forecast>(
        ask(forecaster(), load_model_ref("gpt2_large"), load_gpu_ref("A100"), request));
  };
  const double price =
      prices_of("aws-on-demand", {{"nvidia-a100-sxm4-80gb", ""}})[0].price_per_gpu_hour;
  const Forecast table = priced("aws-on-demand", {}), number = priced("", price);
  ASSERT_TRUE(table.power && table.power->gpu_price);
  EXPECT_EQ(table.power->gpu_price->table, "aws-on-demand");
  EXPECT_TRUE(table.power->gpu_price->is_guess());
  EXPECT_EQ(*table.power->gpu_cost, *number.power->gpu_cost);
  EXPECT_EQ(*table.power->gpu_cost, price * table.latency_s / 3600);
  EXPECT_FALSE(number.power->gpu_price);
  EXPECT_FALSE(priced("", {}).power->gpu_cost);
}

TEST(Prices, ByGpuRankAComparisonByCost) {
  Request request{.batch = 8, .seq = 512, .execution = {.dtype = "fp16"}};
  const std::vector<GpuRef> gpus = {load_gpu_ref("H100"), load_gpu_ref("A100"), load_gpu_ref("T4")};
  const auto order = [&](const std::string& prices) {
    request.energy.gpu_prices = prices;
    std::string names;
    for (const ComparedGpu& row :
         compare_gpus(forecaster(), load_model_ref("gpt2_large"), gpus, request).gpus)
      names += row.gpu.substr(0, row.gpu.find('-', 8)) + " ";
    return names;
  };
  EXPECT_EQ(order(""), "nvidia-h100 nvidia-a100 nvidia-t4 ");
  EXPECT_EQ(order("H100=1000,A100=10,T4=0.01"), "nvidia-t4 nvidia-a100 nvidia-h100 ");
  EXPECT_ERROR(order("H100=1000,A100=10"), kInput, "no price of nvidia-t4");
}

}  // namespace
}  // namespace tilecast
