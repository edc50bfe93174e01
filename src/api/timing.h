#pragma once

// From a program to its timeline, totals and rows: what every kind of forecast shares.

#include <vector>

#include "base/text_arena.h"
#include "lower/program.h"
#include "predict/predictor.h"
#include "sim/timeline.h"
#include "tilecast/forecast.h"

namespace tilecast {

// CUDA context, library code and handles of a PyTorch process before the first tensor (guess: what
// nvidia-smi shows for such processes is 0.3 to 0.6 GiB; the measurement kit will settle it).
inline constexpr int64_t kFrameworkBytes = int64_t{450} << 20;

// cuBLAS workspace that PyTorch sets up for each handle and stream: CUBLAS_WORKSPACE_CONFIG
// ":4096:2:16:8" (PyTorch 2.1, aten/src/ATen/cuda/CublasHandlePool.cpp).
inline constexpr int64_t kWorkspaceBytes = (int64_t{2} * 4096 + int64_t{8} * 16) * 1024;

/// What a program comes to on one GPU. Seconds.
struct Totals {
  double seconds = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  double kernels_s = 0;    ///< without waits
  double host_wait_s = 0;  ///< what the GPU waits for the host's launches
};

/// When the program's kernels run; `times` by their index.
Timeline run_program(const Program& program, const std::vector<KernelTime>& times,
                     double host_launch_s);

Totals totals_of(const Timeline& timeline, const std::vector<double>& kernel_counts,
                 const std::vector<KernelTime>& times);

KernelForecast describe(const Kernel& kernel, const KernelTime& time);

/// One row for each event of the timeline, with its node's name, which is put into `names`.
std::vector<KernelForecast> describe_events(const Timeline& timeline, const Program& program,
                                            const std::vector<KernelTime>& times, TextArena& names);

}  // namespace tilecast
