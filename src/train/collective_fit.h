#pragma once

#include <string>
#include <vector>

#include "collectives/law.h"
#include "collectives/weights.h"
#include "measurements/collective_rows.h"

namespace tilecast {

/// A measured collective as the fit sees it.
struct CollectiveRow {
  const CollectiveMeasurement* measured = nullptr;
  const Cluster* cluster = nullptr;
  std::string device;     ///< id
  CollectiveLawTime law;  ///< the algorithm that the law finds fastest; it has a curve
  double weight = 1;
};

/// nullopt where no curve covers the row.
std::optional<CollectiveRow> collective_row(const CollectiveMeasurement& measured,
                                            const Cluster& cluster);

/// Ridge regression of log(measured / law) on piecewise linear functions of the size: one for all
/// links, its deviation for each width, for each generation of links, and for both. Each is drawn
/// to zero more than the one before, so a link without measurements gets what all have in common.
CollectiveWeights fit_collectives(const std::vector<CollectiveRow>& rows);

}  // namespace tilecast
