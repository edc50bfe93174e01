#pragma once

#include "operation.h"
#include "session.h"

namespace tilecast::measure {

/// How a time is taken; the words of the CSV's columns.
struct Protocol {
  bool cold_l2 = true;     ///< every run finds its operands in DRAM; else in L2 where they fit
  bool sustained = false;  ///< after a second under load, over another; else in a burst of ms
  double burst_s = 0.03;   ///< GPU time that a burst's samples may take
};

/// Times the operation back to back, from a captured graph (so that the host is not in the
/// number): a sample is one replay divided by its launches. Fields: latency_s (median), p25_s,
/// p75_s, runs, launches, l2, load, the sensors' readings, the library's choice, and of the longest
/// grid's kernel name, grid, block, shared memory, registers and blocks per SM.
/// Throws CudaError, Unsupported.
Fields time_operation(Session& session, const Operation& operation, const Protocol& protocol);

/// Empty where the result agrees with the operation's definition, else what differs.
std::string verify_operation(Session& session, const Operation& operation);

/// The value that a share `q` of the samples lies below, interpolated.
double quantile(std::vector<double> samples, double q);

/// Seconds between two recorded events.
class EventPair {
 public:
  EventPair();
  ~EventPair();
  void start(cudaStream_t stream);
  /// Waits for the end.
  double stop(cudaStream_t stream);

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace tilecast::measure
