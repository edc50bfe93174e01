#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "predict/learned.h"
#include "predict/weights.h"
#include "train/dataset.h"
#include "train/forest_trainer.h"
#include "train/trainer.h"

namespace tilecast {

/// Rows of one network with what belongs to them.
struct FoldPart {
  NetRows rows;                ///< all features; offsets hold the base model once it is trained
  std::vector<size_t> device;  ///< into TrainingData::devices
  std::vector<float> caps;     ///< logits that the board's power allows
  std::vector<size_t> index;   ///< into TrainingData::rows; of measured rows
};

/// What one network of a fold learns from and is judged on.
struct FoldNet {
  FoldPart train, held_out;           ///< a tenth of the rows is held out
  FoldPart left;                      ///< of the left-out GPU
  NetRows base_train, base_held_out;  ///< for the base model
  FoldPart smaller, larger;           ///< kernels that nobody measured, and the same grown
  GrowingPairs base_pairs;            ///< of them, for the base model
};

/// Everything but one GPU's rows, or everything.
struct Fold {
  std::string name;                ///< "all" or the left-out GPU
  std::optional<size_t> left_out;  ///< device
  Weights weights;                 ///< tile trees, scales and the power law to begin with
  std::array<FoldNet, kNetCount> nets;

  FoldNet& net(NetKind kind) { return nets[static_cast<size_t>(kind)]; }
};

/// Splits and standardizes the rows, grows the tile trees, fits the power law.
void fill_fold(Fold& fold, const TrainingData& data, uint64_t seed);

/// Sets the offsets of all parts to what the trained base model and the power law say.
void apply_base_model(Fold& fold);

/// Rows of a part that belong to one device, with their offsets.
NetRows rows_of_device(const FoldPart& part, size_t device);

/// Gives each device residual its row of the inverse of all similarities.
void solve_kriging(Net& net);

/// log(forecast / measured) of a part's rows with all device residuals, as the predictor adds them
/// up.
std::vector<double> part_log_errors(const Net& net, const FoldPart& part, const TrainingData& data);

/// Rows of a device and software, with what the base model lacks there.
ForestTask forest_task(const FoldPart& part, const TrainingData& data, size_t device,
                       Software software);

/// Draws the pairs of a network: for the base model on every device that has a data sheet,
/// for the residuals on the measured ones.
void fill_all_pairs(Fold& fold, NetKind kind, const TrainingData& data, uint64_t seed);

/// A part of a kind without rows.
FoldPart empty_part(NetKind kind);

/// A kernel of the kind on a device, as the weights describe it, without what was measured.
void append_kernel(FoldPart& part, const Weights& weights, NetKind kind, const Kernel& kernel,
                   const Described& described, const Device& device);

/// The first `width` inputs of the rows that `use` names.
NetRows selected_rows(const NetRows& rows, size_t width, const std::vector<bool>& use);

}  // namespace tilecast
