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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("EvaluationRow", "Errors of one GPU, operator and dtype.");
    field("gpu", "", "id of the GPU", &EvaluationRow::gpu);
    field("op", "", "operator", &EvaluationRow::op);
    field("dtype", "", "of the operands", &EvaluationRow::dtype);
    field("software", "", "software whose kernels were measured", &EvaluationRow::software);
    field("count", "", "number of measurements", &EvaluationRow::count);
    field("mape_percent", "%", "mean absolute error", &EvaluationRow::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &EvaluationRow::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors",
          &EvaluationRow::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &EvaluationRow::bias_ratio);
    field("coverage_percent", "%", "share of measurements inside the 80 % interval",
          &EvaluationRow::coverage_percent);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("EvaluationModel", "The error of one measured model.");
    field("gpu", "", "id of the GPU", &EvaluationModel::gpu);
    field("model", "", "its name", &EvaluationModel::model);
    field("mode", "", "inference or training", &EvaluationModel::mode);
    field("seq", "tokens", "length of a sequence", &EvaluationModel::seq);
    field("batch", "", "sequences", &EvaluationModel::batch);
    field("dtype", "", "of the operands", &EvaluationModel::dtype);
    field("option", "", "option in the name of the measurement's file", &EvaluationModel::option);
    field("measured_s", "s", "measured", &EvaluationModel::measured_s);
    field("forecast_s", "s", "forecast", &EvaluationModel::forecast_s);
    field("low_s", "s", "80 % interval", &EvaluationModel::low_s);
    field("high_s", "s", "80 % interval", &EvaluationModel::high_s);
    field("error_percent", "%", "absolute error", &EvaluationModel::error_percent);
  }
};

struct Evaluation;
/// Warnings that apply to the errors. They are part of the JSON; the table does not show them.
std::vector<std::string> evaluation_warnings(const Evaluation& evaluation);

struct Evaluation {
  std::vector<EvaluationRow> rows;
  std::vector<EvaluationModel> models;
  std::vector<std::string> unmatched;  ///< what could not be evaluated, and why

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Evaluation", "Forecasts compared with measurements.");
    field("schema_version", "", "of this schema", [](const Evaluation&) { return 1; });
    field("rows", "", "errors of kernels", &Evaluation::rows);
    field("models", "", "errors of whole models", &Evaluation::models);
    field("unmatched", "", "measurements that could not be evaluated, with the reason",
          &Evaluation::unmatched);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Evaluation& x) { return evaluation_warnings(x); });
  }
};

/// Compares forecasts with the measurements under `path` (a file or a folder). A measurement of a
/// single call contains the host's call overhead. It is compared with the forecast plus the
/// overhead that training estimated. Throws Error{kNotFound} without such a path, Error{kInput}
/// where it holds no measurements.
Evaluation evaluate(const Forecaster& forecaster, const std::string& path,
                    const std::string& predictor = "learned");

std::string evaluation_table(const Evaluation& evaluation, const TableStyle& style = {});

}  // namespace tilecast
