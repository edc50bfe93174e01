// Matrix products, convolutions and attention of a trace.

#include <algorithm>
#include <array>

#include "profile/aten.h"

namespace tilecast {
namespace {

/// A matrix as it lies in memory: transposed views are read from [columns, rows].
struct StoredMatrix {
  Shape shape;
  bool transposed = false;
};

StoredMatrix stored_matrix(const TracedTensor& tensor) {
  const size_t n = tensor.shape.size();
  StoredMatrix matrix{tensor.shape, tensor.is_transposed()};
  if (matrix.transposed) std::swap(matrix.shape[n - 2], matrix.shape[n - 1]);
  return matrix;
}

Attribute flag(const char* name, bool set) { return {name, int64_t{set ? 1 : 0}}; }

std::optional<CallWork> product(const TracedTensor* a, const TracedTensor* b,
                                const TracedTensor* bias, const CallHints& hints) {
  if (a == nullptr || b == nullptr || a->shape.size() != b->shape.size()) return std::nullopt;
  const DType dtype =
      hints.tf32 && a->dtype == DType::kFp32 ? DType::kTf32 : a->dtype.value_or(DType::kFp32);
  const StoredMatrix left = stored_matrix(*a), right = stored_matrix(*b);
  CallGraph graph;
  const TensorId x = graph.input(left.shape, dtype), w = graph.input(right.shape, dtype);
  if (a->shape.size() == 3) {
    graph.add("matmul", {x, w},
              {flag("transpose_a", left.transposed), flag("transpose_b", right.transposed)});
  } else if (a->shape.size() == 2 && !left.transposed && right.transposed) {
    std::vector<TensorId> inputs = {x, w};
    if (bias != nullptr && bias->shape == Shape{b->shape[1]})
      inputs.push_back(graph.input(bias->shape, dtype));
    graph.add("linear", std::move(inputs));
  } else if (a->shape.size() == 2) {
    graph.add("gemm", {x, w},
              {flag("transpose_a", left.transposed), flag("transpose_b", right.transposed)});
  } else {
    return std::nullopt;
  }
  return graph.work();
}

/// x [.., k] times a weight [n, k].
std::optional<CallWork> linear(const Arguments& arguments, const CallHints& hints) {
  const TracedTensor *x = tensor_at(arguments, 0), *w = tensor_at(arguments, 1);
  if (x == nullptr || w == nullptr) return std::nullopt;
  const DType dtype = hints.tf32 && x->dtype == DType::kFp32 ? DType::kTf32 : *x->dtype;
  CallGraph graph;
  graph.add("linear", {graph.input(x->shape, dtype), graph.input(w->shape, dtype)});
  return graph.work();
}

/// Where the arguments of a convolution are; -1: it has none.
struct ConvolutionForm {
  std::string_view name;
  int x, weight, stride, padding, dilation, groups, transposed = -1;
};
constexpr ConvolutionForm kForms[] = {
    {"cudnn_convolution", 0, 1, 3, 2, 4, 5},
    {"miopen_convolution", 0, 1, 4, 3, 5, 6},
    {"convolution", 0, 1, 3, 4, 5, 8, 6},
    {"_convolution", 0, 1, 3, 4, 5, 8, 6},
    {"conv2d", 0, 1, 3, 4, 5, 6},
    {"conv1d", 0, 1, 3, 4, 5, 6},
    {"conv3d", 0, 1, 3, 4, 5, 6},
    {"cudnn_convolution_relu", 0, 1, 3, 4, 5, 6},
    {"_conv_depthwise2d", 0, 1, 4, 5, 6, -1},
    {"miopen_depthwise_convolution", 0, 1, 4, 3, 5, 6},
    {"convolution_backward", 1, 2, 4, 5, 6, 9, 7},
};

/// One number for each direction.
std::vector<int64_t> spread(const Arguments& arguments, int place, size_t dims, int64_t fallback) {
  std::vector<int64_t> numbers =
      place < 0 ? std::vector<int64_t>{} : numbers_at(arguments, static_cast<size_t>(place));
  if (numbers.empty()) numbers.push_back(fallback);
  if (numbers.size() == 1) numbers.resize(dims, numbers.front());
  return numbers;
}

bool all_are(const std::vector<int64_t>& numbers, int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == value; });
}

struct ConvolutionCall {
  std::string op;
  std::vector<Attribute> attributes;
};

std::optional<ConvolutionCall> convolution_call(const ConvolutionForm& form,
                                                const Arguments& arguments, const TracedTensor& x,
                                                const TracedTensor& weight) {
  const size_t dims = x.shape.size() - 2;
  const std::vector<int64_t> stride = spread(arguments, form.stride, dims, 1),
                             padding = spread(arguments, form.padding, dims, 0),
                             dilation = spread(arguments, form.dilation, dims, 1);
  if (stride.size() != dims || padding.size() != dims || dilation.size() != dims)
    return std::nullopt;
  const int64_t groups =
      form.groups < 0 ? x.shape[1] : number_at(arguments, static_cast<size_t>(form.groups), 1);
  const bool transposed =
      form.transposed >= 0 && flag_at(arguments, static_cast<size_t>(form.transposed));
  if (dims == 2 && !transposed && all_are(stride, stride.front()) &&
      all_are(padding, padding.front()) && all_are(dilation, 1)) {
    const auto last = [](const TracedTensor& t) {
      return t.shape[1] > 1 && t.strides[1] == 1 && !t.is_row_major();
    };
    return ConvolutionCall{"conv2d",
                           {{"stride", stride.front()},
                            {"padding", padding.front()},
                            {"groups", groups},
                            flag("channels_last", last(x) || last(weight))}};
  }
  ConvolutionCall call{
      "conv",
      {{"strides", stride}, {"pads", padding}, {"dilations", dilation}, {"groups", groups}}};
  if (transposed) call.attributes.push_back({"transposed", int64_t{1}});
  return call;
}

/// Which gradients are asked for: the last argument, [True, True, False].
std::array<bool, 3> gradients_of(const Arguments& arguments) {
  const std::string& mask = arguments.back().value;
  std::array<bool, 3> wanted{};
  size_t at = 0;
  for (bool& one : wanted) {
    at = mask.find_first_of("TFtf", at);
    if (at == std::string::npos) break;
    one = mask[at] == 'T' || mask[at] == 't';
    at = mask.find_first_of(",]", at);
  }
  return wanted;
}

std::optional<CallWork> convolution_gradients(const ConvolutionCall& call, const TracedTensor& x,
                                              const TracedTensor& weight,
                                              const Arguments& arguments, DType dtype) {
  const TracedTensor* dy = tensor_at(arguments, 0);
  if (dy == nullptr || dy->shape.size() != x.shape.size()) return std::nullopt;
  const std::array<bool, 3> wanted = gradients_of(arguments);
  CallGraph graph;
  const std::vector<TensorId> inputs = {graph.input(dy->shape, dtype), graph.input(x.shape, dtype),
                                        graph.input(weight.shape, dtype)};
  if (wanted[0]) graph.add(call.op + "_input_backward", inputs, call.attributes);
  if (wanted[1]) graph.add(call.op + "_weight_backward", inputs, call.attributes);
  if (wanted[2]) graph.add("reduce_sum", {inputs[0]}, {{"shape", Shape{dy->shape[1]}}});
  return graph.work();
}

/// Where the arguments of fused attention are.
struct AttentionForm {
  std::string_view name;
  size_t q, causal;
  bool heads_first;  ///< [b, heads, s, d] in place of [b, s, heads, d]
  bool backward = false;
};
constexpr AttentionForm kAttention[] = {
    {"_flash_attention_forward", 0, 8, false},
    {"_efficient_attention_forward", 0, 9, false},
    {"_cudnn_attention_forward", 0, 10, true},
    {"_scaled_dot_product_flash_attention", 0, 4, true},
    {"_scaled_dot_product_efficient_attention", 0, 6, true},
    {"_scaled_dot_product_cudnn_attention", 0, 6, true},
    {"flash_attn::_flash_attn_forward", 0, 5, false},
    {"flash_attn_3::fwd", 0, 12, false},
    {"_flash_attention_backward", 1, 11, false, true},
    {"_efficient_attention_backward", 1, 14, false, true},
    {"_cudnn_attention_backward", 1, 14, true, true},
    {"_scaled_dot_product_flash_attention_backward", 1, 11, true, true},
    {"_scaled_dot_product_cudnn_attention_backward", 1, 14, true, true},
    {"flash_attn::_flash_attn_backward", 1, 11, false, true},
};

Shape by_tokens(Shape shape, bool heads_first) {
  if (heads_first) std::swap(shape[1], shape[2]);
  return shape;
}

const ConvolutionForm* convolution_form(std::string_view name) {
  const auto form = std::find_if(std::begin(kForms), std::end(kForms),
                                 [&](const ConvolutionForm& f) { return f.name == name; });
  return form == std::end(kForms) ? nullptr : form;
}

}  // namespace

int product_place(std::string_view name) {
  if (name == "mm" || name == "bmm" || name == "matmul" || name == "linear") return 0;
  if (name == "addmm" || name == "baddbmm" || name == "_addmm_activation" || name == "addmm_")
    return 1;
  return -1;
}

bool is_convolution(std::string_view name) { return convolution_form(name) != nullptr; }

bool is_attention(std::string_view name) {
  return std::any_of(std::begin(kAttention), std::end(kAttention),
                     [&](const AttentionForm& f) { return f.name == name; });
}

int weight_place(std::string_view name) {
  if (const ConvolutionForm* form = convolution_form(name)) return form->weight;
  if (name == "linear") return 1;
  return name == "embedding" || name == "index_select" ? 0 : -1;
}

std::optional<CallWork> product_work(std::string_view name, const Arguments& arguments,
                                     const CallHints& hints) {
  if (name == "linear") return linear(arguments, hints);
  const int place = product_place(name);
  if (place == 0) return product(tensor_at(arguments, 0), tensor_at(arguments, 1), nullptr, hints);
  if (place == 1)
    return product(tensor_at(arguments, 1), tensor_at(arguments, 2), tensor_at(arguments, 0),
                   hints);
  return std::nullopt;
}

std::optional<CallWork> convolution_work(std::string_view name, const Arguments& arguments,
                                         const CallHints& hints) {
  const ConvolutionForm* form = convolution_form(name);
  if (form == nullptr) return std::nullopt;
  const TracedTensor *x = tensor_at(arguments, static_cast<size_t>(form->x)),
                     *weight = tensor_at(arguments, static_cast<size_t>(form->weight));
  if (x == nullptr || weight == nullptr || x->shape.size() < 3 ||
      x->shape.size() != weight->shape.size())
    return std::nullopt;
  const std::optional<ConvolutionCall> call = convolution_call(*form, arguments, *x, *weight);
  if (!call) return std::nullopt;
  const DType dtype = hints.tf32 && x->dtype == DType::kFp32 ? DType::kTf32 : *x->dtype;
  if (name == "convolution_backward")
    return convolution_gradients(*call, *x, *weight, arguments, dtype);
  CallGraph graph;
  graph.add(call->op, {graph.input(x->shape, dtype), graph.input(weight->shape, dtype)},
            call->attributes);
  return graph.work();
}

std::optional<CallWork> attention_work(std::string_view name, const Arguments& arguments) {
  const auto form = std::find_if(std::begin(kAttention), std::end(kAttention),
                                 [&](const AttentionForm& f) { return f.name == name; });
  if (form == std::end(kAttention)) return std::nullopt;
  std::array<const TracedTensor*, 3> qkv{};
  for (size_t i = 0; i < qkv.size(); ++i) {
    qkv[i] = tensor_at(arguments, form->q + i);
    if (qkv[i] == nullptr || qkv[i]->shape.size() != 4) return std::nullopt;
  }
  CallGraph graph;
  std::vector<TensorId> inputs;
  for (const TracedTensor* tensor : qkv)
    inputs.push_back(graph.input(by_tokens(tensor->shape, form->heads_first), *tensor->dtype));
  const Shape q = by_tokens(qkv[0]->shape, form->heads_first);
  // Custom masks of efficient attention: 1 and 2 are causal.
  const bool causal =
      flag_at(arguments, form->causal) || number_at(arguments, form->causal, 0) == 2;
  const std::vector<Attribute> attributes = {flag("causal", causal)};
  if (!form->backward) {
    graph.add("attention", std::move(inputs), attributes);
    return graph.work();
  }
  for (int i = 0; i < 2; ++i) inputs.push_back(graph.input(q, *qkv[0]->dtype));
  inputs.push_back(graph.input({q[0], q[2], q[1]}, DType::kFp32));
  graph.add("attention_backward", std::move(inputs), attributes);
  return graph.work();
}

}  // namespace tilecast
