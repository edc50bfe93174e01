// The kernels that eager PyTorch launches for sparse attention and hyper-connections. Source:
// transformers 5.23, modeling_deepseek_v32.py and modeling_deepseek_v4.py: the indexer's scores are
// matrix products, selected keys become a mask, attention is dense.

#include "base/checked.h"
#include "ops/decompose.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

class SparseDecomposition {
 public:
  SparseDecomposition(GraphBuilder& builder, const Node& node) : b_(builder), n_(node) {}

  TensorId op(std::string_view op, std::vector<TensorId> inputs,
              std::vector<Attribute> attributes = {}) {
    return b_.op(op, std::move(inputs), n_.name, std::move(attributes));
  }
  TensorId view(TensorId x, Shape shape) { return op("view", {x}, {{"shape", std::move(shape)}}); }
  TensorId transpose(TensorId x, Shape order) {
    return op("transpose", {x}, {{"order", std::move(order)}});
  }
  Shape shape(TensorId id) const { return b_.graph().tensor(id).shape; }
  int64_t number(std::string_view name) const { return attribute<int64_t>(n_, name); }

 private:
  GraphBuilder& b_;
  const Node& n_;
};

}  // namespace

std::vector<TensorId> decompose_indexer(GraphBuilder& b, const Node& node, const EagerForm&) {
  SparseDecomposition f(b, node);
  const Shape q = f.shape(node.inputs[0]), k = f.shape(node.inputs[1]);
  const int64_t heads = f.number("heads"), tokens = q[0] * q[1];
  const TensorId flat = f.view(node.inputs[0], {q[0], q[1] * heads, k[2]});
  if (const int64_t block = f.number("block"); block > 1) {  // MiniMax M3, in fp32
    const auto wide = [&](TensorId x) { return f.op("cast", {x}, {{"dtype", DType::kFp32}}); };
    TensorId scores = f.op("matmul", {wide(flat), wide(f.transpose(node.inputs[1], {0, 2, 1}))});
    const int64_t blocks = ceil_divide(k[1], block), pad = blocks * block - k[1];
    if (pad > 0) scores = f.op("pad", {scores}, {{"pads", Shape{0, 0, 0, 0, 0, pad}}});
    const TensorId split = f.view(scores, {q[0], q[1] * heads, blocks, block});
    const TensorId best =
        f.op("reduce_max", {split}, {{"shape", Shape{q[0], q[1] * heads, blocks}}});
    return {f.op("top_keys", {best}, {{"top_k", ceil_divide(f.number("top_k"), block)}})};
  }
  const TensorId scores =
      f.op("relu", {f.op("matmul", {flat, f.transpose(node.inputs[1], {0, 2, 1})})});
  const TensorId wide = f.view(scores, {tokens, heads, k[1]});
  TensorId sums;
  if (f.number("ratio") == 1) {
    sums = f.op("matmul", {f.view(node.inputs[2], {tokens, 1, heads}), wide});
  } else {  // DeepSeek-V4
    const TensorId weighted = f.op("mul", {wide, f.view(node.inputs[2], {tokens, heads, 1})});
    sums = f.op("reduce_sum", {weighted}, {{"shape", Shape{tokens, 1, k[1]}}});
  }
  return {f.op("top_keys", {f.view(sums, {q[0], q[1], k[1]})}, {{"top_k", f.number("top_k")}})};
}

std::vector<TensorId> decompose_compressed_attention(GraphBuilder& b, const Node& node,
                                                     const EagerForm& form) {
  SparseDecomposition f(b, node);
  const Shape q = f.shape(node.inputs[0]);
  TensorId keys = node.inputs[1];
  if (node.inputs.size() > 2) keys = f.op("cat", {keys, node.inputs[2]}, {{"dim", 1}});
  if (form.fused_attention) {
    const TensorId rows = f.transpose(node.inputs[0], {0, 2, 1, 3});
    const TensorId context = f.op("sparse_attention", {rows, keys},
                                  {{"keys", q[2]},
                                   {"window", f.number("window")},
                                   {"ratio", f.number("ratio")},
                                   {"top_k", f.number("top_k")}});
    return {f.view(context, {q[0], q[2], q[1] * q[3]})};
  }
  // All heads of a sequence share its keys.
  const TensorId flat = f.view(f.op("copy", {node.inputs[0]}), {q[0], q[1] * q[2], q[3]});
  const TensorId scores = f.op("matmul", {flat, f.transpose(keys, {0, 2, 1})});
  const TensorId weights = f.op("softmax", {f.op("mul_scalar", {scores})});
  const TensorId context = f.view(f.op("matmul", {weights, keys}), q);
  return {f.view(f.op("copy", {f.transpose(context, {0, 2, 1, 3})}), {q[0], q[2], q[1] * q[3]})};
}

std::vector<TensorId> decompose_update_streams(GraphBuilder& b, const Node& node,
                                               const EagerForm&) {
  SparseDecomposition f(b, node);
  const Shape x = f.shape(node.inputs[0]);
  const int64_t n = f.number("streams"), tokens = checked_multiply(x[0], x[1]), width = x[2] / n;
  const TensorId mix =
      f.op("slice_columns", {node.inputs[2]}, {{"columns", checked_multiply(n, n)}});
  const TensorId mixed = f.op("matmul", {f.view(f.op("copy", {mix}), {tokens, n, n}),
                                         f.view(node.inputs[0], {tokens, n, width})});
  const TensorId share = f.op("slice_columns", {node.inputs[2]}, {{"columns", n}});
  const TensorId added = f.op("mul", {f.view(f.op("copy", {share}), {tokens, n, 1}),
                                      f.view(node.inputs[1], {tokens, 1, width})});
  return {f.view(f.op("add", {mixed, added}), x)};
}

}  // namespace tilecast
