#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// What is asked of a language model that answers prompts.
struct LlmOptions {
  int64_t prompt = 1024;  ///< tokens
  int64_t output = 256;   ///< tokens, the first included
  int64_t batch = 1;      ///< sequences
  /// Of weights and activations ("bf16", "fp16", "fp32"), or how weights are stored and multiplied
  /// beside activations in 16 bits ("fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo",
  /// "fp4", "fp8_wo", "nvfp4_wo"); "": as the checkpoint says, else bf16.
  std::string dtype;
  std::string kv_dtype;  ///< of the cache; "": as the checkpoint says, else as the activations
  int64_t tp = 1;        ///< ranks that share each layer
  std::string software = "vllm";
  std::string predictor = "learned";
  bool cuda_graphs = true;  ///< of decode steps; a prefill is launched kernel by kernel
  double host_launch_s = 5e-6;
  int64_t chunk = 8192;       ///< tokens that one step prefills at most
  double memory_share = 0.9;  ///< of the device that the server may use
  int64_t skew_percent = 0;   ///< 100 times the exponent of the experts' popularity; 0: even
  bool continuous = false;    ///< a server that batches continuously; else one batch at a time
  double rate = 0;            ///< requests a second that reach it; 0: `concurrency` clients
  int64_t concurrency = 0;    ///< 0: `batch`
};

const std::vector<OptionDef<LlmOptions>>& llm_options();

/// A time with its 80 % interval, seconds.
struct Estimate {
  double seconds = 0, low_s = 0, high_s = 0;
};

/// A step of the model: what holds it back and what it runs.
struct StepForecast {
  Estimate time;
  double host_wait_s = 0;
  /// Shares of the kernels' time: "compute", "memory", "latency", "network"; the largest first.
  std::vector<std::pair<std::string, double>> limits;
  std::vector<KernelForecast> kernels;
  std::string slower_experts;  ///< says so where few bits make layers of experts slower; else ""
};

struct LlmForecast {
  std::string model, gpu, gpu_name, dtype, kv_dtype, software;
  std::string dtype_source;  ///< as in Forecast
  int64_t prompt = 0, output = 0, batch = 0, tp = 1;

  Estimate first_token;     ///< from the prompts' arrival to every sequence's first token
  Estimate per_token;       ///< mean of the tokens after the first
  Estimate request;         ///< from arrival to the last token
  double tokens_per_s = 0;  ///< written, of all sequences
  /// Time of one decode step by tokens in each sequence's cache.
  std::vector<std::pair<int64_t, Estimate>> course;
  StepForecast prefill;  ///< the largest step of the prefill
  StepForecast decode;   ///< the step in the middle of the output

  int64_t parameters = 0;
  int64_t active_parameters = 0;      ///< that one token goes through; embedding table included
  int64_t multiplied_parameters = 0;  ///< of them, without a table that is only looked up
  int64_t flops_per_token = 0;  ///< of one decode step at the prompt's length, attention included
  int64_t attention_flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  ///< of all ranks, each head once, windows not regarded

  /// Bytes of one rank.
  int64_t weights_bytes = 0, cache_bytes = 0, activations_bytes = 0, overhead_bytes = 0;
  int64_t peak_bytes = 0, device_bytes = 0;
  int64_t largest_batch = 0;

  /// Of a continuously batching server.
  struct Serving {
    double rate = 0;          ///< asked, requests a second; 0: closed loop
    int64_t concurrency = 0;  ///< asked; 0: open
    Estimate first_token_median, first_token_p99, per_token_median, per_token_p99;
    double requests_per_s = 0, tokens_per_s = 0;
    double mean_batch = 0, busy_share = 0;
    int64_t most_sequences = 0;  ///< whose caches fit
    bool keeps_up = true;
  };
  std::optional<Serving> serving;

  std::vector<std::string> warnings;
};

/// A pure function of its arguments and the forecaster's weights. Throws Error: kUnsupported for a
/// model that does not write token by token or a precision that the device has not, kInput for a
/// request that does not fit the model's positions, its heads, or the device's memory.
LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const LlmOptions& options);

}  // namespace tilecast
