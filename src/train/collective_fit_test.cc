#include "train/collective_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/registry.h"

namespace tilecast {
namespace {

/// Made-up measurements: the law times a factor that falls with the size.
struct Made {
  std::vector<CollectiveMeasurement> measured;
  std::vector<CollectiveRow> rows;
  Cluster cluster = find_cluster("dgx-h100");

  explicit Made(double factor) {
    for (const int64_t ranks : {2, 4, 8}) {
      for (int64_t bytes = 1024; bytes <= int64_t{1} << 29; bytes *= 2)
        measured.push_back({.gpu = "H100",
                            .kind = CollectiveKind::kAllGather,
                            .bytes = bytes,
                            .group = {.ranks = ranks, .ranks_per_node = ranks}});
    }
    for (CollectiveMeasurement& m : measured) {
      m.measured_s = 1;
      m.measured_s = factor * collective_row(m, cluster)->law.seconds();
      rows.push_back(*collective_row(m, cluster));
    }
  }
};

TEST(CollectiveFit, ReturnsWhatWasMeasured) {
  const Made made(1.25);
  const CollectiveWeights weights = fit_collectives(made.rows);
  for (const CollectiveMeasurement& m : made.measured) {
    const double found = forecast_of(m, made.cluster, &weights).seconds;
    EXPECT_NEAR(found / m.measured_s, 1, 0.03) << m.bytes << " on " << m.group.ranks;
  }
}

/// Every third size was not measured, and the times over the law change by a factor of 3 where the
/// library changes its protocol.
TEST(CollectiveFit, ASizeThatWasNotMeasuredLiesBetweenItsNeighbours) {
  Made made(1);
  const auto factor = [](int64_t bytes) { return bytes < 1 << 20 ? 0.5 : 1.5; };
  const auto held = [](const CollectiveMeasurement& m) {
    return std::lround(std::log2(static_cast<double>(m.bytes))) % 3 == 0;
  };
  std::vector<CollectiveRow> rows;
  for (CollectiveMeasurement& m : made.measured) m.measured_s *= factor(m.bytes);
  for (const CollectiveRow& row : made.rows) {
    if (!held(*row.measured)) rows.push_back(row);
  }
  const CollectiveWeights weights = fit_collectives(rows);
  for (const CollectiveMeasurement& m : made.measured) {
    if (!held(m)) continue;
    const double found = forecast_of(m, made.cluster, &weights).seconds / m.measured_s;
    const bool at_the_change = factor(m.bytes / 2) != factor(m.bytes * 2);
    if (at_the_change) continue;
    EXPECT_NEAR(found, 1, 0.1) << m.bytes << " on " << m.group.ranks;
  }
}

TEST(CollectiveFit, LinksWithoutMeasurementsGetWhatAllHaveInCommon) {
  const Made made(1.25);
  const CollectiveWeights weights = fit_collectives(made.rows);
  CollectiveMeasurement other = made.measured.back();
  const Cluster unknown = node_of(find_device("MI300X"));
  const double law = collective_row(other, unknown)->law.seconds();
  const CollectiveTime time = forecast_of(other, unknown, &weights);
  EXPECT_GT(time.seconds, 1.1 * law);
  EXPECT_TRUE(time.extrapolated);
}

TEST(CollectiveFit, SmallTimesThatTheHostPacedAreLeftOut) {
  Made made(1);
  CollectiveMeasurement& m = made.measured.front();
  EXPECT_TRUE(collective_row(m, made.cluster));
  m.host_paced = true;
  EXPECT_FALSE(collective_row(m, made.cluster));
  m.bytes = 1 << 24;
  EXPECT_TRUE(collective_row(m, made.cluster));
}

}  // namespace
}  // namespace tilecast
