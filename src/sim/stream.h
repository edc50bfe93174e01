#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernel.h"

namespace tilecast {

/// One GPU stream that one host thread feeds: the host takes `launch_s` to issue a kernel and waits
/// for the GPU only where a kernel says so; a kernel starts when the one before it has ended and it
/// has been issued. Not modelled: the launch queue's limited depth, several streams.
class HostFedStream {
 public:
  explicit HostFedStream(double launch_s) : launch_s_(launch_s) {}

  /// A sequence of kernels, as what it does to the stream's lead over the host: in max-plus algebra
  /// x → max(x + sum, least), which composes, so that repetitions cost nothing. Where the host
  /// waits, the lead is zero, and all that follows depends on it no longer.
  struct Sequence {
    int64_t launches = 0;
    double sum = 0;
    double least = 0;  ///< these two: up to the first wait
    bool waits = false;
    double waited_s = 0;  ///< in all waits but the first
    double lead_s = 0;    ///< at the end, if the host waits

    double lead_after(double lead) const { return std::max(lead + sum, least); }
  };
  void append(Sequence& sequence, double kernel_s) const { launch(sequence, kernel_s); }
  /// Several launches share the time of the kernel.
  void append(Sequence& sequence, double kernel_s, const HostCalls& calls) const;
  void run(const Sequence& sequence, int64_t repeat);

  /// When both the stream and the host are done, from the start of the first kernel.
  double end_s() const { return done_s(launches_, lead_s_); }
  /// When the stream would be done with a sequence that is run once from here.
  double end_after(const Sequence& sequence) const {
    const double lead_s = sequence.lead_after(lead_s_);
    if (!sequence.waits) return done_s(launches_ + sequence.launches, lead_s);
    return done_s(launches_ + sequence.launches, sequence.lead_s) + lead_s + sequence.waited_s;
  }

 private:
  void launch(Sequence& sequence, double kernel_s) const;
  double done_s(int64_t launches, double lead_s) const {
    return launches == 0 ? 0 : static_cast<double>(launches - 1) * launch_s_ + lead_s + waited_s_;
  }

  double launch_s_;
  int64_t launches_ = 0;
  double lead_s_ = 0;    ///< the stream's end after the last issue
  double waited_s_ = 0;  ///< by the host
};

}  // namespace tilecast
