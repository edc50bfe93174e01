// Every ONNX operator with inputs that its definition does not allow: too few, left out, sequences,
// constants where tensors are expected. Each gives a graph, or an error that is not a bug.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "importers/clean_names.h"
#include "importers/onnx/call.h"
#include "onnx_graph.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

using namespace onnx_writer;

/// Names of values that `model_with` defines; "" is an input that is left out.
constexpr const char* kHostileInputs[] = {"",      "x",    "shape", "number", "nothing",
                                          "parts", "list", "empty", "vector", "weight"};

/// A file whose last node has the given inputs.
Writer model_with(std::string_view op, const std::vector<std::string>& inputs,
                  const std::string& attributes) {
  Writer w;
  w.input("x", {2, 3, 4}).weight("weight", {4, 4});
  w.initializer(integers("shape", {2, 3, 4})).initializer(integers("nothing", {}));
  w.initializer(integers("list", {0})).initializer(scalar("number", 2));
  w.initializer(tensor("vector", {4}, kFloat, std::string(16, '\0')));
  w.node("SequenceConstruct", {"x", "x"}, {"parts"}).node("SequenceEmpty", {}, {"empty"});
  w.node("Relu", {"x"}, {"y"});
  w.node(std::string(op), inputs, {"a", "b", "c"}, attributes).output("y").output("a");
  return w;
}

/// "": it gives a graph or an error of the file; else what went wrong.
std::string bug_of(const Writer& writer) {
  try {
    Graph graph = decompose(recognize(build(writer)), {});
    std::vector<Kernel> kernels;
    for (const Node& node : graph.nodes) lower_node(graph, node, kernels);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// A body of Loop that returns its condition and its third input; If's branches return "y".
std::string with_bodies(std::string_view op) {
  Writer body;
  body.input("trip", {}, kInt64).input("go", {}, kBool).input("state", {2, 3, 4});
  body.node("Identity", {"go"}, {"go_on"}).node("Identity", {"state"}, {"next"});
  body.output("go_on").output("next").output("next");
  Writer branch;
  branch.node("Identity", {"y"}, {"same"}).output("same");
  if (op == "Loop") return graph_attribute("body", body.graph);
  if (op != "If") return "";
  return graph_attribute("then_branch", branch.graph) +
         graph_attribute("else_branch", branch.graph);
}

TEST(OnnxInputs, NoOperatorFailsOnInputsThatAreMissingOrOfAnotherKind) {
  int graphs = 0;
  for (const std::string_view op : onnx_op_names()) {
    const std::string bodies = with_bodies(op);
    std::vector<std::vector<std::string>> all = {{}};
    for (size_t first = 0, length = 0; length < 3; ++length) {
      const size_t end = all.size();
      for (; first < end; ++first) {
        // Of three inputs fewer combinations: the first few kinds are the most different.
        const size_t kinds = length < 2 ? std::size(kHostileInputs) : 6;
        for (size_t kind = 0; kind < kinds; ++kind) {
          all.push_back(all[first]);
          all.back().emplace_back(kHostileInputs[kind]);
        }
      }
    }
    for (const std::vector<std::string>& inputs : all) {
      const std::string bug = bug_of(model_with(op, inputs, bodies));
      ASSERT_EQ(bug, "") << op << "(" << fmt::format("{}", fmt::join(inputs, ", ")) << ")";
      ++graphs;
    }
  }
  EXPECT_GT(graphs, 50 * 1000);
}

TEST(OnnxInputs, LongListsOfInputsThatAreLeftOutAreNoBug) {
  for (const std::string_view op : onnx_op_names()) {
    for (const char* first : kHostileInputs) {
      for (const char* last : {"x", "shape", "number", "parts"}) {
        for (const size_t between : {1, 2, 3, 5}) {
          std::vector<std::string> inputs(between + 2, "");
          inputs.front() = first;
          inputs.back() = last;
          ASSERT_EQ(bug_of(model_with(op, inputs, with_bodies(op))), "")
              << op << " " << first << " " << between << " " << last;
        }
      }
    }
  }
}

TEST(OnnxFile, GivesTheSameFromAFileOfWhichPartsAreReadAsFromMemory) {
  // Weights beyond the size that is loaded whole; two are one weight, known by some of its values.
  const auto values = [](size_t count, uint32_t seed) {
    std::string raw(count * 4, '\0');
    for (size_t i = 0; i < raw.size(); ++i)
      raw[i] = static_cast<char>((i * 2654435761u + seed) >> 13);
    return raw;
  };
  Writer w;
  w.input("x", {"batch", 256});
  const std::string tied = values(256 * 512, 1);
  w.initializer(tensor("first.weight", {256, 512}, kFloat, tied));
  w.initializer(tensor("again.weight", {256, 512}, kFloat, tied));
  w.initializer(tensor("other.weight", {512, 256}, kFloat, values(256 * 512, 2)));
  w.initializer(integers("to", {-1, 2, 256}));
  w.node("MatMul", {"x", "first.weight"}, {"a"}).node("MatMul", {"a", "other.weight"}, {"b"});
  w.node("MatMul", {"b", "again.weight"}, {"c"}).node("Reshape", {"c", "to"}, {"y"}).output("y");
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.onnx";
  write_file(path, w.file());
  const Graph from_file = load_model(path.string()).build({.batch = 4}),
              from_memory = build(w, {.batch = 4});
  EXPECT_EQ(ops_of(from_file), (Names{"linear", "linear", "linear", "view"}));
  EXPECT_EQ(ops_of(from_file), ops_of(from_memory));
  EXPECT_EQ(from_file.parameter_count(), 2 * 256 * 512);
  EXPECT_EQ(from_file.parameter_count(), from_memory.parameter_count());
  EXPECT_EQ(from_file.tensor(from_file.outputs.at(0)).shape, (Shape{4, 2, 256}));
  // Each file that ends early is an error that names the byte.
  const std::string whole = w.file();
  for (const size_t size : {size_t{100}, size_t{70'000}, whole.size() - 1}) {
    write_file(path, whole.substr(0, size));
    EXPECT_ERROR(load_model(path.string()), kInput, "expected a whole ONNX file");
  }
}

/// A function of the file's own domain, of one input and one output.
std::string function_named(const std::string& name, const std::vector<std::string>& calls) {
  std::string out = bytes(1, name) + bytes(4, "a") + bytes(5, "b") + bytes(10, "own");
  for (size_t i = 0; i < calls.size(); ++i)
    out += bytes(7, bytes(1, i == 0 ? "a" : "c") + bytes(2, i + 1 == calls.size() ? "b" : "c") +
                        bytes(4, calls[i]) + (calls[i] == "Relu" ? "" : bytes(7, "own")));
  return bytes(25, out);
}

TEST(OnnxBudget, FunctionsThatDoubleAreRefusedAtOnce) {
  Writer w;
  w.input("x", {2, 4}).node("f24", {"x"}, {"y"}, "", "own").output("y");
  std::string file = w.file() + function_named("f0", {"Relu"});
  for (int i = 1; i < 25; ++i) {
    const std::string inner = "f" + std::to_string(i - 1);
    file += function_named("f" + std::to_string(i), {inner, inner});
  }
  EXPECT_ERROR(import_model(file, "model.onnx").build({}), kUnsupported,
               "nodes, with loops and functions written out; the file has 50");
}

TEST(OnnxBudget, ConstantsOfALoopAreCounted) {
  Writer body;
  body.input("trip", {}, kInt64).input("go", {}, kBool);
  body.node("Identity", {"go"}, {"go_on"}).node("ConstantOfShape", {"size"}, {"zeros"});
  body.output("go_on").output("zeros");
  Writer w;
  w.input("x", {2, 4})
      .initializer(integers("trips", {9999}))
      .initializer(integers("size", {16384}));
  w.node("Loop", {"trips", ""}, {"all"}, graph_attribute("body", body.graph));
  w.node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kUnsupported,
               "model.onnx: more than 16,777,216 elements of constants and lists");
}

TEST(OnnxBudget, SequencesDoNotHoldSequences) {
  Writer w;
  w.input("x", {2, 4}).node("SequenceConstruct", {"x", "x"}, {"s"});
  w.node("SequenceConstruct", {"s", "s"}, {"t"}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kInput, "input 0 is a sequence, expected a tensor");
}

TEST(OnnxBudget, EmptyNodesAreRefusedBeforeTheyFillMemory) {
  Writer w;
  w.input("x", {2, 4});
  for (int i = 0; i < 2 << 20; ++i) w.graph += bytes(1, "");
  EXPECT_ERROR(import_model(w.file(), "model.onnx"), kInput,
               "the graph takes more than 512 MiB of memory");
}

TEST(OnnxNames, AreTextThatAnyOutputMayShow) {
  Writer w;
  const std::string odd = "\x1b[31mred\xff\n" + std::string(300, 'n');
  w.input("x\x07", {2, 4}).weight(odd + ".weight", {4, 4});
  w.node("MatMul", {"x\x07", odd + ".weight"}, {"y"})
      .node("Relu", {"y"}, {"=z\x1b"})
      .output("=z\x1b");
  const Graph graph = build(w);
  EXPECT_TRUE(graph.nodes[0].name.starts_with("\\x1b[31mred\\xff\\x0an")) << graph.nodes[0].name;
  for (const Node& node : graph.nodes) EXPECT_EQ(printable(node.name), node.name);
  for (const Tensor& tensor : graph.tensors) {
    EXPECT_EQ(printable(tensor.name), tensor.name);
    EXPECT_LT(tensor.name.size(), 220u);
  }
}

TEST(OnnxNames, ThatBeginAlikeAreShownApart) {
  const std::string start(300, 'n');
  Writer w;
  w.input("x", {2, 4}).weight(start + "1", {4, 4}).weight(start + "2", {4, 4});
  w.node("MatMul", {"x", start + "1"}, {"y"}).node("MatMul", {"y", start + "2"}, {"z"}).output("z");
  const Graph graph = build(w);
  const std::string &first = graph.tensor(graph.nodes[0].inputs[1]).name,
                    &second = graph.tensor(graph.nodes[1].inputs[1]).name;
  EXPECT_EQ(first.size(), 200u);
  EXPECT_TRUE(first.starts_with("nnn")) << first;
  EXPECT_NE(first, second);
  // Also where a character counts as one of 200 and takes several bytes.
  EXPECT_EQ(clean_name("\x1b"), "\\x1b");
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "é";
  EXPECT_EQ(clean_name(accents), accents);
  EXPECT_NE(clean_name(accents + "a"), clean_name(accents + "b"));
}

TEST(GraphNames, AreTextThatAnyOutputMayShow) {
  const Graph graph = import_model(
                          "graph g\ninput x: fp32[2, 4]\n"
                          "y = relu(x) \"\x1b[2Jn\xff\"\n"
                          "z = stream(y) {outputs=\"fp32[8]\", flops=1, read_bytes=4, "
                          "unmapped=\"aten.\x1b\"}\noutput z\n",
                          "g.tcg")
                          .build({});
  EXPECT_EQ(graph.nodes[0].name, "\\x1b[2Jn\\xff");
  EXPECT_EQ(std::get<std::string>(*graph.nodes[1].find_attribute("unmapped")), "aten.\\x1b");
}

TEST(OnnxInputs, MessagesNameTheInputThatIsMissing) {
  const auto with = [](std::string_view op, const std::vector<std::string>& inputs) {
    build(model_with(op, inputs, with_bodies(op)));
  };
  EXPECT_ERROR(with("Mul", {"number", ""}), kInput,
               "model.onnx: node 'n_a' (Mul): input 1 is missing");
  EXPECT_ERROR(with("Concat", {"shape", ""}), kInput,
               "model.onnx: node 'n_a' (Concat): input 1 is missing");
  EXPECT_ERROR(with("Einsum", {}), kInput,
               "model.onnx: node 'n_a' (Einsum): it has no inputs, expected one or more");
  EXPECT_ERROR(with("Slice", {"x"}), kInput,
               "model.onnx: node 'n_a' (Slice): starts (input 1) is missing");
  EXPECT_ERROR(with("Tile", {"list", "nothing"}), kInput,
               "model.onnx: node 'n_a' (Tile): the repeats: expected one value, found 0");
  EXPECT_ERROR(with("SequenceAt", {"parts", "nothing"}), kInput,
               "model.onnx: node 'n_a' (SequenceAt): the position: expected one value, found 0");
  EXPECT_ERROR(
      with("SequenceInsert", {"parts", "x", "nothing"}), kInput,
      "model.onnx: node 'n_a' (SequenceInsert): the position: expected one value, found 0");
  EXPECT_ERROR(with("Loop", {"nothing", "", "x"}), kInput,
               "model.onnx: node 'n_a' (Loop): its number of trips: expected one value, found 0");
}

}  // namespace
}  // namespace tilecast
