#pragma once

#include "devices/device.h"

namespace tilecast {

/// Whether AITER's kernels run on the architecture, and hipBLASLt's in place of rocBLAS's own.
constexpr bool is_cdna3_or_later(Architecture architecture) {
  return architecture == Architecture::kCdna3 || architecture == Architecture::kCdna4;
}

/// Whether AMD's libraries run on the architecture. Code asks here: the order of the enum is by age
/// within a vendor and says nothing across them.
constexpr bool is_amd(Architecture architecture) {
  switch (architecture) {
    case Architecture::kGcn5:
    case Architecture::kCdna:
    case Architecture::kCdna2:
    case Architecture::kCdna3:
    case Architecture::kCdna4:
    case Architecture::kRdna2:
    case Architecture::kRdna3:
    case Architecture::kRdna4:
      return true;
    default:
      return false;
  }
}

/// Whether the chip is no GPU of NVIDIA or AMD, whose kernels the laws describe.
constexpr bool is_systolic(Architecture architecture) {
  return architecture == Architecture::kSystolic;
}

}  // namespace tilecast
