#pragma once

// Servers that batch continuously: requests arrive, a scheduler forms steps, each step takes the
// time that the caller's function says. Goals: the schedulers of vLLM, SGLang and TensorRT-LLM as
// their documents describe them; the same result for the same load. Non-goals: what a step costs
// (src/scenario/generation/step_costs.h) and what the numbers are shown as (src/report).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/served_steps.h"
#include "tilecast/choices.h"

namespace tilecast {

/// A request as its client sends it.
struct RequestSpec {
  double arrival_s = 0;  ///< not read in a closed loop
  int64_t prompt = 1;    ///< tokens
  int64_t output = 1;    ///< tokens, the first included; generation does not stop earlier
  /// Number of its conversation.
  std::optional<int64_t> session = {};
  /// A turn of the conversation that is sent `think_s` after the answer to the one before, which
  /// names it as its `next`.
  bool follows = false;
  double think_s = 0;
  std::optional<size_t> next = {};
  /// What its prompt consists of, in ServingLoad::parts.
  size_t first_part = 0, part_count = 0;
  uint64_t output_key = 0;              ///< ContentPart::key of its answer
  std::optional<int64_t> adapter = {};  ///< number of its low-rank adapter
  /// That no earlier turn had: at the beginning of its last part.
  int64_t images = 0;
};

/// Tokens of a prompt that always come together. Prompts that begin with the same parts begin with
/// the same tokens.
struct ContentPart {
  uint64_t key = 0;
  int64_t tokens = 0;
  int64_t images = 0;  ///< at its beginning
};

/// Limits of the times of requests.
struct TimeLimits {
  std::optional<double> ttft_s, tpot_s;
  /// Which request must keep them, in rising order of their times, as in LatencySummary: 0.5, 0.99;
  /// nullopt: the mean.
  std::optional<double> share;
};

/// The requests that reach the server.
struct ServingLoad {
  std::vector<RequestSpec> requests;  ///< in the order of arrival
  /// Of all prompts; empty: they have nothing in common.
  std::vector<ContentPart> parts = {};
  int64_t image_tokens = 0;  ///< of one image; 0: there are none
  /// Requests to be counted; 0: all. The first to be sent come before these, `warmup` at most, or
  /// so many: until the conversations have ended that had begun when the first one ended.
  int64_t counted = 0, warmup = 0;
  bool warms_up_fully = false;  ///< with all of `warmup`
  /// Clients of a closed loop: all send a request at time 0, and the next one when theirs is
  /// answered, until all requests are sent. 0: requests arrive at their own times.
  int64_t concurrency = 0;
  /// The simulation of a closed loop ends as soon as one of these is sure to be missed by the
  /// requests that are judged: the steady part, if there is one.
  std::optional<TimeLimits> stop_beyond;
};

/// Limits of what a server may use.
struct ServerLimits {
  Software software{};                    ///< whose scheduler forms the steps
  int64_t max_num_seqs = 256;             ///< sequences that run at once
  int64_t max_num_batched_tokens = 8192;  ///< tokens of a step; SGLang: of a step's prompts
  int64_t cache_blocks = 0;               ///< of the key-value cache
  int64_t block_tokens = 16;              ///< tokens of a block: default_block_tokens
  /// Share of each prompt that is in the cache before the request arrives, rounded down to whole
  /// blocks; at least one token is computed. All requests share these blocks, which are held once.
  double prefix_hit_rate = 0;
  /// Where requests have `parts`: full blocks are kept for those that begin the same way.
  bool prefix_caching = true;
  /// Blocks in the host's memory, for each data-parallel rank, and the time in which a GPU reads
  /// its part of one.
  int64_t host_blocks = 0;
  double host_block_s = 0;
  int64_t layers = 1;  ///< of the model; they are read one after the other
  /// Low-rank adapters of requests that the GPU has at a time, also those of a step; 0: requests
  /// have none. The least recently used make room; a step waits for those that it lacks, one after
  /// the other.
  int64_t max_adapters = 0;
  double adapter_load_s = 0;  ///< of one, from the host's memory
  /// Full blocks of a preempted sequence stay in the prefix cache until others take them: where the
  /// scheduler has one (vLLM's).
  bool keeps_preempted = true;
  /// A step is formed while the step before it begins, so that the host's work is hidden: a request
  /// that comes while a step runs is in the second step after it, not in the next.
  bool schedules_ahead = false;
  int64_t poll_steps = 1;  ///< decode steps after which the server looks for requests
  /// TensorRT-LLM: steps for which prompts wait for others, while all tokens of the step are fewer
  /// than that.
  int64_t batch_wait_steps = 0;
  double batch_wait_tokens = 0;
  /// TensorRT-LLM, data-parallel ranks: steps for which prompts wait until each rank has one, and
  /// then for more.
  int64_t rank_wait_steps = 0, rank_batch_steps = 0;
  double overhead_s = 0;      ///< between sending a request and the scheduler's seeing it
  double turn_s = 0;          ///< in which each request is taken in, one after the other
  int64_t longest_jump = 64;  ///< decode steps that may be taken at once when nothing else happens
  /// Data-parallel ranks, each with its own sequences and cache: the limits above hold for each. A
  /// step of all ends when the slowest has ended.
  int64_t dp = 1;
  /// Pipeline stages: as many batches are in flight, each with its own sequences and an equal share
  /// of max_num_seqs. They share the cache.
  int64_t pp = 1;
  /// Tokens that a decode step writes for each sequence on average (speculative decoding).
  double tokens_per_step = 1;
};

/// Tokens of one prompt that a step computes.
struct PromptChunk {
  int64_t tokens = 0;
  int64_t past = 0;  ///< tokens of the sequence that are in the cache already
  bool operator==(const PromptChunk&) const = default;
};

/// The work of one step.
struct ServingBatch {
  int64_t decoding = 0;       ///< sequences that compute one token each
  double decode_context = 0;  ///< tokens that each of them has in the cache, on average
  std::vector<PromptChunk> prompts;
  int64_t adapters = 0;  ///< different ones of its sequences
  int64_t images = 0;    ///< that the vision tower runs for before the prompts that have them
};

/// Appends the seconds of a step on each stage of the pipeline. `ranks`: what each data-parallel
/// rank computes.
using ServingStepTimes =
    std::function<void(std::span<const ServingBatch> ranks, std::vector<double>& stage_s)>;

/// Equal servers.
struct ServerPool {
  int64_t servers = 1;
  ServerLimits limits;
  ServingStepTimes step_s;
  WatchSteps watch = nullptr;  ///< sees the steps of the first server, once each; may be null
};

/// Workers that run the vision tower only. The images of a request go to them in turn, each has a
/// queue (first come, first served), and a run takes as many as are there. A request goes on to the
/// servers when they have the tokens of all its images.
struct Encoders {
  int64_t workers = 1;
  int64_t together = 1;                              ///< images in a run, at most
  std::function<double(int64_t images)> encode_s;    ///< one run
  std::function<double(int64_t images)> transfer_s;  ///< of one worker, one after the other
};

/// Servers behind a router. With prefill workers, these compute the prompts and the first token;
/// then the cache moves to a server of the other pool, which computes the other tokens.
struct Fleet {
  ServerPool pool;
  Router router = Router::kLeastLoaded;
  std::optional<ServerPool> prefill;
  /// Seconds from the end of a prefill until the other pool has the cache of a prompt of so many
  /// tokens, on an idle link. The transfers of one worker follow each other.
  std::function<double(int64_t prompt)> transfer_s;
  std::optional<Encoders> encoders;
};

/// Mean, median and 99th percentile (linear between ranks, as numpy.percentile), seconds.
struct LatencySummary {
  double mean_s = 0, median_s = 0, p99_s = 0;
};

/// Requests of one part of the run.
struct RequestSummary {
  int64_t requests = 0;
  LatencySummary ttft;  ///< from sending to the first token
  LatencySummary
      tpot;  ///< (last token - first token) / (output - 1); outputs of 1 token are left out
  LatencySummary e2e;  ///< from sending to the last token
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< prompts and outputs
};

struct RequestTimes {
  double sent_s = 0, first_s = 0, last_s = 0;
  int64_t prompt = 0, output = 0;

  double ttft_s() const { return first_s - sent_s; }
  /// For outputs of more than one token.
  double tpot_s() const { return (last_s - first_s) / static_cast<double>(output - 1); }
};

/// What prefix caches found, kept and lost, in tokens: over all servers and the whole run.
struct PrefixUse {
  int64_t prompts = 0;      ///< tokens of all prompts that are counted
  int64_t hits = 0;         ///< of these, that the cache had when the request was admitted first
  int64_t most_hits = 0;    ///< by one cache of any size, to which requests come one at a time
  int64_t evicted = 0;      ///< lost to other requests
  int64_t cached = 0;       ///< kept at the end
  int64_t host_hits = 0;    ///< of prompts, that the host's memory had
  int64_t host_cached = 0;  ///< kept there at the end
};

/// What encode workers did.
struct EncodeUse {
  double busy_share = 0;
  double mean_images = 0;  ///< in a run
  double mean_s = 0;       ///< from a request's coming to the servers' having its images' tokens
};

struct ServingResult {
  std::vector<RequestTimes> requests;  ///< those that are counted, in the order of arrival
  int64_t warmup_requests = 0;         ///< that were sent before them
  RequestSummary all;  ///< rates: over the time from the first request to the last token
  /// All requests but the first and the last `most_in_flight` to arrive: when they come the
  /// server is as full as it gets, and it does not empty yet. Rates: of all that is done in the
  /// time in which they come. nullopt where the run is too short (or the queue grows, so that no
  /// part is steady).
  std::optional<RequestSummary> steady;
  /// Between two tokens of a sequence, over all tokens of the run but first ones: the client's view
  /// of a stream. All zero: outputs have one token.
  LatencySummary itl;
  int64_t most_in_flight = 0;  ///< requests that waited or ran at the same time, at most
  double mean_batch = 0;       ///< sequences that decode in a step
  double busy_share = 0;       ///< of the time that the server works
  double cache_use = 0;        ///< share of the cache's blocks in use, mean over the busy time
  /// Busy share of the prefill workers; 0: there are none.
  double prefill_busy_share = 0;
  int64_t adapter_loads = 0;   ///< by all servers that compute tokens after the first
  double mean_adapters = 0;    ///< different ones in a step of these
  double mean_transfer_s = 0;  ///< from the end of a prefill to the other pool's getting the cache
  std::optional<EncodeUse> encode;
  /// Of the servers that compute prompts; nullopt: requests have nothing in common, or the servers
  /// keep nothing.
  std::optional<PrefixUse> prefix;
  int64_t preemptions = 0;     ///< sequences that lost their cache and were computed again
  bool keeps_up = true;        ///< the queue does not grow by more than chance explains
  bool queue_is_short = true;  ///< it grows by less than ten requests: what comes is answered
  bool stopped = false;        ///< ServingLoad::stop_beyond is missed; all else is not known
};

/// Arrival times of a Poisson process, and lengths drawn evenly from the ranges. Seeded.
struct RandomLoad {
  int64_t requests = 1;
  double rate = 0;  ///< requests a second; 0: all arrive at 0 (a closed loop)
  int64_t prompt_low = 1, prompt_high = 1;
  int64_t output_low = 1, output_high = 1;
  uint64_t seed = 1;
};
std::vector<RequestSpec> draw_requests(const RandomLoad& load);

/// Which of `count` adapters each of so many requests or conversations has: the i-th with a
/// probability of i^-skew over the sum of all. Seeded.
std::vector<int64_t> draw_adapters(size_t requests, int64_t count, double skew);

/// Tokens of a block of the cache. Throws Error{kUnsupported} where the software has no scheduler.
int64_t default_block_tokens(Software software);

/// Blocks that the server needs to answer each of the requests alone. With fewer it cannot run.
int64_t blocks_needed(const ServingLoad& load, const ServerLimits& limits);

/// Runs all requests. `step_s` gives the seconds of a step. A pure function of its arguments.
/// Throws Error{kInput} where a request can never run: its cache does not fit, or its prompt is
/// longer than a step of a scheduler that does not cut prompts; Error{kUnsupported} where the load
/// takes more than a few seconds to simulate.
ServingResult simulate_serving(const ServingLoad& load, const ServerLimits& limits,
                               const std::function<double(const ServingBatch&)>& step_s);

/// The part of a load that prefill workers compute: all but the tokens after the first.
ServingLoad prompts_only(const ServingLoad& load);

/// The same for several servers. Clients of a closed loop are shared by all servers.
ServingResult simulate_fleet(const ServingLoad& load, const Fleet& fleet);

/// Requests a second that met both limits, over the whole run; nullopt: no such limit.
double goodput(const ServingResult& result, std::optional<double> ttft_s,
               std::optional<double> tpot_s);

}  // namespace tilecast
