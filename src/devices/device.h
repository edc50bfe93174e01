#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/dtype.h"

namespace tilecast {

struct Link {
  std::string kind;          ///< "nvlink", "pcie", "infinity-fabric", …
  double bytes_per_s = 0.0;  ///< in one direction, over all lanes of the device
  bool operator==(const Link&) const = default;
};

/// The numbers of a GPU's data sheet. "SM" means a compute unit on AMD GPUs.
struct Gpu {
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
  /// Peak FLOP/s by dtype; 0: not supported.
  std::array<double, kDTypeCount> vector_flops_per_s{};
  std::array<double, kDTypeCount> matrix_flops_per_s{};

  double vector_peak(DType dtype) const { return vector_flops_per_s[static_cast<size_t>(dtype)]; }
  double matrix_peak(DType dtype) const { return matrix_flops_per_s[static_cast<size_t>(dtype)]; }
  /// Peak FLOP/s of the faster unit that multiplies matrices of this dtype; 0: not supported.
  double matmul_peak(DType dtype) const { return std::max(vector_peak(dtype), matrix_peak(dtype)); }
  /// Peak L2 bandwidth of all SMs: 64 bytes per clock and SM, the width of that path since Volta
  /// (NVIDIA V100 whitepaper; AMD CDNA whitepaper: 64 B/clk per CU).
  double l2_bytes_per_s() const { return 64.0 * static_cast<double>(sm_count) * boost_clock_hz; }
};

/// A device that is not a GPU. Only its memory and links are known.
struct Accelerator {};

/// A device with the numbers of its data sheet. Immutable after reading.
struct Device {
  std::string id;
  std::string name;
  std::string vendor;
  std::vector<std::string> aliases;

  int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;
  std::vector<Link> links;
  std::variant<Gpu, Accelerator> chip;
  /// Fields that the file leaves out, with the values used instead.
  std::vector<std::string> warnings;

  /// nullptr if the device is not a GPU.
  const Gpu* as_gpu() const { return std::get_if<Gpu>(&chip); }
  /// The GPU's numbers, for the cost models of GPUs. Throws Error{kUnsupported} if the device is
  /// not a GPU.
  const Gpu& gpu() const {
    if (const Gpu* found = as_gpu()) return *found;
    refuse();
  }
  /// Peak FLOP/s of matrix products of this dtype; 0: not supported. Throws Error{kUnsupported} if
  /// no cost model supports the device.
  double matmul_peak(DType dtype) const { return gpu().matmul_peak(dtype); }

 private:
  [[noreturn]] void refuse() const;
};

/// Reads a device file. `where` names it in messages. Throws Error{kInput} for an unknown field, a
/// wrong unit or value, or a missing source.
Device parse_device(std::string_view json_text, const std::string& where);

}  // namespace tilecast
