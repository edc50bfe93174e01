#include "predict/near.h"

#include <algorithm>

namespace tilecast {

std::vector<float> residual_weights(const Net& net, const Device& device) {
  const Signature signature = signature_of(device);
  std::vector<float> alike;
  for (const DeviceResidual& c : net.residuals) alike.push_back(similarity(signature, c.signature));
  std::vector<float> weights;
  for (const DeviceResidual& c : net.residuals) {
    float weight = 0;
    for (size_t i = 0; i < alike.size(); ++i) weight += c.kriging[i] * alike[i];
    weights.push_back(weight > kNegligible ? std::min(weight, 1.0f) : 0.0f);
  }
  return weights;
}

std::vector<Near> near_residuals(const Net& net, const Device& device) {
  const std::vector<float> weights = residual_weights(net, device);
  std::vector<Near> near;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) near.push_back({&net.residuals[i], weights[i]});
  }
  return near;
}

CallOverhead call_overhead(const Net& net, const Device& device) {
  const std::vector<float> weights = residual_weights(net, device);
  CallOverhead sum{0, 0, 0};
  double known = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double own = weights[i] * net.residuals[i].call_overhead_s;
    sum = {sum.seconds + own, sum.low_s + own, sum.high_s + own};
    known += weights[i];
  }
  // A machine is not a device: one that merely resembles a measured one says nothing of its host.
  constexpr double kSameDevice = 0.9;
  if (known < kSameDevice) return net.call_overhead;
  return {sum.seconds / known, sum.low_s / known, sum.high_s / known};
}

}  // namespace tilecast
