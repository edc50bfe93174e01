#pragma once

// The served model, and how it is divided over GPUs: the facts that all steps of a server share.

#include <memory>
#include <optional>
#include <vector>

#include "scenario/generation/served_images.h"
#include "scenario/generation/server_ranks.h"
#include "scenario/internal.h"
#include "scenario/power.h"
#include "scenario/precision.h"
#include "tilecast/result.h"

namespace tilecast {

class Drafter;

/// One rank's share of a pipeline stage. It stands for all stages that are alike.
struct ServedStage {
  LayerRange layers;                       ///< of the first of these stages
  int64_t count = 1;                       ///< stages that are alike
  StageLinks links = StageLinks::kInNode;  ///< to the next stage
  Graph share;
  std::vector<int64_t> runs;  ///< see segment_runs
  /// The rank's share of the bytes of all weights, for checkpoints that state only the sum.
  std::optional<double> stored_share;
};

/// A model on one server. Built once for a request; read-only after construction.
struct ServedModel {
  /// Throws Error if the model does not generate text, or if the request does not fit the model.
  /// The request's values must have been checked already. All arguments but the request must
  /// outlive this object.
  ServedModel(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
              const Request& request);
  /// The same model and device for another request.
  ServedModel(const ServedModel& base, const Request& changed);
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;
  ~ServedModel();

  const Decoder& decoder() const { return *model.decoder; }
  DType dtype() const { return precision.dtype; }
  const Predictor& predictor() const;
  Conditions conditions() const;
  PowerTerms power() const;
  /// Sequences of a batch on the data-parallel rank that has the most.
  int64_t sequences_of_rank(int64_t batch) const;

  const Forecaster& forecaster;
  const Model& model;
  const Device& device;
  /// The request with the lengths of one typical request and the software filled in.
  const Request asked;
  Precision precision;  ///< of weights and activations: as requested, else the checkpoint's
  DType kv_dtype = DType::kBf16;
  int64_t skew_percent = 0;  ///< of the load of experts
  Graph modules;             ///< of the whole model
  RankLayout plan;
  std::vector<ServedStage> stages;  ///< the distinct ones, in order; one without a pipeline
  std::optional<TowerSteps> tower;  ///< nullopt: no vision tower, or only encode workers have it
  /// The model that makes drafts of tokens (Speculation); nullptr: there are no drafts.
  std::unique_ptr<Drafter> drafter;

 private:
  void build(const ServedModel* base);
};

/// Throws Error{kInput} or Error{kUnsupported} if the request does not fit the model.
void check_served(const ServedModel& served);

}  // namespace tilecast
