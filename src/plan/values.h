#pragma once

// The values that a search tries for an option.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tilecast {

/// The divisors of a number that are at most `most`, in order.
inline std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) all.push_back(i);
  }
  return all;
}

/// The values that the user gave, or all.
template <typename T>
std::vector<T> given_or(const std::vector<T>& given, std::vector<T> all) {
  if (!given.empty()) all = given;
  return all;
}

}  // namespace tilecast
