#pragma once

// The law of jobs that share a GPU: they take turns on it (docs/explanation/sharing.md).
//
// A job is a ring of one host and one GPU. A unit of work is on the host, then waits for the GPU
// and is served there. A job whose host waits for each step has one unit; one whose host or loader
// runs ahead has several; a job of n processes has n, each with a host of its own. While units of
// several jobs are at the GPU, it is divided among jobs in proportion to the lengths of their
// turns, less the time of the switches between them.

#include <span>
#include <vector>

namespace tilecast {

/// A job at the GPU.
struct TurnTaker {
  double share = 0;   ///< of the time in which it has the GPU when it is alone; in (0, 1)
  double turn_s = 0;  ///< above 0
  double held_s = 0;  ///< time for which a unit holds the GPU, above 0
  double depth = 1;   ///< units in the ring of one process; between two whole numbers: between them
  int processes = 1;  ///< above 1: depth is not read
  bool open = false;  ///< its work arrives at a rate of its own
  /// Time after a turn in which nobody has the GPU, where another process is next.
  double switch_s = 0;
};

/// Speeds of the jobs over those alone, at most 1. An open job's is that of its work while there is
/// some. Two jobs are exact: a continuous-time Markov chain over the units at the GPU. Of more, and
/// of open ones, each meets the others with the probability that they are at the GPU; slow-downs
/// are then corrected by what the chain says of pairs.
std::vector<double> speeds_by_turns(std::span<const TurnTaker> jobs);

/// The mean time for which a job keeps the GPU: a turn ends with the kernel that runs when
/// `quantum_s` is over, and with the step. `overlap` is the sum over the kernels of a step of
/// l / (l + quantum_s); where turns interrupt kernels, it is their time over quantum_s.
inline double mean_turn_s(double step_s, double overlap) { return step_s / (1 + overlap); }

namespace internal {

/// The chain alone, whatever the number of its states; and the other way alone.
std::vector<double> speeds_by_chain(std::span<const TurnTaker> jobs);
std::vector<double> speeds_by_meeting(std::span<const TurnTaker> jobs);

}  // namespace internal

}  // namespace tilecast
