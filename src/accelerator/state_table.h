#pragma once

// The states of a nest, each once, and what its nodes do from them. Nests of a search are evaluated
// in less than a millisecond, so that lists of their own for each state would take most of it.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "accelerator/program.h"

namespace tilecast::accelerator {

/// Canonical states, each once, one after the other in one list.
class StateTable {
 public:
  explicit StateTable(size_t size) : size_(size), free_(size) { grow(256); }

  /// Where the next state is written before `intern`.
  std::span<Ticks> scratch() { return free_; }
  /// The number of the state that was written there.
  int32_t intern() {
    const uint64_t hash = hash_of(free_);
    size_t at = hash & (places_.size() - 1);
    for (; places_[at] >= 0; at = (at + 1) & (places_.size() - 1))
      if (hashes_[static_cast<size_t>(places_[at])] == hash &&
          std::equal(free_.begin(), free_.end(), this->at(places_[at]).begin()))
        return places_[at];
    const auto id = static_cast<int32_t>(hashes_.size());
    places_[at] = id;
    hashes_.push_back(hash);
    states_.insert(states_.end(), free_.begin(), free_.end());
    if (2 * hashes_.size() > places_.size()) grow(2 * places_.size());
    return id;
  }
  /// Until the next `intern`.
  std::span<const Ticks> at(int32_t id) const {
    return std::span(states_).subspan(static_cast<size_t>(id) * size_, size_);
  }

 private:
  static uint64_t hash_of(std::span<const Ticks> state) {
    uint64_t hash = 1469598103934665603ull;  // FNV-1a over words
    for (const Ticks word : state) hash = (hash ^ static_cast<uint64_t>(word)) * 1099511628211ull;
    return hash ^ (hash >> 32);
  }
  void grow(size_t places) {
    places_.assign(places, -1);
    for (size_t id = 0; id < hashes_.size(); ++id) {
      size_t at = hashes_[id] & (places - 1);
      while (places_[at] >= 0) at = (at + 1) & (places - 1);
      places_[at] = static_cast<int32_t>(id);
    }
  }
  size_t size_;
  std::vector<Ticks> free_;
  std::vector<Ticks> states_;
  std::vector<uint64_t> hashes_;  ///< by state
  std::vector<int32_t> places_;   ///< states by hash, -1: free
};

/// Effect of a node from a state: the state after it, and the work that it adds.
struct Transition {
  int32_t to = -1;
  Ticks duration = 0;  ///< of the base, from which states are relative
  double slack = 0;    ///< by which the time may be wrong
};

/// Transitions by node and state.
class TransitionTable {
 public:
  TransitionTable() : entries_(256) {}
  const Transition* find(NodeId node, int32_t from) const {
    const Entry& entry = entries_[place(node, from)];
    return entry.node < 0 ? nullptr : &entry.transition;
  }
  void add(NodeId node, int32_t from, const Transition& transition) {
    if (2 * ++count_ > entries_.size()) {
      const std::vector<Entry> old =
          std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
      for (const Entry& entry : old)
        if (entry.node >= 0) entries_[place(entry.node, entry.from)] = entry;
    }
    entries_[place(node, from)] = {node, from, transition};
  }

 private:
  struct Entry {
    NodeId node = -1;
    int32_t from = -1;
    Transition transition;
  };
  /// Its entry, or the free one where it belongs.
  size_t place(NodeId node, int32_t from) const {
    const uint64_t key = (static_cast<uint64_t>(node) << 32) | static_cast<uint32_t>(from);
    const size_t last = entries_.size() - 1;
    size_t at = ((key * 0x9e3779b97f4a7c15ull) >> 32) & last;  // Fibonacci hashing
    while (entries_[at].node >= 0 && (entries_[at].node != node || entries_[at].from != from))
      at = (at + 1) & last;
    return at;
  }
  std::vector<Entry> entries_;
  size_t count_ = 0;
};

}  // namespace tilecast::accelerator
