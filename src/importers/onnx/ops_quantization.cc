// Quantized graphs. DequantizeLinear of a weight gives a weight in low precision; the pass
// `recognize` makes a product of such operands one kernel of the quantized dtype.

#include <fmt/format.h>

#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

DType quantized_dtype(OnnxCall& call) {
  if (call.has(2)) return call.dtype(2);
  const int64_t given = call.integer("output_dtype", 0);
  return given != 0 ? call.dtype_of(given) : DType::kInt8;
}

void translate_quantize(OnnxCall& call) {
  call.set(
      0, call.op("quantize", {call.tensor(0), call.tensor(1)}, {{"dtype", quantized_dtype(call)}}));
}

void translate_dequantize(OnnxCall& call) {
  const TensorId x = call.tensor(0);
  call.name_after(0);
  const DType dtype = call.dtype(1);
  OnnxValue result{.tensor = call.op("dequantize", {x, call.tensor(1)}, {{"dtype", dtype}}),
                   .dequantized = x};
  call.set(0, std::move(result));
}

/// The scale is the range of the tensor: its extremes, then the quantization.
void translate_dynamic_quantize(OnnxCall& call) {
  const TensorId x = call.tensor(0);
  const TensorId low = call.op("reduce_extreme", {x}, {{"shape", Shape{1}}});
  const TensorId high = call.op("reduce_extreme", {x}, {{"shape", Shape{1}}});
  const TensorId scale = call.op("div_scalar", {call.op("sub", {high, low})});
  call.set(0, call.op("quantize", {x, scale}, {{"dtype", DType::kInt8}}));
  call.set(1, call.reshape(scale, {}));
  call.set(2, call.reshape(call.op("cast", {scale}, {{"dtype", DType::kInt8}}), {}));
}

/// Whole numbers are multiplied, sums have 32 bits.
void translate_matmul_integer(OnnxCall& call) {
  const TensorId a = call.tensor(0), b = call.tensor(1);
  if (call.shape(1).size() != 2) call.fail("expected a matrix as the second operand");
  const TensorId y = call.op("gemm", {a, b});
  Shape shape = call.shape(0);
  if (shape.empty()) call.fail("expected a matrix as the first operand");
  shape.back() = call.shape(1)[1];
  call.set(0, call.reshape(call.op("cast", {y}, {{"dtype", DType::kInt32}}), shape));
}

}  // namespace

std::vector<OnnxOp> onnx_quantization_ops() {
  return {{"QuantizeLinear", translate_quantize},
          {"DequantizeLinear", translate_dequantize},
          {"DynamicQuantizeLinear", translate_dynamic_quantize},
          {"MatMulInteger", translate_matmul_integer}};
}

}  // namespace tilecast
