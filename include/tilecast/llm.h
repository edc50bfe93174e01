#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// A request of a recorded load.
struct TraceRequest {
  double arrival_s = 0;
  int64_t prompt = 0, output = 0;  ///< tokens
};

/// Reads a CSV file with the columns arrival_s, prompt and output (seconds, tokens, tokens), sorted
/// by arrival. Throws Error{kIo, kNotFound} where it cannot be read, Error{kInput} with file and
/// line where it is wrong.
std::vector<TraceRequest> read_trace(const std::string& path);

/// Sequences that a server runs at once when nothing is said. Source: vLLM, engine/arg_utils.py
/// (default_max_num_seqs), for GPUs with less than 70 GiB; for larger ones newer releases take
/// 1024.
inline constexpr int64_t kDefaultMaxNumSeqs = 256;

/// Requests of one simulation at most.
inline constexpr int64_t kMostServedRequests = 100'000;

/// What is asked of a language model that answers prompts.
struct LlmOptions {
  int64_t prompt = 1024;  ///< tokens
  int64_t output = 256;   ///< tokens, the first included
  int64_t batch = 1;      ///< sequences of a static batch
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
  /// Tokens of one step at most, prompts and decodes together. Source: vLLM, engine/arg_utils.py
  /// (default_max_num_batched_tokens of the server) for GPUs with 70 GiB or more; 2048 for others.
  int64_t max_num_batched_tokens = 8192;
  double gpu_memory_utilization = 0.9;  ///< share of the device's memory that may be used
  int64_t skew_percent = 0;  ///< 100 times the exponent of the experts' popularity; 0: even

  // A server that batches continuously; else one batch runs from its prompts to its last tokens.
  bool continuous = false;
  double rate = 0;  ///< requests a second of a Poisson process; 0: not asked
  int64_t concurrency =
      0;  ///< clients that send their next request when one is answered; 0: not asked
  std::vector<TraceRequest> trace;  ///< requests at their own times; empty: not asked
  int64_t requests = 0;             ///< to simulate; 0: see the output
  /// Lengths are drawn evenly from `prompt` to `prompt_most`, and from `output` to `output_most`;
  /// 0: all are alike.
  int64_t prompt_most = 0, output_most = 0;
  bool lengths_given = false;           ///< someone named a length, which a trace makes useless
  std::optional<int64_t> max_num_seqs;  ///< sequences that run at once; default: kDefaultMaxNumSeqs
  double prefix_hit_rate = 0;    ///< share of each prompt that is in the cache before it arrives
  double server_overhead_s = 0;  ///< HTTP and tokenizer, before the scheduler sees a request
  std::optional<double> ttft_s, tpot_s;  ///< limits that goodput counts by
};

const std::vector<OptionDef<LlmOptions>>& llm_options();

/// Throws Error{kInput} where a value is not known or options contradict each other; `forecast_llm`
/// begins with it.
void check_llm_options(const LlmOptions& options);

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
  std::vector<Warning> warnings;  ///< of this step; those of the forecast hold them too
};

/// Mean, median and 99th percentile over requests.
struct Distribution {
  Estimate mean, median, p99;
};

/// What the clients of a server see in one part of the run.
struct ServedPart {
  int64_t requests = 0;
  Distribution ttft;  ///< from sending a request to its first token
  Distribution tpot;  ///< (last token - first token) / (output - 1)
  Distribution e2e;   ///< from sending a request to its last token
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< of prompts and outputs
};

struct LlmForecast {
  std::string model, gpu, gpu_name, dtype, kv_dtype, software;
  std::string dtype_source;  ///< as in Forecast
  int64_t prompt = 0, output = 0, batch = 0, tp = 1;
  bool continuous = false;
  bool lengths_vary = false;  ///< of a server: prompt and output are means

  /// Static batch: from its first prompt token to its last output token, as `request`. Server: mean
  /// time of a request from sending to the last token, over all requests.
  Estimate latency;

  // A static batch. For a server: one request of mean lengths that has the server for itself.
  Estimate first_token;          ///< from the prompts' arrival to every sequence's first token
  Estimate per_token;            ///< mean of the tokens after the first
  Estimate request;              ///< from arrival to the last token
  double tokens_per_s = 0;       ///< written, of all sequences
  int64_t flops = 0, bytes = 0;  ///< of one rank, prefill and decode steps together
  double communication_s = 0;    ///< between the ranks; nothing overlaps with it
  /// All kernels of one rank, "prefill" or "decode" in `phase`; decode steps at the middles of up
  /// to five parts of the output, each counted for all steps of its part.
  std::vector<KernelForecast> kernels;
  /// FLOPs over latency and the device's peak for what is multiplied. Server: FLOPs of a request
  /// times the requests answered in a second over that peak.
  double utilization_ratio = 0;
  /// Time of one decode step by tokens in each sequence's cache, in the middles of those parts.
  std::vector<std::pair<int64_t, Estimate>> course;
  StepForecast prefill;  ///< the largest step of the prefill
  StepForecast decode;   ///< the step in the middle of the output

  int64_t parameters = 0;
  int64_t active_parameters = 0;      ///< that one token goes through; embedding table included
  int64_t multiplied_parameters = 0;  ///< of them, without a table that is only looked up
  int64_t flops_per_token = 0;  ///< of one decode step at the prompt's length, attention included
  int64_t attention_flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  ///< of all ranks, each head once, windows not regarded

  /// Bytes of one rank. A server reserves all that it may use for the cache.
  int64_t weights_bytes = 0, cache_bytes = 0, activations_bytes = 0;
  int64_t workspace_bytes = 0, framework_bytes = 0, overhead_bytes = 0;  ///< the last: their sum
  int64_t peak_bytes = 0, device_bytes = 0;
  int64_t usable_bytes = 0;   ///< the device's times gpu_memory_utilization
  bool fits = true;           ///< a static batch whole; for a server the longest request
  int64_t largest_batch = 0;  ///< sequences of full length that fit together

  /// Of a continuously batching server.
  struct Serving {
    double rate = 0;          ///< asked, requests a second; 0: not asked
    int64_t concurrency = 0;  ///< asked; 0: not asked
    bool trace = false;       ///< the requests came from a file
    int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
    int64_t cache_tokens = 0;    ///< that the blocks of the cache hold
    int64_t most_sequences = 0;  ///< of the longest length that run together
    int64_t most_in_flight = 0;  ///< requests that waited or ran at the same time
    ServedPart all;
    /// Without the first and the last `most_in_flight` requests to arrive: the server is full, and
    /// does not empty yet. nullopt where too few requests are left.
    std::optional<ServedPart> steady;
    /// Requests a second that met the limits asked for, over the whole run.
    std::optional<double> goodput_requests_per_s;
    std::optional<double> ttft_limit_s, tpot_limit_s;
    double mean_batch = 0, busy_share = 0;
    double cache_use = 0;  ///< mean share of the cache's blocks in use
    int64_t preemptions = 0;
    bool keeps_up = true;
  };
  std::optional<Serving> serving;  ///< nullopt where not even the longest request fits

  std::vector<Warning> warnings;
};

/// A pure function of its arguments and the forecaster's weights. What does not fit into the
/// device's memory is forecast, with `fits` false and a warning. Throws Error: kUnsupported for a
/// model that does not write token by token or a precision that the device has not, kInput for a
/// request that does not fit the model's positions or its heads, and for options that contradict
/// each other.
LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const LlmOptions& options);

}  // namespace tilecast
