#include "predict/efficiency.h"

namespace tilecast {

double Law::loss(double logit) const {
  return std::exp(-std::clamp(logit, lowest_logit, static_cast<double>(kHighestLogit)));
}

double Law::seconds(double logit) const { return floor_s + bound_s * (1.0 + loss(logit)); }

double Law::size() const { return bound_s / floor_s; }

double Law::logit(double seconds) const {
  constexpr double kNearest = 2.5e-3;
  return -std::log(std::max((seconds - floor_s) / bound_s - 1, kNearest));
}

Law law_of(NetKind kind, const Bound& bound, const Device& device) {
  return {latency_floor_s(kind, device), bound.law_s,
          static_cast<double>(net_def(kind).lowest_logit)};
}

Outside standardize(const Net& net, const Features& features, float* inputs) {
  Outside outside;
  for (size_t j = 0; j < net.mean.size(); ++j) {
    const float clamped = std::clamp(features[j], net.minimum[j], net.maximum[j]);
    const double range = std::max(1e-6f, net.maximum[j] - net.minimum[j]);
    const double excess = std::abs(static_cast<double>(features[j] - clamped)) / range;
    if (excess > outside.excess) outside = {excess, j};
    inputs[j] = (clamped - net.mean[j]) / net.scale[j];
  }
  return outside;
}

void base_logits(const Net& net, InputRows inputs, std::span<const float> caps,
                 std::span<float> logits) {
  ensemble_forward(net.members, inputs.data, inputs.width, inputs.count, logits.data());
  for (size_t r = 0; r < inputs.count; ++r) logits[r] = std::min(logits[r], caps[r]);
}

void add_residuals(std::span<const Near> near, Software software, InputRows inputs,
                   std::span<float> logits, std::span<float> log_factors) {
  std::vector<float> delta(inputs.count);
  for (const Near& n : near) {
    if (n.residual->members.empty()) {
      if (const Forest* forest = n.residual->forest_of(software))
        forest_add(*forest, inputs.data, inputs.width, inputs.count, n.weight, log_factors.data());
      continue;
    }
    ensemble_forward(n.residual->members, inputs.data, inputs.width, inputs.count, delta.data());
    for (size_t r = 0; r < inputs.count; ++r) logits[r] += n.weight * delta[r];
  }
}

}  // namespace tilecast
