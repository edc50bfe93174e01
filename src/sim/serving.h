#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tilecast {

/// What a continuously batching server is asked. All requests have the same lengths.
struct ServingLoad {
  int64_t prompt = 1024;
  int64_t output = 256;
  double requests_per_s = 0;       ///< of a Poisson process; 0: `concurrency` clients ask in turn
  int64_t concurrency = 1;         ///< clients of a closed loop; with a rate not read
  int64_t most_sequences = 256;    ///< in a batch
  int64_t cache_tokens = 0;        ///< that fit into the cache
  int64_t tokens_per_step = 2048;  ///< decoded and prefilled together
  int64_t requests = 600;          ///< to simulate; the first third only warms up
  uint64_t seed = 1;
};

/// One step of the server.
struct ServingBatch {
  int64_t decoding = 0;        ///< sequences that get one token
  double decode_context = 0;   ///< tokens that each of them attends to, on average
  int64_t prefill_tokens = 0;  ///< of a prompt
  int64_t prefill_past = 0;    ///< tokens of that prompt that are in the cache already
};

struct ServingResult {
  /// Sorted, of the requests after warming up; seconds.
  std::vector<double> first_token, per_token;
  double requests_per_s = 0;  ///< completed
  double mean_batch = 0;      ///< sequences that decode in a step
  double busy_share = 0;      ///< of the time that the server works
  bool keeps_up = true;       ///< the queue does not grow
};

/// Runs requests through a scheduler like vLLM's: each step decodes all running sequences and fills
/// what is left of its tokens with the oldest waiting prompt, in chunks; a request starts when the
/// whole of its cache fits. Seeded. Not modelled: preemption, prefix caching, speculative decoding,
/// the server's own CPU time.
ServingResult simulate_serving(const ServingLoad& load,
                               const std::function<double(const ServingBatch&)>& step_s);

}  // namespace tilecast
