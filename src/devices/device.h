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
#include "tilecast/choices.h"

namespace tilecast {

/// NVIDIA's by age, then AMD's, then chips of other vendors whose few large matrix units are
/// systolic arrays or alike, fed from memories that programs manage (TPU, Gaudi, Trainium).
enum class Architecture : uint8_t {
  kKepler,
  kMaxwell,
  kPascal,
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kGcn5,
  kCdna,
  kCdna2,
  kCdna3,
  kCdna4,
  kRdna2,
  kRdna3,
  kRdna4,
  kSystolic,
};
constexpr auto choice_words(Architecture) {
  return std::array<std::string_view, 18>{
      "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada",   "hopper", "blackwell",
      "gcn5",   "cdna",    "cdna2",  "cdna3", "cdna4",  "rdna2",  "rdna3", "rdna4",  "systolic"};
}

enum class MemoryType : uint8_t {
  kGddr5,
  kGddr5x,
  kGddr6,
  kGddr6x,
  kGddr7,
  kHbm2,
  kHbm2e,
  kHbm3,
  kHbm3e,
  kHbm4,
  kLpddr4x,
  kLpddr5,
  kLpddr5x,
};
constexpr auto choice_words(MemoryType) {
  return std::array<std::string_view, 13>{"gddr5",   "gddr5x", "gddr6",  "gddr6x", "gddr7",
                                          "hbm2",    "hbm2e",  "hbm3",   "hbm3e",  "hbm4",
                                          "lpddr4x", "lpddr5", "lpddr5x"};
}
constexpr bool is_hbm(MemoryType type) {
  return type >= MemoryType::kHbm2 && type <= MemoryType::kHbm4;
}

/// The instruction that feeds the matrix units best: what kernels are written with.
enum class MatrixInstruction : uint8_t { kNone, kMmaSync, kWgmma, kTcgen05, kMfma, kWmma, kArray };
constexpr auto choice_words(MatrixInstruction) {
  return std::array<std::string_view, 7>{"none", "mma.sync", "wgmma", "tcgen05",
                                         "mfma", "wmma",     "array"};
}

/// Whether, as delivered, error correction keeps its bits in the memory that programs would use.
enum class InlineEcc : uint8_t { kOff, kOn };
constexpr auto choice_words(InlineEcc) { return std::array<std::string_view, 2>{"off", "on"}; }

struct Link {
  std::string kind;          ///< "nvlink", "pcie", "infinity-fabric", …
  double bytes_per_s = 0.0;  ///< in one direction, over all links and lanes of the device
  /// How many GPUs such links join, the device included: 2 for a bridge. 0: all of a node.
  int64_t gpus = 0;
  bool operator==(const Link&) const = default;
};

/// The numbers of a GPU's data sheet. "SM" means a compute unit on AMD GPUs.
struct Gpu {
  int64_t sm_count = 0;
  int64_t lanes_per_sm = 0;
  double boost_clock_hz = 0;
  std::optional<double> base_clock_hz;
  double clock_share = 1;  ///< of the data sheet's boost clock; boost_clock_hz holds it (at_clock)
  int64_t l2_bytes = 0;
  std::optional<int64_t> last_level_cache_bytes;
  int64_t on_chip_bytes_per_sm = 0;
  int64_t register_bytes_per_sm = 0;
  int64_t threads_per_sm = 0;
  double board_power_w = 0;
  bool states_board_power = true;  ///< else it is derived from the rate in FP32
  std::optional<double> process_nm;
  Architecture architecture{};
  MatrixInstruction matrix_instruction{};
  MemoryType memory_type{};
  InlineEcc inline_ecc{};
  double exp_per_clock_per_sm = 0;  ///< base-2 exponentials in FP32
  int64_t schedulers_per_sm = 0;    ///< SIMDs on AMD GPUs
  double issue_per_clock = 0;       ///< instructions of a scheduler
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

/// Parts into which a GPU's memory, its bandwidth and its L2 are divided.
inline constexpr int64_t kMemorySlices = 8;

/// A part of a GPU that a program has for itself: an instance of NVIDIA's MIG.
struct Slice {
  std::string name;  ///< of the profile: "1g.5gb"
  int64_t sm_count = 0;
  int64_t memory_bytes = 0;
  int64_t memory_eighths = 0;  ///< of the bandwidth and of the L2
  int64_t instances = 0;       ///< of this profile that a GPU has at most
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
  std::vector<Slice> slices;  ///< into which it can be divided
  bool is_slice = false;      ///< its memory_bytes are what programs see
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

/// The GPU with another clock in force than its boost clock: peak rates and L2 bandwidth scale with
/// it, memory, links and power do not. `hz` must be above 0. Throws Error{kUnsupported} if the
/// device is not a GPU. Not modelled: memory clocks, the voltage and so the power of that clock.
Device at_clock(const Device& device, double hz);

/// The GPU with another number of SMs: peak rates scale with it, memory and L2 do not. Throws
/// Error{kUnsupported} if the device is not a GPU.
Device with_sms(const Device& device, int64_t sm_count);

/// A slice of the GPU as a device of its own: it has its SMs and its share of L2, memory and their
/// bandwidths, and no NVLink. It keeps the board's clock and power limit. Throws
/// Error{kNotFound} with the known profiles.
Device slice_of(const Device& device, std::string_view profile);
/// The slice with all SMs that slices have. Throws as slice_of where there is none.
const Slice& largest_slice(const Device& device);

/// Reads a device file. `where` names it in messages. Throws Error{kInput} for an unknown field, a
/// wrong unit or value, or a missing source.
Device parse_device(std::string_view json_text, const std::string& where);

}  // namespace tilecast
