#pragma once

#include <algorithm>
#include <cstdint>

namespace tilecast {

/// One GPU stream that one host thread feeds: the host takes `launch_s` to issue a kernel and does
/// not wait; a kernel starts when the one before it has ended and it has been issued.
/// Not modelled: the launch queue's limited depth, waits for results (`.item()`), several streams.
class HostFedStream {
 public:
  explicit HostFedStream(double launch_s) : launch_s_(launch_s) {}

  /// A sequence of kernels, as what it does to the stream's lead over the host: in max-plus algebra
  /// x → max(x + sum, least), which composes, so that repetitions cost nothing.
  struct Sequence {
    int64_t launches = 0;
    double sum = 0;
    double least = 0;
  };
  void append(Sequence& sequence, double kernel_s) const;
  void run(const Sequence& sequence, int64_t repeat);

  /// When both the stream and the host are done, from the start of the first kernel.
  double end_s() const { return done_s(launches_, lead_s_); }
  /// When the stream would be done with a sequence that is run once from here.
  double end_after(const Sequence& sequence) const {
    return done_s(launches_ + sequence.launches, std::max(lead_s_ + sequence.sum, sequence.least));
  }

 private:
  double done_s(int64_t launches, double lead_s) const {
    return launches == 0 ? 0 : static_cast<double>(launches - 1) * launch_s_ + lead_s;
  }

  double launch_s_;
  int64_t launches_ = 0;
  double lead_s_ = 0;  ///< the stream's end after the last issue
};

}  // namespace tilecast
