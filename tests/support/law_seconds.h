#pragma once

#include <string_view>

#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/kernel_kinds.h"
#include "predict/law.h"

namespace tilecast {

/// The kernel of one operator.
inline Kernel kernel_of(std::string_view op, DType dtype, const SizeList& sizes) {
  return kernels_of_sizes(op, dtype, sizes).front();
}

/// The law of the kernel, without a residual.
inline double law_seconds(const Kernel& kernel, const Device& device,
                          const Conditions& conditions = {}) {
  return kernel_kind_def(kernel_kind(kernel))
      .law(kernel, Chip(device, bundled_laws()), conditions)
      .seconds;
}

}  // namespace tilecast
