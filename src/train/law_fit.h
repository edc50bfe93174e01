#pragma once

// Fits constants of laws (data/laws) to measurements. Each fit names the constants that its rows
// can tell apart; all others stay as they are.

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "predict/kernel_kinds.h"
#include "train/dataset.h"

namespace tilecast {

/// Constants that are fitted together, and the rows that tell them.
struct LawFitDef {
  std::string_view name;
  KernelKind kind;
  bool (*covers)(const Device& device, const Kernel& kernel);
  std::vector<std::string_view> constants;
};
std::span<const LawFitDef> law_fits();

/// Whether a row was measured and is of a law that the fit is of.
bool is_of(const TrainingData& data, const LawFitDef& fit, const TrainingRow& row);

/// The rows of a fit, some of each cell (GPU, operator, precision, software), so that each cell
/// counts alike.
struct FitRows {
  /// How often each device of TrainingData counts; empty: all once.
  std::vector<double> times;
  size_t most_of_cell = 250;  ///< more do not move constants
  std::vector<size_t> rows;   ///< into TrainingData::rows
};
/// `asked` with its rows.
FitRows rows_to_fit(const TrainingData& data, const LawFitDef& fit, FitRows asked);

/// How often each of `count` devices counts in a draw of as many of `devices` as these are, with
/// replacement. The same number draws the same ones.
std::vector<double> drawn_devices(const std::vector<size_t>& devices, size_t count, uint64_t draw);

/// The devices whose rows a constant moves: no others tell it.
std::vector<size_t> devices_that_tell(const TrainingData& data, const std::vector<size_t>& rows,
                                      const LawConstants& laws, std::string_view constant);

/// The law's time of a row with these constants.
double law_s_with(const TrainingData& data, const TrainingRow& row, const LawConstants& laws);

/// `laws` with the constants of the fit moved so that the mean |log(law / measured)| over cells is
/// least: a search along each constant in turn, and along what a whole turn has moved. Values have
/// three digits. Starts from the values in `laws`.
LawConstants fitted_laws(const TrainingData& data, const LawFitDef& fit, const FitRows& rows,
                         const LawConstants& laws);

}  // namespace tilecast
