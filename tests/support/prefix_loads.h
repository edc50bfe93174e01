#pragma once

// Loads with common prompts, for tests.

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "sim/serving.h"

namespace tilecast {

/// Conversations, and prompts that share their first parts: some that end with a part, some in it.
inline ServingLoad random_load(Rng& rng, int64_t requests) {
  ServingLoad load;
  std::vector<std::vector<ContentPart>> known;
  uint64_t key = 1;
  for (int64_t i = 0; i < requests; ++i) {
    std::vector<ContentPart> parts;
    if (!known.empty() && rng.below(4) > 0) {
      parts = known[known.size() - 1 - rng.below(std::min<uint64_t>(known.size(), 20))];
      if (rng.below(3) == 0) parts.resize(1 + rng.below(parts.size()));
    }
    if (parts.empty() || rng.below(5) > 0)
      parts.push_back({key++, 1 + static_cast<int64_t>(rng.below(60))});
    RequestSpec r{.arrival_s = static_cast<double>(i),
                  .prompt = 0,
                  .output = 1 + static_cast<int64_t>(rng.below(30)),
                  .first_part = load.parts.size(),
                  .part_count = parts.size(),
                  .output_key = key++};
    for (const ContentPart& part : parts) r.prompt += part.tokens;
    load.parts.insert(load.parts.end(), parts.begin(), parts.end());
    parts.push_back({r.output_key, r.output});
    known.push_back(std::move(parts));
    load.requests.push_back(r);
  }
  return load;
}

}  // namespace tilecast
