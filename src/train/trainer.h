#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "predict/mlp.h"
#include "tilecast/train.h"

namespace tilecast {

/// Rows of one network, ready to learn: standardized features, physical bound and measured time.
struct NetRows {
  size_t width = 0;
  float lowest_logit = -6.0f;    ///< see predict/nets.h
  std::vector<float> inputs;     ///< width floats a row
  std::vector<float> bounds;     ///< least time that the data sheet allows, in latency floors
  std::vector<float> log_times;  ///< log(measured), in latency floors
  std::vector<float> weights;
  std::vector<float> offsets;  ///< added to the network's output; empty: 0

  float offset(size_t row) const { return offsets.empty() ? 0.0f : offsets[row]; }
  size_t count() const { return bounds.size(); }
};

/// Pairs of kernels, row by row, of which the larger does more work: no model may make it faster.
/// Their times are not known, so log_times and weights are empty.
struct GrowingPairs {
  NetRows smaller, larger;

  size_t count() const { return smaller.count(); }
};

/// Rows of a batch.
inline constexpr size_t kBatchRows = 512;

struct NetTask {
  std::string name;  ///< names the checkpoint
  std::vector<int> widths;
  int epochs = 60;
  uint64_t seed = 1;
  uint64_t data_hash = 0;  ///< a checkpoint of other data is not taken up
  const NetRows* train = nullptr;
  const NetRows* held_out = nullptr;
  const GrowingPairs* pairs = nullptr;  ///< nullptr or empty: none
  std::filesystem::path checkpoint;     ///< "" for none
};

/// Trains one network: AdamW (Loshchilov, Hutter 2019), learning rate on a cosine from 3e-3 to 0,
/// batches of 512, loss sqrt(r² + 0.02²) of r = log(forecast / measured), plus what the forecasts
/// of 128 pairs fall short of growing with the work. Resumes from the task's checkpoint where there
/// is one; the result is the same as without the interruption, and so are the reports: those of the
/// epochs before it come first, marked `resumed`.
Mlp train_net(const NetTask& task, const std::function<void(const EpochReport&)>& report);

/// Mean output of the networks for each row, offsets included.
std::vector<float> net_logits(const std::vector<Mlp>& members, const NetRows& rows);

/// log(forecast / measured) of each row.
std::vector<double> log_errors(const std::vector<float>& logits, const NetRows& rows);

}  // namespace tilecast
