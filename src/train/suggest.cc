#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/csv.h"
#include "base/rng.h"
#include "base/text.h"
#include "devices/registry.h"
#include "measurements/xz.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "predict/learned.h"
#include "software/software.h"
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
  double share = 1;  ///< of the time of what is forecast
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

Candidates rows_of_file(const SuggestOptions& options, const Device& device) {
  constexpr size_t kMost = 2000;
  std::vector<KernelMeasurement> found = read_candidates(options.candidates, device, options.gpu);
  std::erase_if(found, [&](const KernelMeasurement& m) {
    return !find_kernel_kind(m.kernel) || !has_unit_for(m.kernel, device);
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

/// A kernel of the work as a row names it.
struct WorkRow {
  const WorkKernel* work = nullptr;
  DType dtype{};
  SizeList sizes;
  Kernel kernel;
};

/// Whether the kernel is the work: its sizes, FLOPs and bytes, but a row of a product does not say
/// whether it has a bias.
bool is_work(const Kernel& kernel, const WorkKernel& work) {
  const auto bytes = static_cast<double>(work.bytes);
  if (kernel.flops != work.flops ||
      std::abs(static_cast<double>(kernel.bytes()) - bytes) > 0.01 * bytes)
    return false;
  const auto names = type_info(kernel).sizes;
  const auto values = sizes_of(kernel);
  return std::all_of(work.sizes.begin(), work.sizes.end(), [&](const auto& size) {
    const auto at = std::find(names.begin(), names.end(), size.first);
    return at != names.end() && values[static_cast<size_t>(at - names.begin())] == size.second;
  });
}

/// The size of an operator that a size of its kernel stands for; nullptr: none. A stream's rows
/// state its elements by their columns, and writes to a cache state them by their width.
const SizeDef* size_for(const OpDef& op, const std::string& name) {
  const SizeDef* size = find_size(op, name);
  if (size == nullptr && name == "elements") {
    size = find_size(op, "columns");
    if (size == nullptr) size = find_size(op, "width");
  }
  return size != nullptr && size->type == AttributeType::kInteger ? size : nullptr;
}

/// nullopt if no row makes the same kernel.
std::optional<WorkRow> row_with(const WorkKernel& work, DType dtype, SizeList sizes) {
  const OpDef& op = op_def(*find_op(work.op));
  for (const auto& [name, value] : work.sizes) {
    if (const SizeDef* size = size_for(op, name)) sizes.push_back({std::string(size->name), value});
  }
  const auto has = [&](const SizeDef& size) {
    return std::any_of(sizes.begin(), sizes.end(),
                       [&](const Attribute& s) { return s.name == size.name; });
  };
  // Kernels do not state switches of their operators, as `causal`: it is off, or one of them is on.
  std::vector<SizeList> tried = {sizes};
  for (const SizeDef& size : op.sizes) {
    if (!size.is_switch() || has(size)) continue;
    tried.push_back(sizes);
    tried.back().push_back({std::string(size.name), int64_t{1}});
  }
  for (SizeList& list : tried) {
    try {
      std::vector<Kernel> kernels = kernels_of_sizes(work.op, dtype, list);
      if (kernels.size() == 1 && is_work(kernels.front(), work))
        return WorkRow{&work, dtype, std::move(list), kernels.front()};
    } catch (const Error&) {  // sizes that the operator does not take
      continue;
    }
  }
  return std::nullopt;
}

std::optional<WorkRow> row_of(const WorkKernel& work) {
  const std::optional<OpId> id = find_op(work.op);
  if (!id) return std::nullopt;
  const bool quantized = find_size(op_def(*id), "scheme") != nullptr;
  if (const auto scheme = find_scheme(work.dtype); quantized && scheme)
    return row_with(work, DType::kBf16, {{"scheme", *scheme}});
  const size_t slash = work.dtype.find('/');
  const std::optional<DType> dtype = find_dtype(work.dtype.substr(0, slash));
  if (!dtype) return std::nullopt;
  if (slash == std::string::npos) return row_with(work, *dtype, {});
  const std::optional<DType> cache = find_dtype(work.dtype.substr(slash + 1));
  if (!cache || find_size(op_def(*id), "kv_dtype") == nullptr) return std::nullopt;
  return row_with(work, *dtype, {{"kv_dtype", *cache}});
}

/// The kernels of the work that a row of measurements can describe.
Candidates from_work(const SuggestOptions& options, const Device& device) {
  std::vector<WorkRow> rows;
  std::set<std::string> columns;
  double whole = 0;
  for (const WorkKernel& work : options.work) {
    whole += work.share;
    std::optional<WorkRow> row = row_of(work);
    if (!row || !find_kernel_kind(row->kernel) || !has_unit_for(row->kernel, device)) continue;
    for (const Attribute& size : row->sizes) columns.insert(size.name);
    rows.push_back(*std::move(row));
  }
  if (rows.empty())
    throw Error(ErrorKind::kUnsupported,
                "no kernel of this work can be measured alone: give `candidates`, or omit `model`");
  Candidates all{.header = "gpu,op,dtype,software," + join({columns.begin(), columns.end()}, ",") +
                           ",latency_s",
                 .kernels = {}};
  std::map<std::string, size_t> known;  // kernels of several layers or phases are one row
  for (WorkRow& row : rows) {
    std::string line = fmt::format("{},{},{},{}", device.id, row.work->op, dtype_name(row.dtype),
                                   row.work->software);
    for (const std::string& column : columns) {
      const auto size = std::find_if(row.sizes.begin(), row.sizes.end(),
                                     [&](const Attribute& s) { return s.name == column; });
      line += "," + (size == row.sizes.end() ? "" : format_value(size->value));
    }
    const auto [at, is_new] = known.emplace(line, all.kernels.size());
    if (!is_new) {
      all.kernels[at->second].share += row.work->share / whole;
      continue;
    }
    Candidate candidate{.kernel = row.kernel,
                        .conditions = {},
                        .line = line + ",",
                        .share = row.work->share / whole};
    candidate.conditions.software = parse_software(row.work->software, "software");
    all.kernels.push_back(std::move(candidate));
  }
  return all;
}

/// The candidates of one kind: what is left of their variance, and which were chosen.
class KindChoice {
 public:
  KindChoice(KernelKind kind, const Weights& weights, const Device& device, const Candidates& all,
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
    shares_ = Eigen::RowVectorXd(covariance_.rows());
    for (size_t i = 0; i < own_.size(); ++i)
      shares_(static_cast<Eigen::Index>(i)) = all.kernels[own_[i]].share;
    find_best();
  }

  /// By how much the sum of all variances, weighed by the shares, falls if the best candidate is
  /// measured.
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
                                 (shares_ * covariance_.cwiseAbs2()).transpose().array() /
                                 (covariance_.diagonal().array() + kNoise);
    gain_ = gains.maxCoeff(&best_);
  }

  std::vector<size_t> own_;  ///< indices of candidates
  Eigen::MatrixXd covariance_;
  Eigen::RowVectorXd shares_;
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
  const Candidates all = !options.work.empty()        ? from_work(options, device)
                         : options.candidates.empty() ? model_like(device)
                                                      : rows_of_file(options, device);
  std::map<KernelKind, std::vector<size_t>> of_kind;
  for (size_t i = 0; i < all.kernels.size(); ++i) {
    const KernelKind kind = kernel_kind(all.kernels[i].kernel);
    if (weights.model(kind).known()) of_kind[kind].push_back(i);
  }
  std::vector<KindChoice> kinds;
  for (auto& [kind, own] : of_kind) kinds.emplace_back(kind, weights, device, all, std::move(own));
  std::string csv = all.header + "\n";
  for (const size_t i : choose(kinds, options.count)) csv += all.kernels[i].line + "\n";
  return csv;
}

}  // namespace tilecast
