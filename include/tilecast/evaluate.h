#pragma once

#include <string>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/report.h"

namespace tilecast {

/// Errors over all measurements of one GPU, operator, dtype and software.
struct EvaluationRow {
  std::string gpu;
  std::string op;
  std::string dtype;
  std::string software;  ///< whose kernels were measured
  int64_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double p90_percent = 0;
  double bias_ratio = 0;        ///< geometric mean of forecast / measured
  double coverage_percent = 0;  ///< measurements inside [low, high]
};

struct EvaluationModel {
  std::string gpu;
  std::string model;
  std::string mode;
  int64_t seq = 0;
  int64_t batch = 0;
  std::string dtype;
  std::string option;
  double measured_s = 0;
  double forecast_s = 0;
  double low_s = 0;
  double high_s = 0;
  double error_percent = 0;  ///< |forecast / measured - 1| · 100
};

struct Evaluation {
  std::vector<EvaluationRow> rows;
  std::vector<EvaluationModel> models;
  std::vector<std::string> unmatched;  ///< what could not be evaluated, and why
};

/// Compares forecasts with the measurements under `path` (a file or a folder). A measurement of a
/// single call contains the host's call overhead. It is compared with the forecast plus the
/// overhead that training estimated. Throws Error{kNotFound} without such a path, Error{kInput}
/// where it holds no measurements.
Evaluation evaluate(const Forecaster& forecaster, const std::string& path,
                    const std::string& predictor = "learned");

std::string evaluation_table(const Evaluation& evaluation, const TableStyle& style = {});
std::string evaluation_json(const Evaluation& evaluation);
/// Warnings that apply to the errors. They are part of `evaluation_json`; the table does not show
/// them.
std::vector<std::string> evaluation_warnings(const Evaluation& evaluation);

}  // namespace tilecast
