#pragma once

#include <functional>
#include <vector>

#include "predict/residual.h"
#include "train/dataset.h"
#include "train/forest_trainer.h"

namespace tilecast {

/// The measured rows of one kind of kernels, as its model sees them.
struct KindTable {
  std::vector<size_t> index;     ///< into TrainingData::rows
  std::vector<float> inputs;     ///< standardized features, `width` a row
  std::vector<double> law_s;     ///< the law's time
  std::vector<float> log_ratio;  ///< log(measured / law)
  std::vector<bool> held_out;    ///< a tenth of the rows: no forest learns from it
  size_t width = 0;

  size_t count() const { return index.size(); }
};

/// Describes the rows of each kind and sets the features' ranges in the weights.
std::array<KindTable, kKernelKindCount> make_tables(const TrainingData& data, Weights& weights,
                                                    uint64_t seed);

/// The task of the rows that `use` chooses.
ForestTask forest_task(const KindTable& table, const TrainingData& data,
                       const std::function<bool(size_t row)>& use);

/// log(forecast / measured) of some rows of one device, forecast by a model.
std::vector<double> log_errors(const KindTable& table, const std::vector<size_t>& rows,
                               const TrainingData& data, const KindModel& model, KernelKind kind,
                               const Device& device);

}  // namespace tilecast
