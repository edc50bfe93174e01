#include <cudnn.h>
// The frontend needs its own JSON only for serialization, which is not used.
#include <cudnn_frontend.h>

#include <cmath>
#include <memory>
#include <unordered_map>

#include "cuda_error.h"
#include "operations.h"

namespace tilecast::measure {
namespace {
namespace fe = cudnn_frontend;

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

cudnnHandle_t library() {
  static cudnnHandle_t handle = [] {
    cudnnHandle_t created = nullptr;
    if (cudnnCreate(&created) != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error("cudnnCreate failed: cuDNN " + std::to_string(cudnnGetVersion()) +
                               " does not match the driver or the card");
    return created;
  }();
  return handle;
}

void check(fe::error_t error, const char* what) {
  if (error.is_bad()) throw Unsupported(std::string("cuDNN ") + what + ": " + error.get_message());
}

/// A graph of one operator, built by cuDNN's heuristic (mode A), with its tensors in region order.
struct Plan {
  fe::graph::Graph graph;
  std::vector<Tensor> tensors;
  int64_t workspace_bytes = 0;

  explicit Plan(const std::string& dtype) {
    if (dtype != "fp16" && dtype != "bf16" && dtype != "fp32" && dtype != "tf32")
      throw Unsupported("dtype: cuDNN is measured in fp32, tf32, fp16 and bf16, not '" + dtype +
                        "'");
    graph
        .set_io_data_type(dtype == "fp16"   ? fe::DataType_t::HALF
                          : dtype == "bf16" ? fe::DataType_t::BFLOAT16
                                            : fe::DataType_t::FLOAT)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    strict_fp32_ = dtype == "fp32";
  }

  Tensor input(const char* name, std::vector<int64_t> dim, std::vector<int64_t> stride) {
    tensors.push_back(graph.tensor(
        fe::graph::Tensor_attributes().set_name(name).set_dim(dim).set_stride(stride)));
    return tensors.back();
  }

  void output(const Tensor& tensor, std::vector<int64_t> dim, std::vector<int64_t> stride) {
    tensor->set_output(true).set_dim(dim).set_stride(stride);
    tensors.push_back(tensor);
  }

  void build() {
    check(graph.validate(), "validate");
    check(graph.build_operation_graph(library()), "build_operation_graph");
    check(graph.create_execution_plans({fe::HeurMode_t::A}), "create_execution_plans");
    // The compute type "float" lets the tensor cores round fp32 to tf32.
    if (strict_fp32_) graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE});
    check(graph.check_support(), "check_support");
    check(graph.build_plans(), "build_plans");
    check(graph.get_workspace_size(workspace_bytes), "get_workspace_size");
  }

 private:
  bool strict_fp32_ = false;
};

void attach(Operation& operation, Session& session, std::shared_ptr<Plan> plan) {
  plan->build();
  void* const workspace = session.workspace(std::max<int64_t>(plan->workspace_bytes, 1));
  operation.facts["workspace_bytes"] = std::to_string(plan->workspace_bytes);
  std::string name;
  if (plan->graph.get_plan_name(name).is_good()) operation.facts["algorithm_id"] = name;
  operation.launch = [plan, workspace](const Operands& x, cudaStream_t stream) {
    if (cudnnSetStream(library(), stream) != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error("cudnnSetStream failed");
    std::unordered_map<Tensor, void*> pack;
    for (size_t i = 0; i < plan->tensors.size(); ++i) pack[plan->tensors[i]] = x[i];
    check(plan->graph.execute(library(), pack, workspace), "execute");
  };
}

struct ConvShape {
  int64_t n, c, h, w, k, r, s, stride, padding, groups, out_h, out_w;
};

ConvShape conv_shape(const Request& request) {
  ConvShape x{};
  x.n = request.size("batch");
  x.c = request.size("channels");
  x.h = request.size("height");
  x.w = request.size("width");
  x.k = request.size("filters");
  x.r = request.size("kernel_height");
  x.s = request.size("kernel_width");
  x.stride = request.integer("stride", 1);
  x.padding = request.integer("padding", 0);
  x.groups = request.integer("groups", 1);
  if (x.stride < 1 || x.padding < 0 || x.groups < 1 || x.c % x.groups != 0 || x.k % x.groups != 0)
    throw Unsupported("convolution: stride, padding or groups do not fit");
  x.out_h = (x.h + 2 * x.padding - x.r) / x.stride + 1;
  x.out_w = (x.w + 2 * x.padding - x.s) / x.stride + 1;
  if (x.out_h < 1 || x.out_w < 1)
    throw Unsupported("convolution: the filter is larger than the image");
  return x;
}

/// Dense strides of an N,C,H,W tensor with channels last.
std::vector<int64_t> channels_last(int64_t c, int64_t h, int64_t w) {
  return {c * h * w, 1, c * w, c};
}

std::vector<double> conv_reference(const ConvShape& x, const std::vector<std::vector<double>>& in) {
  std::vector<double> out(static_cast<size_t>(x.n * x.k * x.out_h * x.out_w));
  const int64_t c_group = x.c / x.groups, k_group = x.k / x.groups;
  for (int64_t at = 0; at < static_cast<int64_t>(out.size()); ++at) {
    const int64_t k = at % x.k, ow = at / x.k % x.out_w, oh = at / x.k / x.out_w % x.out_h,
                  n = at / x.k / x.out_w / x.out_h;
    for (int64_t r = 0; r < x.r; ++r) {
      for (int64_t s = 0; s < x.s; ++s) {
        const int64_t h = oh * x.stride + r - x.padding, w = ow * x.stride + s - x.padding;
        if (h < 0 || w < 0 || h >= x.h || w >= x.w) continue;
        for (int64_t c = 0; c < c_group; ++c)
          out[static_cast<size_t>(at)] +=
              in[0]
                [static_cast<size_t>(((n * x.h + h) * x.w + w) * x.c + k / k_group * c_group + c)] *
              in[1][static_cast<size_t>(((k * x.r + r) * x.s + s) * c_group + c)];
      }
    }
  }
  return out;
}

Operation make_convolution(Session& session, const Request& request) {
  const std::string op = request.text("op"), dtype = request.text("dtype");
  const ConvShape x = conv_shape(request);
  const int64_t c_group = x.c / x.groups;
  const std::vector<int64_t> image{x.n, x.c, x.h, x.w}, filter{x.k, c_group, x.r, x.s},
      result{x.n, x.k, x.out_h, x.out_w};
  const auto image_stride = channels_last(x.c, x.h, x.w),
             filter_stride = channels_last(c_group, x.r, x.s),
             result_stride = channels_last(x.k, x.out_h, x.out_w);
  const Region image_region{dtype, x.n * x.c * x.h * x.w},
      filter_region{dtype, x.k * c_group * x.r * x.s},
      result_region{dtype, x.n * x.k * x.out_h * x.out_w};
  const auto configure = [&](auto options) {
    return options.set_padding({x.padding, x.padding})
        .set_stride({x.stride, x.stride})
        .set_dilation({1, 1});
  };
  auto plan = std::make_shared<Plan>(dtype);
  Operation operation;
  if (op == "conv_forward") {
    const Tensor a = plan->input("image", image, image_stride),
                 b = plan->input("filter", filter, filter_stride);
    plan->output(plan->graph.conv_fprop(a, b, configure(fe::graph::Conv_fprop_attributes())),
                 result, result_stride);
    operation.regions = {image_region, filter_region, result_region};
    operation.reference = [x](const std::vector<std::vector<double>>& in) {
      return conv_reference(x, in);
    };
    operation.tolerance = dtype == "fp32" ? 1e-4 : 2e-2;
  } else if (op == "conv_backward_data") {
    const Tensor a = plan->input("gradient", result, result_stride),
                 b = plan->input("filter", filter, filter_stride);
    plan->output(plan->graph.conv_dgrad(a, b, configure(fe::graph::Conv_dgrad_attributes())), image,
                 image_stride);
    operation.regions = {result_region, filter_region, image_region};
  } else {
    const Tensor a = plan->input("gradient", result, result_stride),
                 b = plan->input("image", image, image_stride);
    plan->output(plan->graph.conv_wgrad(a, b, configure(fe::graph::Conv_wgrad_attributes())),
                 filter, filter_stride);
    operation.regions = {result_region, image_region, filter_region};
  }
  operation.regions.back().output = true;
  attach(operation, session, plan);
  return operation;
}

struct AttentionShape {
  int64_t batch, heads, kv_heads, queries, keys, head_size;
  bool causal;
};

/// Strides of batch, head, position, element where memory holds [batch, position, head, element].
std::vector<int64_t> interleaved(int64_t heads, int64_t positions, int64_t size) {
  return {heads * positions * size, size, heads * size, 1};
}

std::vector<double> attention_reference(const AttentionShape& x,
                                        const std::vector<std::vector<double>>& in) {
  std::vector<double> out(static_cast<size_t>(x.batch * x.queries * x.heads * x.head_size));
  const int64_t d = x.head_size;
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      const int64_t kv = h / (x.heads / x.kv_heads);
      for (int64_t q = 0; q < x.queries; ++q) {
        const double* query = &in[0][static_cast<size_t>(((b * x.queries + q) * x.heads + h) * d)];
        // Causal masks are aligned at the end: the last query sees all keys.
        const int64_t visible = x.causal ? x.keys - x.queries + q + 1 : x.keys;
        std::vector<double> score(static_cast<size_t>(visible));
        double sum = 0;
        for (int64_t j = 0; j < visible; ++j) {
          double dot = 0;
          for (int64_t e = 0; e < d; ++e)
            dot +=
                query[e] * in[1][static_cast<size_t>(((b * x.keys + j) * x.kv_heads + kv) * d + e)];
          sum += score[static_cast<size_t>(j)] = std::exp(dot / std::sqrt(static_cast<double>(d)));
        }
        for (int64_t j = 0; j < visible; ++j) {
          for (int64_t e = 0; e < d; ++e)
            out[static_cast<size_t>(((b * x.queries + q) * x.heads + h) * d + e)] +=
                score[static_cast<size_t>(j)] / sum *
                in[2][static_cast<size_t>(((b * x.keys + j) * x.kv_heads + kv) * d + e)];
        }
      }
    }
  }
  return out;
}

Operation make_attention(Session& session, const Request& request) {
  const std::string dtype = request.text("dtype");
  const bool backward = request.text("op") == "attention_backward";
  if (dtype != "fp16" && dtype != "bf16")
    throw Unsupported("dtype: cuDNN's fused attention takes fp16 and bf16, not '" + dtype + "'");
  AttentionShape x{request.size("batch"),   request.size("heads"), request.size("kv_heads"),
                   request.size("queries"), request.size("keys"),  request.size("head_size"),
                   request.flag("causal")};
  if (x.heads % x.kv_heads != 0) throw Unsupported("heads: not a multiple of kv_heads");
  if (x.causal && x.queries > x.keys) throw Unsupported("causal: more queries than keys");
  const std::vector<int64_t> q_dim{x.batch, x.heads, x.queries, x.head_size},
      kv_dim{x.batch, x.kv_heads, x.keys, x.head_size}, stats_dim{x.batch, x.heads, x.queries, 1};
  const auto q_stride = interleaved(x.heads, x.queries, x.head_size),
             kv_stride = interleaved(x.kv_heads, x.keys, x.head_size);
  const std::vector<int64_t> stats_stride{x.heads * x.queries, x.queries, 1, 1};
  const float scale = 1 / std::sqrt(static_cast<float>(x.head_size));
  const Region q_region{dtype, x.batch * x.heads * x.queries * x.head_size},
      kv_region{dtype, x.batch * x.kv_heads * x.keys * x.head_size};
  const auto configure = [&](auto& options) {
    options.set_attn_scale(scale);
    if (x.causal)
      options.set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT)
          .set_diagonal_band_right_bound(0);
  };

  auto plan = std::make_shared<Plan>(dtype);
  Operation operation;
  const Tensor q = plan->input("q", q_dim, q_stride), k = plan->input("k", kv_dim, kv_stride),
               v = plan->input("v", kv_dim, kv_stride);
  operation.regions = {q_region, kv_region, kv_region};
  if (!backward) {
    fe::graph::SDPA_attributes options;
    options.set_generate_stats(false);
    configure(options);
    plan->output(plan->graph.sdpa(q, k, v, options)[0], q_dim, q_stride);
    operation.regions.push_back(q_region);
    operation.regions.back().output = true;
    operation.reference = [x](const std::vector<std::vector<double>>& in) {
      return attention_reference(x, in);
    };
    operation.tolerance = 2e-2;
  } else {
    const Tensor o = plan->input("o", q_dim, q_stride),
                 gradient = plan->input("gradient", q_dim, q_stride);
    const Tensor stats = plan->input("stats", stats_dim, stats_stride);
    stats->set_data_type(fe::DataType_t::FLOAT);
    operation.regions.insert(operation.regions.end(),
                             {q_region, q_region, {"fp32", x.batch * x.heads * x.queries}});
    fe::graph::SDPA_backward_attributes options;
    configure(options);
    const auto gradients = plan->graph.sdpa_backward(q, k, v, o, gradient, stats, options);
    plan->output(gradients[0], q_dim, q_stride);
    plan->output(gradients[1], kv_dim, kv_stride);
    plan->output(gradients[2], kv_dim, kv_stride);
    for (const Region& region : {q_region, kv_region, kv_region}) {
      operation.regions.push_back(region);
      operation.regions.back().output = true;
    }
  }
  attach(operation, session, plan);
  return operation;
}

}  // namespace

std::string cudnn_version() { return std::to_string(cudnnGetVersion()); }

Operation make_cudnn(Session& session, const Request& request) {
  return request.text("op").starts_with("conv_") ? make_convolution(session, request)
                                                 : make_attention(session, request);
}

}  // namespace tilecast::measure
