#pragma once

// One step of a language model on one rank: what every question about it is made of.

#include <functional>
#include <vector>

#include "api/internal.h"
#include "api/precision.h"
#include "api/timing.h"
#include "passes/serving.h"
#include "tilecast/llm.h"

namespace tilecast {

class LlmSteps {
 public:
  using Group = StepRequest::Group;

  /// Throws Error where the model is none that writes token by token, or the request, whose
  /// values are checked before, does not fit it. `request` must outlive it.
  LlmSteps(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
           const Request& request);

  struct Step {
    Graph graph;  ///< what the launches point into
    Program program;
    std::vector<KernelTime> times;  ///< of the program's kernels
    Timeline timeline;
    Totals totals;
  };
  /// `launched`: kernel by kernel by the host; else by a CUDA graph.
  Step step(std::vector<Group> groups, bool launched) const;
  /// Seconds of those kernels of a step that are wanted; only they are forecast.
  double kernel_seconds(std::vector<Group> groups,
                        const std::function<bool(const Program&, const Launch&)>& wanted) const;
  /// What one rank runs.
  Graph graph(std::vector<Group> groups) const { return fused(share_, std::move(groups)); }
  /// The same on one rank alone.
  Graph whole_graph(std::vector<Group> groups) const { return fused(modules_, std::move(groups)); }

  /// See expert_precision.h.
  std::optional<Warning> slower_experts(const std::string& subject, const Step& step) const;

  /// Keys and values of one rank. Layers with a window keep no more than it.
  int64_t cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const;

  const Model& model() const { return model_; }
  const Decoder& decoder() const { return *model_.decoder; }
  const Device& device() const { return device_; }
  /// With the lengths of one typical request and the software that runs it.
  const Request& asked() const { return asked_; }
  /// Of weights and activations: as asked, else as the checkpoint.
  const Precision& precision() const { return precision_; }
  DType dtype() const { return precision_.dtype; }
  DType kv_dtype() const { return request_.kv_dtype; }

 private:
  void read_precision();
  void check() const;
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
};

/// Prompts of a static batch that one step takes together.
int64_t prefill_sequences(const Request& request, int64_t batch);

}  // namespace tilecast
