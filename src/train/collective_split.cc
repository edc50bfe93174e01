#include "train/collective_split.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
#include <map>

#include "base/quantile.h"

namespace tilecast {
namespace {

constexpr int kFolds = 3;
constexpr int64_t kLargeBytes = 1 << 20;
/// Means of the measured clusters (data/clusters).
constexpr double kMeanStart = 5.5e-6, kMeanStep = 1.1e-6;

/// Which third of the sizes a row is in: neighbours on a scale of powers of two are in different
/// ones.
int fold_of(const CollectiveRow& row) {
  const CollectiveMeasurement& m = *row.measured;
  const auto size = static_cast<double>(m.exchange ? m.exchange->tokens : m.bytes);
  return static_cast<int>(std::lround(std::log2(size))) % kFolds;
}

double bytes_of(const CollectiveRow& row) {
  return row.measured->exchange ? row.law.use.link_bytes + row.law.use.network_bytes
                                : static_cast<double>(row.measured->bytes);
}

class Judge {
 public:
  Judge(const std::vector<CollectiveRow>& rows, CollectiveWeights& weights)
      : rows_(rows), weights_(weights) {}

  std::vector<CollectiveError> run() {
    const auto all = [](const CollectiveRow&) { return true; };
    score("fitted", weights_, all);
    for (int fold = 0; fold < kFolds; ++fold) {
      const auto held = [&](const CollectiveRow& row) { return fold_of(row) == fold; };
      hold("held-out sizes", held, held);
    }
    spreads(weights_.known_spread, "held-out sizes");
    for (const double width : {1.0, 2.0, 4.0, 8.0}) {
      const auto held = [&](const CollectiveRow& row) { return row.law.width == width; };
      for (const auto& link : generations()) {
        hold(
            "held-out ranks",
            [&](const CollectiveRow& row) { return held(row) && generation(row) == link; },
            [&](const CollectiveRow& row) { return held(row) && generation(row) == link; });
      }
    }
    leave_out();
    spreads(weights_.unknown_spread, "left-out links");
    return table();
  }

 private:
  using Test = std::function<bool(const CollectiveRow&)>;
  using Generation = std::pair<std::string, int64_t>;
  static Generation generation(const CollectiveRow& row) {
    return {row.law.level->kind, row.law.level->generation.value_or(0)};
  }
  std::vector<Generation> generations() const {
    std::vector<Generation> all;
    for (const CollectiveRow& row : rows_) all.push_back(generation(row));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  /// Fits without the rows of `left_out` and scores the rows of `scored`.
  void hold(const std::string& split, const Test& left_out, const Test& scored) {
    std::vector<CollectiveRow> rest;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(rest),
                 [&](const CollectiveRow& row) { return !left_out(row); });
    if (rest.empty() || rest.size() == rows_.size()) return;
    score(split, fit_collectives(rest), scored);
  }

  void score(const std::string& split, const CollectiveWeights& weights, const Test& scored) {
    for (const CollectiveRow& row : rows_) {
      if (scored(row)) add(split, row, *row.cluster, weights);
    }
  }

  void add(const std::string& split, const CollectiveRow& row, const Cluster& cluster,
           const CollectiveWeights& weights) {
    const double ratio =
        forecast_of(*row.measured, cluster, &weights).seconds / row.measured->measured_s;
    const bool nccl = traits_of(row.measured->software).all_reduce_curve.empty() &&
                      !row.measured->exchange && !row.measured->host_paced;
    const std::string host = row.measured->host_paced ? " (host)" : "";
    errors_[{split, row.device, label_of(*row.measured) + host}].push_back(ratio);
    if (nccl) errors_[{split, row.device, ""}].push_back(ratio);
    if (!row.measured->host_paced)
      by_curve_[{split, static_cast<size_t>(*row.law.curve)}].push_back(std::abs(std::log(ratio)));
  }

  void leave_out() {
    std::map<const Cluster*, Cluster> unknown;
    for (const CollectiveRow& row : rows_) {
      const auto [it, fresh] = unknown.try_emplace(row.cluster, *row.cluster);
      if (!fresh) continue;
      for (LinkLevel& level : it->second.levels) {
        level.start_s = kMeanStart;
        level.latency_s = kMeanStep;
      }
    }
    const auto leave = [&](const std::string& split, const Test& left_out) {
      std::vector<CollectiveRow> rest;
      for (const CollectiveRow& row : rows_) {
        if (!left_out(row)) rest.push_back(row);
      }
      if (rest.empty()) return;
      const CollectiveWeights weights = fit_collectives(rest);
      for (const CollectiveRow& row : rows_) {
        if (left_out(row) && bytes_of(row) >= kLargeBytes)
          add(split, row, unknown.at(row.cluster), weights);
      }
    };
    std::vector<std::string> devices;
    for (const CollectiveRow& row : rows_) devices.push_back(row.device);
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    for (const std::string& device : devices)
      leave("left-out GPU", [&](const CollectiveRow& row) { return row.device == device; });
    for (const Generation& link : generations())
      leave("left-out links", [&](const CollectiveRow& row) { return generation(row) == link; });
  }

  /// The 80 % quantile of the errors of each curve; of a curve without any, the largest of all.
  void spreads(std::array<double, kCurveCount>& spread, const std::string& split) {
    double largest = 0;
    for (size_t c = 0; c < kCurveCount; ++c) {
      const auto found = by_curve_.find({split, c});
      if (found == by_curve_.end()) continue;
      std::vector<double> sorted = found->second;
      std::sort(sorted.begin(), sorted.end());
      spread[c] = sorted[sorted.size() * 8 / 10];
      largest = std::max(largest, spread[c]);
    }
    for (double& s : spread) s = s == 0 ? largest : s;
  }

  std::vector<CollectiveError> table() const {
    std::vector<CollectiveError> table;
    for (const auto& [key, ratios] : errors_) {
      std::vector<double> percent;
      for (const double ratio : ratios) percent.push_back(100 * std::abs(ratio - 1));
      CollectiveError error;
      std::tie(error.split, error.gpu, error.op) = key;
      error.count = percent.size();
      for (const double p : percent) error.mape_percent += p / static_cast<double>(percent.size());
      error.median_percent = quantile(percent, 0.5);
      error.p90_percent = quantile(percent, 0.9);
      table.push_back(error);
    }
    return table;
  }

  const std::vector<CollectiveRow>& rows_;
  CollectiveWeights& weights_;
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>> errors_;
  std::map<std::pair<std::string, size_t>, std::vector<double>> by_curve_;
};

}  // namespace

std::vector<CollectiveError> judge_collectives(const std::vector<CollectiveRow>& rows,
                                               CollectiveWeights& weights) {
  return Judge(rows, weights).run();
}

}  // namespace tilecast
