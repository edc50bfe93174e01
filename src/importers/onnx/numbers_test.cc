// Numbers near the ends of 64 bits wherever an ONNX file has whole numbers that enter arithmetic:
// attributes, lists that are inputs, dimensions. Each gives a graph whose sizes did not wrap, or an
// error that is not a bug; UndefinedBehaviorSanitizer, where it is on, looks at each operation.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "importers/onnx/call.h"
#include "onnx_graph.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

using namespace onnx_writer;

constexpr int64_t kExtremes[] = {std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(), int64_t{1} << 62,
                                 int64_t{1} << 31, -1};

/// Attributes of ONNX operators that are whole numbers, and lists of them.
constexpr const char* kNumbers[] = {"axis",         "batch_dims", "blocksize",
                                    "end",          "group",      "k",
                                    "num_groups",   "p",          "q_num_heads",
                                    "size",         "start",      "to",
                                    "kv_num_heads", "num_heads",  "rotary_embedding_dim",
                                    "value_int",    "dtype",      "ceil_mode"};
constexpr const char* kLists[] = {"axes",  "dilations",    "kernel_shape", "output_padding",
                                  "pads",  "output_shape", "perm",         "split",
                                  "sizes", "strides",      "value_ints",   "shape"};

/// "": a graph whose sizes are not negative, or an error of the file; else what went wrong.
std::string wrapped(const Writer& writer) {
  try {
    const Graph graph = decompose(recognize(build(writer)), {});
    std::vector<Kernel> kernels;
    for (const Node& node : graph.nodes) lower_node(graph, node, kernels);
    for (const Tensor& tensor : graph.tensors) {
      for (const int64_t d : tensor.shape) {
        if (d < 0) return fmt::format("'{}' has a dimension of {}", tensor.name, d);
      }
    }
    for (const Kernel& kernel : kernels) {
      if (kernel.flops < 0 || kernel.read_bytes < 0 || kernel.write_bytes < 0)
        return fmt::format("FLOPs {}, bytes {} and {}", kernel.flops, kernel.read_bytes,
                           kernel.write_bytes);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Writer model_of(std::string_view op, const std::vector<std::string>& inputs,
                const std::string& attributes, int64_t extreme) {
  Writer w;
  w.input("x", {1, 4, 8, 8}).input("rows", {2, 4, 8}).weight("weight", {4, 4, 3, 3});
  w.initializer(scalar("number", static_cast<float>(extreme)));
  for (const int64_t length : {1, 2, 4, 8})
    w.initializer(integers(fmt::format("list{}", length),
                           std::vector<int64_t>(static_cast<size_t>(length), extreme)));
  w.initializer(integers("ones", {1, 1, 1, 1})).initializer(integers("axes", {0, 1, 2, 3}));
  w.node("Relu", {"x"}, {"other"}).output("other");
  w.node(std::string(op), inputs, {"a", "b"}, attributes).output("a");
  return w;
}

TEST(OnnxNumbers, NoAttributeWrapsInAnyOperator) {
  const std::vector<std::vector<std::string>> operands = {
      {"x"}, {"x", "weight"}, {"x", "ones", "ones"}};
  for (const std::string_view op : onnx_op_names()) {
    for (const int64_t extreme : kExtremes) {
      std::vector<std::string> all;
      for (const char* name : kNumbers) all.push_back(attribute(name, extreme));
      for (const char* name : kLists) {
        for (const size_t length : {1, 2, 4})
          all.push_back(list_attribute(name, std::vector<int64_t>(length, extreme)));
      }
      // Of a window, some numbers fit and others do not.
      const std::string window = list_attribute("kernel_shape", {3, 3});
      for (const char* name : {"strides", "dilations", "output_padding", "output_shape"})
        all.push_back(window + list_attribute(name, {extreme, 1}));
      for (const char* pad : {"SAME_UPPER", "SAME_LOWER"})
        all.push_back(list_attribute("kernel_shape", {extreme, 3}) +
                      list_attribute("dilations", {1 << 30, 1}) + attribute("auto_pad", pad));
      all.push_back(window + list_attribute("pads", {extreme, 0, extreme, 0}));
      all.push_back(window + list_attribute("pads", {extreme, extreme, extreme, extreme}));
      for (const std::string& attributes : all) {
        for (const std::vector<std::string>& inputs : operands) {
          const std::string found = wrapped(model_of(op, inputs, attributes, extreme));
          ASSERT_EQ(found, "") << op << "(" << fmt::format("{}", fmt::join(inputs, ", ")) << ") "
                               << extreme << " " << printable(attributes);
        }
      }
    }
  }
}

TEST(OnnxNumbers, NoListThatIsAnInputWrapsInAnyOperator) {
  const std::vector<std::string> kinds = {"", "number", "list1", "list4", "list8", "ones"};
  for (const std::string_view op : onnx_op_names()) {
    for (const int64_t extreme : kExtremes) {
      for (const char* first : {"x", "list4"}) {
        for (const std::string& second : kinds) {
          for (const std::string& third : kinds) {
            for (const char* more : {"", "axes"}) {
              const std::vector<std::string> inputs = {first, second, third, more, more};
              const std::string found = wrapped(model_of(op, inputs, "", extreme));
              ASSERT_EQ(found, "")
                  << op << "(" << fmt::format("{}", fmt::join(inputs, ", ")) << ") " << extreme;
            }
          }
        }
      }
    }
  }
}

/// A tensor without elements whose other dimensions have any size.
TEST(OnnxNumbers, NoDimensionBesideAnEmptyOneWraps) {
  const std::vector<std::vector<std::string>> operands = {
      {"empty"}, {"empty", "empty"}, {"empty", "none"}};
  for (const std::string_view op : onnx_op_names()) {
    for (const int64_t large : {int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
      for (const Dims& dims : {Dims{0, large, large}, Dims{0, large}, Dims{1, 0, large, 1}}) {
        for (const std::vector<std::string>& inputs : operands) {
          for (const int64_t axis : {0, 1}) {
            Writer w;
            w.input("x", {2, 2}).initializer(tensor("empty", dims, kInt64));
            w.initializer(integers("none", {}));
            w.node("Relu", {"x"}, {"other"}).output("other");
            w.node(std::string(op), inputs, {"a", "b"}, attribute("axis", axis)).output("a");
            ASSERT_EQ(wrapped(w), "") << op << " " << fmt::format("{}", fmt::join(dims, ", "));
          }
        }
      }
    }
  }
}

TEST(OnnxNumbers, ErrorsNameTheNumber) {
  const auto with = [](std::string_view op, const std::vector<std::string>& inputs,
                       const std::string& attributes,
                       int64_t extreme) { build(model_of(op, inputs, attributes, extreme)); };
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(with("Conv", {"x", "weight"}, list_attribute("pads", {most, most, most, most}), 0),
               kInput,
               "node 'n_a' (Conv): expected pads of 0 or more, up to 2147483648, found "
               "9223372036854775807");
  EXPECT_ERROR(with("Pad", {"x", "list8"}, "", most), kInput,
               "attribute 'pads': expected a whole number ≤ 1152921504606846976, found "
               "9223372036854775807");
  EXPECT_ERROR(
      with("ConvTranspose", {"x", "weight"}, list_attribute("output_padding", {most, most}), 0),
      kInput, "expected an output_padding of 0 or more and an output_shape of 1 or more");
  EXPECT_ERROR(with("OneHot", {"axes", "list1", "ones"}, "", most), kInput,
               "classes, expected 1 to 1000000000000");
}

}  // namespace
}  // namespace tilecast
