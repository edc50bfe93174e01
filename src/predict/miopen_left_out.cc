// Builds with TILECAST_TUNING=OFF have this file in place of miopen.cc: convolutions of AMD's GPUs
// get the times that other GPUs' kernels would take, flagged as extrapolated.

#include "base/left_out.h"
#include "predict/miopen.h"

namespace tilecast {

bool runs_in_miopen(const Kernel&, const Device&) { return false; }

void estimate_miopen(const CostBatch&, const Weights&) {
  fail_left_out("tuning", "TILECAST_TUNING");
}

}  // namespace tilecast
