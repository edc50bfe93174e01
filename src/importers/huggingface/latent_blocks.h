#pragma once

// What decoders of autoencoders share.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "importers/huggingface/latent_decoder.h"
#include "importers/huggingface/layers.h"

namespace tilecast {

/// Blocks over videos [b, c, t, h, w]; images have one frame.
class LatentDecoder {
 public:
  LatentDecoder(Graph& graph, const LatentDecoderConfig& config, const LatentTile& tile,
                DType dtype)
      : graph_(graph),
        c_(config),
        tile_(tile),
        f_(graph, {.batch = tile.samples, .seq = 1, .dtype = dtype}) {}

 protected:
  GraphBuilder& b() { return f_.builder(); }
  const Shape& shape_of(TensorId x) { return b().graph().tensor(x).shape; }
  TensorId latents() {
    b().begin_segment("decoder", 1);
    return b().input("latents",
                     {tile_.samples, c_.latents, tile_.frames, tile_.height, tile_.width},
                     f_.request().dtype);
  }
  void finish(TensorId x) {
    graph_.outputs = {x};
    if (tile_.chunked) graph_.outputs.insert(graph_.outputs.end(), kept_.begin(), kept_.end());
  }

  /// Frames as images, [b · t, c, h, w], in one copy where there are several.
  TensorId as_images(TensorId x, const std::string& name) {
    const Shape s = shape_of(x);
    if (s[2] > 1) x = f_.op("copy", {f_.transpose(x, {0, 2, 1, 3, 4})}, name + ".frames");
    return f_.view(x, {s[0] * s[2], s[1], s[3], s[4]});
  }
  TensorId as_video(TensorId x, int64_t frames) {
    const Shape s = shape_of(x);
    const TensorId y = f_.view(x, {s[0] / frames, frames, s[1], s[2], s[3]});
    return frames == 1 ? f_.view(x, {s[0], s[1], 1, s[2], s[3]}) : f_.transpose(y, {0, 2, 1, 3, 4});
  }

  struct Window {
    int64_t size = 1, groups = 1;
    bool bias = true;
  };
  TensorId image_conv(TensorId x, const std::string& name, int64_t out, const Window& w) {
    std::vector<TensorId> operands = {
        x, f_.weight(name + ".weight", {out, shape_of(x)[1] / w.groups, w.size, w.size})};
    if (w.bias) operands.push_back(f_.weight(name + ".bias", {out}));
    return f_.op("conv2d", std::move(operands), name,
                 {{"padding", w.size / 2}, {"groups", w.groups}});
  }
  /// A convolution over each frame.
  TensorId frame_conv(TensorId x, const std::string& name, int64_t out, int64_t size) {
    const int64_t frames = shape_of(x)[2];
    return as_video(image_conv(as_images(x, name), name, out, {.size = size}), frames);
  }
  /// A causal convolution over time and space: earlier frames, of a cache or repeated, are joined
  /// in front. `padded`: space is padded by a copy too, not by the convolution.
  TensorId causal_conv(TensorId x, const std::string& name, int64_t out, int64_t time, int64_t size,
                       bool padded) {
    const Shape s = shape_of(x);
    if (time > 1 || (padded && size > 1)) {
      Shape pads(10, 0);
      pads[2] = time - 1;
      if (padded) pads[3] = pads[4] = pads[8] = pads[9] = size / 2;
      x = f_.op("pad", {x}, name + ".pad", {{"pads", pads}});
    }
    const int64_t side = padded ? 0 : size / 2;
    return f_.op("conv",
                 {x, f_.weight(name + ".weight", {out, s[1], time, size, size}),
                  f_.weight(name + ".bias", {out})},
                 name, {{"pads", Shape{0, side, side}}});
  }
  /// The last frames, which the next chunk needs: in a pipeline they stay in memory to the end.
  void keep_frames(TensorId x, const std::string& name) {
    const int64_t kept = std::min<int64_t>(2, shape_of(x)[2]);
    const TensorId last = f_.op("slice", {x}, name + ".last", {{"dim", 2}, {"count", kept}});
    kept_.push_back(f_.op("copy", {last}, name + ".cache"));
  }
  TensorId silu(TensorId x, const std::string& name) { return f_.activation(x, "silu", name); }
  TensorId group_norm(TensorId x, const std::string& name) {
    return f_.group_norm(x, c_.groups, name);
  }
  /// Nearest neighbours.
  TensorId grow(TensorId x, int64_t time, const std::string& name) {
    Shape s = shape_of(x);
    // The first frame stands alone.
    if (time > 1) s[2] = tile_.first ? 2 * s[2] - 1 : 2 * s[2];
    s[3] *= 2;
    s[4] *= 2;
    return f_.op("resize", {x}, name, {{"shape", s}, {"mode", "nearest"}});
  }
  /// Attention of one head over rows [n, tokens, channels].
  TensorId attend(TensorId q, TensorId k, TensorId v, const std::string& p) {
    const auto head = [&](TensorId t) { return f_.split_heads(t, 1); };
    return f_.attention(head(q), head(k), head(v), p + "attention", {});
  }
  /// Attention from each pixel of the tile to all, in videos to those of its own and earlier
  /// frames.
  TensorId pixel_attention(TensorId x, const std::string& p) {
    const Shape s = shape_of(x);
    const int64_t pixels = element_count(s) / (s[0] * s[1]);
    const TensorId flat = f_.view(x, {s[0], s[1], pixels});
    const TensorId rows =
        f_.op("copy", {f_.transpose(group_norm(flat, p + "group_norm"), {0, 2, 1})}, p + "rows");
    const auto project = [&](const char* name) { return f_.linear(rows, p + name, {s[1]}); };
    const TensorId q = project("to_q"), k = project("to_k"), v = project("to_v");
    const TensorId out = f_.linear(attend(q, k, v, p), p + "to_out", {s[1]});
    return f_.residual({f_.view(f_.transpose(out, {0, 2, 1}), s), x}, p + "residual");
  }

  Graph& graph_;
  const LatentDecoderConfig& c_;
  const LatentTile& tile_;
  Layers f_;

 private:
  std::vector<TensorId> kept_;
};

}  // namespace tilecast
