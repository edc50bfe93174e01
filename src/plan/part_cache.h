#pragma once

// The parts of a model on one rank, for many configurations that share the work of a layer: a
// layer's kernels are forecast once; how often it runs, the optimizer's share and the exchanges
// with other ranks are filled in. The parts equal `make_part`'s (a test compares both).

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scenario/parallel/model_part.h"

namespace tilecast {

class PartCache {
 public:
  /// `setup.request`: the options that all parts share. All must outlive the cache.
  PartCache(const PassSetup& setup, const Predictor& predictor)
      : setup_(setup), predictor_(predictor) {}

  /// Parts of a layout, by their number in the model; they live as long as the cache. The request
  /// differs from the shared one in `dp`, `pp`, the schedule and `zero` only.
  std::vector<const ModelPart*> parts(const RankLayout& layout, const Request& request);

 private:
  using Runs = std::vector<int64_t>;
  /// Layers that run once or more than once, without exchanges and optimizer.
  struct Pattern {
    Graph graph;
    std::vector<KernelTime> times;
    size_t first_segment = 0;  ///< of the graph: the first that the model has too
  };
  struct Key {
    Runs runs;
    int64_t dp = 1;
    Zero zero = Zero::kNone;
    bool plain = false, splits_backward = false;
    auto operator<=>(const Key&) const = default;
  };

  const ModelPart& part(const RankLayout& layout, const Request& request, const LayerRange& layers,
                        bool plain);
  const Pattern& pattern(const RankLayout& layout, const LayerRange& layers, const Runs& runs);
  const ModelPart& base(const RankLayout& layout, const LayerRange& layers, const Runs& runs);
  void add_optimizer_step(ModelPart& part, const RankLayout& layout, const PassSetup& setup,
                          const TimingSetup& timing) const;
  TimingSetup timing(const Request& request) const {
    return timing_setup({setup_.model, setup_.device, request, setup_.precision}, predictor_);
  }

  PassSetup setup_;
  const Predictor& predictor_;
  std::optional<ModelModules> modules_;  ///< built when the first layout asks for its parts
  std::map<Runs, Pattern> patterns_;
  std::map<Runs, ModelPart> bases_;
  std::map<Key, ModelPart> parts_;
};

}  // namespace tilecast
