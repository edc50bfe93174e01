#pragma once

// Which share of an operand's requests goes past a cache: the distance between two uses of the same
// line, in bytes that are touched in between, against the size of the cache.

#include <array>

#include "accelerator/dataflow.h"

namespace tilecast::accelerator {

/// Counts of the loops around tiles, by Dim; those of a last tile that is smaller count as one.
Sizes tile_counts(const Layer& layer, const Mapping& mapping);

/// Of the requests that load an operand, or store the outputs, the share that misses in a fully
/// associative cache with least-recently-used replacement. `request_bytes`: of one request; a line
/// that several requests of one row share is fetched once.
double miss_ratio(const Layer& layer, const Mapping& mapping, const Dataflow& flow, Operand operand,
                  const Memory& cache);

}  // namespace tilecast::accelerator
