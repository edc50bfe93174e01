// Files of PyTorch's exporters, forecast as PyTorch runs them.

#include <gtest/gtest.h>

#include <algorithm>

#include "importers/model.h"
#include "onnx_graph.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using namespace onnx_writer;

TEST(OnnxExporter, NamesOfBuffersAreWhole) {
  Writer w;  // GPT-2's mask is the buffer "h.0.attn.bias"
  w.input("x", {4, 8}).weight("h.0.attn.c_attn.weight", {8, 24});
  w.weight("h.0.attn.c_attn.bias", {24});
  w.node("MatMul", {"x", "h.0.attn.c_attn.weight"}, {"y"})
      .node("Add", {"y", "h.0.attn.c_attn.bias"}, {"z"})
      .output("z");
  EXPECT_EQ(build(w).parameter_count(), 8 * 24 + 24);
}

TEST(OnnxExporter, OneOperatorOfPyTorchIsOneKernel) {
  Writer w;
  w.input("x", {4, 8})
      .initializer(integers("axes", {-1}))
      .initializer(integers("no", {0, 0, 0, 0}));
  w.node("Pad", {"x", "no"}, {"p"})
      .node("Concat", {"p"}, {"c"}, attribute("axis", 0))
      .node("ReduceL2", {"c", "axes"}, {"y"})
      .output("y");
  EXPECT_EQ(ops_of(build(w)), (Names{"pad", "cat", "reduce_sum"}));
}

TEST(OnnxExporter, AllPositionsInTheirOrderAreAView) {
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{0, 1, 2}, {0, 2, 1}}) {
    Writer w;
    w.input("x", {3}).initializer(integers("at", positions));
    w.node("Gather", {"x", "at"}, {"g"}, attribute("axis", 0)).node("Relu", {"g"}, {"y"});
    w.output("y");
    EXPECT_EQ(ops_of(build(w)),
              positions[1] == 1 ? Names{"relu"} : (Names{"index_select", "relu"}));
  }
}

std::string note(const std::string& key, const std::string& value) {
  return bytes(9, bytes(1, "pkg.torch.onnx." + key) + bytes(2, value));
}
/// The note of a part of a call: "%name", "operator.overload".
std::string part_of(const std::string& name, const std::string& aten) {
  return note("fx_node", name + " : [num_users=1] = call_function[target=torch.ops.aten." + aten +
                             "](args = (), kwargs = {})");
}

TEST(OnnxExporter, NotesOfPyTorchsExporterNameModulesAndCopies) {
  const auto call = [&](const std::string& options) {
    return note("fx_node",
                "%clone = call_function[target=torch.ops.aten.clone.default](" + options);
  };
  Writer w;
  w.input("x", {4, 8})
      .node("Identity", {"x"}, {"d"}, call("args = (%x,), kwargs = {})"))
      .node("Identity", {"d"}, {"c"}, call("{memory_format: torch.contiguous_format})"))
      .node("Relu", {"c"}, {"y"}, note("name_scopes", "['', 'layers', 'layers.0', 'relu']"))
      .output("y");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph), (Names{"copy", "relu"}));
  EXPECT_EQ(graph.nodes[1].name, "layers.0");
}

/// y = x + 1 · a · b, as parts of one call and of another.
Writer sum_of_product(const std::string& of_sum, const std::string& of_products) {
  Writer w;
  w.input("x", {4, 8}).input("a", {4, 8}).weight("b", {8});
  w.node("Constant", {}, {"one"},
         bytes(5, bytes(1, "value") + bytes(5, scalar("", 1))) + of_products)
      .node("Mul", {"one", "a"}, {"p"}, of_products)
      .node("Mul", {"p", "b"}, {"q"}, of_products)
      .node("Add", {"x", "q"}, {"y"}, of_sum)
      .output("y");
  return w;
}

TEST(OnnxExporter, CallOfOneKernelIsJoined) {
  const std::string call = part_of("%addcmul", "addcmul.default");
  const Graph graph = build(sum_of_product(call, call));
  EXPECT_EQ(ops_of(graph), (Names{"addcmul"}));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3);
  const Names apart = {"mul_scalar", "mul", "add"};
  EXPECT_EQ(ops_of(build(sum_of_product(call, part_of("%mul", "mul.Tensor")))), apart);
  EXPECT_EQ(ops_of(build(sum_of_product("", ""))), apart);
  // A part that is read elsewhere stays a tensor.
  Writer read = sum_of_product(call, call);
  read.node("Relu", {"q"}, {"z"}).output("z");
  EXPECT_EQ(ops_of(build(read)), (Names{"mul_scalar", "mul", "add", "relu"}));
}

TEST(OnnxExporter, CallWithAFoldedConstantIsJoined) {
  const std::string call = part_of("%addcmul", "addcmul.default");
  Writer w;
  w.input("x", {4, 8}).input("a", {4, 8}).weight("b", {8}).weight("half", {1});
  w.node("Mul", {"half", "a"}, {"p"}, call)
      .node("Mul", {"p", "b"}, {"q"}, call)
      .node("Add", {"x", "q"}, {"y"}, call)
      .output("y");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph), (Names{"addcmul"}));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3);
}

/// A call of embedding_bag as torch.onnx.export writes it, with the loop over the bags cut short.
Writer bags(const std::string& mode, int64_t ids, const std::string& last_offset = "False") {
  const std::string call =
      note("fx_node",
           "%embedding_bag : [num_users=1] = "
           "call_function[target=torch.ops.aten.embedding_bag.padding_idx](args = (%weight, %ids, "
           "%offsets, False, " +
               mode + ", False, None, " + last_offset + "), kwargs = {})");
  Writer w;
  w.weight("weight", {1000, 16}).input("ids", {ids}, 7).input("offsets", {8}, 7);
  w.initializer(integers("flat", {-1}));
  w.node("Reshape", {"ids", "flat"}, {"ids_1d"}, call)
      .node("Gather", {"weight", "ids_1d"}, {"rows"}, call)
      .node("Size", {"offsets"}, {"bags"}, call)
      .node("Identity", {"rows"}, {"same"})  // without a note
      .node("Loop", {"bags", "", "rows"}, {"sums"}, call)
      .node("CastLike", {"sums", "weight"}, {"y"}, call)
      .output("y");
  return w;
}

TEST(OnnxExporter, BagsOfRowsAreOneKernel) {
  const Graph graph = build(bags("0", 40));
  EXPECT_EQ(ops_of(graph), (Names{"view", "embedding_bag"}));
  EXPECT_EQ(graph.tensor(graph.nodes.back().outputs[0]).shape, (Shape{8, 16}));
  EXPECT_EQ(ops_of(build(bags("1", 40))), (Names{"view", "embedding_bag"}));
  // The last offset is the end of the last bag.
  const Graph ended = build(bags("0", 35, "True"));
  EXPECT_EQ(ended.tensor(ended.nodes.back().outputs[0]).shape, (Shape{7, 16}));
  // The largest of each bag, and bags of several lengths, gather rows.
  EXPECT_EQ(ops_of(build(bags("2", 40))), (Names{"stream"}));
  const Graph uneven = build(bags("0", 41));
  EXPECT_EQ(ops_of(uneven), (Names{"stream"}));
  // Each id reads a row.
  EXPECT_EQ(attribute<int64_t>(uneven.nodes.back(), "flops"), 41 * 16);
  EXPECT_GT(attribute<int64_t>(uneven.nodes.back(), "read_bytes"), 41 * 16 * 4);
}

TEST(OnnxExporter, ALongChainInACallIsNotJoined) {
  // It overflowed the stack.
  const std::string call = part_of("%addcmul", "addcmul.default");
  constexpr int kLength = 60'000;
  Writer w;
  w.input("x", {4}).input("m0", {4});
  for (int i = 0; i < kLength; ++i)
    w.node("Mul", {"m" + std::to_string(i), "x"}, {"m" + std::to_string(i + 1)}, call);
  w.node("Add", {"x", "m" + std::to_string(kLength)}, {"y"}, call).output("y");
  EXPECT_EQ(build(w).nodes.size(), kLength + 1);
}

TEST(OnnxExporter, CycleWithinACallIsAnError) {
  const std::string call = part_of("%addcmul", "addcmul.default");
  Writer w;
  w.input("x", {4}).node("Mul", {"q", "q"}, {"q"}, call).node("Add", {"x", "q"}, {"y"}, call);
  w.output("y");
  EXPECT_THROW(build(w), Error);
}

TEST(OnnxExporter, WindowsThatAreGatheredAreOneKernel) {
  const auto windows = [](const std::string& arguments) {
    const std::string call =
        note("fx_node",
             "%im2col : [num_users=1] = call_function[target=torch.ops.aten.im2col."
             "default](args = (%x, " +
                 arguments + "), kwargs = {})");
    Writer w;
    w.input("x", {2, 4, 8, 8})
        .initializer(integers("pads", {0, 0, 1, 1, 0, 0, 1, 1}))
        .initializer(tensor("at", {3, 4}, kInt64, std::string(96, '\0')))
        .initializer(integers("shape", {2, 36, 16}));
    w.node("Pad", {"x", "pads"}, {"p"}, call)
        .node("Gather", {"p", "at"}, {"r"}, attribute("axis", 2) + call)
        .node("Gather", {"r", "at"}, {"c"}, attribute("axis", 4) + call)
        .node("Transpose", {"c"}, {"t"}, list_attribute("perm", {0, 1, 2, 4, 3, 5}) + call)
        .node("Reshape", {"t", "shape"}, {"y"}, call)
        .output("y");
    return build(w);
  };
  const Graph graph = windows("[3, 3], [1, 1], [1, 1], [2, 2]");
  EXPECT_EQ(ops_of(graph), (Names{"unfold"}));
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{2, 36, 16}));
  EXPECT_GT(windows("3, 1, 1, 2").nodes.size(), 3U);  // not a note of this kind
  EXPECT_THROW(windows("[99, 3], [1, 1], [1, 1], [2, 2]"), Error);
  try {
    windows("[2, 2], [1, 1], [1, 1], [2, 2]");
    ADD_FAILURE() << "the note contradicts the file";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("says windows of shape [2, 16, 25], the file reshapes "
                        "them to [2, 36, 16]"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(windows("[3, 3], [1, 1], [1, 1], [0, 2]"), Error);
}

TEST(OnnxExporter, BatchStatisticsAreComputedByTheNorm) {
  const std::string call = part_of("%n", "_native_batch_norm_legit.no_stats");
  Writer w;
  w.weight("w", {1, 16, 27}).weight("gain", {16}).weight("bias", {16});
  w.input("x", {2, 16});
  w.initializer(integers("axes", {0, 2}));
  w.node("ReduceMean", {"w", "axes"}, {"mean"}, attribute("keepdims", 0) + call)
      .node("ReduceMean", {"w", "axes"}, {"kept"}, call)
      .node("Sub", {"w", "kept"}, {"centred"}, call)
      .node("Mul", {"centred", "centred"}, {"squares"}, call)
      .node("ReduceMean", {"squares", "axes"}, {"variance"}, attribute("keepdims", 0) + call)
      .node("BatchNormalization", {"w", "gain", "bias", "mean", "variance"}, {"y"}, call)
      .output("y");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph), (Names{"batch_norm"}));
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "training"), 1);
}

TEST(OnnxExporter, BatchNormHonoursTrainingMode) {
  Writer w;
  w.input("x", {2, 4, 8, 8});
  for (const char* name : {"w", "b", "m", "v"}) w.weight(name, {4});
  w.node("BatchNormalization", {"x", "w", "b", "m", "v"}, {"y"}, attribute("training_mode", 1))
      .output("y");
  EXPECT_EQ(attribute<int64_t>(build(w).nodes[0], "training"), 1);
}

TEST(OnnxExporter, PackingOfRecurrentWeightsTakesNoTime) {
  const std::string call = part_of("%lstm", "lstm.input");
  Writer w;
  w.initializer(integers("zero", {0, 0, 0}));
  w.input("x", {5, 8, 8}).weight("w1", {1, 8, 8}).weight("w2", {1, 8, 8}).weight("r", {1, 16, 4});
  // A constant may be another call's.
  w.node("Constant", {}, {"two"}, bytes(5, bytes(1, "value") + bytes(5, scalar("", 2))))
      .node("Mul", {"w1", "two"}, {"w3"}, call)
      .node("Shape", {"x"}, {"sizes"}, call)
      .node("Slice", {"w3", "zero", "sizes"}, {"w4"}, call)
      .node("Concat", {"w4", "w2"}, {"w"}, attribute("axis", 1) + call)
      .node("Relu", {"x"}, {"z"}, call)
      .node("LSTM", {"z", "w", "r"}, {"y"}, attribute("hidden_size", 4) + call)
      .output("y");
  const Graph graph = build(w);
  ASSERT_EQ(graph.nodes[0].counts, Counts::kMemoryOnly);
  ASSERT_EQ(graph.nodes[1].counts, Counts::kMemoryOnly);
  for (size_t n = 2; n < graph.nodes.size(); ++n) EXPECT_EQ(graph.nodes[n].counts, Counts::kAll);
}

/// softmax(q kᵀ) v, twice, as parts of these calls
Writer attention(const std::string& first, const std::string& second) {
  Writer w;
  w.input("q", {1, 2, 8, 4}).input("k", {1, 2, 8, 4}).input("v", {1, 2, 8, 4});
  w.node("Transpose", {"k"}, {"kt"}, list_attribute("perm", {0, 1, 3, 2}));
  for (const auto& [call, name] : {std::pair(first, std::string("a")), {second, "b"}}) {
    w.node("MatMul", {"q", "kt"}, {name + "s"}, call)
        .node("Softmax", {name + "s"}, {name + "p"}, call)
        .node("MatMul", {name + "p", "v"}, {name}, call)
        .output(name);
  }
  return w;
}

TEST(OnnxExporter, AttentionOfAModuleIsNotFusedBesideFusedOnes) {
  const auto fused = [](const std::string& first, const std::string& second) {
    const Names ops = ops_of(recognize(build(attention(first, second)), {.fused_attention = true}));
    return std::count(ops.begin(), ops.end(), "sdpa");
  };
  const std::string call = part_of("%s", "scaled_dot_product_attention.default");
  EXPECT_EQ(fused(call, part_of("%bmm", "matmul.default")), 1);
  EXPECT_EQ(fused(call, call), 2);
  EXPECT_EQ(fused("", ""), 2);
}

}  // namespace
}  // namespace tilecast
