#pragma once

#include <string>

#include "base/json.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Sizes of a kernel as its family names them: "[4096x5120x1280]".
std::string sizes_text(const KernelForecast& kernel);

/// "bf16 (torch_dtype)": the type and, where it was not asked for, who says so.
std::string dtype_text(const std::string& dtype, const std::string& source);

/// The object of the contract's "kernels" list.
Json kernel_object(const KernelForecast& kernel);
Json kernel_list(const std::vector<KernelForecast>& kernels);

/// One line per kernel under a header.
std::string kernels_csv(const std::vector<KernelForecast>& kernels);

}  // namespace tilecast
