#pragma once

#include <optional>

#include "scenario/generation/encode_workers.h"
#include "scenario/generation/generation_memory.h"
#include "scenario/generation/served_model.h"
#include "scenario/generation/server_pools.h"
#include "scenario/generation/step_costs.h"

namespace tilecast {

/// Memory and times of the steps of a server and of its prefill workers, for several servers of one
/// layout.
struct KnownServer {
  KnownTimes server_times, worker_times;
  std::optional<ServerMemory> server_memory, worker_memory;

  /// One of the two above, which is planned when it is first asked for.
  static const ServerMemory& memory_of(std::optional<ServerMemory>& known,
                                       const ServedModel& served);
};

/// Whether a server that does not fit gets warnings, which look for what would fit.
enum class Advice : uint8_t { kNone, kGive };

/// The workers beside the servers; nullptr: there are none.
struct OtherPools {
  const PrefillWorkers* prefill = nullptr;
  const EncodeWorkers* encode = nullptr;
};

/// A server, with the workers beside it, for several loads.
class Server {
 public:
  /// All must outlive this object; `known` is of servers with the same layout and options.
  Server(const ServedModel& served, const OtherPools& others, KnownServer& known);

  /// Fills in the memory of a server under the load of `asked`, and what its clients see if the
  /// longest request fits. `forecast` has the results of a single request; its intervals give the
  /// uncertainty. `asked` is the request of the steps but for its load. Where the requests are sure
  /// to miss `stop_beyond`, `serving` stays empty. `watch` sees the steps of the first server.
  void add_serving(GenerationForecast& forecast, const Request& asked, Advice advice,
                   const std::optional<TimeLimits>& stop_beyond = {},
                   const WatchSteps& watch = nullptr) const;

  /// False where its cache holds nothing, or no sequence of the longest length and its software
  /// needs that.
  bool starts() const;
  /// Whether it would start with a lower limit of the length.
  bool needs_limit() const { return !starts() && memory_.pool.tokens > 0; }

 private:
  struct Under;
  void add_memory(GenerationForecast& forecast, Under& under, Advice advice) const;
  void add_encoder_memory(GenerationForecast& forecast, Under& under, Advice advice) const;
  std::optional<GenerationForecast::Serving> simulate(const Under& under,
                                                      const GenerationForecast& alone,
                                                      const WatchSteps& watch) const;

  const ServedModel& served_;
  const PrefillWorkers* workers_;
  const EncodeWorkers* encoders_;
  KnownServer& known_;
  const ServerMemory& memory_;
  const ServerMemory* worker_memory_;  ///< nullptr: no workers
};

}  // namespace tilecast
