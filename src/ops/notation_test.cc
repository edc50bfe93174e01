#include "ops/notation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/builder.h"
#include "ops/gradient.h"
#include "ops/op_def.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr const char* kTwoLayers = R"(graph two
input x: fp32[4, 128]
weight e: fp32[128, 128]
segment layers x2
  weight w: fp32[128, 128]
  y = linear(x, w) "mlp.fc"
  z = relu(y)
  carry x -> z
segment head x1
  o = linear(z, e)
output o
)";

TEST(Notation, RoundTrips) {
  const Graph graph = parse_graph(kTwoLayers, "two.tcg");
  EXPECT_EQ(graph.segments.size(), 2u);
  EXPECT_EQ(graph.segments[0].repeat, 2);
  EXPECT_EQ(graph.nodes[0].name, "mlp.fc");
  const std::string once = format_graph(graph);
  EXPECT_EQ(format_graph(parse_graph(once, "again")), once);
}

TEST(Notation, RolesAreReadAndWritten) {
  const Graph graph = parse_graph(R"(graph g
input x: fp32[4, 8] role=received
weight w: fp32[8, 8] frozen role=router
segment tower x2 role=vision
  y = linear(x, w)
  z = add(x, y) {role=residual} "z"
)",
                                  "g");
  EXPECT_EQ(graph.tensors[0].role, Role::kReceived);
  EXPECT_EQ(graph.tensors[1].role, Role::kRouter);
  EXPECT_TRUE(graph.tensors[1].frozen);
  EXPECT_EQ(graph.segments[0].role, Role::kVision);
  EXPECT_EQ(graph.nodes[0].role, Role::kNone);
  EXPECT_EQ(graph.nodes[1].role, Role::kResidual);
  const std::string once = format_graph(graph);
  for (const char* part : {"input t0: fp32[4, 8] role=received", "frozen role=router",
                           "segment tower x2 role=vision", "add(t0, t2) {role=residual}"})
    EXPECT_NE(once.find(part), std::string::npos) << once;
  EXPECT_EQ(format_graph(parse_graph(once, "again")), once);
}

TEST(Notation, SaysWhichRolesThereAre) {
  const auto parse = [](const std::string& attributes) {
    return parse_graph("input x: fp32[4]\ny = relu(x) {" + attributes + "}\n", "g");
  };
  EXPECT_ERROR(
      parse("role=residuals"), kInput,
      "g:2: expected a role (residual, softmax, shared_expert, output, group, bottom_mlp), "
      "found 'residuals'; did you mean 'residual'?");
  EXPECT_ERROR(parse("role=residual"), kInput, "g:2: relu cannot have the role 'residual'");
  EXPECT_ERROR(parse_graph("input x: fp32[4] role=router\ny = relu(x)\n", "g"), kInput,
               "g:1: expected a role (received), found 'router'");
}

TEST(Notation, AttributesAreReadAndWrittenByTheirType) {
  const Graph graph = parse_graph(
      "input x: bf16[4, 128]\nweight w: fp8[64, 128]\nbuffer s: fp32[1]\n"
      "y = quantized_linear(x, w, s) {scheme=fp8_block}\nc = cast(y) {dtype=fp16}\n"
      "v = view(c) {shape=[256]}\na, b = split(v) {parts=2}\n",
      "g");
  EXPECT_EQ(attribute<QuantScheme>(graph.nodes[0], "scheme"), QuantScheme::kFp8Block);
  EXPECT_EQ(attribute<DType>(graph.nodes[1], "dtype"), DType::kFp16);
  EXPECT_EQ(attribute<Shape>(graph.nodes[2], "shape"), Shape{256});
  EXPECT_EQ(attribute<int64_t>(graph.nodes[3], "parts"), 2);
  const std::string text = format_graph(graph);
  for (const char* part : {"{scheme=fp8_block}", "{dtype=fp16}", "{shape=[256]}", "{parts=2}"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(format_graph(parse_graph(text, "again")), text);
}

constexpr const char* kTracedStep = R"(graph step
input x: fp32[8, 16]
weight w: fp32[32, 16]
weight f: fp32[32] frozen
gradient w.grad: fp32[32, 16]
segment forward x1
  y = linear(x, w, f)
  v = alias(y) {shape=[32, 8], dense=0}
  r = relu(y) into y
  s, i = stream(r) {outputs="fp32[8] int64[8]", flops=256, unmapped="aten.frob"}
  e = allocate() {outputs="bf16[4]"}
segment backward x1
  phase backward
  d = activation_backward(r, r)
  h = hold(v, s)
  g = gemm(d, x) {transpose_a=1}
  a = add_(w.grad, g)
output s
)";

TEST(Notation, KeepsTheBackwardPassOfATracedStep) {
  const Graph graph = parse_graph(kTracedStep, "step.tcg");
  EXPECT_EQ(graph.nodes[0].phase, Phase::kForward);
  EXPECT_EQ(graph.nodes.back().phase, Phase::kBackward);
  const auto named = [&](std::string_view name) {
    return std::find_if(graph.tensors.begin(), graph.tensors.end(),
                        [&](const Tensor& tensor) { return tensor.name == name; });
  };
  EXPECT_TRUE(named("f")->frozen);
  EXPECT_EQ(named("w.grad")->kind, TensorKind::kGradient);
  EXPECT_EQ(named("r")->storage, named("y")->storage);  // in place
  EXPECT_EQ(named("v")->storage, named("y")->storage);
  EXPECT_FALSE(named("v")->contiguous);
  EXPECT_EQ(named("i")->dtype, DType::kInt64);
  EXPECT_EQ(named("e")->shape, Shape{4});
  const std::string once = format_graph(graph);
  EXPECT_NE(once.find("frozen"), std::string::npos);
  EXPECT_NE(once.find(" into "), std::string::npos);
  EXPECT_NE(once.find("phase backward"), std::string::npos);
  EXPECT_EQ(format_graph(parse_graph(once, "again")), once);
}

TEST(Notation, SaysWhatIsWrongWithAPhaseOrATarget) {
  EXPECT_ERROR(parse_graph("input x: fp32[4]\nphase backwards\ny = relu(x)\n", "g"), kInput,
               "g:2: expected a phase (forward, backward, optimizer), found 'backwards'");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = relu(x) into z\n", "g"), kInput,
               "g:2: unknown tensor 'z'");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = stream(x) {outputs=\"fp32\"}\n", "g"), kInput,
               "expected a dtype and a shape like 'fp32[2, 3]', found 'fp32'");
}

TEST(Attributes, ThoseThatAreMissingHaveTheTablesDefault) {
  const Graph graph = parse_graph(
      "input x: fp32[1, 2, 8, 8]\nweight w: fp32[2, 2, 3, 3]\ny = conv2d(x, w) {stride=2}\n", "g");
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "stride"), 2);
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "padding"), 0);
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "groups"), 1);
}

TEST(Attributes, ValuesAreReadAsTheirTypesAreWritten) {
  for (const AttributeValue& value :
       {AttributeValue(int64_t{-3}), AttributeValue(0.25), AttributeValue(1e-5),
        AttributeValue(DType::kFp8), AttributeValue(QuantScheme::kNone),
        AttributeValue(QuantScheme::kInt4WeightOnly)})
    EXPECT_EQ(parse_value(static_cast<AttributeType>(value.index()), format_value(value), "x"),
              value)
        << format_value(value);
  EXPECT_EQ(parse_value(AttributeType::kText, "tanh", "x"), AttributeValue(std::string("tanh")));
  EXPECT_ERROR(parse_value(AttributeType::kNumber, "0.5x", "x"), kInput,
               "x: expected a number, found '0.5x'");
}

TEST(Attributes, ErrorsNameNodeAttributeAndWhatWasExpected) {
  const auto cast = [](std::vector<Attribute> attributes) {
    Graph graph;
    GraphBuilder b(graph);
    b.begin_segment("main", 1);
    b.op("cast", {b.input("x", {4}, DType::kFp32)}, "to", std::move(attributes));
  };
  EXPECT_NO_THROW(cast({{"dtype", DType::kBf16}}));
  EXPECT_ERROR(cast({{"dtype", 3}}), kInput,
               "node 'to' (cast): attribute 'dtype': expected a dtype, found 3");
  EXPECT_ERROR(cast({}), kInput, "attribute 'dtype' is missing");
  EXPECT_ERROR(cast({{"dtype", DType::kBf16}, {"dtype", DType::kFp16}}), kInput,
               "attribute 'dtype' is given twice");
  EXPECT_ERROR(cast({{"type", DType::kBf16}}), kInput, "unknown attribute 'type'; known: dtype");
  const auto parse = [](const std::string& node) {
    parse_graph("input x: fp32[1, 2, 8, 8]\nweight w: fp32[2, 2, 3, 3]\n" + node, "g");
  };
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=0}"), kInput,
               "g:3: node 'y' (conv2d): attribute 'stride': expected a whole number ≥ 1, found 0");
  EXPECT_ERROR(parse("y = matmul(x, x) {transpose_b=2}"), kInput,
               "attribute 'transpose_b': expected a whole number from 0 to 1, found 2");
  EXPECT_ERROR(parse("y = cast(x) {dtype=bf17}"), kInput,
               "g:3: attribute 'dtype': unknown dtype 'bf17'");
  EXPECT_ERROR(parse("y = cast(x) {dtype=3}"), kInput, "g:3: attribute 'dtype': unknown dtype '3'");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=-1}"), kInput, "≥ 1, found -1");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=fast}"), kInput,
               "g:3: attribute 'stride': expected a whole number, found 'fast'");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=}"), kInput, "expected a whole number, found '}'");
  EXPECT_ERROR(parse("y = relu(x) {slope=3}"), kInput,
               "g:3: relu: unknown attribute 'slope'; known: bounded");
}

TEST(Notation, OldNamesOfAttributesAreRead) {
  const auto parse = [](const std::string& attributes) {
    return parse_graph(
        "input x: bf16[64, 256]\nweight a: bf16[8, 1024, 256]\nweight b: bf16[8, 256, 512]\n"
        "y = experts(x, a, b) {" +
            attributes + "}\n",
        "g");
  };
  EXPECT_EQ(parse("chosen=2"), parse("top_k=2"));
  EXPECT_ERROR(parse("chosen=2, top_k=2"), kInput, "attribute 'top_k' is given twice");
}

TEST(Notation, ErrorsNameTheLine) {
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = relu(z)\n", "g"), kInput,
               "g:2: unknown tensor 'z'");
  EXPECT_ERROR(
      parse_graph("input x: fp32[4, 8]\nweight w: fp32[3, 9]\ny = linear(x, w)\n", "g"), kInput,
      "g:3: node 'y' (linear): inner dimensions differ: x [4, 8] x weight [3, 9] (8 != 9)");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = rellu(x)\n", "g"), kNotFound,
               "g:2: unknown operator 'rellu'; did you mean 'relu'");
  EXPECT_ERROR(parse_graph("input x: fp32[0]\n", "g"), kInput, "at least 1, found 0");
  EXPECT_ERROR(parse_graph("input x: fp32[4\n", "g"), kInput, "g:1: expected ','");
  EXPECT_ERROR(parse_graph("inptu x: fp32[4]\n", "g"), kInput, "did you mean 'input'");
  EXPECT_ERROR(parse_graph("", "g"), kInput, "the graph has no operator");
  EXPECT_ERROR(parse_graph("input x: fp32[4294967296, 4294967296]\n", "g"), kInput, "64 bits");
}

}  // namespace
}  // namespace tilecast
