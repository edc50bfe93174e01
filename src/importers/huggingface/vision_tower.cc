#include "importers/huggingface/vision_tower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

/// Layers that follow each other and are alike.
struct Run {
  int64_t first = 0, count = 0;
  bool windowed = false, tapped = false;  ///< tapped: the output of the last one is merged too
};

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<Run> runs_of(const VisionConfig& c) {
  std::vector<Run> runs;
  for (int64_t i = 0; i < c.layers; ++i) {
    const bool windowed = c.window > 0 && !contains(c.full_layers, i);
    if (runs.empty() || runs.back().tapped || runs.back().windowed != windowed)
      runs.push_back({.first = i, .windowed = windowed});
    runs.back().count += 1;
    runs.back().tapped = contains(c.taps, i);
  }
  return runs;
}

class TowerGraph {
 public:
  TowerGraph(Graph& graph, const VisionConfig& config, const GraphRequest& request,
             const VisionTower::Image& image)
      : graph_(graph),
        f_(graph, request),
        c_(config),
        views_(checked_multiply(request.batch, image.views)),
        side_(c_.resize == VisionConfig::Resize::kTiles ? c_.image : image.side),
        patches_(side_ / c_.patch * (side_ / c_.patch)),
        window_(window_tokens()) {}

  void build() {
    f_.builder().begin_segment("vision.embeddings", 1);
    TensorId x = embed();
    if (c_.pooling_head) store_pooling_head();
    for (const Run& run : runs_of(c_)) {
      f_.builder().begin_segment(fmt::format("vision.blocks.{}", run.first), run.count);
      // Equal names in all runs: identical kernels share a row.
      const TensorId end =
          layer(x, run.windowed ? "vision.windows." : "vision.blocks.", run.windowed);
      f_.builder().carry(x, end);
      x = end;
      if (!run.tapped) continue;
      const std::string tap = fmt::format("vision.deepstack.{}", run.first + run.count - 1);
      f_.builder().begin_segment(tap, 1);
      graph_.outputs.push_back(
          two_layers(f_.layer_norm(neighbours(x, false), tap + ".norm"), tap + "."));
    }
    f_.builder().begin_segment("vision.merger", 1);
    if (c_.final_norm) x = norm(x, "vision.norm");
    graph_.outputs.push_back(merge(x));
    for (Segment& segment : graph_.segments) segment.role = Role::kVision;
  }

 private:
  using Merge = VisionConfig::Merge;

  int64_t tokens() const { return patches_ + (c_.class_token ? 1 : 0); }

  /// Patches of a window. Windows at the edges may be cut: they are replaced by as many windows of
  /// equal size, the one nearest to the full one that divides the patches.
  int64_t window_tokens() const {
    const int64_t full = std::min(c_.window * c_.window, patches_);
    if (full == 0) return patches_;
    for (int64_t change = 0; change < full; ++change) {
      if (patches_ % (full - change) == 0) return full - change;
      if (patches_ % (full + change) == 0) return full + change;
    }
    return 1;
  }

  TensorId norm(TensorId x, const std::string& name, bool weighted = true) {
    return c_.norm == VisionConfig::Norm::kRms ? f_.rms_norm(x, name, weighted)
                                               : f_.layer_norm(x, name);
  }

  TensorId image_patches() {
    const DType dtype = f_.request().dtype;
    const int64_t grid = side_ / c_.patch, width = c_.channels * c_.frames * c_.patch * c_.patch;
    if (!c_.whole_image)
      return f_.builder().input("pixel_values", {views_, patches_, width}, dtype);
    const TensorId pixels = f_.builder().input(
        "pixel_values", {views_, c_.channels, grid, c_.patch, grid, c_.patch}, dtype);
    const TensorId sorted =
        f_.op("copy", {f_.transpose(pixels, {0, 2, 4, 1, 3, 5})}, "vision.unfold");
    return f_.view(sorted, {views_, patches_, width});
  }

  TensorId add_positions(TensorId x) {
    using Positions = VisionConfig::Positions;
    const std::string name = "vision.positions";
    if (c_.positions == Positions::kNone) return x;
    if (c_.positions == Positions::kTable)
      return f_.op("add", {x, f_.weight(name, {1, tokens(), c_.hidden_dim})},
                   "vision.add_positions");
    const bool axes = c_.positions == Positions::kAxes;
    const int64_t rows = axes ? 2 : 4;  // two axes, or the neighbours of bilinear interpolation
    const TensorId table = f_.weight(name, {c_.position_rows * (axes ? 2 : 1), c_.hidden_dim});
    TensorId all = f_.embedding(table, f_.ids("position_ids", {rows, patches_}), name);
    if (!axes) {
      const TensorId weights =
          f_.builder().input("position_weights", {rows, patches_, 1}, f_.request().dtype);
      all = f_.op("mul", {all, weights}, "vision.interpolate");
    }
    const TensorId sum = f_.op("reduce_sum", {all}, "vision.interpolate",
                               {{"shape", Shape{1, patches_, c_.hidden_dim}}});
    return f_.op("add", {x, sum}, "vision.add_positions");
  }

  TensorId embed() {
    TensorId x = f_.linear(image_patches(), "vision.patch_embed", {c_.hidden_dim, c_.patch_bias});
    if (c_.class_token) {
      const TensorId token =
          f_.op("expand", {f_.weight("vision.class_token", {1, 1, c_.hidden_dim})},
                "vision.class_token", {{"shape", Shape{views_, 1, c_.hidden_dim}}});
      x = f_.op("cat", {x, token}, "vision.cat", {{"dim", 1}});
    }
    x = add_positions(x);
    if (c_.embedding_norm) x = norm(x, "vision.pre_norm");
    if (!c_.rotary) return x;
    const std::vector<Attribute> size = {{"rope_dim", c_.head_dim}};
    angles_ = f_.builder().add("rotary_table", {x}, "vision.rotary_emb", size);
    if (c_.window > 0)
      window_angles_ = f_.builder().add("rotary_table", {in_windows(x)}, "vision.rotary_emb", size);
    return x;
  }

  TensorId in_windows(TensorId x) {
    return f_.view(x, {views_ * (patches_ / window_), window_, c_.hidden_dim});
  }

  TensorId heads(TensorId x, const std::string& name, bool weighted) {
    if (!c_.qk_norm) return f_.split_heads(x, c_.heads);
    const Shape s = graph_.tensor(x).shape;
    const TensorId wide = f_.view(x, {s[0], s[1], c_.heads, c_.head_dim});
    return f_.split_heads(f_.rms_norm(wide, name, weighted), c_.heads);
  }

  TensorId attention(TensorId x, const std::string& p, bool windowed) {
    const int64_t width = c_.heads * c_.head_dim;
    const TensorId all =
        f_.linear(x, p + "qkv",
                  {3 * width, c_.bias, f_.outputs(c_.head_dim, {c_.heads, c_.heads, c_.heads})});
    TensorId q = heads(f_.slice(all, width, p + "split_q"), p + "q_norm", true);
    TensorId k = heads(f_.slice(all, width, p + "split_k"), p + "k_norm", true);
    const TensorId v = heads(f_.slice(all, width, p + "split_v"), p + "v_norm", false);
    if (c_.rotary) {
      const std::vector<TensorId>& angles = windowed ? window_angles_ : angles_;
      q = f_.op("apply_rotary", {q, angles[0], angles[1]}, p + "rotary_q");
      k = f_.op("apply_rotary", {k, angles[0], angles[1]}, p + "rotary_k");
    }
    return f_.linear(f_.attention(q, k, v, p + "attention", {}), p + "proj",
                     {c_.hidden_dim, c_.bias, f_.inputs(c_.head_dim, c_.heads)});
  }

  TensorId mlp(TensorId x, const std::string& p) {
    if (!c_.gated_mlp)
      return f_.feed_forward(x, {.up = p + "fc1",
                                 .act = p + "act",
                                 .down = p + "fc2",
                                 .activation = c_.activation,
                                 .ffn_dim = c_.ffn_dim,
                                 .bias = c_.bias});
    const TensorId both = f_.linear(
        x, p + "gate_up_proj", {2 * c_.ffn_dim, c_.bias, f_.outputs(1, {c_.ffn_dim, c_.ffn_dim})});
    const TensorId gate =
        f_.activation(f_.slice(both, c_.ffn_dim, p + "split_gate"), c_.activation, p + "act");
    const TensorId product =
        f_.op("mul", {gate, f_.slice(both, c_.ffn_dim, p + "split_up")}, p + "mul");
    return f_.linear(product, p + "down_proj", {c_.hidden_dim, c_.bias, f_.inputs(1, c_.ffn_dim)});
  }

  TensorId layer(TensorId start, const std::string& p, bool windowed) {
    const TensorId x = windowed ? in_windows(start) : start;
    TensorId attended = attention(norm(x, p + "norm1"), p + "attn.", windowed);
    if (c_.post_norms) attended = norm(attended, p + "post_norm1");
    const TensorId hidden = f_.residual({x, attended}, p + "attn.residual");
    TensorId out = mlp(norm(hidden, p + "norm2"), p + "mlp.");
    if (c_.post_norms) out = norm(out, p + "post_norm2");
    const TensorId end = f_.residual({hidden, out}, p + "mlp.residual");
    return windowed ? f_.view(end, {views_, tokens(), c_.hidden_dim}) : end;
  }

  /// The patches of each token side by side. `copied`: they are not neighbours in memory.
  TensorId neighbours(TensorId x, bool copied) {
    const int64_t side = c_.side_merged, grid = side_ / c_.patch / side;
    const int64_t tokens = patches_ / (side * side);
    if (copied) {
      const TensorId blocks = f_.view(x, {views_, grid, side, grid, side, c_.hidden_dim});
      x = f_.op("copy", {f_.transpose(blocks, {0, 1, 3, 2, 4, 5})}, "vision.merger.sort");
    }
    return f_.view(x, {views_, tokens, side * side * c_.hidden_dim});
  }

  TensorId two_layers(TensorId x, const std::string& p) {
    const Layers::Split columns = f_.outputs(1, {c_.merge_dim});
    const TensorId wide = f_.activation(
        f_.linear(x, p + "fc1", {c_.merge_dim, c_.merge_bias, columns}), "gelu", p + "act");
    return f_.linear(wide, p + "fc2", {c_.out_dim, c_.merge_bias, f_.inputs(1, c_.merge_dim)});
  }

  TensorId merge(TensorId x) {
    const std::string p = "vision.merger.";
    if (c_.merge == Merge::kMerger)
      return two_layers(neighbours(norm(x, p + "norm"), c_.whole_image), p);
    if (c_.merge == Merge::kPool) return pool(x);
    if (c_.merge == Merge::kShuffle) {
      const TensorId patches =
          f_.op("copy", {f_.op("slice", {x}, p + "patches", {{"dim", 1}, {"count", patches_}})},
                p + "patches");
      const auto linear = [&](TensorId in, const char* name, int64_t out) {
        return f_.linear(in, p + name, {out, false});
      };
      const TensorId wide =
          f_.activation(linear(neighbours(patches, true), "fc1", c_.merge_dim), "gelu", p + "act");
      return linear(f_.activation(linear(wide, "fc2", c_.merge_dim), "gelu", p + "act"), "linear_1",
                    c_.out_dim);
    }
    const TensorId merged = f_.linear(neighbours(norm(x, p + "norm"), true), p + "merging_layer",
                                      {c_.hidden_dim, false});
    return two_layers(merged, p);
  }

  /// The mean of the patches of each token.
  TensorId pool(TensorId x) {
    const int64_t side = c_.side_merged, grid = side_ / c_.patch / side;
    const TensorId blocks = f_.view(x, {views_, grid, side, grid, side, c_.hidden_dim});
    const TensorId means =
        f_.op("reduce_mean", {f_.transpose(blocks, {0, 1, 3, 2, 4, 5})}, "vision.merger.pool",
              {{"shape", Shape{views_, grid, grid, 1, 1, c_.hidden_dim}}});
    const TensorId tokens = f_.view(means, {views_, grid * grid, c_.hidden_dim});
    return f_.linear(f_.rms_norm(tokens, "vision.merger.norm", c_.merge_norm_weight),
                     "vision.merger.proj", {c_.out_dim, false});
  }

  /// SigLIP's pooling head, which a language model does not use.
  void store_pooling_head() {
    const int64_t h = c_.hidden_dim;
    const auto store = [&](const char* name, Shape shape) {
      f_.weight(fmt::format("vision.head.{}", name), std::move(shape));
    };
    store("probe", {1, 1, h});
    store("attention.in_proj.weight", {3 * h, h});
    store("attention.in_proj.bias", {3 * h});
    store("attention.out_proj.weight", {h, h});
    store("attention.out_proj.bias", {h});
    store("layernorm.weight", {h});
    store("layernorm.bias", {h});
    store("mlp.fc1.weight", {c_.ffn_dim, h});
    store("mlp.fc1.bias", {c_.ffn_dim});
    store("mlp.fc2.weight", {h, c_.ffn_dim});
    store("mlp.fc2.bias", {h});
  }

  Graph& graph_;
  Layers f_;
  const VisionConfig& c_;
  int64_t views_, side_, patches_, window_;
  std::vector<TensorId> angles_, window_angles_;
};

/// As the processor resizes a square image.
VisionTower::Image image_of(const VisionConfig& c, int64_t side) {
  using Resize = VisionConfig::Resize;
  const int64_t step = c.token_side();
  VisionTower::Image image{.side = side};
  switch (c.resize) {
    case Resize::kNearest:  // Python's round: ties to even
      image.side = static_cast<int64_t>(
          std::nearbyint(static_cast<double>(side) / static_cast<double>(step)));
      image.side = std::max<int64_t>(1, image.side) * step;
      break;
    case Resize::kUp:
      if (c.image > 0) image.side = std::min(side, c.image);
      image.side = (image.side + step - 1) / step * step;
      break;
    case Resize::kFixed:
      image.side = c.image;
      break;
    case Resize::kTiles: {
      const auto most = static_cast<int64_t>(std::sqrt(static_cast<double>(c.most_tiles)));
      const int64_t tiles = std::min(most, (side + c.image - 1) / c.image);
      image.side = tiles * c.image;
      image.views = tiles == 1 ? 1 : tiles * tiles + 1;
      const int64_t grid = c.image / step;
      image.tokens = checked_product({image.views, grid, grid});
      return image;
    }
  }
  const int64_t grid = image.side / step;
  image.tokens = checked_multiply(grid, grid);
  return image;
}

}  // namespace

VisionTower make_vision_tower(const VisionConfig& config) {
  constexpr int64_t kUsualSide = 1024;  // where a config names no size: our choice
  VisionTower tower{.heads = config.heads, .ffn_dim = config.ffn_dim, .out_dim = config.out_dim};
  tower.default_side = config.image > 0 ? config.image : kUsualSide;
  tower.image = [config](int64_t side) { return image_of(config, side); };
  tower.build = [config](const GraphRequest& request, const VisionTower::Image& image) {
    Graph graph;
    TowerGraph(graph, config, request, image).build();
    return graph;
  };
  return tower;
}

}  // namespace tilecast
