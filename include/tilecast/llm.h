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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Estimate", "A time with its 80 % interval.");
    field("seconds", "s", "forecast", &Estimate::seconds);
    field("low_s", "s", "80 % interval", &Estimate::low_s);
    field("high_s", "s", "80 % interval", &Estimate::high_s);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Step", "One prefill or decode step, or one run of the vision tower.");
    field("latency_s", "s", "time of the step",
          [](const StepForecast& x) { return x.time.seconds; });
    field("low_s", "s", "80 % interval", [](const StepForecast& x) { return x.time.low_s; });
    field("high_s", "s", "80 % interval", [](const StepForecast& x) { return x.time.high_s; });
    field("host_wait_s", "s", "time that the GPU waits for the host to launch kernels",
          &StepForecast::host_wait_s);
    field("limits", "", "share of the kernels' time by what limits them", &StepForecast::limits);
    field("kernels", "", "the kernels of the step", &StepForecast::kernels);
  }
};

/// Mean, median and 99th percentile over requests.
struct Distribution {
  Estimate mean, median, p99;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Distribution", "Mean, median and 99th percentile over requests.");
    field("mean", "", "over all requests", &Distribution::mean);
    field("median", "", "of all requests", &Distribution::median);
    field("p99", "", "the 99th percentile", &Distribution::p99);
  }
};

/// Metrics that the clients of a server see, over one part of the run.
struct ServedPart {
  int64_t requests = 0;
  Distribution ttft;  ///< from sending a request to its first token
  Distribution tpot;  ///< (last token - first token) / (output - 1)
  Distribution e2e;   ///< from sending a request to its last token
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< prompt and output tokens

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ServedPart", "What the clients of a server see, over one part of the run.");
    field("requests", "", "number of answered requests", &ServedPart::requests);
    field("time_to_first_token", "", "from sending a request to its first token",
          &ServedPart::ttft);
    field("time_per_output_token", "", "(last token - first token) / (output - 1)",
          &ServedPart::tpot);
    field("end_to_end", "", "from sending a request to its last token", &ServedPart::e2e);
    field("requests_per_s", "1/s", "answered requests", &ServedPart::requests_per_s);
    field("output_tokens_per_s", "1/s", "output tokens", &ServedPart::output_tokens_per_s);
    field("total_tokens_per_s", "1/s", "prompt and output tokens", &ServedPart::total_tokens_per_s);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("CachePool",
             "The cache of a server on one rank as its software sizes it at the start.");
    field("rule", "", "the software's option", &CachePool::rule);
    field("fraction", "", "its value", &CachePool::fraction);
    field("visible_bytes", "bytes", "memory that programs see", &CachePool::visible_bytes);
    field("budget_bytes", "bytes", "what the rule allows for weights, activations and cache",
          &CachePool::budget_bytes);
    field("weights_bytes", "bytes", "weights of one rank", &CachePool::weights_bytes);
    field("profile_bytes", "bytes", "peak of activations that the software measures or assumes",
          &CachePool::profile_bytes);
    field("non_torch_bytes", "bytes", "memory of libraries that the software counts",
          &CachePool::non_torch_bytes);
    field("graphs_bytes", "bytes", "captured CUDA graphs, beside the budget",
          &CachePool::graphs_bytes);
    field("cache_bytes", "bytes", "what is left for the cache", &CachePool::cache_bytes);
    field("block_tokens", "tokens", "tokens of a block", &CachePool::block_tokens);
    field("blocks", "", "blocks of the cache", &CachePool::blocks);
    field("tokens", "tokens", "size of the cache, as vLLM's log has it", &CachePool::tokens);
    field("max_model_len", "tokens", "longest sequence that the server accepts",
          &CachePool::max_model_len);
    field("concurrency", "", "sequences of max_model_len that fit", &CachePool::concurrency);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Vision", "The vision tower beside the language model, on one rank.");
    field("parameters", "",
          "of the whole tower with its projector, beside the language model's parameters",
          &VisionForecast::parameters);
    field("weights_bytes", "bytes",
          "of one rank; part of the memory's weights_bytes, also without images",
          &VisionForecast::weights_bytes);
    field("images", "", "of each prompt; 0: the tower does not run", &VisionForecast::images);
    field("image_side", "pixels", "after the processor's resizing; 0: no images",
          &VisionForecast::image_side);
    field("image_tokens", "tokens", "that one image adds to the prompt",
          &VisionForecast::image_tokens);
    field("prompt_tokens", "tokens", "that all images add to a prompt",
          &VisionForecast::prompt_tokens);
    field("images_together", "", "images that the tower gets at once, at most",
          &VisionForecast::together);
    field("time", "", "of the tower for all prompts; part of time_to_first_token",
          &VisionForecast::time);
    field("step", "", "one run of the tower; null: no images",
          [](const VisionForecast& x) { return x.images > 0 ? &x.step : nullptr; });
  }
};

/// Speculative decoding.
struct DraftForecast {
  std::string model;           ///< that makes the drafts; "": the model's own layers
  int64_t tokens = 0;          ///< of a draft
  double acceptance_rate = 0;  ///< of a token, if those before it are accepted
  double tokens_per_step = 1;  ///< that a step of a sequence writes on average
  Estimate time;               ///< of the drafts of one step, part of the step's time
  int64_t weights_bytes = 0;   ///< of one rank, part of the forecast's

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Drafts", "Speculative decoding.");
    field("model", "", "the model that makes the drafts; null: the model's own layers",
          [](const DraftForecast& x) { return x.model.empty() ? nullptr : &x.model; });
    field("tokens", "tokens", "of a draft", &DraftForecast::tokens);
    field("acceptance_rate", "", "of a token, if those before it are accepted",
          &DraftForecast::acceptance_rate);
    field("tokens_per_step", "tokens", "that a step of a sequence writes on average",
          &DraftForecast::tokens_per_step);
    field("time", "", "of the drafts of one step, part of the step's time", &DraftForecast::time);
    field("weights_bytes", "bytes", "of one rank, part of the memory's weights_bytes",
          &DraftForecast::weights_bytes);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("PrefillPool", "The workers that compute prompts only.");
    field("workers", "", "how many", &PrefillPoolForecast::workers);
    field("tp", "", "of each", &PrefillPoolForecast::tp);
    field("pp", "", "of each", &PrefillPoolForecast::pp);
    field("dp", "", "of each", &PrefillPoolForecast::dp);
    field("ep", "", "of each", &PrefillPoolForecast::ep);
    field("gpus", "", "of each", &PrefillPoolForecast::gpus);
    field("peak_bytes", "bytes", "memory of one of their ranks", &PrefillPoolForecast::peak_bytes);
    field("cache_tokens", "tokens", "capacity of one worker's cache",
          &PrefillPoolForecast::cache_tokens);
    field("busy_share", "", "of the time that a worker works", &PrefillPoolForecast::busy_share);
    field("transfer_s", "s",
          "from the end of a prefill of mean length to the other pool's having the cache, on an "
          "idle link",
          &PrefillPoolForecast::transfer_s);
    field("mean_transfer_s", "s", "the same, mean of all requests, with waiting for the link",
          &PrefillPoolForecast::mean_transfer_s);
  }
};

/// A decode step with `kv_tokens` tokens in the cache of each sequence.
struct CoursePoint {
  int64_t kv_tokens = 0;
  Estimate time;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("CoursePoint", "A decode step at one length of the cache.");
    field("kv_tokens", "tokens", "in the cache of each sequence", &CoursePoint::kv_tokens);
    field.flat(&CoursePoint::time);
  }
};

/// Memory of one rank. A server reserves all memory that it may use for its cache.
struct LlmMemory {
  int64_t peak_bytes = 0, weights_bytes = 0, cache_bytes = 0, activations_bytes = 0;
  int64_t workspace_bytes = 0, framework_bytes = 0, overhead_bytes = 0;
  int64_t device_bytes = 0, usable_bytes = 0;
  bool fits = true;
  int64_t largest_batch = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("LlmMemory", "Memory of one rank of text generation.");
    field("peak_bytes", "bytes", "peak memory of one rank", &LlmMemory::peak_bytes);
    field("weights_bytes", "bytes", "parameters and buffers", &LlmMemory::weights_bytes);
    field("gradients_bytes", "bytes", "0: none", [](const LlmMemory&) { return 0; });
    field("optimizer_bytes", "bytes", "0: none", [](const LlmMemory&) { return 0; });
    field("cache_bytes", "bytes", "KV cache", &LlmMemory::cache_bytes);
    field("activations_bytes", "bytes", "tensors that a step computes",
          &LlmMemory::activations_bytes);
    field("workspace_bytes", "bytes", "workspace of libraries", &LlmMemory::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework",
          &LlmMemory::framework_bytes);
    field("overhead_bytes", "bytes", "workspace plus framework", &LlmMemory::overhead_bytes);
    field("device_bytes", "bytes", "memory of the device by its data sheet",
          &LlmMemory::device_bytes);
    field("usable_bytes", "bytes", "memory that may be used (gpu_memory_utilization)",
          &LlmMemory::usable_bytes);
    field("fits", "", "whether the static batch fits; for a server, the longest request",
          &LlmMemory::fits);
    field("largest_batch", "", "how many sequences of full length fit", &LlmMemory::largest_batch);
  }
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
  std::vector<CoursePoint> course;
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

    std::optional<double> goodput_per_gpu() const {
      if (!goodput_requests_per_s) return std::nullopt;
      return *goodput_requests_per_s / static_cast<double>(gpus);
    }

    template <typename Fields>
    static void fields(Fields& field) {
      field.is("Serving", "A server under load.");
      field("rate", "1/s", "requested load in requests; null: not given",
            [](const Serving& x) { return x.rate > 0 ? &x.rate : nullptr; });
      field("concurrency", "", "requested number of clients; null: not given",
            [](const Serving& x) { return x.concurrency > 0 ? &x.concurrency : nullptr; });
      field("trace", "", "the requests came from a file", &Serving::trace);
      field("requests", "", "number of simulated requests",
            [](const Serving& x) { return x.all.requests; });
      field("max_num_seqs", "", "sequences in a step of one data-parallel rank, at most",
            &Serving::max_num_seqs);
      field("max_num_batched_tokens", "tokens", "in a step of one data-parallel rank, at most",
            &Serving::max_num_batched_tokens);
      field("cache_tokens", "tokens", "capacity of the cache of one server",
            &Serving::cache_tokens);
      field("most_sequences", "", "how many sequences of the longest length fit into the cache",
            &Serving::most_sequences);
      field("most_in_flight", "", "maximum number of requests that waited or ran at the same time",
            &Serving::most_in_flight);
      field("all", "", "all requests", &Serving::all);
      field("steady", "",
            "without the first and the last most_in_flight requests, which saw the server fill up "
            "or empty; null: too few requests are left",
            &Serving::steady);
      field("requests_per_s", "1/s", "answered requests",
            [](const Serving& x) { return x.all.requests_per_s; });
      field("tokens_per_s", "1/s", "output tokens",
            [](const Serving& x) { return x.all.output_tokens_per_s; });
      field("goodput_requests_per_s", "1/s",
            "requests that met the limits, over the whole run; null: no limits",
            &Serving::goodput_requests_per_s);
      field("gpus", "", "of all servers, prefill workers included", &Serving::gpus);
      field("replicas", "", "equal servers behind a router", &Serving::replicas);
      field("prefill_pool", "", "workers that compute prompts only", &Serving::prefill_pool);
      field("tokens_per_s_per_gpu", "1/s", "output tokens", [](const Serving& x) {
        return x.all.output_tokens_per_s / static_cast<double>(x.gpus);
      });
      field("total_tokens_per_s_per_gpu", "1/s", "prompt and output tokens", [](const Serving& x) {
        return x.all.total_tokens_per_s / static_cast<double>(x.gpus);
      });
      field("goodput_requests_per_s_per_gpu", "1/s", "requests that met the limits",
            &Serving::goodput_per_gpu);
      field("ttft_s", "s", "limit on the time to first token", &Serving::ttft_limit_s);
      field("tpot_s", "s", "limit on the time per output token", &Serving::tpot_limit_s);
      field("mean_batch", "", "mean number of sequences in a decode step", &Serving::mean_batch);
      field("busy_share", "", "share of the time that the server computes", &Serving::busy_share);
      field("cache_use", "", "mean share of the cache in use", &Serving::cache_use);
      field("preemptions", "", "sequences that were put back for lack of cache",
            &Serving::preemptions);
      field("keeps_up", "", "the queue does not grow without bound", &Serving::keeps_up);
    }
  };
  std::optional<Serving> serving;  ///< nullopt if the longest request does not fit

  std::vector<Warning> warnings;
  Request used;  ///< the request with all defaults filled in

  LlmMemory memory() const {
    return {.peak_bytes = peak_bytes,
            .weights_bytes = weights_bytes,
            .cache_bytes = cache_bytes,
            .activations_bytes = activations_bytes,
            .workspace_bytes = workspace_bytes,
            .framework_bytes = framework_bytes,
            .overhead_bytes = overhead_bytes,
            .device_bytes = device_bytes,
            .usable_bytes = usable_bytes,
            .fits = fits,
            .largest_batch = largest_batch};
  }
  /// `value` of a forecast over several ranks; else nullopt.
  template <typename T>
  std::optional<T> if_ranks(const T& value) const {
    return ranks > 1 ? std::optional<T>(value) : std::nullopt;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("LlmForecast", "The forecast of text generation.");
    field("schema_version", "", "of this schema", [](const LlmForecast&) { return 1; });
    field("model", "", "name of the model", &LlmForecast::model);
    field("gpu", "", "id of the GPU", &LlmForecast::gpu);
    field("gpu_name", "", "the product name", &LlmForecast::gpu_name);
    field("mode", "", "inference", [](const LlmForecast&) { return std::string_view("inference"); },
          {"inference"});
    field("schedule", "", "a static batch, or a server with continuous batching",
          [](const LlmForecast& x) {
            return std::string_view(x.continuous ? "continuous" : "static");
          },
          {"static", "continuous"});
    field("prompt", "tokens",
          "length of the prompt, without images; the mean for a server with varying lengths",
          &LlmForecast::prompt);
    field("output", "tokens", "length of the output, including the first token",
          &LlmForecast::output);
    field("batch", "", "sequences in the batch", &LlmForecast::batch);
    field("seq", "tokens", "prompt, images and output", [](const LlmForecast& x) {
      return x.prompt + (x.vision ? x.vision->prompt_tokens : 0) + x.output;
    });
    field("tp", "", "tensor-parallel ranks, which share each layer", &LlmForecast::tp);
    field("pp", "", "pipeline stages, which share the layers", &LlmForecast::pp);
    field("dp", "", "data-parallel ranks of attention in one server", &LlmForecast::dp);
    field("ep", "", "expert-parallel ranks", &LlmForecast::ep);
    field("gpus", "", "GPUs of all servers, prefill workers included", &LlmForecast::gpus);
    field("dtype", "", "dtype or quantization scheme of the weights", &LlmForecast::dtype);
    field("dtype_source", "",
          "where the dtype comes from: asked, default, graph, or the field or file of the "
          "checkpoint that states it",
          &LlmForecast::dtype_source);
    field("kv_dtype", "", "dtype of the KV cache", &LlmForecast::kv_dtype);
    field("software", "", "whose kernels and scheduler: a value of --software",
          &LlmForecast::software);
    field("latency_s", "s",
          "static: from the first prompt token to the last output token of the batch; continuous: "
          "mean end-to-end time of a request",
          [](const LlmForecast& x) { return x.latency.seconds; });
    field("latency_low_s", "s", "80 % interval",
          [](const LlmForecast& x) { return x.latency.low_s; });
    field("latency_high_s", "s", "80 % interval",
          [](const LlmForecast& x) { return x.latency.high_s; });
    field("forward_s", "s", "the time of the request",
          [](const LlmForecast& x) { return x.request.seconds; });
    field("backward_s", "s", "0: none", [](const LlmForecast&) { return 0.0; });
    field("optimizer_s", "s", "0: none", [](const LlmForecast&) { return 0.0; });
    field("time_to_first_token", "",
          "from the arrival of the prompts until all sequences have a token; of a server, of a "
          "single request of mean lengths when idle, as the next two",
          &LlmForecast::ttft);
    field("time_per_output_token", "", "mean over the tokens after the first", &LlmForecast::tpot);
    field("request", "", "from the arrival to the last token", &LlmForecast::request);
    field("course", "", "time of a decode step by the length of the cache", &LlmForecast::course);
    field("tokens_per_s", "1/s", "output tokens of all sequences", &LlmForecast::tokens_per_s);
    field("tokens_per_s_per_gpu", "1/s", "output tokens of all sequences, per GPU of one server",
          [](const LlmForecast& x) { return x.tokens_per_s / static_cast<double>(x.ranks); });
    field("flops", "FLOP",
          "work of one rank, with `skew` of the one with the busiest experts; with a pipeline the "
          "mean over its stages",
          &LlmForecast::flops);
    field("bytes", "bytes", "memory traffic of one rank", &LlmForecast::bytes);
    field("utilization_ratio", "",
          "FLOPs / (latency x peak FLOP/s of the device for the compute dtype)",
          &LlmForecast::utilization_ratio);
    field("parameters", "", "of the language model, which names of models count",
          &LlmForecast::parameters);
    field("active_parameters", "", "parameters that one token uses",
          &LlmForecast::active_parameters);
    field("multiplied_parameters", "",
          "active parameters without embedding tables that are only looked up",
          &LlmForecast::multiplied_parameters);
    field("flops_per_token", "FLOP",
          "of a sequence in a decode step right after the prompt, attention included",
          &LlmForecast::flops_per_token);
    field("attention_flops_per_token", "FLOP", "of these, in attention",
          &LlmForecast::attention_flops_per_token);
    field("kv_bytes_per_token", "bytes",
          "KV cache over all ranks: what a token adds while all layers keep it",
          &LlmForecast::kv_bytes_per_token);
    field("window_bytes_per_token", "bytes",
          "of these, the bytes of layers that keep the last tokens only",
          &LlmForecast::window_bytes_per_token);
    field("window_tokens", "tokens", "how many tokens these keep at most; 0: there are none",
          &LlmForecast::window_tokens);
    field("state_bytes_per_sequence", "bytes", "of recurrent layers, over all ranks",
          &LlmForecast::state_bytes_per_sequence);
    field("memory", "", "memory of one rank", &LlmForecast::memory);
    field("cache_pool", "",
          "the cache of a server on one rank as its software sizes it; null for PyTorch",
          &LlmForecast::pool);
    field("vision", "",
          "the vision tower beside the language model; null: the model has none, or it is not "
          "forecast",
          &LlmForecast::vision);
    field("drafts", "", "speculative decoding; null: none", &LlmForecast::drafts);
    field("prefill", "", "the prefill step with the most tokens", &LlmForecast::prefill);
    field("decode", "", "the step in the middle of the output", &LlmForecast::decode);
    field("kernels", "",
          "all kernels of one rank, with a pipeline of one of each stage; the decode step in the "
          "middle of each part of the output stands for all of that part",
          &LlmForecast::kernels);
    field.if_set("ranks", "",
                 "GPUs of one server: tp x pp x dp; of one GPU left out, as the next four",
                 [](const LlmForecast& x) { return x.if_ranks(x.ranks); });
    field.if_set("cluster", "", "id of the cluster", [](const LlmForecast& x) {
      return x.ranks > 1 && !x.cluster.empty() ? &x.cluster : nullptr;
    });
    field.if_set("communication_s", "s", "of one rank with others; not overlapped with computation",
                 [](const LlmForecast& x) { return x.if_ranks(x.communication_s); });
    field.if_set("exposed_communication_s", "s", "the same",
                 [](const LlmForecast& x) { return x.if_ranks(x.communication_s); });
    field.if_set("bubble_s", "s", "0: none", [](const LlmForecast& x) { return x.if_ranks(0.0); });
    field("serving", "",
          "a server under load; null: a static batch, or the longest request does not fit",
          &LlmForecast::serving);
    field("options", "",
          "the request with all defaults: values by the names of the command-line options (with _ "
          "for -), in their units; options without a value are omitted",
          [](const LlmForecast& x) { return option_values(x.used); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const LlmForecast& x) { return warning_texts(x.warnings); });
    field("warning_codes", "", "code of each warning, in the order of warnings",
          [](const LlmForecast& x) { return warning_code_names(x.warnings); });
  }
};

/// Forecasts a request of kind kGenerate or kServe. A pure function of its arguments and the
/// forecaster's weights. If the memory does not suffice, the forecast has `fits` false and a
/// warning. Throws Error: kUnsupported for a model that does not generate text or a precision that
/// the device does not support; kInput for sequences longer than the model allows, a `tp` that does
/// not divide its heads, and contradicting options.
LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const Request& request);

}  // namespace tilecast
