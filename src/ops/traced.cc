// Operators of traced graphs (python/tilecast/torch), whose tensors are known exactly: any view of
// a memory, kernels that stream memory, memory that nothing writes, and the end of a tensor's life.

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// alias: the shape, layout and dtype of a view are given.
std::vector<TensorSpec> infer_alias(const OpContext& context) {
  TensorSpec spec{.shape = context.attribute<Shape>("shape"),
                  .dtype = context.input(0).dtype,
                  .contiguous = context.integer("dense") != 0,
                  .view = true};
  if (const AttributeValue* dtype = context.node.find_attribute("dtype"))
    spec.dtype = std::get<DType>(*dtype);
  return {spec};
}

/// The gradient of a part is written into zeros, that of repeated elements is summed.
void backward_alias(GradientBuilder& g, const Node& node) {
  const TensorId x = node.inputs[0];
  const Shape shape = g.tensor(x).shape;
  const int64_t whole = element_count(shape);
  TensorId dy = g.gradient(node.outputs[0]);
  const int64_t part = element_count(g.tensor(dy).shape);
  if (part > whole && part % whole == 0) {
    dy = g.op("reduce_sum", {dy}, {{"shape", shape}});
  } else if (part != whole) {
    const TensorId flat = g.op("alias", {dy}, {{"shape", Shape{part}}});
    const TensorId all = g.op("alias", {x}, {{"shape", Shape{whole}}});
    dy = g.op("slice_backward", {flat, all});
  }
  g.add_gradient(x, g.op("alias", {dy}, {{"shape", shape}}));
}

/// Reads "fp32[2, 3] bool[2, 3]".
std::vector<TensorSpec> declared_outputs(const OpContext& context) {
  std::vector<TensorSpec> specs;
  const std::string& text = context.attribute<std::string>("outputs");
  std::string_view rest = trim(text);
  const std::string where = fmt::format("node '{}', outputs", shown_name(context.node.name));
  while (!rest.empty()) {
    const size_t open = rest.find('['), close = rest.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      context.fail(
          fmt::format("attribute 'outputs': expected a dtype and a shape like "
                      "'fp32[2, 3]', found '{}'",
                      shown_name(rest)));
    TensorSpec spec{.dtype = parse_dtype(std::string(rest.substr(0, open)), where)};
    const std::string_view sizes = trim(rest.substr(open + 1, close - open - 1));
    if (!sizes.empty()) {
      for (const std::string& size : split(sizes, ','))
        spec.shape.push_back(std::get<int64_t>(
            parse_value(AttributeType::kInteger, std::string(trim(size)), where)));
    }
    for (const int64_t size : spec.shape) {
      if (size < 1)
        context.fail(
            fmt::format("attribute 'outputs': dimensions must be at least 1, found {}", size));
    }
    specs.push_back(std::move(spec));
    rest = trim(rest.substr(close + 1));
  }
  if (specs.empty()) context.fail("attribute 'outputs': expected at least one output, found none");
  return specs;
}

/// One kernel that reads its inputs and writes its outputs once.
void work_stream(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  Kernel kernel{.shape = Stream{.elements = element_count(out.shape)}, .dtype = out.dtype};
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Tensor& input = context.input(i);  // of an expanded view, the memory behind it is read
    kernel.read_bytes = checked_add(
        kernel.read_bytes,
        std::min(tensor_bytes(input), tensor_bytes(context.graph.tensor(input.storage))));
  }
  for (size_t i = 0; i < context.node.outputs.size(); ++i)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.output(i)));
  kernel.read_bytes = integer_or(context.node, "read_bytes", kernel.read_bytes);
  kernel.flops = context.integer("flops");
  kernel.host.waits = context.integer("waits") != 0;
  kernels.push_back(kernel);
}

std::vector<TensorSpec> infer_hold(const OpContext& context) {
  std::vector<TensorSpec> specs = infer_same(context);
  specs[0].contiguous = context.input(0).contiguous;
  specs[0].view = true;
  return specs;
}

Operands stream_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {
      {"outputs", fmt::format("{}[{}, {}]", dtype_name(s.dtype()), s["rows"], s["columns"])}};
  return operands;
}

}  // namespace

std::vector<OpDef> traced_ops() {  // NOLINT(readability-function-size): a table
  constexpr int kMostInputs = 4096;
  const AttributeDef outputs{.name = "outputs",
                             .doc = "dtype and shape of each output: \"fp32[2, 3] bool[2]\"",
                             .type = AttributeType::kText,
                             .required = true};
  return {
      {.name = "alias",
       .doc = "any view of a memory: another shape, layout or dtype; launches nothing",
       .aten = "aten::as_strided",
       .onnx = "",
       .attributes = {{.name = "shape",
                       .doc = "the shape of the output",
                       .type = AttributeType::kIntegers,
                       .required = true},
                      {.name = "dense",
                       .doc = "1: rows follow each other in memory; 0: transposed, part of rows, …",
                       .default_value = int64_t{1},
                       .max = 1},
                      {.name = "dtype",
                       .doc = "of the output; default: as the input",
                       .type = AttributeType::kDType}},
       .infer = infer_alias,
       .backward = backward_alias,
       .example = "x: fp32[64, 256] {shape=[256, 64], dense=0}"},
      {.name = "stream",
       .doc = "one kernel that reads its inputs and writes its outputs, of any shape and dtype",
       .aten = "",
       .onnx = "",
       .min_inputs = 0,
       .max_inputs = kMostInputs,
       .attributes = {outputs,
                      {.name = "flops", .doc = "of the kernel", .default_value = int64_t{0}},
                      {.name = "read_bytes", .doc = "default: every input once"},
                      flag_attribute("waits", "1: the host waits for all that was launched before"),
                      {.name = "unmapped",
                       .doc = "the operator of PyTorch that it stands for and that Tilecast does "
                              "not know",
                       .type = AttributeType::kText},
                      {.name = "unmeasured",
                       .doc =
                           "the operator of PyTorch that it stands for, without a measured kernel",
                       .type = AttributeType::kText}},
       .infer = declared_outputs,
       .work = work_stream,
       .operands = stream_operands,
       .example = "x: fp32[64, 256] {outputs=\"fp32[64] int64[64]\", flops=16384}"},
      {.name = "allocate",
       .doc = "uninitialized memory; launches nothing",
       .aten = "aten::empty.memory_format",
       .onnx = "",
       .min_inputs = 0,
       .max_inputs = 0,
       .attributes = {outputs},
       .infer = declared_outputs,
       .example = "{outputs=\"fp32[64, 256]\"}"},
      {.name = "hold",
       .doc = "keeps its inputs in memory until here, as a Python variable or autograd does; "
              "launches nothing",
       .aten = "",
       .onnx = "",
       .max_inputs = kMostInputs,
       .infer = infer_hold,
       .example = "x: fp32[64, 256] y: fp32[4]"},
  };
}

}  // namespace tilecast
