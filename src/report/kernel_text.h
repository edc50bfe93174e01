#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Sizes of a kernel as its family names them: "[4096x5120x1280]".
std::string sizes_text(const KernelForecast& kernel);

/// "bf16 (torch_dtype)": the type and, where it was not asked for, who says so.
std::string dtype_text(const std::string& dtype, const std::string& source);

/// Columns from which on a table of kernels has tiles and dtypes beside the sizes.
inline constexpr int kRoomForMore = 100;

/// How the columns of a table of kernels give way: name, share, each, count, bound, use, operator,
/// sizes.
std::vector<Fit> kernel_columns_fit();
std::vector<size_t> kernel_columns_least();

/// The object of the contract's "kernels" list.
Json kernel_object(const KernelForecast& kernel);
Json kernel_list(const std::vector<KernelForecast>& kernels);

/// One line per kernel under a header.
std::string kernels_csv(const std::vector<KernelForecast>& kernels);

}  // namespace tilecast
