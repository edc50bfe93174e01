#include "sim/token_gaps.h"

#include <algorithm>
#include <cmath>

namespace tilecast {
namespace {

constexpr double kShortest = 1e-7, kLongest = 1e5;  // seconds; what lies beyond counts as these
constexpr double kBinsOfE = 200;                    // bins of a factor e: 0.5 % each

size_t bin_of(double gap_s) {
  return static_cast<size_t>(kBinsOfE *
                             std::log(std::clamp(gap_s, kShortest, kLongest) / kShortest));
}

double middle_of(size_t bin) {
  return kShortest * std::exp((static_cast<double>(bin) + 0.5) / kBinsOfE);
}

}  // namespace

void TokenGaps::add(double gap_s, int64_t tokens) {
  if (tokens <= 0) return;
  const size_t bin = bin_of(gap_s);
  if (bin >= counts_.size()) counts_.resize(bin + 1);
  counts_[bin] += tokens;
  tokens_ += tokens;
  sum_s_ += gap_s * static_cast<double>(tokens);
}

void TokenGaps::add(const TokenGaps& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (size_t bin = 0; bin < other.counts_.size(); ++bin) counts_[bin] += other.counts_[bin];
  tokens_ += other.tokens_;
  sum_s_ += other.sum_s_;
}

double TokenGaps::quantile_s(double share) const {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(tokens_)));
  int64_t seen = 0;
  for (size_t bin = 0; bin < counts_.size(); ++bin) {
    seen += counts_[bin];
    if (seen >= wanted && counts_[bin] > 0) return middle_of(bin);
  }
  return 0;
}

LatencySummary TokenGaps::summary() const {
  if (tokens_ == 0) return {};
  return {sum_s_ / static_cast<double>(tokens_), quantile_s(0.5), quantile_s(0.99)};
}

}  // namespace tilecast
