#include <tilecast/learn.h>

#include <cstdio>
#include <string>

// uses_train ROWS FOLDER: learns from the rows, calibrates a GPU by them and evaluates the result.
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string rows = argv[1], weights = argv[2], calibration = weights + "/h100.json";
  const tilecast::TrainResult trained = tilecast::train_weights({.data = {rows},
                                                                 .output = weights,
                                                                 .exclude_gpus = {},
                                                                 .trees = 2,
                                                                 .leave_one_out = false,
                                                                 .command = ""});
  const tilecast::CalibrateResult calibrated = tilecast::calibrate(
      {.gpu = "H100", .measurements = {rows}, .output = calibration, .weights_folder = weights});
  size_t kinds = 0;
  for (const tilecast::CalibrateError& e : calibrated.kinds) kinds += e.rows > 0;
  const tilecast::Forecaster forecaster(weights, calibration);
  const tilecast::Evaluation found = tilecast::evaluate(forecaster, rows);
  std::printf("%zu held out, %zu calibrated, %zu evaluated\n", trained.held_out.size(), kinds,
              found.rows.size());
}
