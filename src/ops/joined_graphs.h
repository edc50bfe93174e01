#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "ops/builder.h"

namespace tilecast {

/// Copies whole graphs of modules, one after the other, into a new one.
class JoinedGraphs {
 public:
  /// Called before each segment of a graph, with its tensors in the new graph.
  using Before = std::function<void(const Segment&, std::vector<TensorId>& now)>;

  GraphBuilder& builder() { return b_; }
  /// Returns the tensors of `from` in the new graph.
  std::vector<TensorId> add(const Graph& from, const Before& before = nullptr);
  Graph done() { return std::move(to_); }

 private:
  Graph to_;
  GraphBuilder b_{to_};
};

}  // namespace tilecast
