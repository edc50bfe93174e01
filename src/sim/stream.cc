#include "sim/stream.h"

#include <algorithm>

namespace tilecast {

void HostFedStream::append(Sequence& sequence, double kernel_s, const HostCalls& calls) const {
  if (calls.waits) {
    if (sequence.waits) sequence.waited_s += sequence.lead_s;
    sequence.waits = true;
    sequence.lead_s = 0;
  }
  for (int32_t i = 0; i < calls.launches; ++i) launch(sequence, kernel_s / calls.launches);
}

void HostFedStream::launch(Sequence& sequence, double kernel_s) const {
  // end = max(end of the one before, issue) + kernel; the issue is launch_s later than the last.
  const double growth = kernel_s - launch_s_;
  sequence.launches += 1;
  if (sequence.waits) {
    sequence.lead_s = std::max(sequence.lead_s + growth, kernel_s);
    return;
  }
  sequence.sum += growth;
  sequence.least = sequence.launches == 1 ? kernel_s : std::max(sequence.least + growth, kernel_s);
}

void HostFedStream::run(const Sequence& sequence, int64_t repeat) {
  if (sequence.launches == 0 || repeat <= 0) return;
  const auto r = static_cast<double>(repeat);
  launches_ += sequence.launches * repeat;
  if (sequence.waits) {
    waited_s_ += sequence.lead_after(lead_s_) + (r - 1) * sequence.lead_after(sequence.lead_s) +
                 r * sequence.waited_s;
    lead_s_ = sequence.lead_s;
    return;
  }
  // f(x) = max(x + sum, least), r times: either never waiting, or waiting in the first or last.
  lead_s_ =
      std::max(lead_s_ + r * sequence.sum, sequence.least + std::max(0.0, (r - 1) * sequence.sum));
}

}  // namespace tilecast
