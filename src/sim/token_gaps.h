#pragma once

// Times between two tokens of a sequence, over all sequences of a server. Goals: a step costs a few
// operations, whatever the number of sequences; the memory does not grow with the run. So gaps are
// counted in bins, each 0.5 % wide: medians and percentiles are exact to half of that.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/serving.h"

namespace tilecast {

class TokenGaps {
 public:
  /// So many tokens came this long after the ones before.
  void add(double gap_s, int64_t tokens);
  void add(const TokenGaps& other);
  int64_t tokens() const { return tokens_; }
  /// All zero without tokens.
  LatencySummary summary() const;

 private:
  /// The gap that the share of tokens do not exceed.
  double quantile_s(double share) const;

  std::vector<int64_t> counts_;  ///< by bin
  int64_t tokens_ = 0;
  double sum_s_ = 0;
};

}  // namespace tilecast
