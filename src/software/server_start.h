#pragma once

#include "software/software.h"

namespace tilecast {

/// Whether a server starts whose cache holds so many tokens, and so many sequences of the longest
/// length.
inline bool server_starts(const ServerDefaults& server, int64_t cache_tokens,
                          double longest_sequences) {
  return longest_sequences >= 1 || (cache_tokens > 0 && !server.needs_longest_sequence);
}

}  // namespace tilecast
