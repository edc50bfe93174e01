// Speed of forecasts, in process: whole models warm, and distinct kernels in a batch.

#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/predictor.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace {

using tilecast::Forecaster;

void whole_model(benchmark::State& state, const char* model_name, tilecast::Mode mode,
                 int64_t seq) {
  const Forecaster forecaster;
  const auto model = tilecast::load_model_ref(model_name);
  const auto gpu = tilecast::load_gpu_ref("H100");
  const tilecast::Request request{.batch = 4, .mode = mode, .seq = seq};
  for (auto _ : state) {
    benchmark::DoNotOptimize(forecaster.forecast(model, gpu, request));
  }
}

/// Cost of a cache of forecasts for each answer.
void copy_forecast(benchmark::State& state, const char* model_name) {
  const Forecaster forecaster;
  const tilecast::Forecast forecast = forecaster.forecast(
      tilecast::load_model_ref(model_name), tilecast::load_gpu_ref("H100"), {.batch = 4});
  for (auto _ : state) {
    tilecast::Forecast copy = forecast;
    benchmark::DoNotOptimize(copy);
  }
}

/// Kernels that differ from each other, in the mix of a training graph: half matrix products.
std::vector<tilecast::Kernel> distinct_kernels(size_t count) {
  tilecast::Rng rng(1);
  std::vector<tilecast::Kernel> kernels;
  for (size_t i = 0; i < count; ++i) {
    using tilecast::Rows;
    const int64_t m = 64 + static_cast<int64_t>(rng.below(16384));
    const int64_t n = 64 + static_cast<int64_t>(rng.below(8192));
    tilecast::Kernel k;
    if (i % 2 == 0) {
      const int64_t depth = 64 + static_cast<int64_t>(rng.below(8192));
      k = {.shape = tilecast::Gemm{.m = m, .n = n, .k = depth},
           .flops = 2 * m * n * depth,
           .read_bytes = 4 * (m * depth + depth * n)};
    } else {
      k = {.shape = tilecast::Stream{m, n}, .flops = m * n, .read_bytes = 4 * m * n};
      if (i % 8 == 1) k.shape = Rows{m, n, Rows::Function::kSoftmax};
      if (i % 8 == 3) k.shape = Rows{m, n, Rows::Function::kNorm};
    }
    k.write_bytes = 4 * m * n;
    kernels.push_back(k);
  }
  return kernels;
}

/// Kernels of a language model in bf16: on a measured GPU forests correct them.
std::vector<tilecast::Kernel> low_precision_kernels(size_t count) {
  tilecast::Rng rng(1);
  std::vector<tilecast::Kernel> kernels;
  const auto size = [&](int64_t most) { return 1 + static_cast<int64_t>(rng.below(most)); };
  while (kernels.size() < count) {
    const int64_t batch = size(64), keys = size(8192);
    const bool decode = kernels.size() % 4 == 0;
    tilecast::SizeList sizes = {
        {"batch", batch}, {"keys", keys}, {"head_dim", 128}, {"heads", 32}, {"kv_heads", 8}};
    if (!decode) {
      const int64_t m = size(8192), n = 64 * size(128), k = 64 * size(128);
      sizes = {{"m", m}, {"n", n}, {"k", k}};
    }
    kernels.push_back(tilecast::kernels_of_sizes(decode ? "cached_attention" : "gemm",
                                                 tilecast::DType::kBf16, sizes)
                          .front());
  }
  return kernels;
}

void kernel_batch(benchmark::State& state, std::vector<tilecast::Kernel> (*make)(size_t),
                  const tilecast::Conditions& conditions) {
  const tilecast::Weights weights = tilecast::load_weights("");
  const auto predictor = tilecast::make_learned_predictor(weights);
  const tilecast::Device device = tilecast::find_device("H100");
  const auto kernels = make(4096);
  std::vector<tilecast::KernelTime> times(kernels.size());
  for (auto _ : state) {
    predictor->predict(kernels, device, conditions, times);
    benchmark::DoNotOptimize(times.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kernels.size()));
}

/// Time to first token and per token of 256 tokens.
void language_model(benchmark::State& state, const char* name, int64_t ranks) {
  const tilecast::Forecaster forecaster;
  const tilecast::ModelRef model = tilecast::load_model_ref(name);
  const tilecast::GpuRef gpu = tilecast::load_gpu_ref("H100");
  const tilecast::Request request{.kind = tilecast::RequestKind::kGenerate,
                                  .batch = 16,
                                  .prompt = 1024,
                                  .output = 256,
                                  .execution = {.tp = ranks}};
  for (auto _ : state)
    benchmark::DoNotOptimize(
        tilecast::forecast_generation(forecaster, model, gpu, request).tokens_per_s);
}

BENCHMARK_CAPTURE(whole_model, gpt3_27_training, "gpt3_27", tilecast::Mode::kTraining, 2048)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(whole_model, gpt2_large_inference, "gpt2_large", tilecast::Mode::kInference, 1024)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(whole_model, llama_3_8b_training, "llama-3-8b", tilecast::Mode::kTraining, 2048)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_forecast, diffusion, "stable-diffusion-1.5")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(kernel_batch, fp32, distinct_kernels, tilecast::Conditions{})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(kernel_batch, bf16, low_precision_kernels,
                  tilecast::Conditions{.software = tilecast::software_of("vllm")})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(language_model, llama_3_8b, "llama-3-8b", 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(language_model, deepseek_v3, "deepseek-v3", 8)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
