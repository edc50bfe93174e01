#pragma once

// From a layer and its mapping to a nest of instructions.

#include "accelerator/dataflow.h"
#include "accelerator/layer.h"
#include "accelerator/program.h"

namespace tilecast::accelerator {

/// The layer as the dataflow runs it: as a matrix product where it flattens convolutions.
Layer as_run(const Layer& layer, const Dataflow& flow);

/// Bytes of an operand's tile in its on-chip memory, with all copies.
double buffer_bytes(const Layer& layer, const Sizes& tile, const Dataflow& flow, Operand operand);

/// Which memory the tiles do not fit into and by how much, or "".
std::string misfit(const Layer& layer, const Sizes& tile, const Machine& machine,
                   const Dataflow& flow);

/// Throws Error{kInput} naming the tile and by how much it is too large for its memory.
void check_fits(const Layer& layer, const Mapping& mapping, const Machine& machine,
                const Dataflow& flow, const std::string& where);

/// Bytes of incomplete sums that a mapping leaves between its tiles: a loop over outputs runs
/// inside one that adds to them. 0 where there are none, or where the dataflow loads partial sums.
double spilled_bytes(const Layer& layer, const Mapping& mapping, const Dataflow& flow);

/// Throws Error{kInput} if incomplete sums are more than their memory holds.
void check_sums_stay(const Layer& layer, const Mapping& mapping, const Machine& machine,
                     const Dataflow& flow, const std::string& where);

/// The nest of a layer (as run, see above). The mapping must cover it; it need not fit. Throws
/// Error{kInput} for latencies that are no times, Error{kUnsupported} for a kind of layer that the
/// dataflow does not run.
LoopNest tile_layer(const Machine& machine, const Dataflow& flow, const Layer& layer,
                    const Mapping& mapping);

}  // namespace tilecast::accelerator
