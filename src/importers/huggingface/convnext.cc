// ConvNeXt and ConvNeXt V2 (transformers/models/convnext and models/convnextv2).

#include <fmt/format.h>

#include "importers/huggingface/convnet.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

struct ConvNextConfig {
  int64_t channels, side, patch;
  std::vector<int64_t> widths, depths;
  std::string activation;
  bool second;       ///< V2: global response normalization instead of a scale
  bool layer_scale;  ///< V1: a factor for each channel
  int64_t labels;
};

ConvNextConfig convnext_config(const JsonObject& c) {
  ConvNextConfig n{};
  n.channels = c.optional_integer({"num_channels"}, 1, kLargestConfigSize).value_or(3);
  constexpr int64_t kImageNet = 224;  // transformers' default
  n.side = image_side_or(c, kImageNet);
  n.patch = c.optional_integer({"patch_size"}, 1, n.side).value_or(4);
  n.depths = integers(c, "depths", 1, 1000);
  n.widths = integers_like(c, "hidden_sizes", "depths", n.depths.size(), kLargestConfigSize);
  n.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", n.activation);
  n.second = c.string("model_type") == "convnextv2";
  n.layer_scale =
      !n.second && (!c.has("layer_scale_init_value") || c.number("layer_scale_init_value") > 0);
  n.labels = image_classes(c);
  return n;
}

class ConvNext {
 public:
  ConvNext(Graph& graph, const ConvNextConfig& config, const GraphRequest& request)
      : graph_(graph), net_(graph, request), f_(net_.layers()), c_(config) {}

  void build() {
    GraphBuilder& b = net_.builder();
    b.begin_segment("embeddings", 1);
    TensorId x = net_.conv(
        net_.pixels(c_.channels, c_.side), "embeddings.patch_embeddings",
        {.out = c_.widths[0], .window = c_.patch, .stride = c_.patch, .bias = true, .padding = 0});
    x = net_.channel_norm(x, "embeddings.layernorm");
    for (size_t i = 0; i < c_.widths.size(); ++i) {
      const std::string name = fmt::format("encoder.stages.{}", i);
      if (i > 0) {
        b.begin_segment(name + ".downsampling_layer", 1);
        x = net_.conv(net_.channel_norm(x, name + ".downsampling_layer.0"),
                      name + ".downsampling_layer.1",
                      {.out = c_.widths[i], .window = 2, .stride = 2, .bias = true, .padding = 0});
      }
      b.begin_segment(name + ".layers", c_.depths[i]);
      const TensorId start = x;
      x = block(x, name + ".layers.0");
      b.carry(start, x);
    }
    b.begin_segment("head", 1);
    const TensorId pooled = f_.layer_norm(net_.mean_pool(x, "pooler"), "layernorm");
    graph_.outputs = {c_.labels > 0 ? f_.linear(pooled, "classifier", {c_.labels}) : pooled};
  }

 private:
  /// Rows scaled by the norm of each channel over the image, relative to the mean of all channels.
  TensorId response_norm(TensorId x, const std::string& name) {
    const Shape s = graph_.tensor(x).shape;  // [b, h, w, c]
    const Shape one = {1, 1, 1, s[3]};
    const TensorId weight = f_.weight(name + ".weight", one);
    const TensorId bias = f_.weight(name + ".bias", one);
    const TensorId squares = f_.op("integer_pow", {x}, name);
    const TensorId sum = f_.op("reduce_sum", {squares}, name, {{"shape", Shape{s[0], 1, 1, s[3]}}});
    const TensorId size = f_.op("sqrt", {sum}, name);
    const TensorId mean = f_.op("reduce_mean", {size}, name, {{"shape", Shape{s[0], 1, 1, 1}}});
    const TensorId ratio = f_.op("div", {size, f_.op("add_scalar", {mean}, name)}, name);
    const TensorId scaled = f_.op("mul", {f_.op("mul", {x, ratio}, name), weight}, name);
    return f_.op("add", {f_.op("add", {scaled, bias}, name), x}, name);
  }

  TensorId block(TensorId x, const std::string& p) {
    const int64_t width = net_.channels(x);
    constexpr int64_t kWindow = 7, kExpansion = 4;
    const TensorId spread = net_.conv(
        x, p + ".dwconv", {.out = width, .window = kWindow, .groups = width, .bias = true});
    const TensorId rows =
        f_.layer_norm(net_.channels_last(spread, p + ".permute"), p + ".layernorm");
    TensorId y = f_.activation(f_.linear(rows, p + ".pwconv1", {kExpansion * width}), c_.activation,
                               p + ".act");
    if (c_.second) y = response_norm(y, p + ".grn");
    y = f_.linear(y, p + ".pwconv2", {width});
    if (c_.layer_scale)
      y = f_.op("mul", {y, f_.weight(p + ".layer_scale_parameter", {width})}, p + ".layer_scale");
    return f_.residual({x, net_.channels_first(y)}, p + ".residual");
  }

  Graph& graph_;
  ConvNet net_;
  Layers& f_;
  const ConvNextConfig& c_;
};

Graph build_convnext(const ConvNextConfig& config, const GraphRequest& request) {
  Graph graph;
  ConvNext(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_convnext(const JsonObject& json) {
  return make_image_model(convnext_config(json), build_convnext);
}

}  // namespace tilecast
