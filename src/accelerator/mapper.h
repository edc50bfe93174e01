#pragma once

// Chooses how a layer runs: the tile and the order of the loops around it. Tiles that fit into the
// memories are ranked by a bound (computation, or bytes moved, whichever takes longer). The first
// are evaluated by their dependency graphs, and from the fastest one the search goes on to those
// that differ in one size or in the order, while they are faster.

#include "accelerator/fixed_point.h"
#include "accelerator/registry.h"

namespace tilecast::accelerator {

class NestTimes;

struct MappedLayer {
  Layer layer;  ///< as run: flattened, if the dataflow does so
  Mapping mapping;
  NestTime time;
};

struct MapperOptions {
  size_t seeds = 3;            ///< candidates of the best bounds, beside the first of each order
  size_t evaluated = 24;       ///< most candidates whose time is evaluated
  int64_t most_work = 150000;  ///< instructions that are run before no other candidate is tried
  EvaluationLimits limits;
  std::string where;           ///< the layer, for messages
  NestTimes* times = nullptr;  ///< of this design and others, which are not evaluated again
};

/// Deterministic. Throws Error{kUnsupported} if not even the smallest tile fits, or for a kind of
/// layer that the accelerator does not run.
MappedLayer map_layer(const Design& accelerator, const Layer& layer,
                      const MapperOptions& options = {});

/// The time of a given mapping. Throws Error{kInput}, which begins with `where`, if it does not
/// cover or does not fit, or if incomplete sums do not.
MappedLayer run_mapping(const Design& accelerator, const Layer& layer, const Mapping& mapping,
                        const EvaluationLimits& limits = {}, const std::string& where = "mapping");

}  // namespace tilecast::accelerator
