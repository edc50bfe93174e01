#pragma once

// Answers to questions.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tilecast/allocate.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/profile.h"
#include "tilecast/result.h"
#include "tilecast/search.h"
#include "tilecast/share.h"

namespace tilecast {

/// Kernels to measure first, as CSV.
struct SuggestedKernels {
  std::string csv;
  std::vector<std::string> warnings;
};

using Answer = std::variant<
    Forecast, GenerationForecast, AcceleratorForecast, AcceleratorOccupancy, GpuComparison,
    Comparison, MemoryTimeline, PowerTimeline, std::vector<StepOperation>, KernelAnswer,
    CollectiveForecast, TrainingPlan, TrainingPlans, ServingPlan, ShardForecast, Evaluation,
    AcceleratorEvaluations, TuneEvaluations, TrainResult, CollectiveTrainResult, CalibrateResult,
    SuggestedKernels, TuneAnswer, ProductAnswer, SweepResult, ShareForecast, SharingEvaluation,
    ServerEvaluation, PairCalibration, AllocationForecast, TraceReport, TracedTimeline,
    ClusterSimulation, std::vector<GpuEntry>, std::vector<ClusterEntry>, std::vector<ModelEntry>,
    std::vector<OpEntry>, DataFile, Installation>;

/// Inputs of a forecast of a pass.
struct AskedPass {
  std::shared_ptr<const Forecaster> forecaster;
  ModelRef model;
  GpuRef gpu;
  Request request;
};

/// The answer to a question, and what belongs beside it.
struct Reply {
  Answer answer;
  std::vector<std::string> warnings;  ///< that views show which do not hold them
  /// Why it is not what was asked for: no configuration fits. "": it is.
  std::string shortfall;
  std::string speed;               ///< of a search
  std::optional<AskedPass> asked;  ///< of a Forecast
};

}  // namespace tilecast
