#include "tuning/solver_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/embedded.h"
#include "tilecast/error.h"
#include "tuning/dense.h"

namespace tilecast::tuning {
namespace {

/// The widest layer that a weights file may have.
constexpr size_t kWidestSolverModel = 1024;
constexpr float kSolverDeviations = 4;  // as tools/tuner/solvers.py clamps

/// A search that takes the best four solvers lists few others: one that is hardly ever listed was
/// measured only where it was good, and its times elsewhere are worth little. Chosen on visible
/// layers (docs/explanation/tuning.md).
constexpr double kDoubt = 0.05;

std::array<double, 2> interval_of(const Json& errors, const std::string& name,
                                  const std::string& where) {
  const JsonObject all(errors, where + ": errors");
  const JsonObject entry = all.object(name);
  const double low = entry.number("log_low"), high = entry.number("log_high");
  if (!(low <= 0 && high >= 0)) entry.fail("log_low", "expected an interval around 0");
  return {low, high};
}

/// The chip that rows of a class were measured on, as tools/tuner/features.py writes it.
TunedChip reference_chip(const JsonObject& entry, size_t kernel_class) {
  TunedChip chip;
  chip.units = entry.number("units");
  chip.clock_ghz = entry.number("clock");
  chip.gbytes_per_s = entry.number("bandwidth");
  chip.l2_mib = entry.number("l2");
  chip.vector_tflops = entry.number("vector");
  chip.matrix_unit = entry.number("matrix") != 0;
  chip.architecture = kMeasuredClasses[kernel_class];
  chip.kernel_class = static_cast<int>(kernel_class);
  for (const double number :
       {chip.units, chip.clock_ghz, chip.gbytes_per_s, chip.l2_mib, chip.vector_tflops})
    if (!(number > 0)) entry.fail("units", "expected numbers above 0");
  return chip;
}

void relu(std::span<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
}

}  // namespace

SolverModel SolverModel::parse(std::string_view content, const std::string& where,
                               Checksum checksum, const SolverTable& table) {
  const WeightsContainer container = read_container(content, where, checksum);
  const JsonObject header(container.header, where);
  if (header.string("kind") != "solvers") unusable_weights(where, "it is no model of solvers");
  SolverModel model;
  model.table_ = &table;
  model.tensors_ = std::make_shared<const Tensors>(container, where);
  const Tensors& t = *model.tensors_;
  model.heads_ = header.strings("heads").size();
  model.width_ = static_cast<size_t>(header.integer({"width"}, 1, kWidestSolverModel));
  if (header.strings("features").size() != kFeatures)
    unusable_weights(where, fmt::format("expected {} features", kFeatures));
  for (const Solver& solver : table.solvers())
    if (solver.head >= model.heads_) unusable_weights(where, "a solver's head is missing");
  const size_t width = model.width_, outputs = 2 * model.heads_;
  model.weights_ = {t.get("range", 4, kFeatures), t.get("a", kFeatures, width),
                    t.get("a_bias", 1, width),    t.get("b", width, width),
                    t.get("b_bias", 1, width),    t.get("o", width, outputs),
                    t.get("o_bias", 1, outputs)};
  const Json& errors = header.json().at("errors");
  for (size_t i = 0; i < kKernelClasses; ++i)
    model.interval_[i] = interval_of(errors, std::string(choice_word(kMeasuredClasses[i])), where);
  const JsonObject references = header.object("reference");
  for (size_t i = 0; i < kKernelClasses; ++i) {
    const JsonObject entry = references.object(std::string(choice_word(kMeasuredClasses[i])));
    model.references_[i].chip = reference_chip(entry, i);
    const JsonObject peaks = entry.object("peaks");
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8})
      model.references_[i].peak_tflops[static_cast<size_t>(dtype)] =
          peaks.number(std::string(miopen_precision(dtype)));
  }
  model.split_ = {static_cast<uint64_t>(header.integer({"seed"}, 0, int64_t{1} << 62)),
                  static_cast<int>(header.integer({"folds"}, 1, 1000)),
                  static_cast<int>(header.integer({"held_out_fold"}, 0, 999))};
  model.interval_.back() = interval_of(errors, "left_out", where);
  return model;
}

const SolverModel& SolverModel::bundled() {
  static const SolverModel model = [] {
    const std::vector<EmbeddedFile> files = embedded_files("weights/solvers.weights");
    if (files.empty())
      throw Error(ErrorKind::kInternal, "this build has no data/weights/solvers.weights");
    return parse(files.front().content, "data/weights/solvers.weights", Checksum::kTrust,
                 SolverTable::bundled());
  }();
  return model;
}

void SolverModel::evaluate(const Features& features, std::span<float> out) const {
  std::array<float, kFeatures> x{};
  const float* const range = weights_.range.data();  // [least, most, mean, 1 / spread][feature]
  for (size_t i = 0; i < kFeatures; ++i) {
    const float clamped = std::clamp(features.x[i], range[i], range[kFeatures + i]);
    x[i] = std::clamp((clamped - range[2 * kFeatures + i]) * range[3 * kFeatures + i],
                      -kSolverDeviations, kSolverDeviations);
  }
  std::array<float, kWidestSolverModel> first{}, second{};
  const std::span<float> a = std::span(first).first(width_), b = std::span(second).first(width_);
  std::copy_n(weights_.a_bias.data(), width_, a.begin());
  add_product(x, weights_.a.data(), a);
  relu(a);
  std::copy_n(weights_.b_bias.data(), width_, b.begin());
  add_product(a, weights_.b.data(), b);
  relu(b);
  for (size_t i = 0; i < width_; ++i) b[i] += a[i];
  std::copy_n(weights_.o_bias.data(), out.size(), out.begin());
  add_product(b, weights_.o.data(), out);
}

/// The features on the measured chip of the class, and the rooflines of the chip itself.
Features SolverModel::features_on_reference(const ConvProblem& problem,
                                            const TunedChip& chip) const {
  const auto newest = [&](auto&& fits) {
    return std::find_if(references_.rbegin(), references_.rend(),
                        [&](const Reference& r) { return fits(r.chip); });
  };
  auto reference =
      newest([&](const TunedChip& known) { return known.kernel_class == chip.kernel_class; });
  const bool measured_class = reference != references_.rend();
  if (!measured_class)
    reference =
        newest([&](const TunedChip& known) { return known.matrix_unit == chip.matrix_unit; });
  TunedChip measured = chip;
  if (reference != references_.rend()) {
    measured = reference->chip;
    measured.peak_tflops = reference->peak_tflops[static_cast<size_t>(problem.dtype)];
  }
  if (!measured_class) measured.kernel_class = -1;
  Features features = features_of(problem, measured);
  features.roofline_us = roofline_us(problem, chip, chip.peak_tflops);
  features.vector_roofline_us = roofline_us(problem, chip, chip.vector_dtype_tflops);
  return features;
}

std::vector<SolverTime> SolverModel::rank(const ConvProblem& problem, const TunedChip& chip) const {
  const Features features = features_on_reference(problem, chip);
  std::array<float, 2 * kWidestSolverModel> storage;
  TILECAST_CHECK(heads_ <= kWidestSolverModel);
  const std::span<float> out = std::span(storage).first(2 * heads_);
  evaluate(features, out);
  const auto& interval =
      interval_[chip.kernel_class >= 0 ? static_cast<size_t>(chip.kernel_class) : kKernelClasses];
  std::vector<SolverTime> times;
  for (const Solver& solver : table_->solvers()) {
    if (!solver.takes(problem, chip)) continue;
    const double log_ratio = static_cast<double>(out[solver.head]);
    const double logit = static_cast<double>(out[heads_ + solver.head]);
    SolverTime time{.solver = &solver};
    const double roofline =
        solver.on_vector_unit ? features.vector_roofline_us : features.roofline_us;
    const double least_s = solver.least_compute_s(problem, chip);
    time.seconds = std::max(roofline * std::exp(log_ratio) / 1e6, least_s);
    time.low_s = std::max(time.seconds * std::exp(interval[0]), least_s);
    time.high_s = time.seconds * std::exp(interval[1]);
    time.listed_probability = 1 / (1 + std::exp(-logit));
    time.ranked_s = time.seconds * std::pow(time.listed_probability + 1e-12, -kDoubt);
    times.push_back(time);
  }
  std::stable_sort(times.begin(), times.end(), [](const SolverTime& a, const SolverTime& b) {
    return a.ranked_s < b.ranked_s;
  });
  return times;
}

const SolverTime* fallback_of(const std::vector<SolverTime>& times, const ConvProblem& problem) {
  const SolverTime* best = nullptr;
  for (const SolverTime& time : times) {
    const auto& rank = time.solver->fallback_rank;
    if (time.listed_probability < kHardlyListed) continue;
    // MIOpen's own estimate of Winograd counts what a window of one pixel wastes.
    if (time.solver->algorithm == "Winograd" && problem.r * problem.s == 1) continue;
    if (rank && (best == nullptr || *rank < *best->solver->fallback_rank)) best = &time;
  }
  return best;
}

}  // namespace tilecast::tuning
