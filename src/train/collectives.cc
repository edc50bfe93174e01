#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/registry.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"
#include "train/collective_fit.h"
#include "train/collective_split.h"

namespace tilecast {
namespace {

std::string errors_json(const std::vector<CollectiveError>& errors) {
  const auto tenths = [](double percent) { return std::round(10 * percent) / 10; };
  Json list = Json::array();
  for (const CollectiveError& e : errors)
    list.push_back({{"rows_of", e.split},
                    {"gpu", e.gpu},
                    {"collective", e.op},
                    {"count", e.count},
                    {"mape_percent", tenths(e.mape_percent)},
                    {"median_percent", tenths(e.median_percent)},
                    {"p90_percent", tenths(e.p90_percent)}});
  return list.dump(1) + "\n";
}

}  // namespace

CollectiveTrainResult train_collectives(const TrainOptions& options) {
  CollectiveTrainResult result;
  std::vector<std::string> excluded;
  for (const std::string& gpu : options.exclude_gpus) excluded.push_back(find_device(gpu).id);
  std::vector<MeasurementSet> sets;
  MeasuredClusters clusters;
  std::vector<CollectiveRow> rows;
  std::map<std::string, size_t> left_out;
  for (const std::filesystem::path& path : options.data) sets.push_back(read_measurements(path));
  for (const MeasurementSet& set : sets) {
    result.report.insert(result.report.end(), set.unmatched.begin(), set.unmatched.end());
    for (const CollectiveMeasurement& measured : set.collectives) {
      const std::string& source = set.sources[measured.source];
      const Cluster* cluster = clusters.find(measured);
      if (cluster == nullptr) {
        left_out[source + ": unknown GPU or links: '" + shown_name(measured.gpu) + "'"] += 1;
        continue;
      }
      if (std::find(excluded.begin(), excluded.end(), cluster->device.id) != excluded.end())
        continue;
      if (auto row = collective_row(measured, *cluster))
        rows.push_back(*std::move(row));
      else
        left_out[source + ": no curve: between nodes, or small and launched by the host"] += 1;
    }
  }
  for (const auto& [line, count] : left_out)
    result.report.push_back(fmt::format("{} ({} rows)", printable(line), count));
  if (rows.empty())
    throw Error(ErrorKind::kInput,
                "the data hold no collectives to learn from; known are the "
                "tables of aiconfigurator, Vidur and PipeWeave (docs/reference/measurements.md)");
  CollectiveWeights weights = fit_collectives(rows);
  weights.command = options.command;
  result.errors = judge_collectives(rows, weights);
  std::filesystem::create_directories(options.output);
  write_file(options.output / "collectives.json", collective_weights_json(weights));
  write_file(options.output / "collective_errors.json", errors_json(result.errors));
  return result;
}

}  // namespace tilecast
