// Forecasts do not depend on what was forecast before.

#include <gtest/gtest.h>

#include <thread>

#include "scenario/internal.h"
#include "scenario/precision.h"
#include "schema/json.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// The forecast as JSON, or the error.
std::string outcome(const Forecaster& forecaster, const ModelRef& model, const char* gpu,
                    const std::vector<GivenOption>& options) {
  try {
    return to_json(forecaster.forecast(model, load_gpu_ref(gpu), make_request(options)));
  } catch (const Error& error) {
    return error.what();
  }
}

/// Each option of a pass with each of its words, or a number that is not the default; in training,
/// which all options allow.
std::vector<std::vector<GivenOption>> requests() {
  std::vector<std::vector<GivenOption>> all = {{}};
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(RequestKind::kPass)) continue;
    std::vector<std::string> values = option.choices;
    if (values.empty()) values = {"2"};
    for (const std::string& value : values) {
      all.push_back({{option.name, value}});
      if (option.name != "mode") all.back().push_back({"mode", "training"});
    }
  }
  return all;
}

TEST(PassCache, ForecastsDoNotDependOnEarlierOnes) {
  const Forecaster shared;
  // Only one of these GPUs has bf16.
  for (const char* name : {"gpt2_med", "gpt-oss-20b"}) {
    const ModelRef model = load_model_ref(name);
    for (const std::vector<GivenOption>& options : requests()) {
      for (const char* gpu : {"H100", "V100"}) {
        const std::string fresh = outcome(Forecaster(), model, gpu, options);
        EXPECT_EQ(outcome(shared, model, gpu, options), fresh);
        EXPECT_EQ(outcome(shared, model, gpu, options), fresh) << "the second time";
      }
    }
  }
}

TEST(PassCache, ThreadsThatMissTheSamePassShareOne) {
  const ModelRef model = load_model_ref("gpt2_med");
  const GpuRef gpu = load_gpu_ref("H100");
  const Request request = {.seq = 128};
  const Precision precision =
      resolve_precision(model.content->model, gpu.content->device, PrecisionRequest{});
  PassCache cache;
  std::vector<std::shared_ptr<const PassWork>> works(8);
  std::vector<std::thread> threads;
  for (auto& work : works)
    threads.emplace_back([&] { work = cache.get(model, request, precision); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& work : works) EXPECT_EQ(work, cache.get(model, request, precision));
}

TEST(PassCache, ModelsOfOneNameAreToldApart) {
  const Forecaster shared;
  const auto flops = [&](int layers) {
    const std::string text = R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 64,
      "n_embd": 64, "n_head": 4, "n_layer": )" +
                             std::to_string(layers) + "}";
    return shared.forecast(model_from_text(text, "model"), load_gpu_ref("H100"), {}).flops;
  };
  const int64_t two = flops(2);
  EXPECT_GT(flops(4), two);
  EXPECT_EQ(flops(2), two);
}

}  // namespace
}  // namespace tilecast
