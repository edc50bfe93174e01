#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

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
  Estimate ttft;                 ///< from the prompts' arrival to every sequence's first token
  Estimate tpot;                 ///< mean of the tokens after the first
  Estimate request;              ///< from arrival to the last token
  double tokens_per_s = 0;       ///< written, of all sequences
  int64_t flops = 0, bytes = 0;  ///< of one rank, prefill and decode steps together
  double communication_s = 0;    ///< between the ranks; nothing overlaps with it
  /// All kernels of one rank, "prefill" or "decode" in `phase`; decode steps at the middles of up
  /// to five parts of the output, each counted for all steps of its part.
  std::vector<KernelForecast> kernels;
  std::shared_ptr<const void> names;  ///< what the names of all kernels point into
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
  Request used;  ///< the request as it was used: what was left open is filled in
};

/// What a request of the kinds kGenerate and kServe gets; a pure function of its arguments and the
/// forecaster's weights. What does not fit into the device's memory is forecast, with `fits` false
/// and a warning. Throws Error: kUnsupported for a model that does not write token by token or a
/// precision that the device has not, kInput for a request that does not fit the model's positions
/// or its heads, and for options that contradict each other.
LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const Request& request);

}  // namespace tilecast
