// Modules that are spelled out as operators.

#include <gtest/gtest.h>

#include "ops/notation.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

std::vector<std::string> recognized(const std::string& text) {
  const Graph graph = recognize(parse_graph(text, "test"));
  validate(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.emplace_back(op_def(node.op).name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Recognize, ALayerNormWithWeightAndBias) {
  const std::string head =
      "input x: fp32[4, 8, 64]\nweight w: fp32[64]\nweight b: fp32[64]\n"
      "m = reduce_mean(x) {shape=[4, 8, 1]}\nd = sub(x, m)\n";
  const std::string tail =
      "v = reduce_mean(s) {shape=[4, 8, 1]}\na = add_scalar(v)\nr = sqrt(a)\n"
      "n = div(d, r)\ny = mul(n, w)\nz = add(y, b)\noutput z\n";
  EXPECT_EQ(recognized(head + "s = integer_pow(d)\n" + tail), Names{"layer_norm"});
  EXPECT_EQ(recognized(head + "s = mul(d, d)\n" + tail), Names{"layer_norm"});
  EXPECT_EQ(recognized(head + "s = mul(d, x)\n" + tail).size(), 9u) << "another function";
}

TEST(Recognize, AnRmsNormInHalfPrecision) {
  EXPECT_EQ(recognized("input x: bf16[4, 8, 64]\nweight w: bf16[64]\n"
                       "c = cast(x) {dtype=fp32}\ns = integer_pow(c)\n"
                       "m = reduce_mean(s) {shape=[4, 8, 1]}\na = add_scalar(m)\nr = rsqrt(a)\n"
                       "n = mul(c, r)\nh = cast(n) {dtype=bf16}\ny = mul(w, h)\noutput y\n"),
            Names{"rms_norm"});
}

TEST(Recognize, AGroupNormThatIsAnInstanceNorm) {
  const std::string text =
      "input x: fp32[2, 8, 7, 7]\nweight w: fp32[8]\nweight b: fp32[8]\nbuffer s: fp32[2]\n"
      "g = view(x) {shape=[2, 2, 196]}\nn, m, r = group_norm(g, s, s) {groups=2}\n"
      "v = view(n) {shape=[2, 8, 7, 7]}\nw3 = view(w) {shape=[8, 1, 1]}\n"
      "b3 = view(b) {shape=[8, 1, 1]}\ny = mul(v, w3)\nz = add(y, b3)\noutput z\n";
  EXPECT_EQ(recognized(text), Names{"group_norm"});
  EXPECT_EQ(recognized(text + "output y\n").size(), 7u) << "the product has another reader";
}

TEST(Recognize, Activations) {
  const std::string x = "input x: fp32[4, 64]\n";
  EXPECT_EQ(recognized(x + "a = div_scalar(x)\ne = erf(a)\ns = add_scalar(e)\nm = mul(x, s)\n"
                           "y = mul_scalar(m)\noutput y\n"),
            Names{"gelu"});
  EXPECT_EQ(recognized(x + "h = mul_scalar(x)\nc = integer_pow(x)\nk = mul_scalar(c)\n"
                           "s = add(x, k)\nt = mul_scalar(s)\nu = tanh(t)\no = add_scalar(u)\n"
                           "y = mul(h, o)\noutput y\n"),
            Names{"gelu_new"});
  EXPECT_EQ(recognized(x + "s = sigmoid(x)\ny = mul(x, s)\noutput y\n"), Names{"silu"});
  EXPECT_EQ(recognized(x + "k = mul_scalar(x)\ns = sigmoid(k)\ny = mul(x, s)\noutput y\n"),
            Names{"quick_gelu"});
  EXPECT_EQ(recognized(x + "s = sigmoid(x)\ny = mul(x, s)\nz = add(y, s)\noutput z\n"),
            (Names{"sigmoid", "mul", "add"}))
      << "the gate has another reader";
  EXPECT_EQ(recognized(x + "m = reduce_extreme(x) {shape=[4, 1]}\nd = sub(x, m)\ne = exp(d)\n"
                           "s = reduce_sum(e) {shape=[4, 1]}\ny = div(e, s)\noutput y\n"),
            Names{"softmax"});
}

TEST(Recognize, AttentionWithSharedKeyHeadsAndAMask) {
  const Names ops = recognized(
      "input q: fp32[2, 8, 16, 64]\ninput k: fp32[2, 2, 16, 64]\ninput v: fp32[2, 2, 16, 64]\n"
      "input m: fp32[1, 1, 16, 16]\n"
      "k1 = view(k) {shape=[2, 2, 1, 16, 64]}\nk2 = expand(k1) {shape=[2, 2, 4, 16, 64]}\n"
      "k3 = copy(k2)\nk4 = view(k3) {shape=[2, 8, 16, 64]}\n"
      "v1 = view(v) {shape=[2, 2, 1, 16, 64]}\nv2 = expand(v1) {shape=[2, 2, 4, 16, 64]}\n"
      "v3 = copy(v2)\nv4 = view(v3) {shape=[2, 8, 16, 64]}\n"
      "t = transpose(k4) {order=[0, 1, 3, 2]}\nt2 = copy(t)\ns = matmul(q, t2)\n"
      "c = mul_scalar(s)\na = add(c, m)\np = softmax(a)\ny = matmul(p, v4)\n"
      "z = transpose(y) {order=[0, 2, 1, 3]}\nw = copy(z)\no = view(w) {shape=[2, 16, 512]}\n"
      "output o\n");
  EXPECT_EQ(ops, (Names{"sdpa", "view", "transpose", "transpose", "copy", "view"}));
}

TEST(Recognize, WhatNoOutputNeedsIsLeftOut) {
  EXPECT_EQ(recognized("input x: fp32[4, 64]\na = relu(x)\nb = tanh(x)\noutput a\n"),
            Names{"relu"});
}

TEST(Recognize, QuantizedLayers) {
  EXPECT_EQ(recognized("input x: fp32[4, 64]\ninput w: int8[64, 32]\ninput s: fp32[1]\n"
                       "q = quantize(x, s) {dtype=int8}\nd = dequantize(q, s) {dtype=fp32}\n"
                       "u = dequantize(w, s) {dtype=fp32}\ny = gemm(d, u)\noutput y\n"),
            Names{"quantized_linear"});
}

}  // namespace
}  // namespace tilecast
