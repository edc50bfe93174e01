#include "sim/stream.h"

#include <algorithm>

namespace tilecast {

void HostFedStream::append(Sequence& sequence, double kernel_s) const {
  // end = max(end of the one before, issue) + kernel; the issue is launch_s later than the last.
  const double growth = kernel_s - launch_s_;
  sequence.launches += 1;
  sequence.sum += growth;
  sequence.least = sequence.launches == 1 ? kernel_s : std::max(sequence.least + growth, kernel_s);
}

void HostFedStream::run(const Sequence& sequence, int64_t repeat) {
  if (sequence.launches == 0 || repeat <= 0) return;
  // f(x) = max(x + sum, least), r times: either never waiting, or waiting in the first or last.
  const auto r = static_cast<double>(repeat);
  lead_s_ =
      std::max(lead_s_ + r * sequence.sum, sequence.least + std::max(0.0, (r - 1) * sequence.sum));
  launches_ += sequence.launches * repeat;
}

}  // namespace tilecast
