// Operators that give a tensor another shape, order or extent; most launch nothing.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

template <Shape (*kShape)(const OnnxCall&)>
void translate_shape(OnnxCall& call) {
  const Shape shape = kShape(call);
  call.set(0, call.reshape(call.tensor(0), shape));
}

/// The transpose of a weight is remembered: linear layers have one.
void translate_transpose(OnnxCall& call) {
  const Shape order = order_of(call, call.shape(0).size());
  const TensorId x = call.tensor(0);
  OnnxValue result{.tensor = call.transpose(x, order)};
  const TensorKind kind = call.tensor_info(x).kind;
  const bool stored = kind == TensorKind::kWeight || kind == TensorKind::kBuffer;
  if (stored && order == Shape{1, 0}) result.transpose_of = x;
  if (const TensorId q = call.value(0).dequantized; q >= 0 && order == Shape{1, 0}) {
    result.transpose_of = x;
    result.dequantized = q;
  }
  call.set(0, std::move(result));
}

void translate_expand(OnnxCall& call) {
  const Shape shape = broadcast_shapes(call, call.shape(0), call.integers(1, "the shape"));
  call.set(0, call.expand(call.tensor(0), shape));
}

/// Steps other than 1 and -1 leave elements out, as views; the reverse order is a copy.
void translate_slice(OnnxCall& call) {
  TensorId x = call.tensor(0);
  bool reversed = false;
  for (const OnnxSlice& part : slices_of(call)) {
    if (part.count == 0) {
      Shape shape = call.shape_of(x);
      shape[part.axis] = 0;
      x = call.builder().tensor({.name = call.name(),
                                 .shape = shape,
                                 .dtype = call.tensor_info(x).dtype,
                                 .kind = TensorKind::kBuffer});
      break;
    }
    x = call.slice(x, part.axis, part.count);
    reversed = reversed || part.step < 0;
  }
  call.set(0, reversed ? call.op("flip", {x}) : x);
}

/// Equal parts, or parts of given sizes.
void translate_split(OnnxCall& call) {
  const Shape shape = call.shape(0);
  const size_t axis = call.axis(call.integer("axis", 0), shape.size());
  const TensorId x = call.tensor(0);
  Shape sizes = call.list("split");
  if (sizes.empty() && call.has(1)) sizes = call.integers(1, "the sizes of the parts");
  const auto count = static_cast<int64_t>(call.output_count());
  if (count == 0) call.fail("it has no output");
  if (sizes.empty()) {
    const int64_t each = ceil_divide(shape[axis], count);
    for (int64_t left = shape[axis]; static_cast<int64_t>(sizes.size()) < count; left -= each)
      sizes.push_back(std::clamp<int64_t>(left, 0, each));
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) sum = checked_add(sum, size);
  if (sum != shape[axis] || sizes.size() != call.output_count() ||
      std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 1; }))
    call.fail(fmt::format("parts of {} do not fit dimension {} of {}", format_shape(sizes), axis,
                          format_shape(shape)));
  constexpr int64_t kMostParts = 64;  // of `split`
  const bool equal =
      std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s == sizes[0]; });
  if (equal && count > 1 && count <= kMostParts) {
    const std::vector<TensorId> parts =
        call.add("split", {x}, {{"parts", count}, {"dim", static_cast<int64_t>(axis)}});
    for (size_t i = 0; i < parts.size(); ++i) call.set(i, parts[i]);
    return;
  }
  for (size_t i = 0; i < sizes.size(); ++i) call.set(i, call.slice(x, axis, sizes[i]));
}

void translate_concat(OnnxCall& call) {
  const size_t axis = call.axis(call.integer("axis", 0), call.shape(0).size());
  std::vector<TensorId> parts;
  for (size_t i = 0; i < call.input_count(); ++i) parts.push_back(call.tensor(i));
  // torch.cat copies a single tensor too. Exporters also write it for indices, which they compute
  // themselves.
  const DType dtype = call.tensor_info(parts[0]).dtype;
  if (parts.size() == 1 && dtype != DType::kInt64 && dtype != DType::kInt32)
    return call.set(0, call.op("cat", parts, {{"dim", static_cast<int64_t>(axis)}}));
  call.set(0, call.cat(std::move(parts), axis));
}

// Sequences of tensors: their number and shapes are known.

/// An input as a part of a sequence. Sequences of sequences, which ONNX does not have, would double
/// from node to node.
OnnxValue part_of(OnnxCall& call, size_t i) {
  if (call.value(i).is_sequence)
    call.fail(fmt::format("input {} is a sequence, expected a tensor", i));
  OnnxValue part = call.value(i);
  if (part.constant == nullptr) part.tensor = call.tensor(i);
  return part;
}

void translate_sequence_construct(OnnxCall& call) {
  OnnxValue result{.is_sequence = true};
  for (size_t i = 0; i < call.input_count(); ++i) result.sequence.push_back(part_of(call, i));
  result.constant = std::make_shared<const OnnxConstant>();
  call.set(0, std::move(result));
}

void translate_sequence_insert(OnnxCall& call) {
  OnnxValue result = call.value(0);
  if (!result.is_sequence) call.fail("expected a sequence");
  OnnxValue part = part_of(call, 1);
  const auto size = static_cast<int64_t>(result.sequence.size());
  int64_t at = call.has(2) ? call.one_integer(2, "the position") : size;
  if (at < 0) at += size;
  if (at < 0 || at > size) call.fail(fmt::format("no position {} in a sequence of {}", at, size));
  result.sequence.insert(result.sequence.begin() + at, std::move(part));
  call.set(0, std::move(result));
}

void translate_sequence_at(OnnxCall& call) {
  const OnnxValue& all = call.value(0);
  const auto size = static_cast<int64_t>(all.sequence.size());
  int64_t at = call.one_integer(1, "the position");
  if (at < 0) at += size;
  if (at < 0 || at >= size) call.fail(fmt::format("no position {} in a sequence of {}", at, size));
  call.set(0, all.sequence[static_cast<size_t>(at)]);
}

void translate_sequence_length(OnnxCall& call) {
  const auto size = static_cast<int64_t>(call.value(0).sequence.size());
  call.set(0, OnnxConstant{OnnxType::kInt64, {}, {size}, {}});
}

void translate_split_to_sequence(OnnxCall& call) {
  const Shape shape = call.shape(0);
  const size_t axis = call.axis(call.integer("axis", 0), shape.size());
  const bool keep = call.has(1) || call.integer("keepdims", 1) != 0;
  Shape sizes = call.has(1) ? call.integers(1, "the sizes of the parts") : Shape{1};
  const bool each = sizes.size() == 1;
  constexpr int64_t kMostParts = 1 << 14;
  if (each && (sizes[0] < 1 || shape[axis] / sizes[0] > kMostParts)) call.fail("too many parts");
  if (each) sizes.assign(static_cast<size_t>(ceil_divide(shape[axis], sizes[0])), sizes[0]);
  const TensorId x = call.tensor(0);
  OnnxValue result{.is_sequence = true};
  int64_t left = shape[axis];
  for (const int64_t size : sizes) {
    const int64_t count = std::min(size, left);
    if (count < 1) call.fail("a part without elements");
    left -= count;
    TensorId part = call.slice(x, axis, count);
    if (!keep) {
      Shape flat = call.shape_of(part);
      flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(axis));
      part = call.reshape(part, flat);
    }
    result.sequence.push_back({.tensor = part});
  }
  result.constant = std::make_shared<const OnnxConstant>();
  call.set(0, std::move(result));
}

void translate_concat_from_sequence(OnnxCall& call) {
  OnnxValue all = call.value(0);
  if (!all.is_sequence || all.sequence.empty()) call.fail("expected a sequence with tensors");
  if (call.integer("new_axis", 0) != 0) {
    OnnxValue stacked = call.stack(all.sequence);
    const size_t rank = call.shape_of(stacked.tensor).size();
    const size_t axis = call.axis(call.integer("axis", 0), rank);
    Shape order;
    for (size_t d = 1; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    return call.set(0, call.transpose(stacked.tensor, order));
  }
  std::vector<TensorId> parts;
  for (OnnxValue& part : all.sequence) parts.push_back(call.tensor_of(part));
  const size_t axis = call.axis(call.integer("axis", 0), call.shape_of(parts[0]).size());
  call.set(0, call.cat(std::move(parts), axis));
}

}  // namespace

std::vector<OnnxOp> onnx_view_ops() {
  return {{"Reshape", translate_shape<reshaped>},
          {"Unsqueeze", translate_shape<unsqueezed>},
          {"Squeeze", translate_shape<squeezed>},
          {"Flatten", translate_shape<flattened>},
          {"Transpose", translate_transpose},
          {"Expand", translate_expand},
          {"Slice", translate_slice},
          {"Split", translate_split},
          {"Concat", translate_concat},
          {"SequenceConstruct", translate_sequence_construct},
          {"SequenceEmpty", translate_sequence_construct},
          {"SequenceInsert", translate_sequence_insert},
          {"SequenceAt", translate_sequence_at},
          {"SequenceLength", translate_sequence_length},
          {"SplitToSequence", translate_split_to_sequence},
          {"ConcatFromSequence", translate_concat_from_sequence}};
}

}  // namespace tilecast
