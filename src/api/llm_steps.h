#pragma once

// Graphs, times and memory of single steps of a language model on one rank.

#include <functional>
#include <vector>

#include "api/internal.h"
#include "api/llm_images.h"
#include "api/precision.h"
#include "api/timing.h"
#include "passes/serving.h"
#include "tilecast/llm.h"

namespace tilecast {

class LlmSteps {
 public:
  using Group = StepRequest::Group;

  /// Throws Error if the model does not generate text, or if the request does not fit the model.
  /// The request's values must have been checked already. `request` must outlive this object.
  LlmSteps(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
           const Request& request);

  /// The same model and device for another request, which must outlive this object.
  LlmSteps(const LlmSteps& base, const Request& changed);

  struct Step {
    Graph graph;  ///< the launches point into it
    Program program;
    std::vector<KernelTime> times;  ///< times of the program's kernels
    Timeline timeline;
    Totals totals;
  };
  /// `launched`: the host launches each kernel; else a CUDA graph does.
  Step step(std::vector<Group> groups, bool launched) const;
  /// One run of the vision tower, whose kernels the host launches.
  Step tower_step(int64_t images) const;
  /// The runs of the tower for the images of `prompts` prompts: images of a run, number of runs.
  std::vector<std::pair<int64_t, int64_t>> tower_runs(int64_t prompts) const;
  /// nullptr: the model has no vision tower.
  const TowerSteps* tower() const { return tower_ ? &*tower_ : nullptr; }
  /// Total time of the kernels of a step for which `wanted` is true; others are not forecast.
  double kernel_seconds(std::vector<Group> groups,
                        const std::function<bool(const Program&, const Launch&)>& wanted) const;
  /// The step on one rank.
  Graph graph(std::vector<Group> groups) const { return fused(share_, std::move(groups)); }
  /// The step without tensor parallelism.
  Graph whole_graph(std::vector<Group> groups) const { return fused(modules_, std::move(groups)); }

  /// See expert_precision.h.
  std::optional<Warning> slower_experts(const std::string& subject, const Step& step) const;

  /// KV cache of one rank in bytes. Layers with a sliding window store at most the window.
  int64_t cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const;

  const Model& model() const { return model_; }
  const Decoder& decoder() const { return *model_.decoder; }
  const Device& device() const { return device_; }
  /// The request with the lengths of one typical request and the software filled in.
  const Request& asked() const { return asked_; }
  /// Precision of weights and activations: as requested, else the checkpoint's.
  const Precision& precision() const { return precision_; }
  DType dtype() const { return precision_.dtype; }
  DType kv_dtype() const { return request_.kv_dtype; }

 private:
  void build();
  void read_precision();
  void check() const;
  Step timed(Graph graph, bool launched) const;
  const Predictor& predictor() const;
  Conditions conditions() const;
  Graph fused(const Graph& modules, std::vector<Group> groups) const;

  const Forecaster& forecaster_;
  const Model& model_;
  const Device& device_;
  const Request& asked_;
  StepRequest request_;
  Precision precision_;
  Graph modules_, share_;  ///< the whole model; one rank's share
  std::optional<TowerSteps> tower_;
  /// The rank's share of the bytes of all weights, for checkpoints that state only the sum.
  std::optional<double> stored_share_;
};

/// Number of prompts of a static batch in one prefill step.
int64_t prefill_sequences(const Request& request, int64_t batch);

}  // namespace tilecast
