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

/// The rows of a fit, at most some hundred of each cell (GPU, operator, precision, software), so
/// that each cell counts alike. `left_out`: a device of TrainingData whose rows are not used.
std::vector<size_t> rows_to_fit(const TrainingData& data, const LawFitDef& fit,
                                std::optional<size_t> left_out);

/// The law's time of a row with these constants.
double law_s_with(const TrainingData& data, const TrainingRow& row, const LawConstants& laws);

/// `laws` with the constants of the fit moved so that the mean |log(law / measured)| over cells is
/// least: a search along each constant in turn, and along what a whole turn has moved. Values have
/// three digits. Starts from the values in `laws`.
LawConstants fitted_laws(const TrainingData& data, const LawFitDef& fit,
                         const std::vector<size_t>& rows, const LawConstants& laws);

}  // namespace tilecast
