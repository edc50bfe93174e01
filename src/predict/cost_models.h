#pragma once

// Who forecasts a kernel: an ordered table of cost models. A new one is a file with its functions
// and a line of the table.

#include <cstddef>
#include <span>
#include <string_view>

#include "predict/predictor.h"

namespace tilecast {

/// The kernels of a batch that one model takes.
struct CostBatch {
  std::span<const Kernel> kernels;  ///< the whole batch
  std::span<const size_t> rows;     ///< those that the model takes: at least one
  const Device& device;             ///< as it runs: at the clock of the conditions
  /// As its data sheet describes it: tells which measured devices it resembles.
  const Device& data_sheet;
  const Conditions& conditions;
  std::span<KernelTime> times;  ///< of the whole batch
};

struct CostModel {
  std::string_view name;
  /// Whether the model forecasts the kernel on the device with these weights.
  bool (*covers)(const Kernel& kernel, const Device& device, const Weights& weights);
  /// Sets the times of the batch's rows; KernelTime::predictor only where it names more than the
  /// model.
  void (*estimate)(const CostBatch& batch, const Weights& weights);
};

/// The first that covers a kernel forecasts it; the last covers all.
std::span<const CostModel> cost_models();

}  // namespace tilecast
