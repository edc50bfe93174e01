#pragma once

// Memory of a language model on each rank, and the size of the KV cache that fits beside it.

#include "scenario/generation/served_model.h"
#include "sim/serving.h"

namespace tilecast {

/// Fills in the memory of a static batch; adds a warning if it does not fit.
void add_batch_memory(GenerationForecast& forecast, const ServedModel& served);

/// The memory of a server but what its load needs: of the stage with room for the fewest sequences,
/// which decides for all.
struct ServerMemory {
  Memory step;  ///< that is as full as it gets, without a cache
  CachePool pool;
  int64_t sequence_bytes = 0;  ///< of the cache of the longest request
};
ServerMemory server_memory(const ServedModel& served);

/// Fills in the memory of a server, whose cache uses all remaining memory, and the number of blocks
/// in `limits`. `forecast.fits` is whether the longest request of the load fits. Returns the bytes
/// that this needs.
int64_t add_server_memory(GenerationForecast& forecast, const ServedModel& served,
                          const ServerMemory& server, const ServingLoad& load,
                          ServerLimits& limits);

/// The warning of what does not fit: how much is missing, and with which change it would fit.
void warn_of_memory(GenerationForecast& forecast, const ServedModel& served, int64_t needed_bytes);

/// Whether the batch, or the longest request of a server, fits. Throws Error.
bool fits_memory(const ServedModel& served);

/// Whether what a server keeps beside its cache has room, whatever the cache holds. Throws Error.
bool has_room_beside_cache(const ServedModel& served);

}  // namespace tilecast
