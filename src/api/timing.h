#pragma once

// From a graph to timed kernels: what every kind of forecast shares.

#include <array>
#include <vector>

#include "predict/predictor.h"
#include "tilecast/forecast.h"

namespace tilecast {

// CUDA context, library code and handles of a PyTorch process before the first tensor (guess: what
// nvidia-smi shows for such processes is 0.3 to 0.6 GiB; the measurement kit will settle it).
inline constexpr int64_t kFrameworkBytes = int64_t{450} << 20;

// cuBLAS workspace that PyTorch sets up for each handle and stream: CUBLAS_WORKSPACE_CONFIG
// ":4096:2:16:8" (PyTorch 2.1, aten/src/ATen/cuda/CublasHandlePool.cpp).
inline constexpr int64_t kWorkspaceBytes = (int64_t{2} * 4096 + int64_t{8} * 16) * 1024;

/// A node's kernel and how often it runs.
struct Launch {
  const Node* node;
  size_t kernel;  ///< index into the distinct kernels
  int64_t count;
  size_t segment;
};

/// A graph's kernels, alike ones once. Points into the graph.
struct Lowered {
  std::vector<Kernel> distinct;
  std::vector<Launch> launches;
};
Lowered lower(const Graph& graph, Software software);

/// Kernels on one stream that one host feeds.
struct Timeline {
  double seconds = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  double kernels_s = 0;    ///< without waits
  double host_wait_s = 0;  ///< what the GPU waits for the host's launches
  std::array<double, 3> phases{};
};
Timeline time_launches(const Lowered& lowered, const std::vector<KernelTime>& times,
                       double host_launch_s);

KernelForecast describe(const Kernel& kernel, const KernelTime& time);

/// One row for each launch, with its node's name.
std::vector<KernelForecast> describe_launches(const Lowered& lowered,
                                              const std::vector<KernelTime>& times);

}  // namespace tilecast
