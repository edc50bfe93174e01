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

/// One prefill or decode step: its time, its kernels and what limits them.
struct StepForecast {
  Estimate time;
  double host_wait_s = 0;
  /// Share of the kernels' time by what limits them ("compute", "memory", "latency", "network"),
  /// the largest first.
  std::vector<std::pair<std::string, double>> limits;
  std::vector<KernelForecast> kernels;
  std::vector<Warning> warnings;  ///< of this step; also part of the forecast's warnings
};

/// Mean, median and 99th percentile over requests.
struct Distribution {
  Estimate mean, median, p99;
};

/// Metrics that the clients of a server see, over one part of the run.
struct ServedPart {
  int64_t requests = 0;
  Distribution ttft;  ///< from sending a request to its first token
  Distribution tpot;  ///< (last token - first token) / (output - 1)
  Distribution e2e;   ///< from sending a request to its last token
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< prompt and output tokens
};

/// The cache of a server on one rank as its software sizes it at the start
/// (docs/explanation/servers.md).
struct CachePool {
  std::string rule;           ///< the software's option: "gpu_memory_utilization", …
  double fraction = 0;        ///< its value
  int64_t visible_bytes = 0;  ///< memory that programs see: without the driver's
  int64_t budget_bytes = 0;   ///< what the rule allows for weights, activations and cache
  int64_t weights_bytes = 0;
  int64_t profile_bytes = 0;    ///< peak of activations that the software measures or assumes
  int64_t non_torch_bytes = 0;  ///< of libraries, counted by the software
  int64_t graphs_bytes = 0;     ///< captured CUDA graphs, beside the budget
  int64_t fixed_bytes = 0;      ///< what the budget is spent on before the cache
  int64_t cache_bytes = 0;      ///< what is left; 0: nothing
  int64_t block_tokens = 0, blocks = 0;
  int64_t tokens = 0;  ///< vLLM's "GPU KV cache size"
  int64_t max_model_len = 0;
  /// vLLM's "Maximum concurrency" for sequences of max_model_len.
  double concurrency = 0;
};

/// The vision tower beside the language model, on one rank.
struct VisionForecast {
  int64_t parameters = 0;     ///< of the whole tower
  int64_t weights_bytes = 0;  ///< part of the forecast's weights_bytes
  int64_t images = 0;         ///< of each prompt; 0: the tower does not run
  int64_t image_side = 0;     ///< pixels, after the processor's resizing
  int64_t image_tokens = 0;   ///< of one image
  int64_t prompt_tokens = 0;  ///< of all images of a prompt
  int64_t together = 0;       ///< images that the tower gets at once, at most
  Estimate time;              ///< for all prompts, part of `ttft`
  StepForecast step;          ///< one run of the tower, with `together` images
};

/// Speculative decoding.
struct DraftForecast {
  std::string model;           ///< that makes the drafts; "": the model's own layers
  int64_t tokens = 0;          ///< of a draft
  double acceptance_rate = 0;  ///< of a token, if those before it are accepted
  double tokens_per_step = 1;  ///< that a step of a sequence writes on average
  Estimate time;               ///< of the drafts of one step, part of the step's time
  int64_t weights_bytes = 0;   ///< of one rank, part of the forecast's
};

/// The workers that compute prompts only.
struct PrefillPoolForecast {
  int64_t workers = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;  ///< of each
  int64_t gpus = 0;                        ///< of each
  int64_t peak_bytes = 0;                  ///< memory of one of its ranks
  int64_t cache_tokens = 0;                ///< of one worker
  double busy_share = 0;                   ///< of the time that a worker works
  /// From the end of a prefill to the other pool's getting the cache: of a prompt of mean length on
  /// an idle link, and the mean of all requests, which wait for each other.
  double transfer_s = 0, mean_transfer_s = 0;
};

struct LlmForecast {
  std::string model, gpu, gpu_name, dtype, kv_dtype, software;
  std::string dtype_source;  ///< as in Forecast
  /// `prompt`: without the tokens of images.
  int64_t prompt = 0, output = 0, batch = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  int64_t ranks = 1;    ///< GPUs of one server: tp · pp · dp
  int64_t gpus = 1;     ///< of all servers, prefill workers included
  std::string cluster;  ///< id; "": a single GPU
  bool continuous = false;
  bool lengths_vary = false;  ///< the lengths of requests vary: `prompt` and `output` are means

  /// Static batch: time from the first prompt token to the last output token; equals `request`.
  /// Server: mean time from sending a request to its last token, over all requests.
  Estimate latency;

  // For a static batch: the batch. For a server: a single request of mean lengths on an idle
  // server.
  /// Time to first token: from the arrival of the prompts until all sequences have a token.
  Estimate ttft;
  Estimate tpot;            ///< time per output token: mean over the tokens after the first
  Estimate request;         ///< from the arrival to the last token
  double tokens_per_s = 0;  ///< output tokens of all sequences
  /// Work of one rank over prefill and decode; with a pipeline the mean over its stages. The rank
  /// is one of the data-parallel rank with the most sequences, and of the expert-parallel one with
  /// the most tokens, whose work grows with the skew (Forecast::flops is of the mean rank).
  int64_t flops = 0, bytes = 0;
  double communication_s = 0;  ///< of that rank with others; not overlapped with computation
  /// All kernels of one rank, with a pipeline of one of each stage; `phase` is "vision", "prefill"
  /// or "decode". The output is divided into up to five parts; the decode step in the middle of a
  /// part stands for all steps of that part.
  std::vector<KernelForecast> kernels;
  std::shared_ptr<const void> names;  ///< owns the strings that `KernelForecast::name` points to
  /// FLOPs / (latency × the device's peak FLOP/s for the compute dtype). Server: FLOPs of a request
  /// × requests per second / that peak.
  double utilization_ratio = 0;
  /// Time of one decode step in the middle of each part, with the tokens in each sequence's cache.
  std::vector<std::pair<int64_t, Estimate>> course;
  StepForecast prefill;                  ///< the prefill step with the most tokens
  StepForecast decode;                   ///< the step in the middle of the output
  std::optional<VisionForecast> vision;  ///< nullopt: the model has none, or it is not forecast
  std::optional<DraftForecast> drafts;   ///< nullopt: no speculative decoding

  int64_t parameters = 0;         ///< of the language model, which names of models count
  int64_t active_parameters = 0;  ///< parameters that one token uses, embedding table included
  /// Active parameters without embedding tables that are only looked up.
  int64_t multiplied_parameters = 0;
  /// Per sequence of a decode step right after the prompt, attention included.
  int64_t flops_per_token = 0;
  int64_t attention_flops_per_token = 0;
  /// Over all ranks, each head counted once: what a token adds to the cache while all layers keep
  /// it, a compressed cache its share of an entry.
  int64_t kv_bytes_per_token = 0;
  /// The part of these bytes in layers that keep the last tokens only; and how many tokens they
  /// keep.
  int64_t window_bytes_per_token = 0, window_tokens = 0;
  int64_t state_bytes_per_sequence = 0;  ///< of recurrent layers, over all ranks

  /// Memory of one rank. A server reserves all memory that it may use for its cache.
  int64_t weights_bytes = 0, cache_bytes = 0, activations_bytes = 0;
  /// overhead: the sum of both.
  int64_t workspace_bytes = 0, framework_bytes = 0, overhead_bytes = 0;
  int64_t peak_bytes = 0, device_bytes = 0;
  /// Bytes that may be used: for a server, the rule's budget and what lies beside it, at most what
  /// programs see. The peak is above it where the model does not fit.
  int64_t usable_bytes = 0;
  bool fits = true;           ///< whether the static batch fits; for a server, the longest request
  int64_t largest_batch = 0;  ///< how many sequences of full length fit

  std::optional<CachePool> pool;  ///< nullopt: the software does not serve (PyTorch)

  /// Results for a server with continuous batching.
  struct Serving {
    double rate = 0;          ///< requested load in requests/s; 0: not given
    int64_t concurrency = 0;  ///< requested number of clients; 0: not given
    bool trace = false;       ///< the requests came from a file
    int64_t gpus = 1;         ///< of all servers, prefill workers included
    int64_t max_num_seqs = 0, max_num_batched_tokens = 0;  ///< of one data-parallel rank
    int64_t cache_tokens = 0;    ///< capacity of the cache of one server in tokens
    int64_t most_sequences = 0;  ///< how many sequences of the longest length fit into it
    /// Maximum number of requests that waited or ran at the same time.
    int64_t most_in_flight = 0;
    ServedPart all;
    /// Metrics of the steady state: without the first and the last `most_in_flight` requests, which
    /// saw the server fill up or empty. nullopt if too few requests are left.
    std::optional<ServedPart> steady;
    /// The steady state, or the whole run where there is none.
    const ServedPart& steady_or_all() const { return steady ? *steady : all; }
    /// Requests per second that met the limits on TTFT and TPOT, over the whole run.
    std::optional<double> goodput_requests_per_s;
    std::optional<double> ttft_limit_s, tpot_limit_s;
    /// Sequences that decode in a step of one server; share of the time that a server works.
    double mean_batch = 0, busy_share = 0;
    double cache_use = 0;  ///< mean share of the cache blocks in use
    int64_t preemptions = 0;
    bool keeps_up = true;
    int64_t replicas = 1;
    std::optional<PrefillPoolForecast> prefill_pool;
  };
  std::optional<Serving> serving;  ///< nullopt if the longest request does not fit

  std::vector<Warning> warnings;
  Request used;  ///< the request with all defaults filled in
};

/// Forecasts a request of kind kGenerate or kServe. A pure function of its arguments and the
/// forecaster's weights. If the memory does not suffice, the forecast has `fits` false and a
/// warning. Throws Error: kUnsupported for a model that does not generate text or a precision that
/// the device does not support; kInput for sequences longer than the model allows, a `tp` that does
/// not divide its heads, and contradicting options.
LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const Request& request);

}  // namespace tilecast
