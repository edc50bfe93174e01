#pragma once

// Which share of an operand's requests goes past a cache: the distance between two uses of the same
// line, in bytes that are touched in between, against the size of the cache.

#include <array>

#include "accelerator/dataflow.h"

namespace tilecast::accelerator {

/// Counts of the loops around tiles, by Dim; a smaller last tile counts as one.
Sizes tile_counts(const Layer& layer, const Mapping& mapping);

/// The dimension whose elements follow each other in memory: channels, as in NHWC and [r,s,c,k].
Dim contiguous(Operand operand, const Layer& layer);

/// Bytes of an element in the outer memory.
double element_bytes(const Dataflow& flow, Operand operand);

/// Bytes from a row of an operand to the next one in memory: all channels of a pixel, or of a
/// weight's input channel.
double row_stride(const Layer& layer, const Dataflow& flow, Operand operand);

/// Share of the requests that miss in a cache, of those that load an operand or store the outputs.
/// A line that several requests of one row share is fetched once. The operand's own rows take the
/// sets that their distance gives them; the other operands are spread over all sets. `part_bytes`:
/// of a row, that one instruction moves.
double miss_ratio(const Layer& layer, const Mapping& mapping, const Dataflow& flow, Operand operand,
                  double part_bytes, const Memory& cache);

}  // namespace tilecast::accelerator
