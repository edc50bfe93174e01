#include "predict/predictor.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "predict/collective.h"
#include "predict/cost_models.h"
#include "predict/roofline.h"
#include "predict/unmeasured.h"

namespace tilecast {
namespace {

class LearnedPredictor : public Predictor {
 public:
  explicit LearnedPredictor(const Weights& weights) : weights_(weights) {}

  void predict(std::span<const Kernel> kernels, const Device& device, const Conditions& conditions,
               std::span<KernelTime> times) const override {
    std::optional<Device> store;
    const Device& running = running_device(device, conditions, store);
    const std::span<const CostModel> models = cost_models();
    // The kernels of each model stand together, in the order of the models.
    std::vector<size_t> chosen(kernels.size()), ends(models.size() + 1, 0);
    for (size_t i = 0; i < kernels.size(); ++i) {
      while (!models[chosen[i]].covers(kernels[i], running, weights_)) ++chosen[i];
      ++ends[chosen[i] + 1];
    }
    for (size_t m = 0; m < models.size(); ++m) ends[m + 1] += ends[m];
    std::vector<size_t> rows(kernels.size()), next = ends;
    for (size_t i = 0; i < kernels.size(); ++i) rows[next[chosen[i]]++] = i;
    for (size_t m = 0; m < models.size(); ++m) {
      const auto own = std::span(rows).subspan(ends[m], ends[m + 1] - ends[m]);
      if (own.empty()) continue;
      models[m].estimate({kernels, own, running, device, conditions, times}, weights_);
      for (const size_t i : own)
        if (times[i].predictor.empty()) times[i].predictor = models[m].name;
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (is_unmeasured(kernels[i])) mark_unmeasured(kernels[i], weights_.laws.intervals, times[i]);
    }
  }

  const LawConstants& laws() const override { return weights_.laws; }

 private:
  const Weights& weights_;
};

class RooflinePredictor : public Predictor {
 public:
  void predict(std::span<const Kernel> kernels, const Device& device, const Conditions& conditions,
               std::span<KernelTime> times) const override {
    std::optional<Device> store;
    const Device& running = running_device(device, conditions, store);
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].is<Collective>()) {
        times[i].seconds = collective_time_of(kernels[i], running, conditions).seconds;
        times[i].low_s = times[i].high_s = times[i].seconds;
        times[i].limit = Limit::kNetwork;
      } else {
        times[i] = roofline_time(kernels[i], running);
      }
      times[i].predictor = kRoofline;
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

std::unique_ptr<Predictor> make_learned_predictor(const Weights& weights) {
  return std::make_unique<LearnedPredictor>(weights);
}

std::unique_ptr<Predictor> make_roofline_predictor() {
  return std::make_unique<RooflinePredictor>();
}

}  // namespace tilecast
