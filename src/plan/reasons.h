#pragma once

// Why candidates of a search are left out, with how many each reason concerns.

#include <cstdint>
#include <map>
#include <string>

#include "tilecast/error.h"

namespace tilecast {

using ReasonCounts = std::map<std::string, int64_t>;

/// Counts a candidate that ended in an error: a defect of Tilecast, or what is not possible.
inline void count_error(const Error& error, ReasonCounts& impossible, ReasonCounts& failures) {
  (error.kind() == ErrorKind::kInternal ? failures : impossible)[error.what()] += 1;
}

inline void add_counts(ReasonCounts& to, const ReasonCounts& from) {
  for (const auto& [reason, count] : from) to[reason] += count;
}

}  // namespace tilecast
