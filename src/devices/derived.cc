#include "devices/derived.h"

#include <algorithm>
#include <numbers>

#include "base/text.h"
#include "devices/vendor.h"

namespace tilecast {
namespace {

constexpr double kGiB = 0x1p30;

enum class Vendor { kNvidia, kAmd, kOther };

Vendor vendor_of(const Device& device) {
  const std::string name = normalized_name(device.vendor);
  if (name.starts_with("nvidia")) return Vendor::kNvidia;
  if (name.starts_with("amd") || name.starts_with("advancedmicro")) return Vendor::kAmd;
  return Vendor::kOther;
}

/// FLOP per clock and SM: a power of two in all matrix units and lanes.
double per_clock(const Gpu& gpu, double flops_per_s) {
  return flops_per_s / (static_cast<double>(gpu.sm_count) * gpu.boost_clock_hz);
}

/// Whether a rate stands for at least `power_of_two` FLOP per clock and SM. Data sheets round, and
/// some count with another clock than the boost clock (B200: 7737 for 8192), so the limit lies half
/// way, in the logarithm, to the next lower power of two.
bool reaches(double flop_per_clock, double power_of_two) {
  return flop_per_clock * std::numbers::sqrt2 >= power_of_two;
}

/// FLOP per clock and SM of the matrix units in 16 bits.
double half_per_clock(const Gpu& gpu) {
  return per_clock(gpu, std::max(gpu.matrix_peak(DType::kFp16), gpu.matrix_peak(DType::kBf16)));
}

/// FP32 lanes, from the rate: `lanes_per_sm` may be a default.
double fp32_lanes(const Gpu& gpu) { return per_clock(gpu, gpu.vector_peak(DType::kFp32)) / 2; }

/// Integer rates do not count: P4 and MI60 have a dot product of four bytes in their vector lanes.
bool has_matrix_units(const Gpu& gpu) {
  constexpr DType kFloats[] = {DType::kFp32, DType::kTf32, DType::kFp16,
                               DType::kBf16, DType::kFp8,  DType::kFp4};
  return std::any_of(std::begin(kFloats), std::end(kFloats),
                     [&](DType dtype) { return gpu.matrix_peak(dtype) > 0; });
}

/// Whether the SM is that of a data-center GPU (GH100, GB100: 256 KiB on chip, 2048 threads) and
/// not that of the graphics GPU of the same years (AD102, GB202: 128 KiB, 1536 threads, 1024 FLOP
/// per clock). The bandwidth tells where a file states neither the on-chip memory nor the threads.
bool has_data_center_sm(const Device& device) {
  const Gpu& gpu = device.gpu();
  return gpu.on_chip_bytes_per_sm >= (160 << 10) || reaches(half_per_clock(gpu), 4096) ||
         (gpu.threads_per_sm >= 2048 && device.memory_bytes_per_s >= 2.5e12);
}

/// GP100 and GA100 have 64 FP32 lanes in an SM, the graphics GPUs of their generations 128.
bool has_64_lanes(const Gpu& gpu) { return !reaches(fp32_lanes(gpu), 128); }

/// The generations before tensor cores, and GPUs of later ones whose file states no matrix rates.
Architecture nvidia_without_matrix_units(const Device& device) {
  const Gpu& gpu = device.gpu();
  // 192 lanes; all later SMs have 64 or 128. Far more are a rate that contradicts the lanes.
  if (fp32_lanes(gpu) >= 160 && fp32_lanes(gpu) < 224) return Architecture::kKepler;
  // No Pascal board has more than 732 GB/s (P100).
  if (!gpu.process_nm)
    return device.memory_bytes_per_s < 0.8e12 ? Architecture::kPascal : Architecture::kAmpere;
  // Kepler, Maxwell 28 nm; Pascal 16, 14; Turing (GTX 16) 12; Ampere 8, 7; Ada, Hopper 4.
  if (*gpu.process_nm >= 20) return Architecture::kMaxwell;
  if (*gpu.process_nm >= 13) return Architecture::kPascal;
  if (*gpu.process_nm >= 10) return Architecture::kTuring;
  if (*gpu.process_nm >= 6) return Architecture::kAmpere;
  return has_data_center_sm(device) ? Architecture::kHopper : Architecture::kAda;
}

Architecture nvidia_architecture(const Device& device) {
  const Gpu& gpu = device.gpu();
  const auto has = [&](DType dtype) { return gpu.matrix_peak(dtype) > 0; };
  const auto process_below = [&](double nm) { return gpu.process_nm && *gpu.process_nm < nm; };
  if (!has_matrix_units(gpu)) return nvidia_without_matrix_units(device);
  if (has(DType::kFp4) || reaches(half_per_clock(gpu), 8192)) return Architecture::kBlackwell;
  if (has(DType::kFp8) || process_below(6))
    return has_data_center_sm(device) ? Architecture::kHopper : Architecture::kAda;
  if (has(DType::kBf16) || has(DType::kTf32) || process_below(10)) return Architecture::kAmpere;
  // Volta's tensor cores have no integers, and its SMs hold 2048 threads.
  const bool turing = has(DType::kInt8) || has(DType::kInt4) || gpu.threads_per_sm <= 1024;
  return turing ? Architecture::kTuring : Architecture::kVolta;
}

/// The matrix units of a core are arrays of 128 x 128 and more (TPU v5e: four of them, 131072 FLOP
/// per clock; Gaudi 3: 16384 for each vector core). An SM of the largest GPU has 8192.
bool has_large_arrays(const Gpu& gpu) { return reaches(half_per_clock(gpu), 16384); }

Architecture amd_architecture(const Gpu& gpu) {
  const double half = half_per_clock(gpu);
  if (!has_matrix_units(gpu)) {
    // Lanes of RDNA 3 count twice, for dual issue; its matrix rates may be left out.
    if (!has_64_lanes(gpu)) return Architecture::kRdna3;
    // RDNA 2 has an Infinity Cache. Where a file leaves it out: it has clocks above 2.1 GHz, Vega
    // 20 1.8 at most and 2560 threads in a compute unit.
    const bool fast = gpu.boost_clock_hz >= 1.95e9 && gpu.threads_per_sm < 2560;
    return gpu.last_level_cache_bytes || fast ? Architecture::kRdna2 : Architecture::kGcn5;
  }
  if (reaches(half, 4096)) return Architecture::kCdna4;
  if (reaches(half, 2048)) return Architecture::kCdna3;
  if (gpu.matrix_peak(DType::kFp8) > 0) return Architecture::kRdna4;
  if (!reaches(half, 1024)) return Architecture::kRdna3;
  // BF16 runs at half of FP16's rate on the first CDNA, at the same since.
  const bool full_bf16 = reaches(per_clock(gpu, gpu.matrix_peak(DType::kBf16)), 1024);
  return full_bf16 ? Architecture::kCdna2 : Architecture::kCdna;
}

/// Memory of a system on a chip: slow and large (Jetson, GB10, Strix Halo: 2 to 8 bytes/s per byte
/// and at most 273 GB/s). Boards have at least 11 bytes/s per byte (L4) or 300 GB/s.
bool has_system_memory(const Device& device) {
  return device.memory_bytes_per_s < 0.29e12 &&
         device.memory_bytes_per_s < 8 * static_cast<double>(device.memory_bytes);
}

/// GDDR6X is in GeForce boards of 500 GB/s and more, which have less memory for their bandwidth
/// (36 bytes/s per byte or more; RTX 3090) than RTX and data-center boards with GDDR6 (30 or less;
/// RTX A5000).
bool has_gddr6x(const Device& device) {
  return device.memory_bytes_per_s >= 0.5e12 &&
         device.memory_bytes_per_s >= 33 * static_cast<double>(device.memory_bytes);
}

MemoryType nvidia_memory_type(const Device& device) {
  const Gpu& gpu = device.gpu();
  const double bytes_per_s = device.memory_bytes_per_s;
  switch (gpu.architecture) {
    case Architecture::kPascal:
      if (has_64_lanes(gpu)) return MemoryType::kHbm2;
      return bytes_per_s < 0.4e12 ? MemoryType::kGddr5 : MemoryType::kGddr5x;
    case Architecture::kVolta:
      return MemoryType::kHbm2;
    case Architecture::kTuring:
      return MemoryType::kGddr6;
    case Architecture::kAmpere:
      // A100: 40 GB of HBM2 or 80 GB of HBM2e. The SMs of graphics GPUs hold 1536 threads; where
      // a file does not say so: their memory ends at 1.01 TB/s (RTX 3090 Ti).
      if (has_64_lanes(gpu) || (gpu.threads_per_sm >= 2048 && bytes_per_s >= 1.1e12))
        return static_cast<double>(device.memory_bytes) < 60 * kGiB ? MemoryType::kHbm2
                                                                    : MemoryType::kHbm2e;
      return has_gddr6x(device) ? MemoryType::kGddr6x : MemoryType::kGddr6;
    case Architecture::kAda:
      return has_gddr6x(device) ? MemoryType::kGddr6x : MemoryType::kGddr6;
    case Architecture::kHopper:
      // H100 PCIe 2.0 TB/s; H100, H20, GH200 with HBM3 3.4 to 4.0; H200 4.8.
      if (bytes_per_s < 2.6e12) return MemoryType::kHbm2e;
      return bytes_per_s < 4.4e12 ? MemoryType::kHbm3 : MemoryType::kHbm3e;
    case Architecture::kBlackwell:
      return gpu.matrix_instruction == MatrixInstruction::kTcgen05 ? MemoryType::kHbm3e
                                                                   : MemoryType::kGddr7;
    default:
      return MemoryType::kGddr5;
  }
}

MemoryType amd_memory_type(const Device& device) {
  switch (device.gpu().architecture) {
    case Architecture::kGcn5:
    case Architecture::kCdna:
      return MemoryType::kHbm2;
    case Architecture::kCdna2:
      return MemoryType::kHbm2e;
    case Architecture::kCdna3:
      // MI300X and MI308X 192 GB, MI325X 256 GB.
      return static_cast<double>(device.memory_bytes) < 220 * kGiB ? MemoryType::kHbm3
                                                                   : MemoryType::kHbm3e;
    case Architecture::kCdna4:
      return MemoryType::kHbm3e;
    default:
      return MemoryType::kGddr6;
  }
}

bool is_rdna(Architecture architecture) {
  return architecture == Architecture::kRdna2 || architecture == Architecture::kRdna3 ||
         architecture == Architecture::kRdna4;
}

/// B300, GB300: twice the exponentials of B200, and FP4 at three times the rate of FP8; twice on
/// B200, four times on graphics GPUs, which lack tcgen05.
bool is_blackwell_ultra(const Gpu& gpu) {
  const double fp8 = gpu.matrix_peak(DType::kFp8);
  return gpu.matrix_instruction == MatrixInstruction::kTcgen05 && fp8 > 0 &&
         gpu.matrix_peak(DType::kFp4) >= 2.5 * fp8;
}

bool is_gp100(const Gpu& gpu) {
  return gpu.architecture == Architecture::kPascal && has_64_lanes(gpu);
}

}  // namespace

Architecture derived_architecture(const Device& device) {
  const Vendor vendor = vendor_of(device);
  if (vendor == Vendor::kAmd) return amd_architecture(device.gpu());
  if (vendor == Vendor::kOther && has_large_arrays(device.gpu())) return Architecture::kSystolic;
  return nvidia_architecture(device);
}

MatrixInstruction derived_matrix_instruction(const Device& device) {
  const Gpu& gpu = device.gpu();
  if (!has_matrix_units(gpu)) return MatrixInstruction::kNone;
  switch (gpu.architecture) {
    case Architecture::kHopper:
      return MatrixInstruction::kWgmma;
    case Architecture::kBlackwell:
      return has_data_center_sm(device) ? MatrixInstruction::kTcgen05 : MatrixInstruction::kMmaSync;
    case Architecture::kCdna:
    case Architecture::kCdna2:
    case Architecture::kCdna3:
    case Architecture::kCdna4:
      return MatrixInstruction::kMfma;
    case Architecture::kRdna3:
    case Architecture::kRdna4:
      return MatrixInstruction::kWmma;
    case Architecture::kSystolic:
      return MatrixInstruction::kArray;
    default:
      return MatrixInstruction::kMmaSync;
  }
}

MemoryType derived_memory_type(const Device& device) {
  const Vendor vendor = vendor_of(device);
  if (has_system_memory(device)) {
    if (vendor == Vendor::kNvidia && device.gpu().architecture < Architecture::kAmpere)
      return MemoryType::kLpddr4x;
    const bool orin =
        vendor == Vendor::kNvidia && device.gpu().architecture < Architecture::kBlackwell;
    return orin ? MemoryType::kLpddr5 : MemoryType::kLpddr5x;
  }
  if (vendor == Vendor::kAmd) return amd_memory_type(device);
  if (vendor == Vendor::kNvidia) return nvidia_memory_type(device);
  if (is_systolic(device.gpu().architecture))
    return device.memory_bytes_per_s < 1e12 ? MemoryType::kHbm2 : MemoryType::kHbm2e;
  // Graphics boards of other vendors have up to 0.8 TB/s.
  return device.memory_bytes_per_s < 1.1e12 ? MemoryType::kGddr6 : MemoryType::kHbm2e;
}

double derived_exp_per_clock_per_sm(const Gpu& gpu) {
  switch (gpu.architecture) {
    case Architecture::kKepler:
    case Architecture::kMaxwell:
    case Architecture::kCdna4:
      return 32;
    case Architecture::kPascal:
      return is_gp100(gpu) ? 16 : 32;
    case Architecture::kBlackwell:
      return is_blackwell_ultra(gpu) ? 32 : 16;
    default:
      return 16;
  }
}

int64_t derived_schedulers_per_sm(const Gpu& gpu) {
  return is_gp100(gpu) || is_rdna(gpu.architecture) ? 2 : 4;
}

double derived_issue_per_clock(const Gpu& gpu) {
  return gpu.architecture <= Architecture::kPascal ? 2 : 1;
}

}  // namespace tilecast
