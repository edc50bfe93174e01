#pragma once

// Graphs that are alike but for sizes that follow one number, the batch. Goal: to build some of
// them and to have all others for the price of writing those sizes. Alternative ruled out: sizes as
// formulas of the batch in all importers and passes, for which each of them would need to change.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

class GraphFamily {
 public:
  /// Batches whose graphs determine the graphs of all batches from the first to the last: two
  /// neighbours and the largest, in rising order.
  using Batches = std::array<int64_t, 3>;

  /// nullopt if the graphs of these batches differ in more than sizes of tensors and whole numbers
  /// of attributes, or if one of them is no linear function of the batch.
  ///
  /// Why three graphs are enough: a size between two linear functions that it touches (a minimum, a
  /// maximum, a product of sizes) is concave or convex, so that it is linear in the whole range if
  /// it is in three places of it. A multiple of the batch that is rounded takes steps of two
  /// lengths only, so that all its steps are alike if their sum is a multiple of the first.
  static std::optional<GraphFamily> find(const Batches& batches,
                                         const std::array<const Graph*, 3>& graphs);

  int64_t first_batch() const { return batches_.front(); }
  int64_t last_batch() const { return batches_.back(); }

  /// Makes a graph of the family the one of `batch`, which lies in its range.
  void set_batch(Graph& graph, int64_t batch) const;

 private:
  /// A whole number of a graph.
  struct Place {
    int32_t tensor = -1;  ///< whose shape it is in; -1: in an attribute
    int32_t node = -1;
    int32_t attribute = -1;
    int32_t index = -1;  ///< in the shape or list; -1: the attribute is one number
  };
  struct Size {
    Place place;
    int64_t first = 0;  ///< its value at the first batch
    int64_t step = 0;   ///< its growth from batch to batch
  };

  static std::vector<Place> places_of(const Graph& graph);
  static int64_t& at(Graph& graph, const Place& place);

  Batches batches_{};
  std::vector<Size> sizes_;  ///< those that follow the batch
};

}  // namespace tilecast
