#include "train/write.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/json.h"

namespace tilecast {
namespace {

Json error_rows(const std::vector<TrainError>& errors) {
  const auto percent = [](double x) { return std::round(x * 100) / 100; };
  Json rows = Json::array();
  for (const TrainError& e : errors)
    rows.push_back({{"gpu", e.gpu},
                    {"op", e.op},
                    {"dtype", e.dtype},
                    {"software", e.software},
                    {"count", e.count},
                    {"mape_percent", percent(e.mape_percent)},
                    {"median_percent", percent(e.median_percent)},
                    {"roofline_mape_percent", percent(e.roofline_mape_percent)}});
  return rows;
}

Json provenance(const WeightsPlan& plan) {
  Json gpus = Json::array();
  for (const Device& device : plan.data.devices) gpus.push_back(device.id);
  return {{"command", plan.options.command}, {"data_hash", fmt::format("{:016x}", plan.data.hash)},
          {"rows", plan.data.rows.size()},   {"gpus", gpus},
          {"seed", plan.options.seed},       {"trees", plan.options.trees}};
}

std::string forest_errors(const WeightsPlan& plan) {
  std::string csv = "forest,rows,train_error,held_out_error\n";
  for (const PlannedForest& f : plan.forests)
    csv += fmt::format("{},{},{:.6f},{:.6f}\n", f.name, f.rows, f.train_error, f.held_out_error);
  return csv;
}

}  // namespace

void write_training(const std::filesystem::path& folder, WeightsPlan& plan,
                    const TrainResult& result) {
  write_file(folder / "held_out.csv", forest_errors(plan));
  const Json source = provenance(plan);
  const Json errors = {{"provenance", source},
                       {"held_out", error_rows(result.held_out)},
                       {"left_out", error_rows(result.left_out)},
                       {"left_out_architecture", error_rows(result.left_out_architecture)},
                       {"left_out_rows", result.report}};
  write_file(folder / "errors.json", errors.dump(1) + "\n");
  plan.weights.provenance = source.dump();
  write_file(folder / kWeightsFile, serialize_weights(plan.weights));
}

}  // namespace tilecast
