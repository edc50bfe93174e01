// The output layer and the cross entropy in one function, which never has all logits in memory:
// Liger Kernel 0.8's LigerFusedLinearCrossEntropyFunction (ops/fused_linear_cross_entropy.py), for
// a mean loss without bias, on GPUs with compute capability 8.0 or more and PyTorch 2.8 or newer.
// The forward pass computes the gradients of both inputs.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/gradient.h"
#include "ops/matmul_sizes.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// FLOPs of an element of the logits: maximum and sum of exponentials (4), then the gradient (4).
constexpr int64_t kLossFlops = 8;

struct ChunkedSizes {
  int64_t rows, hidden, vocabulary;
  int64_t chunk;     ///< rows, at most
  DType dtype;       ///< that products have
  bool converts;     ///< the weight is in another dtype (autocast)
  bool trains;       ///< the weight has a gradient
  bool accumulates;  ///< products add to it
};

int64_t power_of_two_from(int64_t least) {
  int64_t power = 1;
  while (power < least) power = checked_multiply(power, 2);
  return power;
}

/// As many logits at once as the hidden states have elements, in about a power of two of rows.
ChunkedSizes chunked_sizes(const OpContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1), &labels = context.input(2);
  if (x.shape.empty() || w.shape.size() != 2 || x.shape.back() != w.shape[1])
    context.fail(fmt::format("expected x [..., k] and a weight [n, k], found {} and {}",
                             format_shape(x.shape), format_shape(w.shape)));
  ChunkedSizes s{.rows = element_count(labels.shape),
                 .hidden = w.shape[1],
                 .vocabulary = w.shape[0],
                 .chunk = 0,
                 .dtype = x.dtype,
                 .converts = false,
                 .trains = !context.graph.tensor(w.storage).frozen,
                 .accumulates = false};
  if (s.rows < 1 || checked_multiply(s.rows, s.hidden) != element_count(x.shape))
    context.fail(fmt::format("expected a label for each row of {}, found {}", format_shape(x.shape),
                             format_shape(labels.shape)));
  if (const AttributeValue* dtype = context.node.find_attribute("dtype"))
    s.dtype = std::get<DType>(*dtype);
  s.converts = w.dtype != s.dtype;
  s.accumulates = dtype_bits(s.dtype) == 16;
  s.chunk =
      std::min(s.rows, power_of_two_from(ceil_divide(s.rows, ceil_divide(s.vocabulary, s.hidden))));
  return s;
}

/// The loss; the gradients of x and of a weight that is trained; what lives in a chunk: logits,
/// copies of the weight for its products, or the gradient that is added to the weight's.
std::vector<TensorSpec> infer_linear_cross_entropy(const OpContext& context) {
  const ChunkedSizes s = chunked_sizes(context);
  const Tensor &x = context.input(0), &w = context.input(1);
  std::vector<TensorSpec> specs = {{.shape = {1}, .dtype = DType::kFp32},
                                   {.shape = x.shape, .dtype = x.dtype}};
  if (s.trains) specs.push_back({.shape = w.shape, .dtype = w.dtype});
  specs.push_back({.shape = {s.chunk, s.vocabulary}, .dtype = s.dtype});
  if (s.converts) specs.push_back({.shape = {2, s.vocabulary, s.hidden}, .dtype = s.dtype});
  if (s.trains && !s.accumulates) specs.push_back({.shape = w.shape, .dtype = w.dtype});
  return specs;
}

class ChunkedWork {
 public:
  ChunkedWork(const OpContext& context, std::vector<Kernel>& kernels)
      : s_(chunked_sizes(context)),
        input_(context.input(0).dtype),
        weight_(context.input(1).dtype),
        weights_(checked_multiply(s_.vocabulary, s_.hidden)),
        kernels_(kernels) {}

  void run() {
    fill(input_, checked_multiply(s_.rows, s_.hidden));
    if (s_.trains) fill(weight_, weights_);
    fill(DType::kFp32, s_.rows);
    count_labels();
    for (int64_t at = 0; at < s_.rows; at += s_.chunk)
      chunk(std::min(s_.chunk, s_.rows - at), at == 0);
    stream(1, s_.rows, DType::kFp32, bytes(DType::kFp32, s_.rows), bytes(DType::kFp32, 1));
  }

 private:
  static int64_t bytes(DType dtype, int64_t elements) {
    return checked_multiply(elements, dtype_bits(dtype)) / kBitsPerByte;
  }

  void stream(int64_t rows, int64_t elements, DType dtype, int64_t read, int64_t write) {
    kernels_.push_back({.shape = Stream{rows, elements},
                        .dtype = dtype,
                        .flops = 0,
                        .read_bytes = read,
                        .write_bytes = write});
  }

  void fill(DType dtype, int64_t elements) {
    stream(1, elements, dtype, 0, bytes(dtype, elements));
  }

  void convert(DType from, DType to, int64_t elements) {
    stream(1, elements, to, bytes(from, elements), bytes(to, elements));
  }

  /// The host reads how many labels are not ignored.
  void count_labels() {
    stream(1, s_.rows, DType::kInt64, bytes(DType::kInt64, s_.rows), bytes(DType::kBool, s_.rows));
    stream(1, s_.rows, DType::kBool, bytes(DType::kBool, s_.rows), bytes(DType::kInt64, 1));
    stream(1, 1, DType::kInt64, bytes(DType::kInt64, 1), bytes(DType::kInt64, 1));
    kernels_.back().host.waits = true;
  }

  /// `more_read_bytes`: of what the product is added to.
  void product(const Gemm& sizes, DType out, int64_t more_read_bytes = 0) {
    Kernel kernel{.shape = sizes, .dtype = s_.dtype};
    kernel.flops = checked_product({2, sizes.m, sizes.n, sizes.k});
    const int64_t operands = bytes(s_.dtype, checked_add(checked_multiply(sizes.m, sizes.k),
                                                         checked_multiply(sizes.k, sizes.n)));
    kernel.read_bytes = checked_add(operands, more_read_bytes);
    kernel.write_bytes = bytes(out, checked_multiply(sizes.m, sizes.n));
    kernels_.push_back(kernel);
  }

  void chunk(int64_t rows, bool first) {
    const int64_t hidden = checked_multiply(rows, s_.hidden);
    const bool converts_input = input_ != s_.dtype;
    if (converts_input) convert(input_, s_.dtype, hidden);
    if (s_.converts) convert(weight_, s_.dtype, weights_);  // a view, which autocast does not keep
    const auto of_length = [](int64_t length) { return std::min<int64_t>(8, length & -length); };
    const int64_t alignment = std::min(of_length(s_.vocabulary), of_length(s_.hidden));
    product(
        {.m = rows, .n = s_.vocabulary, .k = s_.hidden, .row_alignment = alignment, .trans_b = 1},
        s_.dtype);
    loss(rows);
    if (s_.converts && first) convert(weight_, s_.dtype, weights_);
    product({.m = rows, .n = s_.hidden, .k = s_.vocabulary, .row_alignment = alignment}, s_.dtype);
    if (converts_input) convert(s_.dtype, input_, hidden);
    if (s_.trains) weight_gradient(rows, alignment);
  }

  void weight_gradient(int64_t rows, int64_t alignment) {
    if (input_ != s_.dtype) convert(input_, s_.dtype, checked_multiply(rows, s_.hidden));
    const Gemm gradient{
        .m = s_.vocabulary, .n = s_.hidden, .k = rows, .row_alignment = alignment, .trans_a = 1};
    const int64_t own = bytes(weight_, weights_);
    product(gradient, weight_, s_.accumulates ? own : 0);
    if (!s_.accumulates) stream(1, weights_, weight_, checked_multiply(2, own), own);
  }

  /// The logits become their gradient in place; the losses of the rows are copied to themselves.
  void loss(int64_t rows) {
    const int64_t elements = checked_multiply(rows, s_.vocabulary);
    Kernel kernel{.shape = Rows{rows, s_.vocabulary, Rows::Function::kSoftmax}, .dtype = s_.dtype};
    kernel.flops = checked_multiply(elements, kLossFlops);
    kernel.read_bytes = checked_add(bytes(s_.dtype, elements), bytes(DType::kInt64, rows));
    kernel.write_bytes = checked_add(bytes(s_.dtype, elements), bytes(DType::kFp32, rows));
    kernels_.push_back(kernel);
    convert(DType::kFp32, DType::kFp32, rows);
  }

  const ChunkedSizes s_;
  const DType input_, weight_;
  const int64_t weights_;  ///< elements
  std::vector<Kernel>& kernels_;
};

void work_linear_cross_entropy(const OpContext& context, std::vector<Kernel>& kernels) {
  ChunkedWork(context, kernels).run();
}

/// The gradients are there; the host only looks whether that of the loss is 1.
void backward_linear_cross_entropy(GradientBuilder& g, const Node& node) {
  g.op("item", {g.gradient(node.outputs[0])});
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], node.outputs[i + 1]);
  }
}

/// `columns` are those of the vocabulary, which is large beside the hidden size.
Operands linear_cross_entropy_operands(GraphBuilder& b, const GivenSizes& s) {
  constexpr int64_t kVocabularyOverHidden = 8;
  const int64_t hidden = std::max<int64_t>(1, s["columns"] / kVocabularyOverHidden);
  return {{b.input("x", {s["rows"], hidden}, s.dtype()),
           b.input("w", {s["columns"], hidden}, s.dtype()),
           b.input("labels", {s["rows"]}, DType::kInt64)},
          {}};
}

}  // namespace

std::vector<OpDef> chunked_loss_ops() {
  return {{.name = "linear_cross_entropy",
           .doc =
               "output layer and cross entropy of x [rows, k], weight [n, k] and labels, some "
               "rows at a time: the loss, and the gradients of x and of a weight that is trained",
           .aten = "",
           .onnx = "",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{.name = "dtype",
                           .doc = "of the products (autocast); default: that of x",
                           .type = AttributeType::kDType}},
           .infer = infer_linear_cross_entropy,
           .work = work_linear_cross_entropy,
           .backward = backward_linear_cross_entropy,
           .operands = linear_cross_entropy_operands,
           .example = "x: bf16[64, 32] w: bf16[256, 32] l: int64[64]"}};
}

}  // namespace tilecast
