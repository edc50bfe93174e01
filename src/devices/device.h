#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"

namespace tilecast {

struct Link {
  std::string kind;          ///< "nvlink", "pcie", "infinity-fabric", …
  double bytes_per_s = 0.0;  ///< one direction, all lanes of the device
  bool operator==(const Link&) const = default;
};

/// What a data sheet says about a GPU; "SM" stands for a compute unit on AMD. Immutable once read.
struct Device {
  std::string id;
  std::string name;
  std::string vendor;
  std::vector<std::string> aliases;

  int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int64_t sm_count = 0;
  int64_t lanes_per_sm = 0;
  double boost_clock_hz = 0;
  std::optional<double> base_clock_hz;
  int64_t l2_bytes = 0;
  std::optional<int64_t> last_level_cache_bytes;
  int64_t on_chip_bytes_per_sm = 0;
  int64_t register_bytes_per_sm = 0;
  int64_t threads_per_sm = 0;
  double board_power_w = 0;
  std::optional<double> process_nm;
  /// Peak FLOP/s by dtype; 0 where the device has no such unit.
  std::array<double, kDTypeCount> vector_flops_per_s{};
  std::array<double, kDTypeCount> matrix_flops_per_s{};
  std::vector<Link> links;
  /// What the file left out and what was taken instead.
  std::vector<std::string> warnings;

  double vector_peak(DType dtype) const { return vector_flops_per_s[static_cast<size_t>(dtype)]; }
  double matrix_peak(DType dtype) const { return matrix_flops_per_s[static_cast<size_t>(dtype)]; }
  /// The faster unit that multiplies matrices of this dtype; 0 where there is none.
  double matmul_peak(DType dtype) const {
    return vector_peak(dtype) > matrix_peak(dtype) ? vector_peak(dtype) : matrix_peak(dtype);
  }
  /// Most bytes per second that the SMs can take from L2: 64 bytes a clock and SM, the width of
  /// that path since Volta (NVIDIA V100 whitepaper; AMD CDNA whitepaper: 64 B/clk per CU).
  double l2_bytes_per_s() const { return 64.0 * static_cast<double>(sm_count) * boost_clock_hz; }
};

/// Reads a device file. `where` names it in messages. Throws Error{kInput} for a unit, field or
/// value that is wrong, unknown or without a source.
Device parse_device(std::string_view json_text, const std::string& where);

}  // namespace tilecast
