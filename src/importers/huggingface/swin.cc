// Swin (transformers/models/swin): attention in windows, every second time in shifted ones, and
// stages that merge four patches into one.

#include <fmt/format.h>

#include "importers/huggingface/convnet.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct SwinConfig {
  int64_t image, patch, channels, width, window;
  std::vector<int64_t> depths, heads;
  double mlp_ratio;
  std::string activation;
  bool qkv_bias, positions, attention_dropout;
  int64_t labels;
};

void check_windows(const JsonObject& c, const SwinConfig& s) {
  int64_t side = s.image / s.patch;
  for (size_t i = 0; i < s.depths.size(); ++i) {
    if (side % s.window != 0 || (i + 1 < s.depths.size() && side % 2 != 0))
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: 'window_size': stage {} has {} x {} patches, which windows of {} "
                      "do not divide; padded windows are not supported",
                      c.where(), i, side, side, s.window));
    side /= 2;
  }
}

SwinConfig swin_config(const JsonObject& c) {
  SwinConfig s{};
  s.image = image_side(c);
  s.patch = c.integer({"patch_size"}, 1, s.image);
  s.channels = c.optional_integer({"num_channels"}, 1, kLargestConfigSize).value_or(3);
  s.width = c.integer({"embed_dim"}, 1, kLargestConfigSize);
  constexpr int64_t kLargestWindow = 1 << 12, kDeepest = 20;
  s.window = c.integer({"window_size"}, 1, kLargestWindow);
  s.depths = integers(c, "depths", 1, 1000);
  if (static_cast<int64_t>(s.depths.size()) > kDeepest)
    c.fail("depths", fmt::format("expected at most {} stages (each doubles the channels), "
                                 "found {}",
                                 kDeepest, s.depths.size()));
  s.heads = integers_like(c, "num_heads", "depths", s.depths.size(), kLargestConfigSize);
  for (size_t i = 0; i < s.heads.size(); ++i) {
    if ((s.width << i) % s.heads[i] != 0)
      c.fail(fmt::format("num_heads[{}]", i),
             fmt::format("{} heads do not divide the {} channels of the stage", s.heads[i],
                         s.width << i));
  }
  s.mlp_ratio = factor(c, "mlp_ratio", 4);
  s.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", s.activation);
  s.qkv_bias = c.boolean("qkv_bias", true);
  s.positions = c.boolean("use_absolute_embeddings", false);
  s.attention_dropout = drops(c, "attention_probs_dropout_prob", 0);
  s.labels = image_classes(c);
  check_windows(c, s);
  return s;
}

class Swin {
 public:
  Swin(Graph& graph, const SwinConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config), batch_(request.batch) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("embeddings", 1);
    TensorId x = embed();
    side_ = c_.image / c_.patch;
    for (size_t i = 0; i < c_.depths.size(); ++i) {
      heads_ = c_.heads[i];
      width_ = c_.width << i;
      const std::string name = fmt::format("encoder.layers.{}", i);
      x = stage(x, c_.depths[i], name);
      if (i + 1 == c_.depths.size()) break;
      b.begin_segment(name + ".downsample", 1);
      x = merge(x, name + ".downsample");
    }
    b.begin_segment("head", 1);
    const TensorId normal = f_.layer_norm(x, "layernorm");
    const TensorId pooled = f_.mean_of_rows(normal, "pooler");
    graph_.outputs = {c_.labels > 0 ? f_.linear(pooled, "classifier", {c_.labels}) : pooled};
  }

 private:
  TensorId embed() {
    const std::string p = "embeddings.";
    const TensorId pixels = f_.builder().input(
        "pixel_values", {batch_, c_.channels, c_.image, c_.image}, f_.request().dtype);
    const TensorId patches =
        f_.op("conv2d",
              {pixels, f_.weight(p + "patch.weight", {c_.width, c_.channels, c_.patch, c_.patch}),
               f_.weight(p + "patch.bias", {c_.width})},
              p + "patch", {{"stride", c_.patch}});
    const int64_t count = (c_.image / c_.patch) * (c_.image / c_.patch);
    const TensorId flat = f_.view(patches, {batch_, c_.width, count});
    const TensorId rows = f_.op("copy", {f_.transpose(flat, {0, 2, 1})}, p + "patch");
    const TensorId x = f_.layer_norm(rows, p + "norm");
    if (!c_.positions) return x;
    return f_.op("add", {x, f_.weight(p + "positions", {1, count, c_.width})}, p + "add_positions");
  }

  /// Pairs of layers, the second with shifted windows; where one window covers all patches, none
  /// is shifted.
  TensorId stage(TensorId x, int64_t depth, const std::string& name) {
    const bool shifts = side_ > c_.window;
    if (depth / 2 > 0) {
      f_.builder().begin_segment(name + ".blocks", depth / 2);
      const TensorId start = x;
      x = layer(x, false, name + ".blocks.0.");
      x = layer(x, shifts, name + ".blocks.1.");
      f_.builder().carry(start, x);
    }
    if (depth % 2 == 0) return x;
    f_.builder().begin_segment(name + ".last_block", 1);
    return layer(x, false, fmt::format("{}.blocks.{}.", name, depth - 1));
  }

  int64_t windows() const { return (side_ / c_.window) * (side_ / c_.window); }

  /// [b, side², c] → [b · windows, window², c], one copy.
  TensorId partition(TensorId x, const std::string& name) {
    const int64_t n = side_ / c_.window, w = c_.window;
    const TensorId split = f_.view(x, {batch_, n, w, n, w, width_});
    const TensorId windows_first = f_.op("copy", {f_.transpose(split, {0, 1, 3, 2, 4, 5})}, name);
    return f_.view(windows_first, {batch_ * n * n, w * w, width_});
  }
  /// The reverse.
  TensorId join(TensorId x, const std::string& name) {
    const int64_t n = side_ / c_.window, w = c_.window;
    const TensorId split = f_.view(x, {batch_, n, n, w, w, width_});
    const TensorId rows_first = f_.op("copy", {f_.transpose(split, {0, 1, 3, 2, 4, 5})}, name);
    return f_.view(rows_first, {batch_, side_ * side_, width_});
  }

  /// The bias of each pair of patches of a window and, if shifted, the mask of pairs that were not
  /// neighbours before: [1 or b · windows, heads, window², window²].
  TensorId bias(bool shifted, const std::string& p) {
    const int64_t pairs_side = 2 * c_.window - 1, area = c_.window * c_.window;
    const std::string name = p + "relative_position_bias";
    const TensorId table = f_.weight(name + "_table", {pairs_side * pairs_side, heads_});
    const TensorId index = f_.ids(name + "_index", {area * area});
    const TensorId rows = f_.view(f_.embedding(table, index, name), {area, area, heads_});
    const TensorId numbers =
        f_.view(f_.op("copy", {f_.transpose(rows, {2, 0, 1})}, name), {1, heads_, area, area});
    if (!shifted) return numbers;
    const TensorId mask =
        f_.builder().input(p + "shift_mask", {1, windows(), area, area}, f_.request().dtype);
    const TensorId wide = f_.op("expand", {mask}, p + "shift_mask",
                                {{"shape", Shape{batch_, windows(), area, area}}});
    const TensorId each =
        f_.view(f_.op("copy", {wide}, p + "shift_mask"), {batch_ * windows(), 1, area, area});
    shift_mask_ = each;
    return f_.op("add", {numbers, each}, p + "shift_mask");
  }

  TensorId attention(TensorId x, bool shifted, const std::string& p) {
    const int64_t head_dim = width_ / heads_;
    const auto project = [&](const char* name) {
      const Layers::Linear options = {width_, c_.qkv_bias, f_.outputs(head_dim, {heads_})};
      return f_.split_heads(f_.linear(x, p + name, options), heads_);
    };
    const TensorId q = project("q_proj"), k = project("k_proj"), v = project("v_proj");
    std::vector<Attribute> attributes = {{"softmax_fp32", 1}, {"returns_weights", 1}};
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    const TensorId mask = bias(shifted, p);
    TensorId context = f_.attention(q, k, v, p + "attention", std::move(attributes), {mask});
    if (shifted) context = f_.op("keep", {context, shift_mask_}, p + "attention");
    return f_.linear(context, p + "o_proj", {width_, true, f_.inputs(head_dim, heads_)});
  }

  TensorId layer(TensorId x, bool shifted, const std::string& p) {
    TensorId in = f_.layer_norm(x, p + "layernorm_before");
    if (shifted) in = f_.op("copy", {in}, p + "roll");
    const TensorId windows = partition(in, p + "partition");
    const TensorId attended = attention(windows, shifted, p + "attention.");
    TensorId out = join(attended, p + "join");
    if (shifted) out = f_.op("copy", {out}, p + "roll");
    const TensorId hidden = f_.residual({x, out}, p + "attention.residual");
    const auto wide = static_cast<int64_t>(c_.mlp_ratio * static_cast<double>(width_));
    const TensorId mlp_out =
        f_.feed_forward(f_.layer_norm(hidden, p + "layernorm_after"), {.up = p + "mlp.fc1",
                                                                       .act = p + "mlp.act",
                                                                       .down = p + "mlp.fc2",
                                                                       .activation = c_.activation,
                                                                       .ffn_dim = wide});
    // Variables of the layer.
    return f_.op("keep",
                 {f_.residual({mlp_out, hidden}, p + "mlp.residual"), x, windows, attended, out},
                 p + "mlp.residual");
  }

  /// Four neighbours side by side, and a linear layer to twice the channels.
  TensorId merge(TensorId x, const std::string& name) {
    side_ /= 2;
    const TensorId grid = f_.view(x, {batch_, side_, 2, side_, 2, width_});
    const TensorId four = f_.op("copy", {f_.transpose(grid, {0, 1, 3, 4, 2, 5})}, name);
    const TensorId rows = f_.view(four, {batch_, side_ * side_, 4 * width_});
    return f_.linear(f_.layer_norm(rows, name + ".norm"), name + ".reduction", {2 * width_, false});
  }

  Graph& graph_;
  Layers f_;
  TensorId shift_mask_ = -1;  ///< of the layer, which a variable holds
  const SwinConfig& c_;
  int64_t batch_, side_ = 0, heads_ = 0, width_ = 0;
};

Graph build_swin(const SwinConfig& config, const GraphRequest& request) {
  Graph graph;
  Swin(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_swin(const JsonObject& json) { return make_image_model(swin_config(json), build_swin); }

}  // namespace tilecast
