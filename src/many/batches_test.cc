// Rows that differ in the batch share a graph: each must equal its single forecast.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "importers/model.h"
#include "many/totals.h"
#include "schema/json.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

const std::vector<int64_t> kBatches = {1, 2, 3, 7, 8, 16, 37, 64, 96, 100};
const std::vector<std::string> kGpus = {"H100", "V100"};  // of these, only one has bf16

std::string single(const Forecaster& forecaster, const ModelRef& model, const std::string& gpu,
                   const std::vector<GivenOption>& options) {
  ForecastTotals failed;
  try {
    return to_json(totals_of(forecaster.forecast(model, load_gpu_ref(gpu), make_request(options))));
  } catch (const Error& error) {
    failed.error = error.what();
  }
  return to_json(failed);
}

/// Each batch on each GPU with these options, in a table and alone.
void expect_equal(const std::string& model, const std::vector<GivenOption>& options) {
  std::vector<OptionColumn> columns = {
      {.name = "model", .words = {model}}, {.name = "gpu", .words = kGpus}, {.name = "batch"}};
  for (const int64_t batch : kBatches) columns[2].words.push_back(std::to_string(batch));
  for (const GivenOption& option : options)
    columns.push_back({.name = option.name, .words = {option.text}});
  const size_t rows = kBatches.size() * kGpus.size();
  for (size_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < columns.size(); ++c)
      columns[c].codes.push_back(c == 1   ? static_cast<int32_t>(row % kGpus.size())
                                 : c == 2 ? static_cast<int32_t>(row / kGpus.size())
                                          : 0);
  }
  const ForecastTable table = forecast_many(Forecaster(), columns, rows, {.threads = 1});
  const Forecaster forecaster;
  const ModelRef loaded = load_model_ref(model);
  for (size_t row = 0; row < rows; ++row) {
    std::vector<GivenOption> given = options;
    given.push_back({"batch", columns[2].words[row / kGpus.size()]});
    ASSERT_EQ(to_json(table.of_row(row)),
              single(forecaster, loaded, kGpus[row % kGpus.size()], given))
        << model << ", batch " << given.back().text
        << (options.empty() ? "" : ", " + options[0].name + " " + options[0].text);
  }
}

TEST(Batches, WithAFactorAreThoseOfTheNumber) {
  const auto table = [](const std::vector<std::string>& batches) {
    std::vector<int32_t> codes;
    for (size_t i = 0; i < batches.size(); ++i) codes.push_back(static_cast<int32_t>(i));
    const std::vector<int32_t> first(batches.size(), 0);
    return forecast_many(Forecaster(),
                         {{.name = "model", .words = {"gpt2"}, .codes = first},
                          {.name = "gpu", .words = {"H100"}, .codes = first},
                          {.name = "batch", .words = batches, .codes = codes}},
                         batches.size(), {.threads = 1});
  };
  const ForecastTable words = table({"1", "2", "3", "4", "5", "6", "7", "8", "9", "1k"}),
                      numbers = table({"1", "2", "3", "4", "5", "6", "7", "8", "9", "1000"});
  for (size_t row = 0; row < 10; ++row)
    EXPECT_EQ(to_json(words.of_row(row)), to_json(numbers.of_row(row))) << row;
}

TEST(Batches, OfAllModelsEqualSingleForecasts) {
  for (const std::string& model : bundled_models()) {
    expect_equal(model, {});
    // Pipelines are forecast in inference only.
    if (!load_model(model).pipeline)
      expect_equal(model, {{"mode", "training"}, {"optimizer", "adamw"}});
  }
}

TEST(Batches, WithEachOptionEqualSingleForecasts) {
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(RequestKind::kPass) || option.name == "batch") continue;
    std::vector<std::string> values = option.choices;
    if (values.empty()) values = {"2"};
    for (const std::string& value : values) {
      for (const char* model : {"gpt2_med", "gpt-oss-20b"}) {
        std::vector<GivenOption> given = {{option.name, value}};
        if (option.name != "mode") given.push_back({"mode", "training"});
        expect_equal(model, given);
      }
    }
  }
}

}  // namespace
}  // namespace tilecast
