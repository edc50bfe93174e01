#pragma once

// The least of many values that change one at a time. Goals: a change, and a question, cost the
// logarithm of the number of values. Among equal values, the first is the least.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <vector>

namespace tilecast {

/// A binary tree over the values, whose inner nodes have the least of their two children.
template <typename T>
class Least {
 public:
  Least(size_t count, T value)
      : leaves_(std::bit_ceil(std::max<size_t>(1, count))), nodes_(2 * leaves_, kNone) {
    std::fill_n(nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_), count, value);
    for (size_t node = leaves_; --node > 0;) nodes_[node] = of_children(node);
  }

  void set(size_t index, T value) {
    size_t node = leaves_ + index;
    nodes_[node] = value;
    while (node > 1) {
      node /= 2;
      const T least = of_children(node);
      if (nodes_[node] == least) return;
      nodes_[node] = least;
    }
  }

  T value() const { return nodes_[1]; }
  size_t index() const { return first_below(1); }
  /// The least of all others; the largest number where there are none.
  T value_without(size_t index) const {
    T least = kNone;
    for (size_t node = leaves_ + index; node > 1; node /= 2)
      least = std::min(least, nodes_[node ^ 1]);
    return least;
  }
  /// The first that is the least, looking from `from` to the end, then from the start.
  size_t index_from(size_t from) const {
    size_t node = leaves_ + from;
    if (nodes_[node] == value()) return from;
    for (; node > 1; node /= 2) {
      const bool left = node % 2 == 0;
      if (left && nodes_[node + 1] == value()) return first_below(node + 1);
    }
    return index();
  }

 private:
  static constexpr T kNone = std::numeric_limits<T>::has_infinity
                                 ? std::numeric_limits<T>::infinity()
                                 : std::numeric_limits<T>::max();
  T of_children(size_t node) const { return std::min(nodes_[2 * node], nodes_[2 * node + 1]); }
  size_t first_below(size_t node) const {
    while (node < leaves_) node = 2 * node + (nodes_[2 * node] == nodes_[node] ? 0 : 1);
    return node - leaves_;
  }

  size_t leaves_;
  std::vector<T> nodes_;  ///< the root is 1, the children of n are 2 n and 2 n + 1
};

}  // namespace tilecast
