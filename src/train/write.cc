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

/// A row for each cell: what an interval from other GPUs holds of it.
Json interval_rows(const WeightsJob& job) {
  Json rows = Json::array();
  for (const FittedInterval& interval : job.intervals) {
    for (const UnseenCell& cell : interval.fit.cells) {
      const Combination& c = cell.combination;
      rows.push_back({{"kind", kernel_kind_name(interval.kind)},
                      {"left_out", interval.left_out},
                      {"gpu", job.data.devices[cell.device].id},
                      {"dtype", dtype_name(c.dtype)},
                      {"kv_dtype", dtype_name(c.kv_dtype)},
                      {"scheme", scheme_info(c.scheme).name},
                      {"software", software_name(c.software)},
                      {"factor", std::round(interval.fit.factor * 100) / 100},
                      {"count", cell.rows},
                      {"inside_percent", std::round(cell.inside * 1000) / 10},
                      {"nested_inside_percent", std::round(cell.nested_inside * 1000) / 10},
                      {"width_log", std::round(cell.width * 1000) / 1000},
                      {"score_log", std::round(cell.score * 1000) / 1000}});
    }
  }
  return rows;
}

Json provenance(const WeightsJob& job) {
  Json gpus = Json::array();
  for (const Device& device : job.data.devices) gpus.push_back(device.id);
  return {{"command", job.options.command}, {"data_hash", fmt::format("{:016x}", job.data.hash)},
          {"rows", job.data.rows.size()},   {"gpus", gpus},
          {"seed", job.options.seed},       {"trees", job.options.trees}};
}

std::string forest_errors(const WeightsJob& job) {
  std::string csv = "forest,rows,train_error,held_out_error\n";
  for (const ForestJob& f : job.forests)
    csv += fmt::format("{},{},{:.6f},{:.6f}\n", f.name, f.rows, f.train_error, f.held_out_error);
  return csv;
}

}  // namespace

void write_training(const std::filesystem::path& folder, WeightsJob& job,
                    const TrainResult& result) {
  write_file(folder / "held_out.csv", forest_errors(job));
  const Json source = provenance(job);
  const Json errors = {{"provenance", source},
                       {"held_out", error_rows(result.held_out)},
                       {"left_out", error_rows(result.left_out)},
                       {"left_out_architecture", error_rows(result.left_out_architecture)},
                       {"intervals", interval_rows(job)},
                       {"left_out_rows", result.report}};
  write_file(folder / "errors.json", errors.dump(1) + "\n");
  job.weights.provenance = source.dump();
  write_file(folder / kWeightsFile, serialize_weights(job.weights));
}

}  // namespace tilecast
