#include "predict/predictor.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilecast {
namespace {

// A twentieth of a feature's training range beyond it is still taken as inside: the edge is where
// the outermost of thousands of rows happened to fall.
constexpr double kExtrapolates = 0.05;

Limit limit_of(const Bound& bound, double seconds) {
  // Within twice the shortest kernel nothing but latency can be seen.
  if (seconds < 2 * kShortestKernel) return Limit::kLatency;
  return bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
}

class LearnedPredictor : public Predictor {
 public:
  explicit LearnedPredictor(const Weights& weights) : weights_(weights) {}

  void predict(std::span<const Kernel> kernels, const Device& device,
               std::span<KernelTime> times) const override {
    for (size_t i = 0; i < kNetCount; ++i)
      predict_net(static_cast<NetKind>(i), kernels, device, times);
  }

 private:
  struct Row {
    size_t index;
    Bound bound;
    Tile tile;
    double excess;  ///< how far outside the training range, in widths of that range
  };

  void predict_net(NetKind kind, std::span<const Kernel> kernels, const Device& device,
                   std::span<KernelTime> times) const {
    const Net& net = weights_.net(kind);
    const size_t width = feature_names(kind).size();
    std::vector<Row> rows;
    std::vector<float> inputs;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (net_of(kernels[i].family) != kind) continue;
      Row row{i, physical_bound(kernels[i], device), {}, 0};
      if (kind == NetKind::kMatmul) row.tile = tile_of(weights_, kernels[i], device);
      const Features f = make_features(kernels[i], device, row.bound, row.tile);
      for (size_t j = 0; j < width; ++j) {
        const float clamped = std::clamp(f[j], net.minimum[j], net.maximum[j]);
        const double range = std::max(1e-6f, net.maximum[j] - net.minimum[j]);
        row.excess = std::max(row.excess, std::abs(static_cast<double>(f[j] - clamped)) / range);
        inputs.push_back((clamped - net.mean[j]) / net.scale[j]);
      }
      // The networks have seen products in single precision only.
      if (kernels[i].is_matmul() && kernels[i].dtype != DType::kFp32) row.excess = 1;
      rows.push_back(row);
    }
    if (rows.empty()) return;
    std::vector<float> logits(rows.size(), 0.0f);
    std::vector<float> member(rows.size());
    for (const Mlp& mlp : net.members) {
      mlp_forward(mlp, inputs.data(), rows.size(), member.data());
      for (size_t r = 0; r < rows.size(); ++r) logits[r] += member[r];
    }
    const auto members = static_cast<float>(net.members.size());
    for (size_t r = 0; r < rows.size(); ++r)
      times[rows[r].index] =
          finish(kernels[rows[r].index], device, rows[r], logits[r] / members, net);
  }

  static KernelTime finish(const Kernel& kernel, const Device& device, const Row& row, float logit,
                           const Net& net) {
    // 1 / utilization = 1 / sigmoid(logit) = 1 + exp(-logit): never below the bound.
    const double bound = row.bound.seconds();
    const double learned = bound * (1.0 + std::exp(-static_cast<double>(std::max(
                                              logit, lowest_logit(net_of(kernel.family))))));
    KernelTime time;
    time.seconds = kShortestKernel + learned;
    // One range beyond the training rows doubles the interval's logarithm; a guess until devices of
    // other generations are measured.
    const double width = 1.0 + std::min(1.0, row.excess);
    time.low_s = std::max(time.seconds * std::pow(net.low_ratio, width), bound);
    time.high_s = time.seconds * std::pow(net.high_ratio, width);
    time.limit = limit_of(row.bound, time.seconds);
    if (kernel.is_matmul()) time.tile = row.tile;
    time.waves = count_waves(kernel, device, row.tile).waves;
    time.utilization_ratio = bound / time.seconds;
    time.predictor = net_name(net_of(kernel.family));
    time.extrapolated = row.excess > kExtrapolates;
    return time;
  }

  const Weights& weights_;
};

class RooflinePredictor : public Predictor {
 public:
  void predict(std::span<const Kernel> kernels, const Device& device,
               std::span<KernelTime> times) const override {
    for (size_t i = 0; i < kernels.size(); ++i) {
      Bound bound = physical_bound(kernels[i], device);
      // The classic roofline knows DRAM only.
      bound.memory_s = static_cast<double>(kernels[i].bytes()) / device.memory_bytes_per_s;
      KernelTime time;
      time.seconds = bound.seconds();
      time.low_s = time.seconds;
      time.high_s = time.seconds;
      time.limit = bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
      time.waves = count_waves(kernels[i], device, {}).waves;
      time.utilization_ratio = 1.0;
      time.predictor = "roofline";
      times[i] = time;
    }
  }
};

}  // namespace

std::string_view limit_name(Limit limit) {
  switch (limit) {
    case Limit::kCompute:
      return "compute";
    case Limit::kMemory:
      return "memory";
    case Limit::kLatency:
      return "latency";
  }
  return "";
}

Tile tile_of(const Weights& weights, const Kernel& kernel, const Device& device) {
  const TileTree* tree = weights.tiles_of(device.vendor);
  return tree == nullptr ? Tile{} : choose_tile(*tree, tile_features(kernel, device));
}

std::unique_ptr<Predictor> make_learned_predictor(const Weights& weights) {
  return std::make_unique<LearnedPredictor>(weights);
}

std::unique_ptr<Predictor> make_roofline_predictor() {
  return std::make_unique<RooflinePredictor>();
}

}  // namespace tilecast
