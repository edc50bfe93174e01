// Matrix products, and Einsum as products.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "importers/onnx/einsum.h"
#include "importers/onnx/shapes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// An operand of a batched product, repeated along the dimensions of the other.
TensorId operand(OnnxCall& call, TensorId x, const Shape& leading) {
  Shape shape = call.shape_of(x);
  Shape wide = leading;
  wide.insert(wide.end(), shape.end() - 2, shape.end());
  if (shape.size() < wide.size()) {
    shape.insert(shape.begin(), wide.size() - shape.size(), 1);
    x = call.reshape(x, shape);
  }
  return call.expand(x, wide);
}

Shape leading_of(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

}  // namespace

/// A matrix [k, n] that every row of x is multiplied with: a linear layer. Exporters store the
/// transposed weight of torch.nn.Linear, so the layer's own is [n, k].
static TensorId linear(OnnxCall& call, TensorId x, size_t weight) {
  call.name_after(weight);
  const OnnxTensor* stored = call.weight(weight);
  if (stored != nullptr && call.only_in_products(weight))
    return call.op("linear", {x, call.swapped_weight(weight)});
  if (call.value(weight).transpose_of >= 0)
    return call.op("linear", {x, call.value(weight).transpose_of});
  return call.op("linear", {x, call.tensor(weight)}, {{"weight_layout", 1}});
}

TensorId product(OnnxCall& call, TensorId a, TensorId b) {
  const Shape sa = call.shape_of(a), sb = call.shape_of(b);
  if (sa.empty() || sb.empty()) call.fail("expected matrices, found a scalar");
  // Vectors become matrices of one row or column.
  Shape wide_a = sa, wide_b = sb;
  if (sa.size() == 1) wide_a = {1, sa[0]};
  if (sb.size() == 1) wide_b = {sb[0], 1};
  a = call.reshape(a, wide_a);
  b = call.reshape(b, wide_b);
  if (wide_a.back() != wide_b[wide_b.size() - 2])
    call.fail(fmt::format("inner dimensions differ: {} x {} ({} != {})", format_shape(sa),
                          format_shape(sb), wide_a.back(), wide_b[wide_b.size() - 2]));
  TensorId y = -1;
  Shape shape;
  if (wide_b.size() == 2) {
    // One product for all rows of a.
    shape = wide_a;
    shape.back() = wide_b.back();
    y = call.op("gemm", {a, b});
    y = call.reshape(y, shape);
  } else {
    const Shape leading = broadcast_shapes(call, leading_of(wide_a), leading_of(wide_b));
    y = call.op("matmul", {operand(call, a, leading), operand(call, b, leading)});
    shape = call.shape_of(y);
  }
  if (sa.size() == 1) shape.erase(shape.end() - 2);
  if (sb.size() == 1) shape.pop_back();
  return call.reshape(y, shape);
}

namespace {

void translate_matmul(OnnxCall& call) {
  const bool weight = call.has(1) && call.shape(1).size() == 2 &&
                      (call.weight(1) != nullptr || call.value(1).transpose_of >= 0);
  if (weight && !call.shape(0).empty()) return call.set(0, linear(call, call.tensor(0), 1));
  call.set(0, product(call, call.tensor(0), call.tensor(1)));
}

void translate_gemm(OnnxCall& call) {
  TensorId a = call.tensor(0);
  if (call.integer("transA", 0) != 0) a = call.transpose(a, {1, 0});
  const bool transposed = call.integer("transB", 0) != 0;
  const bool biased = call.has(2) && call.shape(2).size() <= 1;
  const Shape shape = call.shape(1);
  if (shape.size() != 2) call.fail("expected a matrix as the second operand");
  if (biased && element_count(call.shape(2)) == shape[transposed ? 0 : 1]) {
    call.name_after(1);
    return call.set(0, call.op("linear", {a, call.tensor(1), call.tensor(2)},
                               {{"weight_layout", transposed ? 0 : 1}}));
  }
  TensorId y = -1;
  if (call.weight(1) != nullptr) {
    call.name_after(1);
    y = call.op("linear", {a, call.tensor(1)}, {{"weight_layout", transposed ? 0 : 1}});
  } else {
    y = call.op("gemm", {a, call.tensor(1)}, {{"transpose_b", transposed ? 1 : 0}});
  }
  const bool added = call.has(2) && call.number("beta", 1) != 0;
  call.set(0, added ? call.op("add", {y, call.tensor(2)}) : y);
}

/// A step of Einsum: dimensions of an operand in the order [kept by both, own, summed].
TensorId arranged(OnnxCall& call, TensorId x, const std::string& letters,
                  const std::string& order) {
  Shape permutation;
  for (const char letter : order) permutation.push_back(static_cast<int64_t>(letters.find(letter)));
  return call.transpose(x, permutation);
}

/// Sums over the letters that nothing else needs.
TensorId summed(OnnxCall& call, TensorId x, std::string& letters, const std::string& needed) {
  Shape axes;
  std::string left;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (needed.find(letters[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      left += letters[i];
    }
  }
  letters = left;
  return axes.empty() ? x : call.reduce("reduce_sum", x, axes, false);
}

struct Term {
  TensorId tensor;
  std::string letters;
};

/// The product of two terms, as one batched matrix product.
Term contract(OnnxCall& call, Term a, Term b, const std::string& needed) {
  a.tensor = summed(call, a.tensor, a.letters, needed + b.letters);
  b.tensor = summed(call, b.tensor, b.letters, needed + a.letters);
  std::string both, left, right, inner;
  for (const char c : a.letters) {
    const bool in_b = b.letters.find(c) != std::string::npos;
    const bool kept = needed.find(c) != std::string::npos;
    (in_b ? kept ? both : inner : left) += c;
  }
  for (const char c : b.letters) {
    if (a.letters.find(c) == std::string::npos) right += c;
  }
  const auto size = [&](const Term& term, const std::string& letters) {
    int64_t product = 1;
    for (const char c : letters)
      product = checked_multiply(product, call.shape_of(term.tensor)[term.letters.find(c)]);
    return product;
  };
  Shape result;
  const auto append = [&](const Term& term, const std::string& letters) {
    for (const char c : letters) result.push_back(call.shape_of(term.tensor)[term.letters.find(c)]);
  };
  append(a, both);
  append(a, left);
  append(b, right);
  const int64_t batch = size(a, both), m = size(a, left), k = size(a, inner), n = size(b, right);
  if (size(b, both) != batch || size(b, inner) != k) call.fail("sizes of the same letter differ");
  const TensorId x =
      call.reshape(arranged(call, a.tensor, a.letters, both + left + inner), {batch, m, k});
  const TensorId y =
      call.reshape(arranged(call, b.tensor, b.letters, both + inner + right), {batch, k, n});
  const TensorId z = call.op("matmul", {x, y});
  return {call.reshape(z, result), both + left + right};
}

void translate_einsum(OnnxCall& call) {
  const EinsumTerms terms = parse_einsum(call);
  std::vector<Term> left;
  for (size_t i = 0; i < terms.inputs.size(); ++i)
    left.push_back({call.tensor(i), terms.inputs[i]});
  while (left.size() > 1) {
    std::string needed = terms.output;
    for (size_t i = 2; i < left.size(); ++i) needed += left[i].letters;
    left[0] = contract(call, left[0], left[1], needed);
    left.erase(left.begin() + 1);
  }
  Term& last = left[0];
  last.tensor = summed(call, last.tensor, last.letters, terms.output);
  if (last.letters.size() != terms.output.size()) call.fail("the equation repeats a letter");
  call.set(0, arranged(call, last.tensor, last.letters, terms.output));
}

}  // namespace

std::vector<OnnxOp> onnx_product_ops() {
  return {{"MatMul", translate_matmul}, {"Gemm", translate_gemm}, {"Einsum", translate_einsum}};
}

}  // namespace tilecast
