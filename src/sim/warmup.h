#pragma once

// Which requests of a load are counted. Conversations that come at a rate begin without the turns
// before them: caches are empty, all prompts are short, and fewer requests come than later. So the
// first requests are simulated and not counted, as benchmarks do (AIPerf's
// --warmup-request-count).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/serving.h"

namespace tilecast {

class Warmup {
 public:
  /// `load` must outlive this object.
  explicit Warmup(const ServingLoad& load);

  /// False: the load has no warm-up, all requests are counted.
  bool exists() const { return load_.counted > 0; }
  /// A request is sent, in the order of time. True: counting begins with it.
  bool note_sent(size_t request);
  void note_answer(size_t request);
  /// All requests that are counted have been answered.
  bool finished() const { return exists() && answered_ == load_.counted; }

  /// By request; empty: all are counted.
  const std::vector<bool>& counts() const { return counts_; }
  bool counts(size_t request) const { return counts_.empty() || counts_[request]; }
  int64_t uncounted() const { return uncounted_; }  ///< requests sent before counting began
  std::vector<RequestTimes> counted(std::span<const RequestTimes> times) const;

  /// False: the queue grows. The requests that begin conversations come as they do, whatever the
  /// server does, so it shows with them, also where the warm-up was too short. `busy_s`: of a
  /// server, for the requests that are counted.
  bool keeps_up(std::span<const RequestTimes> times, double busy_s) const;

 private:
  bool is_over() const;

  const ServingLoad& load_;
  std::vector<bool> counts_;
  bool counting_ = false;
  int64_t conversations_ = 0;  ///< of the load
  int64_t begun_ = 0;          ///< of these
  int64_t uncounted_ = 0, counted_ = 0, answered_ = 0;
  /// Conversations that had begun when the first one ended, and those of them that have ended.
  int64_t wave_ = 0, wave_ended_ = 0;
};

}  // namespace tilecast
