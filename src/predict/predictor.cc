#include "predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/collective.h"
#include "predict/power.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// A twentieth of a feature's training range beyond it is still taken as inside: the edge is where
// the outermost of thousands of rows happened to fall.
constexpr double kExtrapolates = 0.05;

// What is known of a device counts for another down to this similarity.
constexpr float kNegligible = 0.02f;

Limit limit_of(const Bound& bound, double reference, double seconds) {
  // Within twice the shortest kernel nothing but latency can be seen, and where the data sheet
  // allows a tenth of the time no rate explains it.
  constexpr double kExplains = 0.1;
  if (seconds < 2 * kShortestKernel || reference < kExplains * seconds) return Limit::kLatency;
  return bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
}

class LearnedPredictor : public Predictor {
 public:
  explicit LearnedPredictor(const Weights& weights) : weights_(weights) {}

  void predict(std::span<const Kernel> kernels, const Device& device, const Conditions& conditions,
               std::span<KernelTime> times) const override {
    for (size_t i = 0; i < kNetCount; ++i)
      predict_net(static_cast<NetKind>(i), kernels, device, conditions, times);
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].is<Collective>()) times[i] = collective_time(kernels[i], device);
    }
  }

 private:
  struct Row {
    size_t index;
    Bound bound;
    Tile tile;
    double excess;             ///< how far outside the training range, in widths of that range
    std::string_view feature;  ///< which is furthest outside
    float cap_logit;           ///< utilization that the board's power allows
    size_t coverage;           ///< index of its combination's
  };
  struct Near {
    const Correction* correction;
    float weight;
  };

  void predict_net(NetKind kind, std::span<const Kernel> kernels, const Device& device,
                   const Conditions& conditions, std::span<KernelTime> times) const {
    const Net& net = weights_.net(kind);
    const size_t width = feature_names(kind).size();
    const size_t shared_width = shared_feature_count(kind);
    std::vector<Row> rows;
    std::vector<float> inputs, shared;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (net_of(kernels[i]) != kind || kernels[i].is<Collective>()) continue;
      if (net.members.empty()) refuse(kind);
      Row row{i, physical_bound(kernels[i], device), {}, 0, "", 0, 0};
      if (conditions.caches == Caches::kWarm) row.bound.cold_s = 0;
      if (kernels[i].is_product()) row.tile = tile_of(weights_, kernels[i], device);
      row.cap_logit = power_cap_logit(kernels[i], device, row.bound, weights_.vector_pj_per_flop);
      const Features f = make_features(kernels[i], device, conditions, row.bound, row.tile);
      for (size_t j = 0; j < width; ++j) {
        const float clamped = std::clamp(f[j], net.minimum[j], net.maximum[j]);
        const double range = std::max(1e-6f, net.maximum[j] - net.minimum[j]);
        const double excess = std::abs(static_cast<double>(f[j] - clamped)) / range;
        if (excess > row.excess) {
          row.excess = excess;
          row.feature = feature_names(kind)[j];
        }
        inputs.push_back((clamped - net.mean[j]) / net.scale[j]);
        if (j < shared_width) shared.push_back(inputs.back());
      }
      rows.push_back(row);
    }
    if (rows.empty()) return;
    const std::vector<Near> near = near_corrections(net, device);
    std::vector<Coverage> coverages;
    for (Row& row : rows) {
      row.coverage = find_coverage(kernels[row.index], conditions, net, near, coverages);
      borrow(kernels[row.index], device, coverages[row.coverage], row);
    }
    std::vector<float> logits(rows.size());
    ensemble_forward(net.members, shared.data(), rows.size(), logits.data());
    for (size_t r = 0; r < rows.size(); ++r) logits[r] = std::min(logits[r], rows[r].cap_logit);
    std::vector<float> factors(rows.size(), 0.0f);  // logarithms
    std::vector<float> delta(rows.size());
    for (const Near& n : near) {
      if (n.correction->members.empty()) {
        if (const Forest* forest = n.correction->forest_of(conditions.software))
          forest_add(*forest, inputs.data(), width, rows.size(), n.weight, factors.data());
        continue;
      }
      ensemble_forward(n.correction->members, inputs.data(), rows.size(), delta.data());
      for (size_t r = 0; r < rows.size(); ++r) logits[r] += n.weight * delta[r];
    }
    const float calibrated = calibration_weight(kind, device);
    if (calibrated > 0) {
      const CalibrationNet& calibration = weights_.calibration->net(kind);
      for (size_t r = 0; r < rows.size(); ++r) {
        fold_in(kind, device, rows[r].bound, logits[r], factors[r]);
        logits[r] += calibrated * static_cast<float>(calibration.at(&inputs[r * width], width));
      }
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      const Kernel& kernel = kernels[rows[r].index];
      Spread spread = spread_of(net, near, coverages[rows[r].coverage],
                                rows[r].bound.law_s / shortest_kernel_s(kind, device));
      if (calibrated > 0) calibrate(spread, weights_.calibration->net(kind), calibrated);
      times[rows[r].index] = finish(kernel, device, rows[r], logits[r], factors[r], spread);
    }
  }

  static double law_time(NetKind kind, const Device& device, const Bound& bound, float logit) {
    // 1 / utilization = 1 / sigmoid(logit) = 1 + exp(-logit): never below the bound.
    return shortest_kernel_s(kind, device) +
           bound.law_s *
               (1.0 + std::exp(-static_cast<double>(std::max(logit, lowest_logit(kind)))));
  }

  /// A calibration acts on the logit: a factor on the time becomes part of it.
  static void fold_in(NetKind kind, const Device& device, const Bound& bound, float& logit,
                      float& factor) {
    if (factor == 0) return;
    const double seconds = law_time(kind, device, bound, logit) * std::exp(factor);
    logit = static_cast<float>(logit_of(seconds, bound.law_s, shortest_kernel_s(kind, device)));
    factor = 0;
  }

  static KernelTime collective_time(const Kernel& kernel, const Device& device) {
    KernelTime time;
    time.seconds = all_reduce_s(kernel, device);
    // No measurement went into the law: half to twice the time is a guess.
    time.low_s = time.seconds / 2;
    time.high_s = time.seconds * 2;
    time.limit = Limit::kNetwork;
    time.utilization_ratio = 1;
    time.predictor = "all_reduce";
    return time;
  }

  /// What the measurements say about a combination of software and precision on a device.
  struct Coverage {
    Combination combination;
    std::string_view missing;   ///< what was not measured: a feature's name; "" where all was
    std::vector<bool> by_near;  ///< whether the rows of a near device hold it
  };

  static Coverage coverage_of(const Combination& combination, const Net& net,
                              const std::vector<Near>& near) {
    const auto same_precision = [&](const Combination& other) {
      Combination precision = other;
      precision.software = combination.software;
      return precision == combination;
    };
    bool precision = false, anywhere = false;
    for (const Correction& c : net.corrections) {
      precision |=
          c.forests.empty() || std::any_of(c.measured.begin(), c.measured.end(), same_precision);
      anywhere |= c.covers(combination);
    }
    Coverage coverage{combination, "", {}};
    // A correction with this weight is that of the device itself.
    constexpr float kItself = 0.5f;
    bool here = true;
    for (const Near& n : near) {
      coverage.by_near.push_back(n.correction->covers(combination));
      if (n.weight >= kItself && !coverage.by_near.back()) here = false;
    }
    if (!precision) {
      coverage.missing = combination.scheme == Scheme::kNone ? "dtype" : "scheme";
    } else if (!anywhere) {
      coverage.missing = "software";
    } else if (!here) {
      coverage.missing = "combination";
    }
    return coverage;
  }

  /// Batches hold few combinations: each is looked up once.
  static size_t find_coverage(const Kernel& kernel, const Conditions& conditions, const Net& net,
                              const std::vector<Near>& near, std::vector<Coverage>& coverages) {
    const Combination combination = combination_of(kernel, conditions);
    for (size_t c = 0; c < coverages.size(); ++c) {
      if (coverages[c].combination == combination) return c;
    }
    coverages.push_back(coverage_of(combination, net, near));
    return coverages.size() - 1;
  }

  /// What was not measured borrows from what was, and says so.
  static void borrow(const Kernel& kernel, const Device& device, const Coverage& coverage,
                     Row& row) {
    const auto unmeasured = [&](std::string_view what) {
      row.excess = std::max(row.excess, 1.0);
      row.feature = what;
    };
    const NetKind kind = net_of(kernel);
    if (!coverage.missing.empty()) unmeasured(coverage.missing);
    if (kind == NetKind::kTensorMatmul && gemm_of(kernel).batch != 1) unmeasured("batch");
    const Attention* attention = kernel.as<Attention>();
    if (attention != nullptr && attention->backward) unmeasured("backward");
    if (kernel.is<Convolution>()) unmeasured("convolution");
    // Whole layers were measured on one vendor's devices, with its libraries.
    if (net_def(kind).by_layer && device.vendor != "nvidia") unmeasured("vendor");
  }

  [[noreturn]] static void refuse(NetKind kind) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("these weights hold no network '{}': no such kernels were measured; add "
                    "measurement folders with 'tilecast train --data'",
                    net_name(kind)));
  }

  float calibration_weight(NetKind kind, const Device& device) const {
    if (!weights_.calibration || weights_.calibration->net(kind).rows == 0) return 0;
    const float weight = similarity(signature_of(device), weights_.calibration->signature);
    return weight > kNegligible ? weight : 0;
  }

  static std::vector<Near> near_corrections(const Net& net, const Device& device) {
    const std::vector<float> weights = correction_weights(net, device);
    std::vector<Near> near;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) near.push_back({&net.corrections[i], weights[i]});
    }
    return near;
  }

  struct Spread {
    double low, high;  ///< logarithms of the interval's factors
    double common_share;
  };

  /// That of left-out devices, or nearer to that of a measured device the more alike the two are.
  /// A near device whose rows do not hold the combination says nothing of its errors.
  static Spread spread_of(const Net& net, const std::vector<Near>& near, const Coverage& coverage,
                          double bound) {
    Spread spread{0, 0, 0};
    double known = 0;
    const auto add = [&](const IntervalLaw& interval, double weight) {
      const IntervalLaw::Logs logs = interval.at(bound);
      spread.low += weight * logs.low;
      spread.high += weight * logs.high;
      spread.common_share += weight * interval.common_share;
      known += weight;
    };
    for (size_t i = 0; i < near.size(); ++i) {
      if (coverage.by_near[i]) add(near[i].correction->interval, near[i].weight);
    }
    if (known < 1) add(net.interval, 1 - known);
    return {spread.low / known, spread.high / known, spread.common_share / known};
  }

  /// A calibrated device's spread is the calibration's, as far as that counts.
  static void calibrate(Spread& spread, const CalibrationNet& calibration, float weight) {
    spread.low += weight * (std::log(calibration.low_ratio) - spread.low);
    spread.high += weight * (std::log(calibration.high_ratio) - spread.high);
    spread.common_share += weight * (1 - spread.common_share);
  }

  KernelTime finish(const Kernel& kernel, const Device& device, const Row& row, float logit,
                    float factor, const Spread& spread) const {
    const double bound = row.bound.seconds();
    const double warm = law_time(net_of(kernel), device, row.bound, logit) * std::exp(factor);
    KernelTime time;
    time.seconds = std::max(warm, bound) + row.bound.cold_s;
    // One range beyond the training rows doubles the interval's logarithm; a guess until devices of
    // other generations are measured.
    const double width = 1.0 + std::min(1.0, row.excess);
    time.low_s = std::max(time.seconds * std::exp(spread.low * width), bound);
    time.high_s = time.seconds * std::exp(spread.high * width);
    time.common_share = spread.common_share;
    if (kernel.is_product()) time.tile = row.tile;
    time.waves = count_waves(kernel, device, row.tile).waves;
    // Of what the data sheet allows where the caches are as the forecast takes them to be.
    const double reference =
        net_def(net_of(kernel)).by_layer ? row.bound.law_s + row.bound.cold_s : bound;
    time.utilization_ratio = std::min(1.0, reference / time.seconds);
    time.limit = limit_of(row.bound, reference, time.seconds);
    time.predictor = net_name(net_of(kernel));
    time.extrapolated = row.excess > kExtrapolates;
    if (time.extrapolated) time.extrapolated_feature = row.feature;
    return time;
  }

  const Weights& weights_;
};

class RooflinePredictor : public Predictor {
 public:
  void predict(std::span<const Kernel> kernels, const Device& device, const Conditions&,
               std::span<KernelTime> times) const override {
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].is<Collective>()) {
        times[i].seconds = all_reduce_s(kernels[i], device);
        times[i].low_s = times[i].high_s = times[i].seconds;
        times[i].limit = Limit::kNetwork;
        times[i].predictor = "roofline";
        continue;
      }
      const Bound bound = roofline_bound(kernels[i], device);
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
    case Limit::kNetwork:
      return "network";
  }
  return "";
}

void predict_each(const Predictor& predictor, std::span<const Kernel> kernels,
                  std::span<const Conditions> conditions, const Device& device,
                  std::span<KernelTime> times) {
  std::vector<Conditions> distinct;
  for (const Conditions& c : conditions) {
    if (std::find(distinct.begin(), distinct.end(), c) == distinct.end()) distinct.push_back(c);
  }
  for (const Conditions& c : distinct) {
    std::vector<Kernel> alike;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (conditions[i] == c) alike.push_back(kernels[i]);
    }
    std::vector<KernelTime> their(alike.size());
    predictor.predict(alike, device, c, their);
    for (size_t i = 0, next = 0; i < kernels.size(); ++i) {
      if (conditions[i] == c) times[i] = their[next++];
    }
  }
}

std::vector<float> correction_weights(const Net& net, const Device& device) {
  const Signature signature = signature_of(device);
  std::vector<float> alike;
  for (const Correction& c : net.corrections) alike.push_back(similarity(signature, c.signature));
  std::vector<float> weights;
  for (const Correction& c : net.corrections) {
    float weight = 0;
    for (size_t i = 0; i < alike.size(); ++i) weight += c.kriging[i] * alike[i];
    weights.push_back(weight > kNegligible ? std::min(weight, 1.0f) : 0.0f);
  }
  return weights;
}

CallOverhead call_overhead(const Net& net, const Device& device) {
  const std::vector<float> weights = correction_weights(net, device);
  CallOverhead sum{0, 0, 0};
  double known = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double own = weights[i] * net.corrections[i].call_overhead_s;
    sum = {sum.seconds + own, sum.low_s + own, sum.high_s + own};
    known += weights[i];
  }
  // A machine is not a device: one that merely resembles a measured one says nothing of its host.
  constexpr double kSameDevice = 0.9;
  if (known < kSameDevice) return net.call_overhead;
  return {sum.seconds / known, sum.low_s / known, sum.high_s / known};
}

Tile tile_of(const Weights& weights, const Kernel& kernel, const Device& device) {
  // What libraries pick for narrow types was not profiled: the tile that most of them have.
  if (net_of(kernel) == NetKind::kTensorMatmul) return {128, 128};
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
