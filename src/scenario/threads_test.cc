// The façade's const calls run from several threads at once; the `clang` preset runs this under
// ThreadSanitizer.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "schema/json.h"
#include "tilecast/forecast.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

TEST(Threads, ConstCallsOfOneForecasterGiveTheSameFromEightThreads) {
  const Forecaster forecaster;
  const ModelRef bert = load_model_ref("bert_large"), llama = load_model_ref("llama-3-8b");
  const GpuRef gpu = load_gpu_ref("H100");
  const std::vector<std::function<std::string()>> calls = {
      [&] { return to_json(forecaster.forecast(bert, gpu, {.mode = Mode::kTraining})); },
      [&] {
        return to_json(
            forecaster.kernel("linear", gpu, "bf16", {{"m", 64}, {"n", 512}, {"k", 512}}));
      },
      [&] { return std::to_string(forecaster.largest_batch(bert, gpu, {}).value_or(0)); },
      [&] {
        return to_json(forecast_generation(
            forecaster, llama, gpu, {.kind = RequestKind::kGenerate, .prompt = 100, .output = 20}));
      },
      [&] {
        const Request request = {.kind = RequestKind::kServe,
                                 .prompt = 50,
                                 .output = 10,
                                 .load = {.concurrency = 3, .requests = 6}};
        return to_json(forecast_generation(forecaster, llama, gpu, request));
      },
      [] { return load_model_ref("gpt2_large").name() + load_gpu_ref("A100").id(); },
      [] { return to_json(gpu_catalog()) + to_json(model_catalog()); },
  };
  std::vector<std::string> alone;
  for (const auto& call : calls) alone.push_back(call());
  constexpr size_t kThreads = 8;
  std::vector<std::vector<std::string>> together(kThreads, std::vector<std::string>(calls.size()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Each thread begins with another call, so that unlike calls run at the same time.
      for (size_t i = 0; i < calls.size(); ++i) {
        const size_t call = (t + i) % calls.size();
        together[t][call] = calls[call]();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kThreads; ++t) EXPECT_EQ(together[t], alone) << "thread " << t;
}

}  // namespace
}  // namespace tilecast
