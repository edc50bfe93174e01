#include "train/law_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "base/number.h"
#include "base/rng.h"
#include "devices/vendor.h"
#include "laws/constant_table.h"

namespace tilecast {
namespace {

/// A cell with fewer rows counts in proportion to them.
constexpr double kFullCell = 50;

bool is_cdna3(const Device& device) { return is_cdna3_or_later(device.gpu().architecture); }
bool is_older_amd(const Device& device) {
  return is_amd(device.gpu().architecture) && !is_cdna3(device);
}
bool has_matrix_units(const Device& device) {
  return device.gpu().matrix_instruction != MatrixInstruction::kNone;
}

std::vector<LawFitDef> fits_from_cdna3_on() {
  return {{"products from CDNA 3 on",
           KernelKind::kTensorMatmul,
           [](const Device& device, const Kernel&) { return is_cdna3(device); },
           {"tensor_matmul.cdna3.fill_cycles", "tensor_matmul.cdna3.split_cycles",
            "tensor_matmul.cdna3.element_cycles", "tensor_matmul.cdna3.latency_cycles",
            "tensor_matmul.cdna3.block_scaled_latency_cycles",
            "tensor_matmul.cdna3.feed_bytes_per_cycle", "tensor_matmul.cdna3.launch_us",
            "tensor_matmul.cdna3.of_16_bits_j_per_flop", "tensor_matmul.cdna3.of_8_bits_j_per_flop",
            "tensor_matmul.cdna3.of_4_bits_j_per_flop"}},
          {"experts from CDNA 3 on",
           KernelKind::kExperts,
           [](const Device& device, const Kernel&) { return is_cdna3(device); },
           {"experts.cdna3.fill_cycles", "experts.cdna3.element_cycles",
            "experts.cdna3.conversion_cycles", "experts.cdna3.activation_passes"}}};
}

std::vector<LawFitDef> fits_of_nvidia() {
  return {
      {"attention of prompts and encoders",
       KernelKind::kAttention,
       [](const Device& device, const Kernel& kernel) {
         return !is_amd(device.gpu().architecture) && !kernel.as<Attention>()->backward;
       },
       {"attention.products_ratio", "attention.exponential_ratio", "attention.other_instructions",
        "attention.conversion_instructions", "attention.tile_cycles", "attention.launch_us",
        "attention.plain_launch_us", "attention.convert_launch_us", "attention.longest_share",
        "attention.overlap_exponent", "attention.large_head_ratio", "attention.triton_ratio",
        "attention.hbm_j_per_flop", "attention.gddr_j_per_flop"}},
      {"products in 16 bits",
       KernelKind::kTensorMatmul,
       [](const Device& device, const Kernel& kernel) {
         return !is_amd(device.gpu().architecture) && kernel.scheme == QuantScheme::kNone &&
                !has_8_bits_or_less(kernel.compute_dtype());
       },
       {"tensor_matmul.of_16_bits.fill_cycles", "tensor_matmul.of_16_bits.split_cycles",
        "tensor_matmul.of_16_bits.element_cycles", "tensor_matmul.of_16_bits.idle_share",
        "tensor_matmul.of_16_bits.launch_us", "tensor_matmul.of_16_bits.chain_cycles",
        "tensor_matmul.of_16_bits.ramp_us", "tensor_matmul.of_16_bits.hbm_j_per_flop",
        "tensor_matmul.of_16_bits.gddr_j_per_flop"}},
      {"products in 8 bits and less",
       KernelKind::kTensorMatmul,
       [](const Device& device, const Kernel& kernel) {
         return !is_amd(device.gpu().architecture) && has_8_bits_or_less(kernel.compute_dtype());
       },
       {"tensor_matmul.of_8_bits.fill_cycles", "tensor_matmul.of_8_bits.split_cycles",
        "tensor_matmul.of_8_bits.element_cycles", "tensor_matmul.of_8_bits.idle_share",
        "tensor_matmul.of_8_bits.launch_us", "tensor_matmul.of_8_bits.chain_cycles",
        "tensor_matmul.of_8_bits.ramp_us", "tensor_matmul.of_8_bits.hbm_j_per_flop",
        "tensor_matmul.of_8_bits.gddr_j_per_flop"}}};
}

std::vector<LawFitDef> fits_of_rocblas() {
  return {{"products of rocBLAS on matrix units",
           KernelKind::kTensorMatmul,
           [](const Device& device, const Kernel&) {
             return is_older_amd(device) && has_matrix_units(device);
           },
           {"tensor_matmul.matrix_cores.fill_cycles", "tensor_matmul.matrix_cores.split_cycles",
            "tensor_matmul.matrix_cores.split_in_two_cycles",
            "tensor_matmul.matrix_cores.element_cycles", "tensor_matmul.matrix_cores.idle_share",
            "tensor_matmul.matrix_cores.latency_cycles", "tensor_matmul.matrix_cores.reached_share",
            "tensor_matmul.matrix_cores.smaller_ratio", "tensor_matmul.matrix_cores.launch_us"}},
          {"products of rocBLAS on packed lanes",
           KernelKind::kTensorMatmul,
           [](const Device& device, const Kernel&) {
             return is_older_amd(device) && !has_matrix_units(device);
           },
           {"tensor_matmul.packed_lanes.fill_cycles", "tensor_matmul.packed_lanes.split_cycles",
            "tensor_matmul.packed_lanes.split_in_two_cycles",
            "tensor_matmul.packed_lanes.element_cycles", "tensor_matmul.packed_lanes.reached_share",
            "tensor_matmul.packed_lanes.smaller_ratio", "tensor_matmul.packed_lanes.launch_us"}}};
}

const std::vector<LawFitDef>& all_law_fits() {
  static const std::vector<LawFitDef> kFits = [] {
    std::vector<LawFitDef> fits = fits_from_cdna3_on();
    for (const auto& more : {fits_of_nvidia(), fits_of_rocblas()})
      fits.insert(fits.end(), more.begin(), more.end());
    return fits;
  }();
  return kFits;
}

using FitCell = std::tuple<size_t, std::string, std::string, Software>;
FitCell fit_cell_of(const TrainingData& data, const TrainingRow& row) {
  return {row.device, data.groups[row.group].op, std::string(precision_name(row.kernel)),
          row.conditions.software};
}

/// Constants as a search moves them: their logarithms.
class Search {
 public:
  Search(const TrainingData& data, const LawFitDef& fit, const FitRows& rows,
         const LawConstants& laws)
      : data_(data), rows_(rows.rows), laws_(laws) {
    ConstantTable table;
    laws_.describe(table);
    for (const std::string_view name : fit.constants) {
      numbers_.push_back(&table.number(name));
      shares_.push_back(name.ends_with("_share"));
      at_.push_back(std::log(*numbers_.back()));
    }
    std::map<FitCell, double> counts;
    for (const size_t r : rows_) counts[fit_cell_of(data, data.rows[r])] += 1;
    const double full = std::min(kFullCell, static_cast<double>(rows.most_of_cell));
    for (const size_t r : rows_) {
      const double times = rows.times.empty() ? 1 : rows.times[data.rows[r].device];
      weights_.push_back(times / std::max(full, counts.at(fit_cell_of(data, data.rows[r]))));
    }
  }

  LawConstants run() {
    constexpr double kFirst = 0.4, kLast = 0.01;
    best_ = loss(at_);
    for (double step = kFirst; step > kLast;) {
      const std::vector<double> before = at_;
      const double loss_before = best_;
      for (size_t i = 0; i < at_.size(); ++i) move_one(i, step);
      if (best_ >= loss_before) {
        step /= 2;
        continue;
      }
      std::vector<double> further = at_;
      for (size_t i = 0; i < at_.size(); ++i) further[i] += at_[i] - before[i];
      accept(further);
    }
    set(at_);
    return laws_;
  }

 private:
  void move_one(size_t i, double step) {
    for (const double way : {step, -step}) {
      std::vector<double> moved = at_;
      moved[i] += way;
      if (accept(moved)) return;
    }
  }

  bool accept(const std::vector<double>& logs) {
    // Gains below this are of single rows.
    constexpr double kLeastGain = 1e-5;
    const double found = loss(logs);
    if (found > best_ - kLeastGain) return false;
    at_ = logs;
    best_ = found;
    return true;
  }

  void set(const std::vector<double>& logs) {
    for (size_t i = 0; i < logs.size(); ++i) {
      const double number = std::exp(logs[i]);
      const std::string digits = fmt::format("{:.3g}", shares_[i] ? std::min(1.0, number) : number);
      *numbers_[i] = parse_number<double>(digits).value_or(number);
    }
  }

  double loss(const std::vector<double>& logs) {
    set(logs);
    double sum = 0, weight = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const TrainingRow& row = data_.rows[rows_[i]];
      sum += weights_[i] * std::abs(std::log(law_s_with(data_, row, laws_) / row.seconds));
      weight += weights_[i];
    }
    return sum / weight;
  }

  const TrainingData& data_;
  const std::vector<size_t>& rows_;
  LawConstants laws_;
  std::vector<double*> numbers_;  ///< into laws_
  std::vector<bool> shares_;      ///< at most 1
  std::vector<double> weights_;   ///< by row
  std::vector<double> at_;
  double best_ = 0;
};

}  // namespace

std::span<const LawFitDef> law_fits() { return all_law_fits(); }

FitRows rows_to_fit(const TrainingData& data, const LawFitDef& fit, FitRows asked) {
  std::map<FitCell, std::vector<size_t>> cells;
  for (size_t r = 0; r < data.rows.size(); ++r) {
    const TrainingRow& row = data.rows[r];
    const bool counts = asked.times.empty() || asked.times[row.device] > 0;
    if (counts && is_of(data, fit, row)) cells[fit_cell_of(data, row)].push_back(r);
  }
  Rng rng(1);
  for (auto& [cell, all] : cells) {
    const size_t most = std::min(all.size(), asked.most_of_cell);
    for (size_t i = 0; i < most; ++i) std::swap(all[i], all[i + rng.below(all.size() - i)]);
    asked.rows.insert(asked.rows.end(), all.begin(), all.begin() + static_cast<ptrdiff_t>(most));
  }
  return asked;
}

std::vector<double> drawn_devices(const std::vector<size_t>& devices, size_t count, uint64_t draw) {
  std::vector<double> times(count, 0);
  Rng rng(draw);
  for (size_t i = 0; i < devices.size(); ++i) times[devices[rng.below(devices.size())]] += 1;
  return times;
}

bool is_of(const TrainingData& data, const LawFitDef& fit, const TrainingRow& row) {
  return !row.assumed && kernel_kind(row.kernel) == fit.kind &&
         fit.covers(data.devices[row.device], row.kernel);
}

double law_s_with(const TrainingData& data, const TrainingRow& row, const LawConstants& laws) {
  const Chip chip(data.running(row), laws);
  return kernel_kind_def(kernel_kind(row.kernel)).law(row.kernel, chip, row.conditions).seconds;
}

std::vector<size_t> devices_that_tell(const TrainingData& data, const std::vector<size_t>& rows,
                                      const LawConstants& laws, std::string_view constant) {
  constexpr double kMove = 1.1, kSeen = 0.01;
  LawConstants moved = laws;
  ConstantTable table;
  moved.describe(table);
  table.number(constant) *= kMove;
  std::vector<bool> tells(data.devices.size(), false);
  for (const size_t r : rows) {
    const TrainingRow& row = data.rows[r];
    if (tells[row.device]) continue;
    const double change = std::log(law_s_with(data, row, moved) / law_s_with(data, row, laws));
    tells[row.device] = std::abs(change) > kSeen * std::log(kMove);
  }
  std::vector<size_t> devices;
  for (size_t d = 0; d < tells.size(); ++d) {
    if (tells[d]) devices.push_back(d);
  }
  return devices;
}

LawConstants fitted_laws(const TrainingData& data, const LawFitDef& fit, const FitRows& rows,
                         const LawConstants& laws) {
  return Search(data, fit, rows, laws).run();
}

}  // namespace tilecast
