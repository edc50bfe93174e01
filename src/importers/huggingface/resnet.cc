// ResNet and RegNet (transformers/models/resnet and models/regnet).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "importers/huggingface/convnet.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct ResNetConfig {
  int64_t channels, side, stem;
  std::vector<int64_t> widths, depths;
  std::string activation;
  bool regnet = false;
  bool bottleneck = true;       ///< ResNet: three convolutions in a block, not two
  bool early_stride = false;    ///< ResNet: the first convolution of a bottleneck has the stride
  bool first_stride = false;    ///< the first stage halves the image too
  bool squeeze_excite = false;  ///< RegNet Y
  int64_t group_width = 1;      ///< RegNet
  int64_t labels = 0;           ///< 0: no classifier
};

ResNetConfig resnet_config(const JsonObject& c) {
  ResNetConfig r{};
  r.regnet = c.string("model_type") == "regnet";
  r.channels = c.optional_integer({"num_channels"}, 1, kLargestConfigSize).value_or(3);
  constexpr int64_t kImageNet = 224;  // configs of ResNets name no size; ImageNet's crops
  r.side = image_side_or(c, kImageNet);
  r.stem = c.integer({"embedding_size"}, 1, kLargestConfigSize);
  r.depths = integers(c, "depths", 1, 1000);
  r.widths = integers_like(c, "hidden_sizes", "depths", r.depths.size(), kLargestConfigSize);
  r.activation = c.optional_string({"hidden_act"}).value_or("relu");
  check_activation(c, "hidden_act", r.activation);
  r.first_stride = c.boolean("downsample_in_first_stage", r.regnet);
  r.early_stride = c.boolean("downsample_in_bottleneck", false);
  r.labels = image_classes(c);
  const std::string type =
      c.optional_string({"layer_type"}).value_or(r.regnet ? "y" : "bottleneck");
  const std::vector<std::string> known = r.regnet ? std::vector<std::string>{"x", "y"}
                                                  : std::vector<std::string>{"basic", "bottleneck"};
  if (std::find(known.begin(), known.end(), type) == known.end())
    c.fail("layer_type",
           fmt::format("expected '{}' or '{}', found '{}'", known[0], known[1], shown_name(type)));
  r.bottleneck = type != "basic";
  r.squeeze_excite = type == "y";
  if (r.regnet) {
    r.group_width = c.integer({"groups_width"}, 1, kLargestConfigSize);
    for (const int64_t width : r.widths) {
      if (width % std::max<int64_t>(1, width / r.group_width) != 0)
        c.fail("groups_width", fmt::format("groups of {} do not divide a stage of {} channels",
                                           r.group_width, width));
    }
  }
  if (r.bottleneck && !r.regnet && *std::min_element(r.widths.begin(), r.widths.end()) < 4)
    c.fail("hidden_sizes", "a bottleneck has a quarter of the channels; expected 4 or more");
  return r;
}

class ResNet {
 public:
  ResNet(Graph& graph, const ResNetConfig& config, const GraphRequest& request)
      : graph_(graph), net_(graph, request), c_(config) {}

  void build() {
    net_.builder().begin_segment("embedder", 1);
    const int64_t window = c_.regnet ? 3 : 7;
    TensorId x = net_.conv_norm(net_.pixels(c_.channels, c_.side), "embedder",
                                {.out = c_.stem, .window = window, .stride = 2}, c_.activation);
    if (!c_.regnet)
      x = net_.builder()
              .add("max_pool2d", {x}, "embedder.pooler",
                   {{"window", 3}, {"stride", 2}, {"padding", 1}})
              .front();
    const TensorId embedded = x;
    for (size_t i = 0; i < c_.widths.size(); ++i) {
      const std::string name = fmt::format("encoder.stages.{}", i);
      net_.builder().begin_segment(name, 1);
      const int64_t stride = i > 0 || c_.first_stride ? 2 : 1;
      const TensorId entered = x;  // a variable of the stage
      x = net_.keep(block(x, c_.widths[i], stride, name + ".layers.0"), {entered}, name);
      if (c_.depths[i] == 1) continue;
      net_.builder().begin_segment(name + ".layers", c_.depths[i] - 1);
      const TensorId start = x;
      x = net_.keep(block(x, c_.widths[i], 1, name + ".layers.1"), {entered}, name);
      net_.builder().carry(start, x);
    }
    net_.builder().begin_segment("head", 1);
    const TensorId pooled = net_.keep(net_.mean_pool(x, "pooler"), {embedded}, "pooler");
    graph_.outputs = {c_.labels > 0 ? net_.layers().linear(pooled, "classifier", {c_.labels})
                                    : pooled};
  }

 private:
  TensorId inner(TensorId x, int64_t width, int64_t stride, const std::string& p) {
    if (c_.regnet) {
      const int64_t reduced =
          std::max<int64_t>(1, std::llrint(static_cast<double>(net_.channels(x)) / 4));
      TensorId y = net_.conv_norm(x, p + ".0", {.out = width}, c_.activation);
      y = net_.conv_norm(y, p + ".1",
                         {.out = width,
                          .window = 3,
                          .stride = stride,
                          .groups = std::max<int64_t>(1, width / c_.group_width)},
                         c_.activation);
      if (c_.squeeze_excite) y = net_.squeeze_excite(y, reduced, "relu", p + ".2");
      return net_.conv_norm(y, p + ".3", {.out = width}, "");
    }
    if (!c_.bottleneck) {
      const TensorId y =
          net_.conv_norm(x, p + ".0", {.out = width, .window = 3, .stride = stride}, c_.activation);
      return net_.conv_norm(y, p + ".1", {.out = width, .window = 3}, "");
    }
    const int64_t narrow = width / 4;
    const int64_t first = c_.early_stride ? stride : 1;
    TensorId y = net_.conv_norm(x, p + ".0", {.out = narrow, .stride = first}, c_.activation);
    y = net_.conv_norm(y, p + ".1", {.out = narrow, .window = 3, .stride = stride / first},
                       c_.activation);
    return net_.conv_norm(y, p + ".2", {.out = width}, "");
  }

  TensorId block(TensorId x, int64_t width, int64_t stride, const std::string& name) {
    const TensorId y = inner(x, width, stride, name + ".layer");
    const bool changes = net_.channels(x) != width || stride != 1;
    const TensorId residual =
        changes ? net_.conv_norm(x, name + ".shortcut", {.out = width, .stride = stride}, "") : x;
    const TensorId sum = net_.layers().residual({y, residual}, name + ".residual");
    return net_.layers().activation(sum, c_.activation, name + ".activation");
  }

  Graph& graph_;
  ConvNet net_;
  const ResNetConfig& c_;
};

Graph build_resnet(const ResNetConfig& config, const GraphRequest& request) {
  Graph graph;
  ResNet(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_resnet(const JsonObject& json) {
  return make_image_model(resnet_config(json), build_resnet);
}

}  // namespace tilecast
