#pragma once

// From what prompts consist of to full blocks of a cache.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/prefix_cache.h"
#include "sim/serving.h"

namespace tilecast {

/// The full blocks of all requests of a load, prompts and answers.
class PrefixPieces {
 public:
  PrefixPieces() = default;
  PrefixPieces(const ServingLoad& load, int64_t block_tokens);

  std::span<const PrefixPiece> of(size_t request) const {
    return std::span(pieces_).subspan(begin_[request], begin_[request + 1] - begin_[request]);
  }

 private:
  std::vector<PrefixPiece> pieces_;
  std::vector<size_t> begin_;
};

/// Tokens of prompts that one cache of any size has, to which each request comes after the ones
/// before it are answered. `counts`: of these requests; empty: of all.
int64_t most_hit_tokens(const ServingLoad& load, const PrefixPieces& pieces, int64_t block_tokens,
                        const std::vector<bool>& counts = {});

}  // namespace tilecast
