#pragma once

// A separate pool of workers that run the vision tower, and what moves from them to the servers.

#include <cstdint>
#include <optional>

#include "scenario/generation/served_model.h"
#include "scenario/generation/step_timer.h"

namespace tilecast {

class EncodeWorkers {
 public:
  /// `servers`: those that get the tokens of images, which must outlive this object. Throws
  /// Error{kUnsupported} if the model has no tower that is forecast, and Error{kInput} if
  /// `encode-tp` does not divide it or is more than a node has GPUs.
  explicit EncodeWorkers(const ServedModel& servers);

  const TowerSteps& tower() const { return tower_; }
  /// One run of the tower.
  TimedStep time(int64_t images) const;
  /// The same with the time between two runs, seconds.
  double run_s(int64_t images) const;
  /// Of the images of one prompt, those of the worker with the most.
  int64_t largest_share() const;
  /// Seconds that the tokens of so many images take from a worker to a server, on an idle link: one
  /// copy, which the server's ranks share over their own links.
  double transfer_s(int64_t images) const;
  /// Of one rank: the tower, its largest run, and the tokens of that run's images, which wait for
  /// the link.
  Memory memory() const { return memory_of(tower_); }
  /// The least `encode-tp` with which it fits, of the given one doubled up to the GPUs of a node.
  std::optional<int64_t> tp_that_fits() const;

 private:
  Memory memory_of(const TowerSteps& tower) const;

  const ServedModel& servers_;
  const Request request_;  ///< of a worker
  TowerSteps tower_;
  Cluster cluster_;
  CommGroup pair_;  ///< a rank of a worker and one of a server
};

}  // namespace tilecast
