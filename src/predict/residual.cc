#include "predict/residual.h"

#include <algorithm>
#include <cmath>

#include "devices/vendor.h"

namespace tilecast {
namespace {

const ClassResidual* find_residual(const KindModel& model, KernelKind kind, const Device& device) {
  const KernelClass own = class_of(device);
  // rocBLAS's kernels are tuned for each architecture: the law alone is nearer to MI250X than with
  // what MI100 taught, and as near the other way round.
  const bool borrows = kernel_kind_def(kind).learning.borrows && !is_amd(device.gpu().architecture);
  const ClassResidual* borrowed = nullptr;
  for (const ClassResidual& residual : model.classes) {
    if (residual.of == own) return &residual;
    if (!residual.forests.empty() && residual.of.hbm == own.hbm &&
        residual.matrix_instruction == device.gpu().matrix_instruction &&
        residual.matrix_instruction != MatrixInstruction::kNone &&
        (borrowed == nullptr || residual.of.architecture > borrowed->of.architecture))
      borrowed = &residual;
  }
  return borrows ? borrowed : nullptr;
}

/// How much of a forest's residual counts: all inside the range of the rows that it learned from,
/// less outside, where only the law is known. A class may be measured on fewer shapes than others.
float known_share(const SoftwareForest& learned, const float* inputs) {
  constexpr float kHalf = 0.5f;  // standard deviations outside at which half of it counts
  float outside = 0;
  for (size_t j = 0; j < learned.minimum.size(); ++j)
    outside = std::max({outside, learned.minimum[j] - inputs[j], inputs[j] - learned.maximum[j]});
  return 1 / (1 + outside * outside / (kHalf * kHalf));
}

/// Whether the board's power holds the long products of the only measured device of a class back,
/// and not those of a device: it has a third more power for its rate.
bool has_more_power(const Signature& device, const MeasuredDevice& measured) {
  constexpr size_t kPowerOverRate = kSignatureSize - 1;
  constexpr float kThirdMore = 0.415f;  // log2
  return device[kPowerOverRate] - measured.signature[kPowerOverRate] > kThirdMore;
}

}  // namespace

Applied applied_residual(const KindModel& model, KernelKind kind, const Device& device) {
  // In FP32 the law is nearer to PyTorch than the best kernels of a tuning run are.
  Applied applied{.residual = find_residual(model, kind, device),
                  .libraries = kernel_kind_def(kind).learning.borrows,
                  .apart = kernel_kind_def(kind).learning.apart};
  const auto vendor = model.vendor_intervals.find(device.vendor);
  applied.unmeasured_class =
      vendor == model.vendor_intervals.end() ? &model.interval : &vendor->second;
  const auto vendor_widths = model.vendor_widths.find(device.vendor);
  applied.class_widths =
      vendor_widths == model.vendor_widths.end() ? &model.class_widths : &vendor_widths->second;
  applied.sibling_widths = &model.sibling_widths;
  if (applied.residual == nullptr) return applied;
  applied.own_class = applied.residual->of == class_of(device);
  const Signature signature = signature_of(device);
  for (const MeasuredDevice& measured : applied.residual->devices) {
    const float alike = similarity(signature, measured.signature);
    if (applied.nearest == nullptr || alike > applied.similarity) {
      applied.similarity = alike;
      applied.nearest = &measured;
    }
  }
  if (!applied.own_class) applied.similarity = 0;
  if (kernel_kind_def(kind).learning.limited_by_power && applied.residual->devices.size() == 1)
    applied.only_faster = has_more_power(signature, applied.residual->devices.front());
  return applied;
}

Outside standardize(const KindModel& model, const Features& features, float* inputs) {
  Outside outside;
  for (size_t j = 0; j < model.mean.size(); ++j) {
    const float clamped = std::clamp(features[j], model.minimum[j], model.maximum[j]);
    const double range = std::max(1e-6f, model.maximum[j] - model.minimum[j]);
    const double excess = std::abs(static_cast<double>(features[j] - clamped)) / range;
    if (excess > outside.excess) outside = {excess, j};
    inputs[j] = (clamped - model.mean[j]) / model.scale[j];
  }
  return outside;
}

void add_residual(const Applied& applied, Software software, InputRows inputs,
                  std::span<float> log_factors) {
  if (applied.residual == nullptr) return;
  const SoftwareForest* learned =
      applied.residual->forest_of(software, applied.libraries, applied.apart);
  if (learned == nullptr) return;
  std::vector<float> residuals(inputs.count, 0.0f);
  forest_add(learned->forest, inputs.data, inputs.width, inputs.count, 1.0f, residuals.data());
  for (size_t r = 0; r < inputs.count; ++r) {
    const float residual = applied.only_faster ? std::min(residuals[r], 0.0f) : residuals[r];
    log_factors[r] += residual * known_share(*learned, &inputs.data[r * inputs.width]);
  }
}

CallOverhead call_overhead(const KindModel& model, KernelKind kind, const Device& device,
                           std::string_view op) {
  // A machine is not a device: one that merely resembles a measured one says nothing of its host.
  constexpr float kSameDevice = 0.9f;
  const Applied applied = applied_residual(model, kind, device);
  if (applied.nearest == nullptr || applied.similarity < kSameDevice) return model.call_overhead;
  const auto known = applied.nearest->call_overhead_s.find(op);
  if (known == applied.nearest->call_overhead_s.end()) return model.call_overhead;
  const double own = known->second;
  return {own, own, own};
}

double size_of(double law_s) { return law_s / kLatencyFloor; }

}  // namespace tilecast
