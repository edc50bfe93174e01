#pragma once

// Graphs, times and memory of single steps of a language model on one rank.

#include <functional>
#include <memory>
#include <vector>

#include "api/generation/llm_images.h"
#include "api/generation/server_plan.h"
#include "api/internal.h"
#include "api/precision.h"
#include "api/timing.h"
#include "passes/serving.h"
#include "tilecast/llm.h"

namespace tilecast {

class Drafter;

class LlmSteps {
 public:
  using Group = StepRequest::Group;

  /// Throws Error if the model does not generate text, or if the request does not fit the model.
  /// The request's values must have been checked already. `request` must outlive this object.
  LlmSteps(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
           const Request& request);

  /// The same model and device for another request, which must outlive this object.
  LlmSteps(const LlmSteps& base, const Request& changed);
  ~LlmSteps();

  /// One rank's share of a pipeline stage, for stages that are alike.
  struct Part {
    LayerRange layers;   ///< of the first of these stages
    int64_t stages = 1;  ///< that are alike
    Graph share;
    std::vector<int64_t> runs;  ///< see segment_runs
    /// The rank's share of the bytes of all weights, for checkpoints that state only the sum.
    std::optional<double> stored_share;
  };
  /// The distinct stages, in order. A single one without a pipeline.
  const std::vector<Part>& parts() const { return parts_; }
  const ParallelPlan& plan() const { return plan_; }

  struct Step {
    Graph graph;  ///< the launches point into it
    Program program;
    std::vector<KernelTime> times;  ///< times of the program's kernels
    Timeline timeline;
    Totals totals;      ///< with `send_s`
    double send_s = 0;  ///< of the result to the next stage
  };
  /// `launched`: the host launches each kernel; else a CUDA graph does.
  Step step(std::vector<Group> groups, bool launched, size_t part = 0) const;
  /// One pass of a part of the model other than its stages, or of a graph beside it.
  Step pass(const Part& part, std::vector<Group> groups) const;
  Step pass(Graph graph) const;
  /// One rank's share of some layers.
  Part part_of_layers(const LayerRange& layers) const;
  Graph graph_of(const Part& part, std::vector<Group> groups) const {
    return fused(&part, std::move(groups));
  }
  const Graph& modules() const { return modules_; }
  const Forecaster& forecaster() const { return forecaster_; }
  /// One run of the vision tower, whose kernels the host launches.
  Step tower_step(int64_t images) const;
  /// The runs of the tower for the images of `prompts` prompts: images of a run, number of runs.
  std::vector<std::pair<int64_t, int64_t>> tower_runs(int64_t prompts) const;
  /// nullptr: the model has no vision tower.
  const TowerSteps* tower() const { return tower_ ? &*tower_ : nullptr; }
  /// The kernels of a part's step, without their times.
  struct Kernels {
    Graph graph;  ///< the launches point into it
    Program program;
  };
  Kernels kernels(std::vector<Group> groups, size_t part) const;
  /// Which of them; `wanted` is true for them.
  struct Selection {
    bool decode = false;  ///< for the kernels of exchanges: the step decodes only
    std::function<bool(const Launch&)> wanted;
  };
  /// Total time of the selected kernels of a step; others are not forecast.
  double kernel_seconds(const Kernels& step, const Selection& selection) const;
  /// Time between two steps that the stage does not compute in; 0 for all but the last stage.
  double overhead_s(size_t part) const;
  /// Time to send the result of a step of so many tokens to the next stage; 0 for the last stage.
  double send_seconds(int64_t tokens, size_t part) const;
  /// The step on one rank of a stage.
  Graph graph(std::vector<Group> groups, size_t part = 0) const {
    return fused(&parts_[part], std::move(groups));
  }
  /// The step without parallelism.
  Graph whole_graph(std::vector<Group> groups) const { return fused(nullptr, std::move(groups)); }

  /// What makes drafts of tokens, see Speculation; nullptr: nothing does.
  const Drafter* drafter() const { return drafter_.get(); }

  /// See expert_precision.h.
  std::optional<Warning> slower_experts(const std::string& subject, const Step& step) const;

  /// KV cache of all layers in bytes, on one of `ranks` tensor-parallel ranks. Layers with a
  /// sliding window store at most the window.
  int64_t cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const;
  /// The same on one rank of a stage; `sequences`: of its data-parallel rank.
  int64_t stage_cache_bytes(int64_t sequences, int64_t tokens, size_t part) const;
  /// The facts of the decoder with the layers of a stage only.
  Decoder stage_decoder(size_t part) const;
  /// Sequences of a batch on the data-parallel rank that has the most.
  int64_t sequences_of_rank(int64_t batch) const;

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
  void check_experts() const;
  Graph divided() const;
  Graph weights_graph(const Graph& modules, bool has_output_layer) const;
  void divide();
  struct Launching {
    bool launched = false;
    bool decode = false;
  };
  Step timed(Graph graph, const Launching& how, const Part* part) const;
  void predict(const Graph& graph, const Program& program, bool decode,
               std::vector<KernelTime>& times) const;
  std::vector<bool> hidden(const Program& program) const;
  bool decodes(const std::vector<Group>& groups) const;
  const Predictor& predictor() const;
  Conditions conditions() const;
  Graph fused(const Part* part, std::vector<Group> groups) const;

  const Forecaster& forecaster_;
  const Model& model_;
  const Device& device_;
  const Request asked_;
  StepRequest request_;
  Precision precision_;
  Graph modules_;  ///< the whole model
  std::unique_ptr<Drafter> drafter_;
  ParallelPlan plan_;
  std::vector<Part> parts_;
  /// Collectives take the time of the plan's groups; else that of GPUs joined like those of a node.
  bool has_groups_ = false;
  std::optional<TowerSteps> tower_;
};

/// Number of prompts of a static batch in one prefill step.
int64_t prefill_sequences(const Request& request, int64_t batch);

}  // namespace tilecast
