#pragma once

// The kernels of a trace as measurements of its GPU.

#include <string>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// A kernel whose operator and work a trace tells for sure, with the median time of its calls as
/// the laws count it: from their start of a kernel, where a profiler states another one.
struct MeasuredKernel {
  Kernel kernel;
  double seconds = 0;
};

struct MeasuredKernels {
  std::vector<MeasuredKernel> kernels;
  double share = 0;  ///< of the time of all kernels
};

/// Left out are: operators of several kernels, pointwise operators and norms of tensors with gaps
/// or in different orders, work that is known by its traffic alone, kernels that no operator of the
/// trace launched. Throws as `read_profiler_trace`, and Error{kInput} for a trace of another GPU
/// than `device`.
MeasuredKernels measured_kernels(const Forecaster& forecaster, const std::string& path,
                                 const Device& device);

}  // namespace tilecast
