// What PyTorch's exporters write, as PyTorch runs it.

#include <gtest/gtest.h>

#include "importers/model.h"
#include "onnx_graph.h"
#include "ops/validate.h"

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

TEST(OnnxExporter, NotesOfPyTorchsExporterNameModulesAndCopies) {
  const auto note = [](const std::string& key, const std::string& value) {
    return bytes(9, bytes(1, "pkg.torch.onnx." + key) + bytes(2, value));
  };
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

}  // namespace
}  // namespace tilecast
