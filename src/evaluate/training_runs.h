#pragma once

// Published training runs, whose rows are options of a forecast: times of steps and peaks of
// memory.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "measurements/measurements.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/request.h"

namespace tilecast {

/// Forecasts each set-up once: many rows are alike but for their container or commit.
class TrainingRuns {
 public:
  /// `forecast`: of the model as the row has it, on its GPU.
  using ForecastRun = std::function<Forecast(const ModelMeasurement&, const Request&)>;
  TrainingRuns(PredictorKind predictor, ForecastRun forecast)
      : predictor_(predictor), forecast_(std::move(forecast)) {}

  /// Adds the row of a measured time. Throws Error if the run cannot be forecast.
  void add(const ModelMeasurement& m, std::vector<EvaluationModel>& models);
  /// The peaks of all set-ups, in the order of their first rows. The measured one is the median.
  std::vector<EvaluationPeak> peaks() const;

 private:
  struct SetUp {
    Forecast forecast;
    const ModelMeasurement* first = nullptr;
    std::vector<double> measured_bytes;
  };
  SetUp& set_up_of(const ModelMeasurement& m);

  PredictorKind predictor_;
  ForecastRun forecast_;
  std::map<std::string, SetUp> set_ups_;  ///< by GPU, model, group and options
  std::vector<const SetUp*> order_;
};

}  // namespace tilecast
