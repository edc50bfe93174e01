// Operators that read or write at positions, and those that write new arrangements.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "importers/onnx/calls.h"
#include "importers/onnx/shapes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Whether positions are all of a vector, in their order: so exporters write views of odd strides.
bool is_in_order(const OnnxConstant& positions, int64_t count) {
  if (positions.is_float() || static_cast<int64_t>(positions.size()) != count) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (positions.integers[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

/// Rows of a table are an embedding; one constant position is a view.
void translate_gather(OnnxCall& call) {
  const Shape shape = call.shape(0), index = call.shape(1);
  const size_t axis = call.axis(call.integer("axis", 0), shape.size());
  const OnnxConstant* known = call.constant(1);
  if (known != nullptr && known->size() == 1 && index.size() <= 1) {
    const TensorId part = call.slice(call.tensor(0), axis, 1);
    Shape result = shape;
    result[axis] = 1;
    if (index.empty()) result.erase(result.begin() + static_cast<std::ptrdiff_t>(axis));
    return call.set(0, call.reshape(part, result));
  }
  if (known != nullptr && shape.size() == 1 && is_in_order(*known, shape[0]))
    return call.set(0, call.reshape(call.tensor(0), index));
  const TensorId x = call.tensor(0);
  const bool table = axis == 0 && shape.size() == 2 &&
                     call.tensor_info(x).kind == TensorKind::kWeight &&
                     (call.dtype(1) == DType::kInt64 || call.dtype(1) == DType::kInt32);
  if (table) {
    call.name_after(0);
    return call.set(0, call.op("embedding", {x, call.tensor(1)}));
  }
  call.set(0, call.op("index_select", {x, call.tensor(1)}, {{"dim", static_cast<int64_t>(axis)}}));
}

void translate_gather_elements(OnnxCall& call) {
  const size_t axis = call.axis(call.integer("axis", 0), call.shape(0).size());
  call.set(0, call.op("gather_elements", {call.tensor(0), call.tensor(1)},
                      {{"dim", static_cast<int64_t>(axis)}}));
}

void translate_gather_nd(OnnxCall& call) {
  const Shape x = call.shape(0), index = call.shape(1);
  const int64_t batch = call.integer("batch_dims", 0);
  const int64_t depth = index.empty() ? 0 : index.back();
  if (batch < 0 || depth < 1 || batch >= static_cast<int64_t>(index.size()) ||
      depth > static_cast<int64_t>(x.size()) - batch)
    call.fail(fmt::format("an index {} does not fit {}", format_shape(index), format_shape(x)));
  Shape shape(index.begin(), index.end() - 1);
  shape.insert(shape.end(), x.begin() + batch + depth, x.end());
  call.set(0, call.op("index", {call.tensor(0), call.tensor(1)}, {{"shape", shape}}));
}

void translate_scatter(OnnxCall& call) {
  call.set(0, call.op("scatter", {call.tensor(0), call.tensor(1), call.tensor(2)},
                      {{"reduce", call.text("reduction", "none")}}));
}

void translate_one_hot(OnnxCall& call) {
  const OnnxConstant* depth = call.constant(1);
  if (depth == nullptr || depth->size() != 1)
    throw Error(ErrorKind::kUnsupported, "the number of classes is computed from data");
  constexpr double kMostClasses = 1e12;
  if (const double classes = depth->number(0); !(classes >= 1 && classes <= kMostClasses))
    call.fail(fmt::format("{} classes, expected 1 to {}", classes, kMostClasses));
  const Shape index = call.shape(0);
  const TensorId hot =
      call.op("one_hot", {call.tensor(0)},
              {{"classes", static_cast<int64_t>(depth->number(0))}, {"dtype", call.dtype(2)}});
  const size_t rank = index.size() + 1;
  const size_t axis = call.axis(call.integer("axis", -1), rank);
  Shape order;
  for (size_t d = 0; d + 1 < rank; ++d) order.push_back(static_cast<int64_t>(d));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(rank) - 1);
  call.set(0, call.transpose(hot, order));
}

void translate_top_k(OnnxCall& call) {
  const size_t axis = call.axis(call.integer("axis", -1), call.shape(0).size());
  const Shape k = call.integers(1, "k");
  if (k.size() != 1) call.fail("expected one number k");
  const std::vector<TensorId> results =
      call.add("top_k", {call.tensor(0)}, {{"k", k[0]}, {"dim", static_cast<int64_t>(axis)}});
  call.set(0, results[0]);
  call.set(1, results[1]);
}

/// Pads of each dimension; negative ones remove elements.
void translate_pad(OnnxCall& call) {
  const Shape shape = call.shape(0);
  Shape pads = call.list("pads");
  if (pads.empty()) pads = call.integers(1, "the pads");
  Shape axes(shape.size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (call.has(3)) axes = call.integers(3, "axes");
  if (pads.size() != 2 * axes.size()) call.fail("expected two pads for each dimension");
  TensorId x = call.tensor(0);
  Shape more(2 * shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = call.axis(axes[i], shape.size());
    int64_t kept = shape[axis];
    for (const size_t end : {size_t{0}, size_t{1}}) {
      const int64_t pad = pads[end * axes.size() + i];
      if (pad < 0) kept = checked_add(kept, pad);
      more[end * shape.size() + axis] = std::max<int64_t>(0, pad);
    }
    if (kept < 1) call.fail("the pads leave nothing");
    x = call.slice(x, axis, kept);
  }
  // Without padding too, constant_pad_nd copies.
  call.set(0, call.op("pad", {x}, {{"pads", more}}));
}

void translate_tile(OnnxCall& call) {
  const Shape repeats = call.integers(1, "the repeats");
  const bool none = std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; });
  call.set(0, none ? call.tensor(0) : call.op("tile", {call.tensor(0)}, {{"repeats", repeats}}));
}

template <const char* kOp>
void translate_moving(OnnxCall& call) {
  call.set(0, call.op(kOp, {call.tensor(0)}));
}
constexpr char kCumsum[] = "cumsum";
constexpr char kTriangle[] = "triangle";
constexpr char kFlip[] = "flip";

/// A tensor of constants that is too large to be kept.
void translate_constant_of_shape(OnnxCall& call) {
  DType dtype = call.dtype_of(1);
  if (const OnnxAttribute* value = call.attribute("value"); value != nullptr && value->tensor)
    dtype = call.dtype_of(static_cast<int64_t>(value->tensor->type));
  call.set(0, call.op("full", {}, {{"shape", call.integers(0, "the shape")}, {"dtype", dtype}}));
}

void translate_range(OnnxCall& call) {
  double numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!call.is_scalar(i))
      throw Error(ErrorKind::kUnsupported, "the length of a range is computed from data");
    numbers[i] = call.constant(i)->number(0);
  }
  const double count = (numbers[1] - numbers[0]) / numbers[2];
  constexpr double kLargest = 1e12;
  if (!(count >= 1) || count > kLargest) call.fail("a range without elements, or with too many");
  const Shape shape = {static_cast<int64_t>(count)};
  call.set(0, call.op("full", {}, {{"shape", shape}, {"dtype", call.dtype(0)}}));
}

/// Random numbers: a kernel that writes them.
void translate_random(OnnxCall& call) {
  const bool like = call.has(0);
  const Shape shape = like ? call.shape(0) : call.list("shape");
  const int64_t given = call.integer("dtype", 0);
  const DType dtype = given != 0 ? call.dtype_of(given) : like ? call.dtype(0) : call.dtype_of(1);
  call.set(0, call.op("full", {}, {{"shape", shape}, {"dtype", dtype}}));
}

void translate_eye_like(OnnxCall& call) {
  const int64_t given = call.integer("dtype", 0);
  const DType dtype = given != 0 ? call.dtype_of(given) : call.dtype(0);
  call.set(0, call.op("full", {}, {{"shape", call.shape(0)}, {"dtype", dtype}}));
}

void translate_col2im(OnnxCall& call) {
  const Shape x = call.shape(0), image = call.integers(1, "the image's shape"),
              block = call.integers(2, "the block's shape");
  const int64_t elements = element_count(block);
  if (x.size() != 3 || elements < 1 || x[1] % elements != 0)
    call.fail("expected [b, c · block, n]");
  Shape shape = {x[0], x[1] / elements};
  shape.insert(shape.end(), image.begin(), image.end());
  call.set(0, call.op("fold", {call.tensor(0)}, {{"shape", shape}}));
}

/// x [b, c, h, w] as [b, c · window, windows] (torch.nn.functional.unfold).
void translate_windows(OnnxCall& call) {
  const Shape x = call.shape(0);
  const std::vector<int64_t>& n = call.node().call_numbers;
  if (x.size() != 4 || n.size() != 8) call.fail("expected an image and the sizes of windows");
  Shape to = {x[0], x[1], 1};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t window = n[d], dilation = n[2 + d], padding = n[4 + d], stride = n[6 + d];
    constexpr int64_t kMost = 1 << 20;
    for (const int64_t size : {window, dilation, padding, stride}) {
      if (size < 0 || size > kMost) call.fail("expected sizes of windows");
    }
    const int64_t room = checked_add(x[d + 2], 2 * padding) - dilation * (window - 1) - 1;
    if (window < 1 || stride < 1 || room < 0) call.fail("the windows do not fit");
    to[1] = checked_multiply(to[1], window);
    to[2] = checked_multiply(to[2], room / stride + 1);
  }
  const Shape written = call.integers(1, "the shape");
  bool same = written.size() == to.size();
  for (size_t d = 0; same && d < to.size(); ++d) same = written[d] <= 0 || written[d] == to[d];
  if (!same)
    call.fail(
        fmt::format("the note of PyTorch's exporter says windows of shape {}, the file "
                    "reshapes them to {}; export the model again",
                    format_shape(to), format_shape(written)));
  call.set(0, call.op("unfold", {call.tensor(0)}, {{"shape", to}}));
}

/// Sums of the rows of a table by ids and offsets. Bags are taken to be of one length, as
/// tilecast.torch takes them; the largest of each bag and weighted sums are gathers there too.
void translate_embedding_bag(OnnxCall& call) {
  constexpr size_t kMode = 4, kWeights = 6, kLastOffset = 7;
  const std::vector<std::string>& arguments = call.node().call_arguments;
  const auto argument = [&](size_t i) { return i < arguments.size() ? arguments[i] : ""; };
  const Shape table = call.shape(0), offsets = call.shape(2);
  const int64_t ids = element_count(call.shape(1));
  const int64_t bags = element_count(offsets) - (argument(kLastOffset) == "True" ? 1 : 0);
  if (table.size() != 2 || offsets.size() != 1 || bags < 1)
    call.fail(
        fmt::format("expected a table of two dimensions and at least one bag, found {} and {}",
                    format_shape(table), format_shape(offsets)));
  const std::string weights = argument(kWeights);
  const bool weighted = !weights.empty() && weights != "None";
  if (argument(kMode) == "2" || weighted || ids < bags || ids % bags != 0) {
    const Shape to = {bags, table[1]};
    const DType dtype = call.dtype(0), id = call.dtype(1);
    const int64_t read = checked_add(checked_product({ids, table[1], dtype_bits(dtype)}) / 8,
                                     checked_product({ids, dtype_bits(id)}) / 8);
    call.set(0, call.op("stream", {call.tensor(0), call.tensor(1), call.tensor(2)},
                        {{"outputs", fmt::format("{}{}", dtype_name(dtype), format_shape(to))},
                         {"flops", checked_product({ids, table[1]})},
                         {"read_bytes", read},
                         {"unmeasured", std::string("embedding_bag")}}));
    return;
  }
  const TensorId rows = call.reshape(call.tensor(1), {bags, ids / bags});
  call.set(0, call.op("embedding_bag", {call.tensor(0), rows}));
}

}  // namespace

std::vector<OnnxOp> onnx_movement_ops() {
  return {{"Gather", translate_gather},
          {"GatherElements", translate_gather_elements},
          {"GatherND", translate_gather_nd},
          {"Scatter", translate_scatter},
          {"ScatterElements", translate_scatter},
          {"ScatterND", translate_scatter},
          {"OneHot", translate_one_hot},
          {"TopK", translate_top_k},
          {"Pad", translate_pad},
          {"Tile", translate_tile},
          {"CumSum", translate_moving<kCumsum>},
          {"Trilu", translate_moving<kTriangle>},
          {"ReverseSequence", translate_moving<kFlip>},
          {"ConstantOfShape", translate_constant_of_shape},
          {"Range", translate_range},
          {"RandomNormal", translate_random},
          {"RandomUniform", translate_random},
          {"RandomNormalLike", translate_random},
          {"RandomUniformLike", translate_random},
          {"Bernoulli", translate_random},
          {"EyeLike", translate_eye_like},
          {"Col2Im", translate_col2im},
          {kTorchWindows, translate_windows},
          {kTorchEmbeddingBag, translate_embedding_bag}};
}

}  // namespace tilecast
