#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Sizes of a kernel as its type writes them: "8 x [128x64x128]"; "1 x" is left out.
std::string sizes_text(const NamedSizes& shape);

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

/// One line per kernel under a header. Its columns of sizes are those that the kernels have; a
/// kernel whose type has no such size leaves it empty.
std::string kernels_csv(const std::vector<KernelForecast>& kernels);

}  // namespace tilecast
