// MobileNet V1 and V2 (transformers/models/mobilenet_v1 and models/mobilenet_v2). Dilated
// convolutions (output_stride below 32) have the sizes and FLOPs of dense ones of stride 1.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "importers/huggingface/convnet.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

/// The output channels and strides of the blocks, from the code of transformers.
constexpr int64_t kWidthsV2[] = {16, 24, 24, 32, 32,  32,  64,  64, 64,
                                 64, 96, 96, 96, 160, 160, 160, 320};
constexpr int64_t kStridesV2[] = {2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
constexpr int64_t kStridesV1[] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
constexpr int64_t kMobilenetStem = 32, kLastWidthV2 = 1280;

struct MobileNetConfig {
  bool second;  ///< V2
  int64_t channels, side, min_depth, divisor, output_stride;
  double depth, expansion;
  std::string activation;
  bool same_padding, first_is_expansion, fine_output, dropout;
  int64_t labels;
};

MobileNetConfig mobilenet_config(const JsonObject& c) {
  MobileNetConfig m{};
  m.second = c.string("model_type") == "mobilenet_v2";
  m.channels = c.optional_integer({"num_channels"}, 1, kLargestConfigSize).value_or(3);
  m.side = image_side(c);
  m.min_depth = c.optional_integer({"min_depth"}, 1, kLargestConfigSize).value_or(8);
  m.divisor = c.optional_integer({"depth_divisible_by"}, 1, kLargestConfigSize).value_or(8);
  m.output_stride = c.optional_integer({"output_stride"}, 2, 32).value_or(32);
  m.depth = factor(c, "depth_multiplier", 1);
  m.expansion = factor(c, "expand_ratio", 6);
  m.activation = c.optional_string({"hidden_act"}).value_or("relu6");
  check_activation(c, "hidden_act", m.activation);
  m.same_padding = c.boolean("tf_padding", true);
  m.first_is_expansion = c.boolean("first_layer_is_expansion", true);
  m.fine_output = c.boolean("finegrained_output", true);
  m.dropout = drops(c, "classifier_dropout_prob", 0.8);
  m.labels = image_classes(c);
  return m;
}

class MobileNet {
 public:
  MobileNet(Graph& graph, const MobileNetConfig& config, const GraphRequest& request)
      : graph_(graph), net_(graph, request), c_(config) {}

  void build() {
    net_.builder().begin_segment("layers", 1);
    const TensorId pixels = net_.pixels(c_.channels, c_.side);
    const TensorId x = c_.second ? blocks_v2(pixels) : blocks_v1(pixels);
    net_.builder().begin_segment("head", 1);
    const TensorId pooled = net_.mean_pool(x, "pooler");
    graph_.outputs = {net_.classify(pooled, c_.labels, c_.dropout)};
  }

 private:
  TensorId layer(TensorId x, const std::string& name, const ConvNet::Convolution& o,
                 bool active = true) {
    const TensorId y = c_.same_padding ? net_.conv_same(x, name + ".convolution", o)
                                       : net_.conv(x, name + ".convolution", o);
    const TensorId normal = net_.batch_norm(y, name + ".normalization");
    const TensorId out =
        active ? net_.layers().activation(normal, c_.activation, name + ".activation") : normal;
    return net_.keep(out, {x}, name);
  }

  TensorId depthwise(TensorId x, const std::string& name, int64_t stride) {
    const int64_t width = net_.channels(x);
    return layer(x, name, {.out = width, .window = 3, .stride = stride, .groups = width});
  }

  int64_t width_v1(int64_t width) const {
    return std::max(static_cast<int64_t>(static_cast<double>(width) * c_.depth), c_.min_depth);
  }

  TensorId blocks_v1(TensorId pixels) {
    int64_t width = kMobilenetStem;
    TensorId x = layer(pixels, "conv_stem", {.out = width_v1(width), .window = 3, .stride = 2});
    int64_t i = 0;
    for (const int64_t stride : kStridesV1) {
      if (stride == 2 || i == 0) width *= 2;
      x = depthwise(x, fmt::format("layer.{}", 2 * i), stride);
      x = layer(x, fmt::format("layer.{}", 2 * i + 1), {.out = width_v1(width)});
      ++i;
    }
    return x;
  }

  /// make_divisible: the nearest multiple of the divisor, at least nine tenths of the width.
  int64_t divisible(double exact) const {
    // Python's round(), which rounds halves to even, as llrint does.
    const auto width = static_cast<double>(std::llrint(exact));
    const auto divisor = static_cast<double>(c_.divisor);
    const auto near = static_cast<int64_t>(width + divisor / 2) / c_.divisor * c_.divisor;
    const int64_t rounded = std::max(c_.min_depth, near);
    return static_cast<double>(rounded) < 0.9 * width ? rounded + c_.divisor : rounded;
  }

  TensorId residual_block(TensorId x, int64_t out, int64_t stride, const std::string& p) {
    const auto wide = divisible(static_cast<double>(net_.channels(x)) * c_.expansion);
    TensorId y = layer(x, p + ".expand_1x1", {.out = wide});
    y = depthwise(y, p + ".conv_3x3", stride);
    y = layer(y, p + ".reduce_1x1", {.out = out}, false);
    const bool residual = stride == 1 && net_.channels(x) == out;
    return residual ? net_.layers().residual({x, y}, p + ".residual") : net_.keep(y, {x}, p);
  }

  TensorId blocks_v2(TensorId pixels) {
    const auto width = [&](int64_t w) { return divisible(static_cast<double>(w) * c_.depth); };
    TensorId x = layer(pixels, "conv_stem.first_conv",
                       {.out = width(kMobilenetStem), .window = 3, .stride = 2});
    if (!c_.first_is_expansion)
      x = layer(x, "conv_stem.expand_1x1", {.out = width(kMobilenetStem)});
    x = depthwise(x, "conv_stem.conv_3x3", 1);
    x = layer(x, "conv_stem.reduce_1x1", {.out = width(kWidthsV2[0])}, false);
    int64_t reached = 2;
    for (size_t i = 0; i < std::size(kStridesV2); ++i) {
      const int64_t stride = reached == c_.output_stride ? 1 : kStridesV2[i];
      reached *= stride;
      x = residual_block(x, width(kWidthsV2[i + 1]), stride, fmt::format("layer.{}", i));
    }
    const bool full = c_.fine_output && c_.depth < 1;
    return layer(x, "conv_1x1", {.out = full ? kLastWidthV2 : width(kLastWidthV2)});
  }

  Graph& graph_;
  ConvNet net_;
  const MobileNetConfig& c_;
};

Graph build_mobilenet(const MobileNetConfig& config, const GraphRequest& request) {
  Graph graph;
  MobileNet(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_mobilenet(const JsonObject& json) {
  return make_image_model(mobilenet_config(json), build_mobilenet);
}

}  // namespace tilecast
