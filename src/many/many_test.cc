#include <gtest/gtest.h>

#include "many/distinct_rows.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

/// A column of texts; "" is a value that is not given.
OptionColumn column(const std::string& name, const std::vector<std::string>& values) {
  OptionColumn result{.name = name};
  for (const std::string& value : values) {
    const auto found = std::find(result.words.begin(), result.words.end(), value);
    result.codes.push_back(value.empty() ? OptionColumn::kNotGiven
                                         : static_cast<int32_t>(found - result.words.begin()));
    if (!value.empty() && found == result.words.end()) result.words.push_back(value);
  }
  return result;
}

TEST(DistinctRows, RowsThatAreAlikeShareAKind) {
  const std::vector<OptionColumn> columns = {column("model", {"a", "a", "b", "a", "b"}),
                                             column("batch", {"1", "", "1", "1", "1"})};
  const DistinctRows distinct = find_distinct(columns, 5);
  EXPECT_EQ(distinct.first, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(distinct.kind, (std::vector<uint32_t>{0, 1, 2, 0, 2}));
  EXPECT_EQ(find_distinct({}, 3).first.size(), 1u);
  EXPECT_TRUE(find_distinct({}, 0).first.empty());
}

TEST(ForecastMany, EqualsSingleForecasts) {
  const Forecaster forecaster;
  const std::vector<OptionColumn> columns = {
      column("model", {"gpt2_large", "bert_large", "gpt2_large", "llama-3-8b"}),
      column("gpu", {"H100", "T4", "H100", "A100"}), column("batch", {"4", "", "4", "2"}),
      column("prompt", {"", "", "", "512"})};
  const ForecastTable table = forecast_many(forecaster, columns, 4, {.threads = 3});
  ASSERT_EQ(table.distinct.size(), 3u);
  const Forecast pass =
      forecaster.forecast(load_model_ref("gpt2_large"), load_gpu_ref("H100"), Request{.batch = 4});
  EXPECT_EQ(table.of_row(2).latency_s, pass.latency_s);
  EXPECT_EQ(table.of_row(2).peak_bytes, pass.memory.peak_bytes);
  EXPECT_EQ(table.of_row(2).ttft_s, std::nullopt);
  const Request request{.kind = RequestKind::kGenerate, .batch = 2, .prompt = 512};
  const GenerationForecast tokens =
      forecast_generation(forecaster, load_model_ref("llama-3-8b"), load_gpu_ref("A100"), request);
  EXPECT_EQ(table.of_row(3).tpot_s, tokens.tpot.value);
  EXPECT_EQ(table.of_row(3).error, std::nullopt);
}

TEST(ForecastMany, ServersUnderLoadHaveTheNumbersOfTheLoad) {
  const std::vector<OptionColumn> columns = {
      column("model", {"llama-3-8b"}), column("gpu", {"H100"}), column("prompt", {"1000"}),
      column("output", {"64"}), column("concurrency", {"8"})};
  const ForecastTable table = forecast_many(Forecaster(), columns, 1);
  const Request request{.kind = RequestKind::kServe,
                        .prompt = 1000,
                        .output = 64,
                        .load = {.concurrency = 8, .lengths_given = true}};
  const GenerationForecast server = forecast_generation(Forecaster(), load_model_ref("llama-3-8b"),
                                                        load_gpu_ref("H100"), request);
  ASSERT_TRUE(server.serving);
  const ServerMetrics& load = server.serving->steady_or_all();
  const ForecastTotals& t = table.of_row(0);
  EXPECT_EQ(t.ttft_s, load.ttft.p99.value);
  EXPECT_EQ(t.tpot_s, load.tpot.p99.value);
  EXPECT_EQ(t.tokens_per_s, load.output_tokens_per_s);
  EXPECT_GT(*t.ttft_s, server.ttft.value) << "a request waits for others";
}

TEST(ForecastMany, ARowThatFailsDoesNotAffectOthers) {
  const std::vector<OptionColumn> columns = {
      column("model", {"gpt2_large", "gpt2_larg", "gpt2_large", ""}),
      column("gpu", {"H100", "H100", "H100", "H100"}), column("batch", {"1", "1", "none", "1"})};
  const ForecastTable table = forecast_many(Forecaster(), columns, 4);
  EXPECT_GT(table.of_row(0).latency_s.value_or(Interval{}).value, 0);
  EXPECT_NE(table.of_row(1).error.value_or("").find("did you mean 'gpt2_large'"), std::string::npos)
      << table.of_row(1).error.value_or("");
  EXPECT_EQ(table.of_row(1).latency_s, std::nullopt);
  EXPECT_EQ(table.of_row(2).error,
            "`batch`: expected a whole number from 1 to 2147483648, found 'none'");
  EXPECT_EQ(table.of_row(3).error, "`model` is missing");
}

TEST(ForecastMany, WrongColumnsAreRefused) {
  const Forecaster forecaster;
  EXPECT_THROW(forecast_many(forecaster, {column("bacth", {"1"})}, 1), OptionError);
  EXPECT_THROW(forecast_many(forecaster, {column("batch", {"1"})}, 2), Error);
  EXPECT_THROW(forecast_many(forecaster, {column("seq", {"1"}), column("seq", {"1"})}, 1), Error);
}

TEST(ForecastMany, ThePollEndsTheRun) {
  const std::vector<OptionColumn> columns = {column("model", {"gpt2_large"}),
                                             column("gpu", {"H100"})};
  const ManyOptions options{.threads = 2, .poll = [] { throw Error(ErrorKind::kInput, "stop"); }};
  EXPECT_THROW(forecast_many(Forecaster(), columns, 1, options), Error);
}

}  // namespace
}  // namespace tilecast
