// Which views take a copy in eager PyTorch, and how operators lay out their results.

#include <algorithm>
#include <array>

#include "ops/op_def.h"
#include "ops/strides.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tilecast {
namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

/// Operators that write their result with the channels last if the image is
/// (at::suggest_memory_format).
bool keeps_channels_last(std::string_view op) {
  return is_one_of(op, {"conv2d", "conv", "batch_norm", "max_pool2d", "max_pool", "avg_pool",
                        "adaptive_pool", "resize", "upsample", "pad", "pad2d", "cat"});
}

class CopyPlacer {
 public:
  CopyPlacer(const Graph& graph, const EagerForm& form) : from_(graph), form_(form) {}

  Graph run() {
    Rewriter rewriter(from_, [this](GraphBuilder& b, const Node& node, std::vector<TensorId> in) {
      b_ = &b;
      node_ = &node;
      return place(op_def(node.op).name, std::move(in));
    });
    return rewriter.run();
  }

 private:
  const Shape& shape(TensorId id) const { return b_->graph().tensor(id).shape; }

  Layout layout(TensorId id) const {
    const auto i = static_cast<size_t>(id);
    return i < strides_.size() && !strides_[i].empty() ? Layout{shape(id), strides_[i]}
                                                       : row_major(shape(id));
  }

  TensorId laid_out(TensorId id, const Layout& layout) {
    const auto i = static_cast<size_t>(id);
    if (strides_.size() <= i) strides_.resize(i + 1);
    strides_[i] = layout.strides;
    return id;
  }

  TensorId op(std::string_view name, std::vector<TensorId> inputs,
              std::vector<Attribute> attributes = {}) {
    return b_->op(name, std::move(inputs), node_->name, std::move(attributes));
  }

  TensorId copy(TensorId x) { return op("copy", {x}); }
  TensorId dense(TensorId x) { return is_row_major(layout(x)) ? x : copy(x); }

  TensorId view(TensorId x, const Shape& to) {
    std::optional<Layout> seen = viewed(layout(x), to);
    if (!seen) {
      x = copy(x);
      seen = row_major(to);
    }
    return laid_out(op("view", {x}, {{"shape", to}}), *seen);
  }

  TensorId transpose(TensorId x, const Shape& order) {
    return laid_out(op("transpose", {x}, {{"order", order}}), transposed(layout(x), order));
  }

  TensorId expand(TensorId x, const Shape& to) {
    return laid_out(op("expand", {x}, {{"shape", to}}), expanded(layout(x), to));
  }

  /// The node with its results in the layout of `like`, or by rows.
  std::vector<TensorId> keep(std::vector<TensorId> inputs, const Layout* like = nullptr) {
    std::vector<TensorId> outputs =
        b_->add(op_def(node_->op).name, std::move(inputs), node_->name, node_->attributes);
    if (like != nullptr) laid_out(outputs[0], *like);
    return outputs;
  }

  std::vector<TensorId> place(std::string_view name, std::vector<TensorId> inputs) {
    if (name == "view") return {view(inputs[0], attribute<Shape>(*node_, "shape"))};
    if (name == "transpose") return {transpose(inputs[0], attribute<Shape>(*node_, "order"))};
    if (name == "expand") return {expand(inputs[0], attribute<Shape>(*node_, "shape"))};
    if (is_one_of(name, {"split", "slice", "slice_columns", "slice_rows"}))
      return part(std::move(inputs));
    if (name == "copy") return {dense(inputs[0])};
    if (name == "linear") return {linear(inputs)};
    if (name == "gemm") return {gemm(inputs)};
    if (name == "matmul") return {matmul(inputs)};
    const bool rows = name == "softmax" && node_->find_attribute("dim") == nullptr;
    // The kernels read rows (Tensor::expect_contiguous); on GPUs that of group norm too
    // (ATen/native/group_norm.cpp).
    if (rows || is_one_of(name, {"layer_norm", "rms_norm", "log_softmax", "group_norm"}))
      inputs[0] = dense(inputs[0]);
    if (op_def(node_->op).pointwise_flops || name == "cast") return pointwise(std::move(inputs));
    if (keeps_channels_last(name)) {
      const bool last =
          std::all_of(inputs.begin(), inputs.begin() + (name == "cat" ? inputs.size() : 1),
                      [&](TensorId id) { return is_channels_last(layout(id)); });
      std::vector<TensorId> outputs = keep(std::move(inputs));
      if (last && shape(outputs[0]).size() == 4)
        laid_out(outputs[0], channels_last(shape(outputs[0])));
      return outputs;
    }
    return keep(std::move(inputs));
  }

  /// Parts of a dimension, as views.
  std::vector<TensorId> part(std::vector<TensorId> inputs) {
    const Layout whole = layout(inputs[0]);
    std::vector<TensorId> outputs = keep(std::move(inputs));
    for (const TensorId id : outputs) laid_out(id, {shape(id), whole.strides});
    return outputs;
  }

  std::vector<TensorId> pointwise(std::vector<TensorId> inputs) {
    std::vector<Layout> operands;
    for (const TensorId id : inputs) operands.push_back(layout(id));
    std::vector<TensorId> outputs = keep(std::move(inputs));
    const Shape& to = shape(outputs[0]);
    if (std::all_of(operands.begin(), operands.end(),
                    [&](const Layout& l) { return l.shape.size() <= to.size(); }))
      laid_out(outputs[0], pointwise_layout(to, operands));
    return outputs;
  }

  /// A matrix, or matrices, as BLAS takes them: stored by rows or by columns.
  TensorId stored(TensorId x, int64_t& is_transposed) {
    const Layout now = layout(x);
    const size_t rank = now.shape.size();
    if (rank < 2 || is_transposed != 0) return x;
    const bool by_columns =
        now.strides[rank - 1] != 1 && now.shape[rank - 1] != 1 && now.strides[rank - 2] == 1;
    if (!by_columns) return x;
    is_transposed = 1;
    Shape order;
    for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
    std::swap(order[rank - 1], order[rank - 2]);
    return transpose(x, order);
  }

  TensorId product(TensorId a, TensorId b, std::array<int64_t, 2> turned) {
    if (!is_batch_of_matrices(layout(a))) a = copy(a);
    if (!is_batch_of_matrices(layout(b))) b = copy(b);
    a = stored(a, turned[0]);
    b = stored(b, turned[1]);
    std::vector<Attribute> attributes;
    if (turned[0] != 0) attributes.push_back({"transpose_a", 1});
    if (turned[1] != 0) attributes.push_back({"transpose_b", 1});
    return op("matmul", {a, b}, std::move(attributes));
  }

  TensorId matmul(const std::vector<TensorId>& in) {
    return product(
        in[0], in[1],
        {attribute<int64_t>(*node_, "transpose_a"), attribute<int64_t>(*node_, "transpose_b")});
  }

  /// Whether torch.matmul multiplies all rows at once, and not each matrix of a batch: a gradient
  /// of the matrix would have to be summed over the batch.
  bool folds(TensorId x, TensorId matrix) const {
    const bool gradient = form_.training || b_->graph().tensor(matrix).kind == TensorKind::kWeight;
    return shape(x).size() < 3 || gradient || has_foldable_rows(layout(x));
  }

  /// The rows as a matrix, without a copy where that is possible.
  TensorId rows(TensorId x) {
    const Layout now = layout(x);
    const Shape flat = {element_count(now.shape) / now.shape.back(), now.shape.back()};
    return viewed(now, flat) ? x : copy(x);
  }

  /// One kernel where the rows are dense (at::addmm); else torch.matmul, and a kernel for the bias
  /// (ATen/native/Linear.cpp).
  TensorId linear(const std::vector<TensorId>& in) {
    if (shape(in[0]).size() < 3 || is_row_major(layout(in[0]))) return keep(in)[0];
    const TensorId y = op("linear", {rows(in[0]), in[1]}, node_->attributes);
    return in.size() == 3 ? op("add", {y, in[2]}) : y;
  }

  /// A matrix of all rows by a matrix; the result has two dimensions.
  TensorId gemm(std::vector<TensorId> in) {
    const auto turned_a = attribute<int64_t>(*node_, "transpose_a");
    const auto turned_b = attribute<int64_t>(*node_, "transpose_b");
    const bool plain = turned_a == 0 && shape(in[1]).size() == 2;
    if (plain && !folds(in[0], in[1])) {
      Shape wide = shape(in[0]);
      std::copy(shape(in[1]).begin(), shape(in[1]).end(), wide.end() - 2);
      const TensorId y = product(in[0], expand(in[1], wide), {0, turned_b});
      return view(y, {element_count(shape(y)) / shape(y).back(), shape(y).back()});
    }
    if (plain) in[0] = rows(in[0]);
    return keep(std::move(in))[0];
  }

  const Graph& from_;
  const EagerForm& form_;
  GraphBuilder* b_ = nullptr;
  const Node* node_ = nullptr;
  std::vector<Shape> strides_;  ///< by tensor of the new graph; empty: by rows
};

}  // namespace

Graph place_copies(const Graph& graph, const EagerForm& form) {
  Graph result = CopyPlacer(graph, form).run();
  validate_if_debug(result);
  return result;
}

}  // namespace tilecast
