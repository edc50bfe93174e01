// EfficientNet (transformers/models/efficientnet).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "importers/huggingface/convnet.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

constexpr int64_t kEfficientnetStem = 32, kLastWidth = 1280;  // modeling_efficientnet.py
constexpr int64_t kMaxRepeats = 1000;

struct EfficientNetConfig {
  int64_t channels, side, divisor, hidden_dim;
  double width, depth, squeeze;
  std::vector<int64_t> windows, in, out, strides, repeats, expansions;
  std::vector<int64_t> squarely_padded;  ///< blocks whose padding is the same on all sides
  std::string activation;
  bool dropout, drops_blocks;
  int64_t labels;
};

/// The number of channels near `base` times the width that the divisor divides.
int64_t rounded_width(const EfficientNetConfig& c, int64_t base) {
  const double exact = static_cast<double>(base) * c.width;
  const auto near = static_cast<int64_t>(exact + static_cast<double>(c.divisor) / 2);
  const int64_t rounded = std::max(c.divisor, near / c.divisor * c.divisor);
  return static_cast<double>(rounded) < 0.9 * exact ? rounded + c.divisor : rounded;
}

EfficientNetConfig efficientnet_config(const JsonObject& c) {
  EfficientNetConfig e{};
  e.channels = c.optional_integer({"num_channels"}, 1, kLargestConfigSize).value_or(3);
  e.side = image_side(c);
  e.divisor = c.optional_integer({"depth_divisor"}, 1, kLargestConfigSize).value_or(8);
  e.width = factor(c, "width_coefficient", 1);
  e.depth = factor(c, "depth_coefficient", 1);
  e.squeeze = factor(c, "squeeze_expansion_ratio", 0.25);
  constexpr int64_t kWidest = 1 << 20;
  e.in = integers(c, "in_channels", 1, kWidest);
  const auto list = [&](const char* key, int64_t largest) {
    return integers_like(c, key, "in_channels", e.in.size(), largest);
  };
  e.out = list("out_channels", kWidest);
  e.windows = list("kernel_sizes", 100);
  e.strides = list("strides", 2);
  e.repeats = list("num_block_repeats", kMaxRepeats);
  e.expansions = list("expand_ratios", 100);
  for (size_t i = 1; i < e.in.size(); ++i) {
    if (e.in[i] != e.out[i - 1])
      c.fail(fmt::format("in_channels[{}]", i),
             fmt::format("expected {}, the output of the stage before, found {}", e.out[i - 1],
                         e.in[i]));
  }
  constexpr int64_t kMostBlocks = 1 << 20;
  if (c.has("depthwise_padding") && !c.json()["depthwise_padding"].empty())
    e.squarely_padded = integers(c, "depthwise_padding", 0, kMostBlocks);
  e.hidden_dim = c.integer({"hidden_dim"}, 1, kLargestConfigSize);
  if (rounded_width(e, kLastWidth) != e.hidden_dim)
    c.fail("hidden_dim",
           fmt::format("expected {}, the width of the last convolution by 'width_coefficient' and "
                       "'depth_divisor', found {}",
                       rounded_width(e, kLastWidth), e.hidden_dim));
  e.activation = c.optional_string({"hidden_act"}).value_or("swish");
  check_activation(c, "hidden_act", e.activation);
  e.dropout = drops(c, "dropout_rate", 0.5);
  e.drops_blocks = drops(c, "drop_connect_rate", 0.2);
  e.labels = image_classes(c);
  return e;
}

class EfficientNet {
 public:
  EfficientNet(Graph& graph, const EfficientNetConfig& config, const GraphRequest& request)
      : graph_(graph), net_(graph, request), c_(config) {}

  void build() {
    GraphBuilder& b = net_.builder();
    b.begin_segment("embeddings", 1);
    TensorId x = net_.pad(net_.pixels(c_.channels, c_.side), 1, "embeddings.padding");
    x = net_.conv_norm(
        x, "embeddings",
        {.out = rounded_width(c_, kEfficientnetStem), .window = 3, .stride = 2, .padding = 0},
        c_.activation);
    const TensorId embedded = x;
    for (size_t i = 0; i < c_.in.size(); ++i) {
      const std::string name = fmt::format("encoder.stages.{}", i);
      const int64_t out = rounded_width(c_, c_.out[i]);
      const auto repeats =
          static_cast<int64_t>(std::ceil(c_.depth * static_cast<double>(c_.repeats[i])));
      b.begin_segment(name, 1);
      x = block(x, i, out, c_.strides[i], true, name + ".0");
      index_ += repeats;
      if (repeats == 1) continue;
      b.begin_segment(name + ".blocks", repeats - 1);
      const TensorId start = x;
      x = block(x, i, out, 1, false, name + ".1");
      b.carry(start, x);
    }
    b.begin_segment("head", 1);
    x = net_.conv_norm(x, "encoder.top", {.out = c_.hidden_dim}, c_.activation);
    const TensorId pooled = net_.keep(net_.mean_pool(x, "pooler"), {embedded}, "pooler");
    graph_.outputs = {net_.classify(pooled, c_.labels, c_.dropout)};
  }

 private:
  TensorId block(TensorId x, size_t stage, int64_t out, int64_t stride, bool first,
                 const std::string& p) {
    const int64_t in = net_.channels(x), window = c_.windows[stage];
    const int64_t wide = in * c_.expansions[stage];
    TensorId y = x;
    if (c_.expansions[stage] != 1)
      y = net_.conv_norm(y, p + ".expansion", {.out = wide}, c_.activation);
    ConvNet::Convolution depthwise = {
        .out = wide, .window = window, .stride = stride, .groups = wide};
    const TensorId expanded = y;
    if (stride == 2) {  // padded by hand; most blocks have one row and column less above and left
      const bool square = std::find(c_.squarely_padded.begin(), c_.squarely_padded.end(), index_) !=
                          c_.squarely_padded.end();
      y = net_.pad(y, 2 * (window / 2) - (square ? 0 : 1), p + ".depthwise_conv_pad");
      depthwise.padding = 0;
    }
    y = net_.keep(net_.apply_conv_norm(y, p + ".depthwise_conv", depthwise, c_.activation),
                  {expanded}, p + ".depthwise_conv");
    const auto squeezed = static_cast<int64_t>(static_cast<double>(in) * c_.squeeze);
    y = net_.squeeze_excite(y, std::max<int64_t>(1, squeezed), c_.activation,
                            p + ".squeeze_excite");
    y = net_.conv_norm(y, p + ".projection", {.out = out}, "");
    // The first block of a stage has no residual.
    if (first || stride != 1) return net_.keep(y, {x}, p);
    const TensorId kept = net_.layers().dropout(y, p + ".dropout", c_.drops_blocks);
    return net_.layers().residual({kept, x}, p + ".residual");
  }

  Graph& graph_;
  ConvNet net_;
  const EfficientNetConfig& c_;
  int64_t index_ = 0;  ///< of the first block of the stage
};

Graph build_efficientnet(const EfficientNetConfig& config, const GraphRequest& request) {
  Graph graph;
  EfficientNet(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_efficientnet(const JsonObject& json) {
  return make_image_model(efficientnet_config(json), build_efficientnet);
}

}  // namespace tilecast
