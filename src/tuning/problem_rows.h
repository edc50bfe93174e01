#pragma once

#include "base/csv.h"
#include "tuning/conv_problem.h"

namespace tilecast::tuning {

/// Whether the table has the columns of a convolution: direction (F, B, W), precision, layout, n,
/// c, h, w, k, oh, ow, r, s, pad_h, pad_w, stride_h, stride_w, dil_h, dil_w, group.
bool has_problem_columns(const CsvTable& table);

/// The convolution of a row. An h or w of 0 is not known (of gradients with a stride): it becomes
/// the least input that gives the output. Throws Error{kInput} with file and line.
ConvProblem problem_of_row(const CsvTable& table, size_t row);

}  // namespace tilecast::tuning
