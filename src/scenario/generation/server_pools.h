#pragma once

// Separate pools of prefill workers and of servers that decode: what moves between them.

#include <memory>

#include "scenario/generation/served_model.h"
#include "sim/serving.h"

namespace tilecast {

/// The workers that compute prompts only.
class PrefillWorkers {
 public:
  /// `servers`: the steps of the servers that get the caches, which must outlive this object.
  explicit PrefillWorkers(const ServedModel& servers);

  const ServedModel& served() const { return *served_; }

  /// Seconds that the cache of a prompt takes over the links between a worker and a server, all of
  /// its ranks sending at once.
  double link_s(int64_t prompt) const;
  /// The part of the transfer after the end of the prefill. With `kv-transfer` by-layer, the cache
  /// of a layer moves while the next ones are computed: at least the last layer's is left.
  double after_prefill_s(int64_t prompt) const;

 private:
  double alone_s(int64_t prompt) const;

  const ServedModel& servers_;
  Request request_;  ///< of a worker
  std::unique_ptr<ServedModel> served_;
  Cluster cluster_;
  CommGroup pair_;     ///< a rank of a worker and one of a server
  int64_t flows_ = 1;  ///< ranks of a worker that send different parts of a cache
};

}  // namespace tilecast
