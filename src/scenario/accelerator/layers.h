#pragma once

// Kernels of a program as layers of an accelerator.

#include <optional>

#include "accelerator/layer.h"
#include "lower/program.h"

namespace tilecast {

/// A kernel as layers that run one after the other, `repeat` times; nullopt if it is not one of the
/// kinds of layers that accelerators run.
struct KernelLayer {
  accelerator::Layer layer;
  int64_t repeat = 1;
  bool operator==(const KernelLayer&) const = default;
};
std::optional<KernelLayer> layer_of(const Kernel& kernel, const Node& node, const Graph& graph);

/// Multiplications with additions that a kernel makes: of products, convolutions and attention.
int64_t macs_of(const Kernel& kernel);

}  // namespace tilecast
