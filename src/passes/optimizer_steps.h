#pragma once

// What an optimizer launches to update the parameters of a group: all of a dtype in one list, or
// one parameter after the other.

#include "graph/graph.h"
#include "ops/builder.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Whether a parameter has states of 8 bits, which one table for each of both states explains.
bool has_8bit_states(Optimizer optimizer, const Shape& shape);

/// Adds the kernels of one update to the current segment.
class OptimizerSteps {
 public:
  /// `shape`: of the parameter, or of the list as one vector.
  OptimizerSteps(Graph& graph, DType dtype, Shape shape);

  /// The gradients of a scaled loss.
  void unscale();
  void run(Optimizer optimizer, OptimizerImpl impl);
  /// The step on fp32 copies of 16-bit parameters.
  void on_main_copies(Optimizer optimizer, OptimizerImpl impl);
  /// Adam's step where the states are in the host's memory: gradients go there, parameters back.
  void on_host(MainParams main_params);
  /// A variable keeps a tensor of so many elements from the update before until this one has its
  /// own.
  void set_elements_before(int64_t elements) { elements_before_ = elements; }

 private:
  void adam(Optimizer optimizer, OptimizerImpl impl);
  void fused_adam(const std::vector<TensorId>& inputs);

  // muon.cc
  void muon();
  TensorId orthogonal(TensorId update);
  /// aᵀ or bᵀ as the flags say; of three dimensions a product for each index.
  TensorId product(TensorId a, TensorId b, const char* transposed);

  // adafactor.cc
  void adafactor();
  TensorId variance_of_vector();
  TensorId variance_of_matrix();
  void factor(size_t dim, TensorId state);
  void read_norm(TensorId of);

  // bitsandbytes.cc
  void bitsandbytes(Optimizer optimizer);

  /// An optimizer state, or a reference, of this shape and dtype.
  TensorId tensor(const char* name, TensorKind kind, Shape shape, DType dtype);
  /// Of the parameter's shape and dtype.
  TensorId like(const char* name, TensorKind kind);
  /// Writes into tensors that exist already.
  void convert(TensorId from, DType to);
  /// A kernel that works in place.
  void step(const char* op, std::vector<TensorId> inputs, const char* name = "optimizer.step",
            std::vector<Attribute> attributes = {});
  /// A kernel that makes a tensor.
  TensorId make(const char* op, std::vector<TensorId> inputs,
                std::vector<Attribute> attributes = {});
  /// A Python variable has kept the tensors until now.
  void hold(std::vector<TensorId> ids);

  Graph& graph_;
  GraphBuilder builder_;
  DType dtype_;
  Shape shape_;
  int64_t elements_before_ = 0;
  TensorId parameters_, gradients_;
};

}  // namespace tilecast
