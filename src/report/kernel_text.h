#pragma once

#include <string>
#include <vector>

#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// The sizes of a kernel in the format of its type: "8 x [128x64x128]"; "1 x" is omitted.
std::string sizes_text(const NamedSizes& shape);

/// Kernels of equal work in one phase, which tables show as one row.
struct JoinedKernels {
  KernelForecast row;  ///< the first of them
  int64_t count = 0;
  double seconds = 0;              ///< of all
  std::vector<std::string> names;  ///< without the part that repeats, each once

  /// "bwd layers.0.mlp.up_proj +1": the phase if it is not `plain_phase`, the first name, and how
  /// many others there are.
  std::string name(std::string_view plain_phase) const;
};

/// The row that takes longest first.
std::vector<JoinedKernels> join_alike(const std::vector<KernelForecast>& kernels);

/// The ends of an interval of times: "2.75 ms to 4.75 ms".
std::string span_text(const Interval& seconds);

/// The dtype and, if it was not requested, where it comes from: "bf16 (torch_dtype)".
std::string dtype_text(const std::string& dtype, const std::string& source);
/// ", base clock" or ", 1305 MHz" of the option `clocks`; "" for the boost clock.
std::string clock_text(const std::string& clocks);

/// "MFU 43 %, HFU 57 %": of a training step.
std::string training_utilization_text(double mfu_ratio, double hfu_ratio);

/// A GPU's id without the vendor: "h100-sxm5-80gb".
std::string without_vendor(const std::string& gpu_id);

/// Minimum width of a table of kernels that shows tiles and dtypes.
inline constexpr int kRoomForMore = 100;

/// How the columns of a table of kernels are shortened: name, share, each, count, bound, use,
/// operator, sizes.
std::vector<Fit> kernel_columns_fit();
std::vector<size_t> kernel_columns_least();

}  // namespace tilecast
