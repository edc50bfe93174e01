#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv.h"
#include "base/rng.h"
#include "base/text.h"
#include "devices/registry.h"
#include "measurements/xz.h"
#include "ops/sizes.h"
#include "predict/learned.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"
#include "train/calibration_data.h"
#include "train/calibration_fit.h"
#include "train/calibration_model.h"

namespace tilecast {
namespace {

/// A kernel that may be measured, and the line that names it.
struct Candidate {
  Kernel kernel;
  Conditions conditions;
  std::string line;
};

struct Candidates {
  std::string header;
  std::vector<Candidate> kernels;
};

/// Sizes that models have: products from small to large, kernels over rows and elements, and where
/// the device multiplies BF16, products in it.
Candidates model_like(const Device& device) {
  constexpr int kCount = 1000;
  Rng rng(1);
  // Log-uniform, in steps of 64 above 64.
  const auto size = [&](double low, double high) {
    const double x = low * std::pow(high / low, rng.uniform());
    const auto rounded = static_cast<int64_t>(x);
    return x < 64 ? rounded : (rounded + 32) / 64 * 64;
  };
  Candidates all{.header = "gpu,op,dtype,batch,m,n,k,latency_s", .kernels = {}};
  const auto add = [&](std::string_view op, DType dtype, int64_t batch, int64_t m, int64_t n,
                       int64_t k) {
    SizeList sizes = {{"m", m}, {"n", n}};
    if (op == "linear" || op == "matmul") {
      sizes.push_back({"k", k});
      sizes.push_back({"batch", batch});
    } else {
      sizes = {{"rows", m}, {"columns", n}};
    }
    all.kernels.push_back(
        {kernels_of_sizes(op, dtype, sizes).front(),
         {},
         fmt::format("{},{},{},{},{},{},{},", device.id, op, dtype_name(dtype), batch, m, n, k)});
  };
  const bool bf16 = device.gpu().matrix_peak(DType::kBf16) > 0;
  for (int i = 0; i < kCount; ++i) {
    switch (i % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        add("linear", bf16 && i % 2 == 0 ? DType::kBf16 : DType::kFp32, 1, size(16, 16384),
            size(64, 16384), size(64, 16384));
        break;
      case 4:
      case 5:
      case 6:
        add("matmul", DType::kFp32, size(2, 256), size(64, 2048), size(64, 2048), size(32, 2048));
        break;
      case 7:
        add("add", DType::kFp32, 1, size(16, 16384), size(64, 8192), 1);
        break;
      case 8:
        add("softmax", DType::kFp32, 1, size(256, 65536), size(64, 4096), 1);
        break;
      default:
        add("layer_norm", DType::kFp32, 1, size(256, 65536), size(64, 8192), 1);
    }
  }
  return all;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& cell : cells) quoted.push_back(csv_cell(cell));
  return join(quoted, ",");
}

Candidates read_file(const SuggestOptions& options, const Device& device) {
  constexpr size_t kMost = 2000;
  std::vector<KernelMeasurement> found = read_candidates(options.candidates, device, options.gpu);
  std::erase_if(found, [&](const KernelMeasurement& m) {
    return !find_net(m.kernel) || !has_unit_for(m.kernel, device);
  });
  if (found.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no kernel of {} in it has a law that a calibration could move",
                            printable(options.candidates), device.id));
  Rng rng(1);
  if (found.size() > kMost) {
    rng.shuffle(found);
    found.resize(kMost);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.line < b.line; });
  }
  CsvTable table =
      parse_csv(read_measurement_text(options.candidates), printable(options.candidates));
  if (table.decimal_comma)
    throw Error(ErrorKind::kInput, printable(options.candidates) +
                                       ": candidates are separated by commas, not semicolons");
  std::map<size_t, size_t> rows;
  for (size_t r = 0; r < table.rows.size(); ++r) rows[table.lines[r]] = r;
  Candidates all{.header = line_of(table.header), .kernels = {}};
  for (const KernelMeasurement& m : found)
    all.kernels.push_back({m.kernel, m.conditions, line_of(table.rows[rows.at(m.line)])});
  return all;
}

/// The candidates of one kind: what is left of their variance, and which were chosen.
class KindChoice {
 public:
  KindChoice(NetKind kind, const Weights& weights, const Device& device, const Candidates& all,
             std::vector<size_t> own)
      : own_(std::move(own)) {
    std::vector<Kernel> kernels;
    std::vector<Conditions> conditions;
    for (const size_t i : own_) {
      kernels.push_back(all.kernels[i].kernel);
      conditions.push_back(all.kernels[i].conditions);
    }
    const CalibrationPoints points =
        calibration_points(kind, weights, std::move(kernels), std::move(conditions));
    const Eigen::MatrixXd slopes = law_slopes(points, device, {}).slopes;
    covariance_ = added_covariance(points, points) +
                  kLawDeviation * kLawDeviation * slopes * slopes.transpose();
    free_ = Eigen::VectorXd::Ones(covariance_.rows());
    find_best();
  }

  /// By how much the sum of all variances falls if the best candidate is measured.
  double gain() const { return gain_; }
  size_t chosen() const { return chosen_; }
  bool exhausted() const { return chosen_ == own_.size(); }

  /// Takes the best candidate: what its measurement would say of the others is known from here on.
  size_t take() {
    const Eigen::Index best = best_;
    const Eigen::VectorXd column = covariance_.col(best);
    covariance_ -= column * column.transpose() / (column(best) + kNoise);
    free_(best) = 0;
    ++chosen_;
    find_best();
    return own_[static_cast<size_t>(best)];
  }

 private:
  static constexpr double kNoise = kNoiseDeviation * kNoiseDeviation;

  void find_best() {
    const Eigen::ArrayXd gains = free_.array() *
                                 covariance_.colwise().squaredNorm().transpose().array() /
                                 (covariance_.diagonal().array() + kNoise);
    gain_ = gains.maxCoeff(&best_);
  }

  std::vector<size_t> own_;  ///< indices of candidates
  Eigen::MatrixXd covariance_;
  Eigen::VectorXd free_;  ///< 0: chosen
  Eigen::Index best_ = 0;
  double gain_ = 0;
  size_t chosen_ = 0;
};

/// A kind needs some rows, or none of them counts: its first ones are taken together.
std::vector<size_t> choose(std::vector<KindChoice>& kinds, size_t count) {
  std::vector<size_t> order;
  while (order.size() < count) {
    KindChoice* best = nullptr;
    for (KindChoice& kind : kinds) {
      const size_t needed = kind.chosen() == 0 ? kFewestCalibrationRows : 1;
      if (kind.exhausted() || (needed > count - order.size() && count >= kFewestCalibrationRows))
        continue;
      if (best == nullptr || kind.gain() > best->gain()) best = &kind;
    }
    if (best == nullptr) break;
    const size_t needed = best->chosen() == 0 ? kFewestCalibrationRows : 1;
    for (size_t i = 0; i < needed && order.size() < count && !best->exhausted(); ++i)
      order.push_back(best->take());
  }
  return order;
}

}  // namespace

std::string suggest_kernels(const SuggestOptions& options) {
  const Device device = find_device(options.gpu);
  const Weights weights = load_weights(options.weights_folder);
  const Candidates all =
      options.candidates.empty() ? model_like(device) : read_file(options, device);
  std::map<NetKind, std::vector<size_t>> of_kind;
  for (size_t i = 0; i < all.kernels.size(); ++i) {
    const NetKind kind = net_of(all.kernels[i].kernel);
    if (weights.net(kind).known()) of_kind[kind].push_back(i);
  }
  std::vector<KindChoice> kinds;
  for (auto& [kind, own] : of_kind) kinds.emplace_back(kind, weights, device, all, std::move(own));
  std::string csv = all.header + "\n";
  for (const size_t i : choose(kinds, options.count)) csv += all.kernels[i].line + "\n";
  return csv;
}

}  // namespace tilecast
