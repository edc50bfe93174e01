// Speed of forecasts, in process: whole models warm, and distinct kernels in a batch.

#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "devices/registry.h"
#include "predict/predictor.h"
#include "tilecast/forecast.h"

namespace {

using tilecast::Forecaster;

void whole_model(benchmark::State& state, const char* model_name, tilecast::Mode mode,
                 int64_t seq) {
  const Forecaster forecaster;
  const auto model = tilecast::load_model_ref(model_name);
  const auto gpu = tilecast::load_gpu_ref("H100");
  tilecast::ForecastOptions options;
  options.mode = mode;
  options.batch = 4;
  options.seq = seq;
  for (auto _ : state) {
    benchmark::DoNotOptimize(forecaster.forecast(model, gpu, options));
  }
}

/// Kernels that differ from each other, in the mix of a training graph: half matrix products.
std::vector<tilecast::Kernel> distinct_kernels(size_t count) {
  tilecast::Rng rng(1);
  std::vector<tilecast::Kernel> kernels;
  for (size_t i = 0; i < count; ++i) {
    tilecast::Kernel k;
    k.family = i % 2 == 0   ? tilecast::KernelFamily::kLinear
               : i % 8 == 1 ? tilecast::KernelFamily::kSoftmax
               : i % 8 == 3 ? tilecast::KernelFamily::kLayerNorm
                            : tilecast::KernelFamily::kElementwise;
    k.m = 64 + static_cast<int64_t>(rng.below(16384));
    k.n = 64 + static_cast<int64_t>(rng.below(8192));
    k.k = k.is_matmul() ? 64 + static_cast<int64_t>(rng.below(8192)) : 1;
    k.flops = k.is_matmul() ? 2 * k.m * k.n * k.k : k.m * k.n;
    k.read_bytes = 4 * (k.is_matmul() ? k.m * k.k + k.k * k.n : k.m * k.n);
    k.write_bytes = 4 * k.m * k.n;
    kernels.push_back(k);
  }
  return kernels;
}

void kernel_batch(benchmark::State& state) {
  const tilecast::Weights weights = tilecast::load_weights("");
  const auto predictor = tilecast::make_learned_predictor(weights);
  const tilecast::Device device = tilecast::find_device("H100");
  const auto kernels = distinct_kernels(4096);
  std::vector<tilecast::KernelTime> times(kernels.size());
  for (auto _ : state) {
    predictor->predict(kernels, device, times);
    benchmark::DoNotOptimize(times.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kernels.size()));
}

BENCHMARK_CAPTURE(whole_model, gpt3_27_training, "gpt3_27", tilecast::Mode::kTraining, 2048)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(whole_model, gpt2_large_inference, "gpt2_large", tilecast::Mode::kInference, 1024)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(whole_model, llama_3_8b_training, "llama-3-8b", tilecast::Mode::kTraining, 2048)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(kernel_batch)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
