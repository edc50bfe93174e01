#include "devices/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "devices/vendor.h"

namespace tilecast {
namespace {

/// A unit that files use by mistake instead of the field's unit: with decimal prefixes, for bytes
/// also binary ones.
struct Prefix {
  std::string_view name;
  double factor;
};
constexpr std::array<Prefix, 8> kDecimal = {{{"k", 1e3},
                                             {"M", 1e6},
                                             {"G", 1e9},
                                             {"T", 1e12},
                                             {"P", 1e15},
                                             {"m", 1e-3},
                                             {"u", 1e-6},
                                             {"n", 1e-9}}};
constexpr std::array<Prefix, 4> kBinary = {
    {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}}};

/// "3350 GB/s = 3.35e+12 B/s": the unit with which the value is closest to the typical one.
std::string meant(const QuantityRange& range, double value) {
  std::string best;
  double nearest = INFINITY;
  const auto consider = [&](const Prefix& prefix) {
    const double si = value * prefix.factor;
    const double distance = std::abs(std::log(si / range.typical));
    if (si < range.min || si > range.max || distance >= nearest) return;
    nearest = distance;
    best = fmt::format("{:g} {}{} = {:.10g} {}", value, prefix.name, range.unit, si, range.unit);
  };
  if (range.unit == "B") {
    std::for_each(kBinary.begin(), kBinary.end(), consider);
  } else if (range.unit == "nm") {
    consider({"", 1e9});  // metres
    if (!best.empty()) return fmt::format("{:g} m = {:g} nm", value, value * 1e9);
  } else if (range.unit != "1") {
    std::for_each(kDecimal.begin(), kDecimal.end(), consider);
  }
  return best;
}

}  // namespace

const std::vector<QuantityRange>& quantity_ranges() {
  // The sources name the smallest and the largest known product; the limits are wider.
  static const std::vector<QuantityRange> ranges = {
      {"memory_bytes", "B", 0x1p20, 1e15, 0x1p35,
       "Edge TPU: 8 MB on chip (Coral data sheet); DGX GH200: 144 TB (NVIDIA)"},
      {"memory_bytes_per_s", "B/s", 1e9, 1e17, 1e12,
       "GeForce 8400 GS: 6.4 GB/s (NVIDIA); Cerebras WSE-3: 21 PB/s (data sheet)"},
      {"sm_count", "1", 1, 1e7, 100, "Cerebras WSE-3: 900,000 cores (data sheet)"},
      {"lanes_per_sm", "1", 1, 65536, 128,
       "8 in the first SMs (NVIDIA Tesla); a 128 x 128 systolic array has 16384 (TPU v4)"},
      {"base_clock_hz", "Hz", 1e7, 1e10, 1.3e9,
       "soft cores on FPGAs: some 100 MHz; no processor was sold above 6.2 GHz"},
      {"boost_clock_hz", "Hz", 1e7, 1e10, 1.8e9, "as the base clock"},
      {"l2_bytes", "B", 0x1p12, 0x1p40, 0x1p25,
       "GeForce 8800: 96 KiB; MI300X: 256 MiB with Infinity Cache (data sheets)"},
      {"last_level_cache_bytes", "B", 0x1p14, 0x1p42, 0x1p28, "as the L2"},
      {"on_chip_bytes_per_sm", "B", 0x1p8, 0x1p32, 0x1p17,
       "GeForce 8800: 16 KiB; Groq TSP: 220 MiB on one core (data sheets)"},
      {"register_bytes_per_sm", "B", 0x1p8, 0x1p30, 0x1p18, "GeForce 8800: 32 KiB (whitepaper)"},
      {"threads_per_sm", "1", 1, 65536, 2048, "2560 on CDNA 2 (AMD)"},
      {"board_power_w", "W", 0.1, 1e6, 300,
       "Edge TPU: 2 W (Coral data sheet); Cerebras CS-3: 23 kW (data sheet)"},
      {"process_nm", "nm", 0.5, 1000, 7, "A14 is the furthest node announced (TSMC, 2025)"},
      {"exp_per_clock_per_sm", "1", 0.1, 4096, 16,
       "2 in the first SMs (NVIDIA Tesla); 32 on B300 (NVIDIA)"},
      {"schedulers_per_sm", "1", 1, 256, 4, "1 in the first SMs (NVIDIA Tesla); 4 since Kepler"},
      {"issue_per_clock", "1", 0.1, 64, 1,
       "0.25 in the first SMs (NVIDIA Tesla); 2 on Kepler to Pascal (whitepapers)"},
      {"flops_per_s", "FLOP/s", 1e9, 1e19, 1e14,
       "GeForce 8400 GS: 29 GFLOP/s; Cerebras CS-3: 125 PFLOP/s (data sheets)"},
      {"link_bytes_per_s", "B/s", 1e6, 1e16, 1e11,
       "PCIe 1.0 x1: 250 MB/s; Cerebras WSE-3's fabric: 27 PB/s, between dies less"},
      {"latency_s", "s", 1e-8, 1e-2, 1e-6,
       "NVLink C2C: under 1 us (NVIDIA); Ethernet over a campus: below 1 ms"},
      {"generation", "1", 0.5, 64, 4, "NVLink 5, PCIe 6 (NVIDIA, PCI-SIG)"},
      {"gpus", "1", 2, 4096, 8, "as GPUs of a node"},
      {"gpus_per_node", "1", 1, 4096, 8,
       "GB200 NVL72: 72 in one NVLink domain; Rubin Ultra NVL576 is announced (NVIDIA)"},
      {"nics_per_node", "1", 1, 1024, 8, "GB200 NVL72: 72 of a rack (NVIDIA)"},
      {"oversubscription", "1", 1, 64, 2, "1: a full fat tree; Llama 3's spine: 7 (Meta, 2024)"},
      {"nodes_per_leaf", "1", 1, 65536, 32,
       "DGX SuperPOD: 32 nodes in a scalable unit (NVIDIA reference architecture)"},
      {"server_w", "W", 1, 1e6, 2000,
       "a board with an embedded processor: some W; GB200 NVL72: 120 kW with its GPUs (NVIDIA)"},
      {"pue", "1", 1, 10, 1.2, "1: nothing beside the servers draws power, by its definition"},
  };
  return ranges;
}

std::string implausible(std::string_view key, double value) {
  const auto& ranges = quantity_ranges();
  const auto range = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const QuantityRange& r) { return r.key == key; });
  TILECAST_CHECK(range != ranges.end()) << key;
  if (value >= range->min && value <= range->max) return "";
  const std::string unit = range->unit == "1" ? "" : " " + std::string(range->unit);
  const std::string other = meant(*range, value);
  return fmt::format("{:g}{} is not possible: expected {:g} to {:g}{}{}", value, unit, range->min,
                     range->max, unit,
                     other.empty() ? "" : fmt::format("; did you mean {}?", other));
}

std::vector<std::string> contradictions(const Device& device, const std::string& where) {
  if (device.as_gpu() == nullptr) return {};
  const Gpu& d = device.gpu();
  std::vector<std::string> found;
  // Two FLOPs per lane and clock, as in every bundled file; four if a lane issues two products.
  const double lanes = static_cast<double>(d.sm_count) * static_cast<double>(d.lanes_per_sm);
  const double formula = 2 * lanes * d.boost_clock_hz;
  const double fp32 = d.vector_peak(DType::kFp32);
  constexpr double kFarOff = 2.5;
  if (fp32 > kFarOff * formula || formula > kFarOff * fp32)
    found.push_back(fmt::format(
        "{}: vector_flops_per_s of fp32 is {}, but {} SMs of {} lanes at {} give {}: one of these "
        "numbers is probably wrong",
        where, format_si(fp32, "FLOP/s"), d.sm_count, d.lanes_per_sm,
        format_si(d.boost_clock_hz, "Hz"), format_si(formula, "FLOP/s")));
  if (d.base_clock_hz && *d.base_clock_hz > d.boost_clock_hz)
    found.push_back(fmt::format("{}: base_clock_hz, {}, is above boost_clock_hz, {}", where,
                                format_si(*d.base_clock_hz, "Hz"),
                                format_si(d.boost_clock_hz, "Hz")));
  if (d.l2_bytes > device.memory_bytes)
    found.push_back(fmt::format("{}: l2_bytes, {}, is more than memory_bytes, {}", where,
                                format_bytes(d.l2_bytes), format_bytes(device.memory_bytes)));
  // The memories of systolic arrays are as wide as their lanes.
  if (device.memory_bytes_per_s > d.l2_bytes_per_s() && !is_systolic(d.architecture))
    found.push_back(fmt::format(
        "{}: memory_bytes_per_s, {}, is more than the L2 bandwidth of {} for {} SMs at {}", where,
        format_si(device.memory_bytes_per_s, "B/s"), format_si(d.l2_bytes_per_s(), "B/s"),
        d.sm_count, format_si(d.boost_clock_hz, "Hz")));
  return found;
}

}  // namespace tilecast
