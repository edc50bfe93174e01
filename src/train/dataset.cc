#include "train/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/quantile.h"
#include "base/rng.h"
#include "base/text.h"
#include "devices/registry.h"
#include "measurements/call_excess.h"
#include "predict/learned.h"
#include "predict/residual.h"
#include "tilecast/error.h"
#include "train/host_rows.h"

namespace tilecast {
namespace {

// Two files whose rates differ by more than this in the median of like shapes of one card and
// operator, and by more than kSameSign in seven bins of ten, were taken in different states of the
// card (heat, power, a neighbour). In the NeuSight data the files of linear layers do on P4, T4,
// P100 and V100 (0.29, 0.85, 0.93 and 0.93 of the other file's rate); on A100 they are within 0.03
// of each other.
constexpr double kSameState = 0.95, kSameSign = 0.98;

// Kernels of this length show the sustained rate, not launch effects.
constexpr double kLongKernel = 200e-6;

// Rows of one operator, type and device that are learned from: more only cost time.
constexpr uint64_t kMostRows = 30000;

// Jitter of one call's time in the measurements: weights fall below a few times this.
constexpr double kCallJitter = 20e-6;

bool is_convolution(const KernelMeasurement& m) { return m.kernel.is<Convolution>(); }

/// Kernels of serving software with a block for each row.
bool is_block_rows(const KernelMeasurement& m) {
  return traits_of(m.conditions.software).has_row_blocks &&
         find_kernel_kind(m.kernel) == KernelKind::kBlockRows;
}

bool is_aiter(const KernelMeasurement& m) {
  return m.conditions.software == software_of("aiter") && !is_block_rows(m);
}

bool comes_last(const KernelMeasurement& m) {
  return is_convolution(m) || is_block_rows(m) || is_aiter(m);
}

class Preparer {
 public:
  Preparer(const std::vector<std::string>& exclude, const Weights* known, const LawConstants& laws)
      : known_(known) {
    data_.laws = laws;
    for (const std::string& name : exclude) excluded_.insert(find_device(name).id);
  }

  TrainingData run(const std::vector<MeasurementSet>& sets) {
    for (const MeasurementSet& set : sets) {
      for (const std::string& line : set.unmatched) data_.report.push_back("left out " + line);
      data_.report.insert(data_.report.end(), set.changes.begin(), set.changes.end());
      size_t others = 0;
      for (const KernelMeasurement& m : set.kernels) {
        if (comes_last(m)) continue;
        if (find_kernel_kind(m.kernel)) {
          take(m, set);
        } else {
          ++others;
        }
      }
      if (others > 0)
        data_.report.push_back(
            fmt::format("left out {} rows of kernels that have no learned model", others));
    }
    // A row's number decides by a draw whether it is held out. Rows that came late to the data are
    // taken last: this leaves the draws of all others as they were.
    for (const auto& late : {is_convolution, is_block_rows, is_aiter}) {
      for (const MeasurementSet& set : sets) {
        for (const KernelMeasurement& m : set.kernels) {
          if (late(m)) take(m, set);
        }
      }
    }
    for (const auto& [gpu, why] : unknown_)
      data_.report.push_back(fmt::format("left out all rows of {}: {}", shown_name(gpu), why));
    remove_overhead();
    // A few rows to calibrate with may all be of long kernels.
    if (known_ == nullptr) {
      for (std::string& line : assume_host_rows(data_, single_call_))
        data_.report.push_back(std::move(line));
    }
    reconcile_groups();
    finish();
    return std::move(data_);
  }

 private:
  std::optional<size_t> device_index(const std::string& gpu) {
    if (const auto it = indices_.find(gpu); it != indices_.end()) return it->second;
    std::optional<size_t> index;
    try {
      const Device device = find_device(gpu);
      if (excluded_.count(device.id)) {
        unknown_[gpu] = "excluded by --exclude-gpu";
      } else {
        for (size_t i = 0; i < data_.devices.size(); ++i) {
          if (data_.devices[i].id == device.id) index = i;
        }
        if (!index) {
          index = data_.devices.size();
          data_.devices.push_back(device);
        }
      }
    } catch (const Error& error) {
      unknown_[gpu] = error.what();
    }
    indices_[gpu] = index;
    return index;
  }

  void take(const KernelMeasurement& m, const MeasurementSet& set) {
    const std::optional<size_t> device = device_index(m.gpu);
    if (!device) return;
    if (!has_unit_for(m.kernel, data_.devices[*device])) {
      unknown_[m.gpu + " in " + std::string(precision_name(m.kernel))] =
          "by its data sheet, the GPU has no unit for it";
      return;
    }
    const auto key = std::make_tuple(*device, m.op, set.sources[m.source]);
    auto [it, fresh] = group_indices_.emplace(key, data_.groups.size());
    if (fresh) {
      data_.groups.push_back({.device = *device, .op = m.op, .source = set.sources[m.source]});
      single_call_.push_back(m.protocol == Protocol::kSingleCall);
    }
    TrainingRow row{.kernel = m.kernel,
                    .conditions = m.conditions,
                    .device = *device,
                    .at_clock = clock_index(*device, m.conditions),
                    .group = it->second,
                    .seconds = m.measured_s,
                    .algorithm = m.algorithm};
    data_.rows.push_back(std::move(row));
  }

  /// The device at the clock of the conditions, in TrainingData::at_clocks.
  std::optional<size_t> clock_index(size_t device, const Conditions& conditions) {
    if (!conditions.clock_hz) return std::nullopt;
    const auto [it, fresh] =
        clock_indices_.emplace(std::pair(device, *conditions.clock_hz), data_.at_clocks.size());
    if (fresh) data_.at_clocks.push_back(at_clock(data_.devices[device], *conditions.clock_hz));
    return it->second;
  }

  /// Single calls hold the host's overhead: what the shortest kernels of the operator take longer
  /// than the law, in any file of the card.
  void remove_overhead() {
    std::map<std::pair<size_t, std::string>, std::vector<LawAndExcess>> calls;
    std::map<std::string, KernelKind> kinds;
    for (const TrainingRow& row : data_.rows) {
      if (!single_call_[row.group]) continue;
      const double law_s = data_.law_s(row);
      calls[{row.device, data_.groups[row.group].op}].push_back({law_s, row.seconds - law_s});
      kinds[data_.groups[row.group].op] = kernel_kind(row.kernel);
    }
    for (size_t g = 0; g < data_.groups.size(); ++g) {
      if (!single_call_[g]) continue;
      RowGroup& group = data_.groups[g];
      group.call_overhead_s =
          std::max(0.0, smallest_excess(calls[{group.device, group.op}]) - kLatencyFloor);
      if (known_ != nullptr)
        group.call_overhead_s =
            std::min(group.call_overhead_s,
                     call_overhead(known_->model(kinds.at(group.op)), kinds.at(group.op),
                                   data_.devices[group.device], group.op)
                         .seconds);
    }
    for (TrainingRow& row : data_.rows) {
      row.seconds = std::max(row.seconds - data_.groups[row.group].call_overhead_s, 1e-7);
      if (single_call_[row.group])
        row.weight = static_cast<float>(row.seconds / (row.seconds + kCallJitter));
    }
  }

  /// Device, operator, precision and software.
  using SeriesKey = std::tuple<size_t, std::string, std::string, Software>;
  SeriesKey key_of(const TrainingRow& row) const {
    return {row.device, data_.groups[row.group].op, std::string(precision_name(row.kernel)),
            row.conditions.software};
  }

  Bound bound_of(const TrainingRow& row) const {
    return tilecast::bound_of(kernel_kind(row.kernel), row.kernel, data_.running(row),
                              row.conditions);
  }

  /// Shapes of about the same difficulty: the rates of two groups are compared within such a bin.
  static std::array<int, 4> shape_bin(const Kernel& kernel) {
    const auto log2 = [](int64_t x) { return static_cast<int>(std::log2(static_cast<double>(x))); };
    const Gemm gemm = gemm_of(kernel);
    const bool aligned = gemm.n % 8 == 0 && gemm.k % 8 == 0;
    return {log2(kernel.flops), log2(std::min(gemm.m, gemm.n)) / 2, log2(gemm.k) / 2, aligned};
  }

  /// Which of two states a card will be in when a model runs on it is not known: rows of both files
  /// are moved to the geometric mean of their rates, rather than one of them believed. Rates are
  /// shares of the law's, which takes out most of what shapes of one bin differ by.
  void reconcile_groups() {
    using Bins = std::map<std::array<int, 4>, std::vector<double>>;
    std::vector<Bins> rates(data_.groups.size());
    for (const TrainingRow& row : data_.rows) {
      // Files of replays differ by their software, not by a state of the card.
      if (!row.kernel.is_product() || row.seconds < kLongKernel || !single_call_[row.group])
        continue;
      const Bound bound = bound_of(row);
      if (bound.compute_s > bound.memory_s)
        rates[row.group][shape_bin(row.kernel)].push_back(data_.law_s(row) / row.seconds);
    }
    std::vector<double> factor(data_.groups.size(), 1.0);
    for (size_t g = 0; g < data_.groups.size(); ++g) {
      for (size_t other = 0; other < data_.groups.size(); ++other) {
        if (other == g || data_.groups[g].device != data_.groups[other].device ||
            data_.groups[g].op != data_.groups[other].op)
          continue;
        std::vector<double> ratios;
        for (const auto& [bin, own] : rates[g]) {
          const auto match = rates[other].find(bin);
          if (match == rates[other].end() || own.size() < 2 || match->second.size() < 2) continue;
          ratios.push_back(quantile(own, 0.5) / quantile(match->second, 0.5));
        }
        // Seven bins of ten must agree: single bins differ by their shapes alone.
        const double ratio = quantile(ratios, 0.5);
        if (ratios.size() < 5 || ratio >= kSameState || quantile(ratios, 0.7) >= kSameSign)
          continue;
        factor[g] *= std::sqrt(ratio);
        factor[other] /= std::sqrt(ratio);
        data_.report.push_back(fmt::format(
            "{} {}: like shapes run at {:.0f} % of the rate in {} that they have in {}: the card "
            "was "
            "in another state (heat, power, a neighbour); both are moved to the geometric mean",
            data_.devices[data_.groups[g].device].id, data_.groups[g].op, 100 * ratio,
            data_.groups[g].source, data_.groups[other].source));
      }
    }
    for (TrainingRow& row : data_.rows) {
      if (row.seconds >= kLongKernel) row.seconds *= factor[row.group];
    }
  }

  /// Attention with heads that share keys has kernels and caches of its own.
  using AttentionSeries = std::pair<SeriesKey, bool>;
  AttentionSeries attention_series(const TrainingRow& row) const {
    const Attention* a = row.kernel.as<Attention>();
    return {key_of(row), a != nullptr && a->kv_heads < a->heads};
  }

  /// Series whose rows say more work than was done: of what is far too large for L2, a good part is
  /// faster than DRAM. The others that stream are not to be believed either. (TensorRT-LLM 1.0 on
  /// A100, decode with shared key heads: 291 of 570 rows above 0.5 GB, at up to 1.69 times the
  /// bandwidth, twice the rate of heads that share none, as if the cache had 8 bits. In all other
  /// series at most 1.3 % of such rows.)
  std::set<AttentionSeries> impossible_series() const {
    constexpr double kLarge = 4;  // times L2
    constexpr size_t kFewest = 20;
    constexpr double kMostFaster = 0.2;
    struct Counts {
      size_t large = 0, faster = 0;
    };
    std::map<AttentionSeries, Counts> counts;
    for (const TrainingRow& row : data_.rows) {
      const auto bytes = static_cast<double>(row.kernel.bytes());
      const auto l2_bytes = static_cast<double>(data_.devices[row.device].gpu().l2_bytes);
      if (!row.kernel.is<Attention>() || bytes < kLarge * l2_bytes) continue;
      Counts& of = counts[attention_series(row)];
      ++of.large;
      if (row.seconds < bytes / data_.devices[row.device].memory_bytes_per_s) ++of.faster;
    }
    std::set<AttentionSeries> impossible;
    for (const auto& [series, of] : counts) {
      if (of.large >= kFewest &&
          static_cast<double>(of.faster) > kMostFaster * static_cast<double>(of.large))
        impossible.insert(series);
    }
    return impossible;
  }

  /// FNV-1a over the rows that are kept: it names the data that weights were trained on.
  class DataHash {
   public:
    void add(const TrainingRow& row, const std::string& device) {
      const std::array<int64_t, kMaxSizes> sizes = sizes_of(row.kernel);
      mix(sizes.data(), sizeof sizes);
      mix(&row.seconds, sizeof row.seconds);
      if (const auto& hz = row.conditions.clock_hz) mix(&*hz, sizeof *hz);
      mix(device.data(), device.size());
    }
    uint64_t value() const { return value_; }

   private:
    void mix(const void* bytes, size_t size) {
      for (size_t i = 0; i < size; ++i)
        value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211ull;
    }
    uint64_t value_ = 14695981039346656037ull;
  };

  /// Why a row is left out.
  enum Reason : uint8_t { kKept, kWarm, kUnlike, kThinned, kTiny, kReasons };

  /// `number`: of the row, from 1; `rows`: of its series.
  Reason reason(const TrainingRow& row, const std::set<AttentionSeries>& impossible,
                uint64_t number, uint64_t rows) const {
    // Faster than the device's memory: found in a cache that is taken to be cold, or less work than
    // the row says.
    if (kernel_kind_def(kernel_kind(row.kernel)).learning.from_layers &&
        row.seconds < bound_of(row).seconds())
      return kWarm;
    // Operands in L2 take no longer for a few bytes more.
    const bool streams =
        row.kernel.is<Attention>() && row.kernel.bytes() > data_.devices[row.device].gpu().l2_bytes;
    if (streams && !impossible.empty() && impossible.contains(attention_series(row)))
      return kUnlike;
    if (Rng(number).below(rows) >= kMostRows) return kThinned;
    // Within the jitter of the overhead nothing of the kernel can be seen.
    if (row.seconds < kLatencyFloor && data_.groups[row.group].call_overhead_s > 0) return kTiny;
    return kKept;
  }

  void report_left_out(const std::array<size_t, kReasons>& counts) {
    const auto say = [&](Reason reason, std::string sentence) {
      if (counts[reason] > 0) data_.report.push_back(std::move(sentence));
    };
    say(kTiny, fmt::format("left out {} rows at the floor of their call overhead", counts[kTiny]));
    say(kWarm, fmt::format("left out {} rows that are faster than their bound: a cache was warm, "
                           "or the work less than they say",
                           counts[kWarm]));
    say(kUnlike, fmt::format("left out {} further rows of attention: many large ones of the same "
                             "GPU, software and precision are faster than DRAM allows",
                             counts[kUnlike]));
    say(kThinned, fmt::format("left out {} rows, drawn evenly, of operators with more than {}",
                              counts[kThinned], kMostRows));
  }

  void finish() {
    std::vector<TrainingRow> kept;
    DataHash hash;
    std::array<size_t, kReasons> left_out{};
    const std::set<AttentionSeries> impossible = impossible_series();
    std::map<SeriesKey, uint64_t> counts;
    for (const TrainingRow& row : data_.rows) counts[key_of(row)] += 1;
    uint64_t number = 0;
    for (TrainingRow& row : data_.rows) {
      const Reason why = reason(row, impossible, ++number, counts[key_of(row)]);
      ++left_out[why];
      if (why != kKept) continue;
      data_.groups[row.group].count += 1;
      hash.add(row, data_.devices[row.device].id);
      kept.push_back(std::move(row));
    }
    report_left_out(left_out);
    data_.rows = std::move(kept);
    data_.hash = hash.value();
  }

  const Weights* known_;
  TrainingData data_;
  std::set<std::string> excluded_;
  std::map<std::string, std::optional<size_t>> indices_;
  std::map<std::string, std::string> unknown_;
  std::map<std::tuple<size_t, std::string, std::string>, size_t> group_indices_;
  std::map<std::pair<size_t, double>, size_t> clock_indices_;
  std::vector<bool> single_call_;
};

}  // namespace

double TrainingData::law_s(const TrainingRow& row) const {
  const Chip chip(running(row), laws);
  return kernel_kind_def(kernel_kind(row.kernel)).law(row.kernel, chip, row.conditions).seconds;
}

TrainingData prepare_training_data(const std::vector<MeasurementSet>& sets,
                                   const std::vector<std::string>& exclude, const Weights* known,
                                   const LawConstants& laws) {
  return Preparer(exclude, known, laws).run(sets);
}

}  // namespace tilecast
