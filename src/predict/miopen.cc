#include "predict/miopen.h"

#include <algorithm>
#include <cmath>

#include "predict/bound.h"
#include "predict/law.h"
#include "tuning/solver_model.h"

namespace tilecast {
namespace {

using tuning::ConvPass;
using tuning::ConvProblem;

/// Convolution states the output, so the input is what a padding of half the window gives.
ConvProblem problem_of(const Kernel& kernel) {
  const auto& c = *kernel.as<Convolution>();
  ConvProblem p;
  p.pass = c.pass == Convolution::Pass::kForward         ? ConvPass::kForward
           : c.pass == Convolution::Pass::kInputGradient ? ConvPass::kInputGradient
                                                         : ConvPass::kWeightGradient;
  p.dtype = kernel.compute_dtype();
  p.channels_last = c.channels_last != 0;
  p.n = c.batch;
  p.c = c.in_channels;
  p.k = c.out_channels;
  p.r = c.window_height;
  p.s = c.window_width;
  p.oh = c.out_height;
  p.ow = c.out_width;
  p.group = c.groups;
  p.dil_h = p.r > 1 ? c.dilation : 1;
  p.dil_w = p.s > 1 ? c.dilation : 1;
  // Audio is an image of height 1, over which nothing moves.
  p.stride_h = p.oh == 1 && p.r == 1 ? 1 : c.stride;
  p.stride_w = c.stride;
  p.pad_h = p.dil_h * (p.r - 1) / 2;
  p.pad_w = p.dil_w * (p.s - 1) / 2;
  p.h = p.oh * p.stride_h;
  p.w = p.ow * p.stride_w;
  return p;
}

Limit convolution_limit(const Bound& bound, double seconds) {
  if (seconds < 2 * kLatencyFloor) return Limit::kLatency;
  return bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
}

}  // namespace

bool runs_in_miopen(const Kernel& kernel, const Device& device) {
  if (!kernel.is<Convolution>() || device.vendor != "amd" || device.as_gpu() == nullptr)
    return false;
  const ConvProblem problem = problem_of(kernel);
  const tuning::TunedChip chip = tuning::tuned_chip(device, problem.dtype);
  const auto solvers = tuning::SolverTable::bundled().solvers();
  return std::any_of(solvers.begin(), solvers.end(),
                     [&](const tuning::Solver& solver) { return solver.takes(problem, chip); });
}

void estimate_miopen(const CostBatch& batch, const Weights&) {
  const tuning::SolverModel& model = tuning::SolverModel::bundled();
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    // Throws where the device has no unit for the dtype.
    Bound bound = physical_bound(kernel, batch.device, batch.conditions.caches);
    const ConvProblem problem = problem_of(kernel);
    const tuning::TunedChip chip = tuning::tuned_chip(batch.device, problem.dtype);
    const tuning::SolverTime best = model.rank(problem, chip).front();
    // Where two solvers are alike in rank their times may differ, their ranks do not: a small
    // change of a data sheet makes no forecast jump.
    const double doubt = best.ranked_s / best.seconds;
    KernelTime time;
    bound.compute_s = best.solver->least_compute_s(problem, chip);
    time.seconds = std::max(best.ranked_s, bound.seconds());
    time.low_s = std::max(best.low_s * doubt, bound.seconds());
    time.high_s = std::max(best.high_s * doubt, time.seconds);
    time.limit = convolution_limit(bound, time.seconds);
    time.waves = count_waves(kernel, batch.device, {});
    time.utilization_ratio = bound.seconds() / time.seconds;
    time.extrapolated = chip.kernel_class < 0;
    if (time.extrapolated) time.extrapolated_feature = "architecture";
    time.predictor = best.solver->predictor;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
