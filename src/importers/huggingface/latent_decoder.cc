// Graphs of the decoders of autoencoders (diffusers, models/autoencoders).

#include "importers/huggingface/latent_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

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
  void finish(TensorId x) { graph_.outputs = {x}; }

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
  /// The last frames, which the next chunk needs.
  void keep_frames(TensorId x, const std::string& name) {
    const int64_t kept = std::min<int64_t>(2, shape_of(x)[2]);
    f_.op("copy", {f_.op("slice", {x}, name + ".last", {{"dim", 2}, {"count", kept}})},
          name + ".cache");
  }
  TensorId silu(TensorId x, const std::string& name) { return f_.activation(x, "silu", name); }
  TensorId group_norm(TensorId x, const std::string& name) {
    const int64_t channels = shape_of(x)[1];
    return b()
        .add("group_norm",
             {x, f_.weight(name + ".weight", {channels}), f_.weight(name + ".bias", {channels})},
             name, {{"groups", c_.groups}})
        .front();
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

  Graph& graph_;
  const LatentDecoderConfig& c_;
  const LatentTile& tile_;
  Layers f_;
};

/// AutoencoderKL of images.
class KlDecoder : public LatentDecoder {
 public:
  using LatentDecoder::LatentDecoder;

  void build() {
    TensorId x = as_images(latents(), "latents");
    if (c_.quant_conv) x = image_conv(x, "post_quant_conv", c_.latents, {});
    const int64_t middle = c_.channels.front();
    x = image_conv(x, "decoder.conv_in", middle, {.size = 3});
    x = block(x, "decoder.mid_block.resnets.0.", middle);
    if (c_.mid_attention) x = attention(x, "decoder.mid_block.attentions.0.");
    x = block(x, "decoder.mid_block.resnets.1.", middle);
    for (size_t i = 0; i < c_.channels.size(); ++i) {
      const std::string p = fmt::format("decoder.up_blocks.{}.", i);
      for (int64_t l = 0; l < c_.layers[i]; ++l)
        x = block(x, fmt::format("{}resnets.{}.", p, l), c_.channels[i]);
      if (i + 1 < c_.channels.size())
        x = image_conv(f_.op("upsample", {x}, p + "upsample"), p + "upsamplers.0.conv",
                       c_.channels[i], {.size = 3});
    }
    x = silu(group_norm(x, "decoder.conv_norm_out"), "decoder.conv_act");
    finish(image_conv(x, "decoder.conv_out", c_.out, {.size = 3}));
  }

 private:
  TensorId block(TensorId x, const std::string& p, int64_t out) {
    TensorId y =
        image_conv(silu(group_norm(x, p + "norm1"), p + "act1"), p + "conv1", out, {.size = 3});
    y = image_conv(silu(group_norm(y, p + "norm2"), p + "act2"), p + "conv2", out, {.size = 3});
    const TensorId from = shape_of(x)[1] == out ? x : image_conv(x, p + "conv_shortcut", out, {});
    return f_.residual({from, y}, p + "residual");
  }

  TensorId attention(TensorId x, const std::string& p) {
    const Shape s = shape_of(x);
    const TensorId flat = f_.view(x, {s[0], s[1], s[2] * s[3]});
    const TensorId rows = f_.transpose(group_norm(flat, p + "group_norm"), {0, 2, 1});
    const TensorId dense = f_.op("copy", {rows}, p + "rows");
    const auto project = [&](const char* name) { return f_.linear(dense, p + name, {s[1]}); };
    const TensorId q = project("to_q"), k = project("to_k"), v = project("to_v");
    const TensorId out = f_.linear(attend(q, k, v, p), p + "to_out", {s[1]});
    return f_.residual({f_.view(f_.transpose(out, {0, 2, 1}), s), x}, p + "residual");
  }
};

/// AutoencoderDC: convolutions, and in the smallest images linear attention.
class DcDecoder : public LatentDecoder {
 public:
  using LatentDecoder::LatentDecoder;

  void build() {
    TensorId x = as_images(latents(), "latents");
    const int64_t middle = c_.channels.front();
    const TensorId wide = repeated(x, middle / c_.latents, "decoder.in_shortcut");
    x = f_.op("add", {image_conv(x, "decoder.conv_in", middle, {.size = 3}), wide},
              "decoder.in_add");
    for (size_t i = 0; i < c_.channels.size(); ++i) {
      const int64_t out = c_.channels[i];
      const std::string p = fmt::format("decoder.up_blocks.{}.", i);
      if (i > 0) x = up(x, out, p + "up.");
      for (int64_t l = 0; l < c_.layers[i]; ++l) {
        const std::string q = fmt::format("{}{}.", p, l);
        x = c_.attends[i] ? mix(attention(x, q + "attn."), q + "conv_out.") : block(x, q);
      }
    }
    x = f_.activation(channel_norm(x, "decoder.norm_out"), "relu", "decoder.conv_act");
    finish(image_conv(x, "decoder.conv_out", c_.out, {.size = 3}));
  }

 private:
  TensorId repeated(TensorId x, int64_t times, const std::string& name) {
    return f_.op("tile", {x}, name, {{"repeats", Shape{1, times, 1, 1}}});
  }
  /// RMS norm over the channels of each pixel, as rows.
  TensorId channel_norm(TensorId x, const std::string& name) {
    const int64_t channels = shape_of(x)[1];
    const TensorId rows = f_.op("copy", {f_.transpose(x, {0, 2, 3, 1})}, name + ".rows");
    const TensorId normal = f_.rms_norm(rows, name);
    const TensorId bias = f_.view(f_.weight(name + ".bias", {channels}), {1, channels, 1, 1});
    const TensorId image = f_.op("copy", {f_.transpose(normal, {0, 3, 1, 2})}, name + ".image");
    return f_.op("add", {image, bias}, name + ".add");
  }
  TensorId up(TensorId x, int64_t out, const std::string& p) {
    const TensorId y =
        image_conv(f_.op("upsample", {x}, p + "interpolate"), p + "conv", out, {.size = 3});
    const Shape s = shape_of(x);
    const TensorId more = repeated(x, 4 * out / s[1], p + "repeat");
    const TensorId shuffled =
        f_.op("copy", {f_.view(more, {s[0], out, 2 * s[2], 2 * s[3]})}, p + "pixel_shuffle");
    return f_.op("add", {y, shuffled}, p + "add");
  }
  TensorId block(TensorId x, const std::string& p) {
    const int64_t channels = shape_of(x)[1];
    TensorId y = silu(image_conv(x, p + "conv1", channels, {.size = 3}), p + "act");
    y = image_conv(y, p + "conv2", channels, {.size = 3, .bias = false});
    return f_.residual({channel_norm(y, p + "norm"), x}, p + "residual");
  }
  TensorId mix(TensorId x, const std::string& p) {
    const int64_t channels = shape_of(x)[1], wide = 4 * channels;
    TensorId y = silu(image_conv(x, p + "conv_inverted", 2 * wide, {}), p + "act");
    y = image_conv(y, p + "conv_depth", 2 * wide, {.size = 3, .groups = 2 * wide});
    const std::vector<TensorId> halves =
        b().add("split", {y}, p + "chunk", {{"parts", 2}, {"dim", 1}});
    y = f_.op("mul", {halves[0], silu(halves[1], p + "gate")}, p + "mul");
    y = image_conv(y, p + "conv_point", channels, {.bias = false});
    return f_.residual({channel_norm(y, p + "norm"), x}, p + "residual");
  }
  TensorId attention(TensorId x, const std::string& p) {
    const Shape s = shape_of(x);
    const int64_t channels = s[1], pixels = s[2] * s[3];
    const TensorId rows = f_.op("copy", {f_.transpose(x, {0, 2, 3, 1})}, p + "rows");
    std::vector<TensorId> parts;
    for (const char* name : {"to_q", "to_k", "to_v"})
      parts.push_back(f_.linear(rows, p + name, {channels, false}));
    const TensorId qkv =
        f_.op("copy", {f_.transpose(f_.op("cat", parts, p + "cat", {{"dim", 3}}), {0, 3, 1, 2})},
              p + "image");
    const int64_t all = 3 * channels;
    const TensorId near =
        image_conv(qkv, p + "proj_in", all, {.size = 5, .groups = all, .bias = false});
    const TensorId scaled = image_conv(near, p + "proj_out", all,
                                       {.groups = 3 * channels / c_.head_dim, .bias = false});
    const TensorId both = f_.op("cast", {f_.op("cat", {qkv, scaled}, p + "scales", {{"dim", 1}})},
                                p + "fp32", {{"dtype", DType::kFp32}});
    const int64_t heads = 2 * channels / c_.head_dim;
    const std::vector<TensorId> three =
        b().add("split", {f_.view(both, {s[0], heads, 3 * c_.head_dim, pixels})}, p + "chunk",
                {{"parts", 3}, {"dim", 2}});
    const TensorId q = f_.op("relu", {three[0]}, p + "relu_q");
    const TensorId k = f_.op("relu", {three[1]}, p + "relu_k");
    const TensorId v =
        f_.op("pad", {three[2]}, p + "pad", {{"pads", Shape{0, 0, 0, 0, 0, 0, 1, 0}}});
    const TensorId sums = f_.op("matmul", {v, k}, p + "scores", {{"transpose_b", 1}});
    const TensorId read = f_.op("matmul", {sums, q}, p + "read");
    const auto part = [&](const char* name, int64_t count) {
      return f_.op("slice", {read}, p + name, {{"dim", 2}, {"count", count}});
    };
    const TensorId y = f_.op("div", {part("values", c_.head_dim), part("sums", 1)}, p + "div");
    const TensorId half = f_.op("cast", {y}, p + "cast", {{"dtype", f_.request().dtype}});
    const TensorId flat =
        f_.transpose(f_.view(half, {s[0], 2 * channels, s[2], s[3]}), {0, 2, 3, 1});
    const TensorId out = f_.linear(flat, p + "to_out", {channels, false});
    return f_.residual({channel_norm(f_.transpose(out, {0, 3, 1, 2}), p + "norm_out"), x},
                       p + "residual");
  }
};

/// AutoencoderKLWan: one latent frame a run.
class WanDecoder : public LatentDecoder {
 public:
  using LatentDecoder::LatentDecoder;

  void build() {
    TensorId x = causal_conv(latents(), "post_quant_conv", c_.latents, 1, 1, true);
    const int64_t middle = c_.channels.front();
    x = cached_conv(x, "decoder.conv_in", middle);
    x = block(x, "decoder.mid_block.resnets.0.", middle);
    x = attention(x, "decoder.mid_block.attentions.0.");
    x = block(x, "decoder.mid_block.resnets.1.", middle);
    for (size_t i = 0; i < c_.channels.size(); ++i) {
      const std::string p = fmt::format("decoder.up_blocks.{}.", i);
      for (int64_t l = 0; l < c_.layers[i]; ++l)
        x = block(x, fmt::format("{}resnets.{}.", p, l), c_.channels[i]);
      if (i + 1 < c_.channels.size()) x = up(x, i, p + "upsamplers.0.");
    }
    x = silu(norm(x, "decoder.norm_out"), "decoder.act");
    finish(cached_conv(x, "decoder.conv_out", c_.out));
  }

 private:
  TensorId cached_conv(TensorId x, const std::string& name, int64_t out) {
    keep_frames(x, name);
    return causal_conv(x, name, out, 3, 3, true);
  }
  /// F.normalize in fp32 over the channels, times a factor and weights.
  TensorId norm(TensorId x, const std::string& name) {
    const Shape s = shape_of(x);
    Shape one = s, weights(s.size(), 1);
    one[1] = 1;
    weights[1] = s[1];
    const TensorId wide = f_.op("cast", {x}, name + ".fp32", {{"dtype", DType::kFp32}});
    const TensorId length = f_.op("reduce_sum", {wide}, name + ".norm", {{"shape", one}});
    const TensorId unit = f_.op("cast", {f_.op("div", {wide, length}, name + ".div")},
                                name + ".cast", {{"dtype", f_.request().dtype}});
    return f_.op(
        "mul", {f_.op("mul_scalar", {unit}, name + ".scale"), f_.weight(name + ".gamma", weights)},
        name + ".mul");
  }
  TensorId block(TensorId x, const std::string& p, int64_t out) {
    const TensorId from =
        shape_of(x)[1] == out ? x : causal_conv(x, p + "conv_shortcut", out, 1, 1, true);
    TensorId y = cached_conv(silu(norm(x, p + "norm1"), p + "act1"), p + "conv1", out);
    y = cached_conv(silu(norm(y, p + "norm2"), p + "act2"), p + "conv2", out);
    return f_.residual({y, from}, p + "residual");
  }
  TensorId attention(TensorId x, const std::string& p) {
    const Shape v = shape_of(x);
    const TensorId images = norm(as_images(x, p), p + "norm");
    const Shape s = shape_of(images);
    const TensorId qkv = image_conv(images, p + "to_qkv", 3 * s[1], {});
    const TensorId rows = f_.op(
        "copy", {f_.transpose(f_.view(qkv, {s[0], 3 * s[1], s[2] * s[3]}), {0, 2, 1})}, p + "rows");
    const auto part = [&](const char* name) { return f_.slice(rows, s[1], p + name); };
    const TensorId q = part("q"), k = part("k"), values = part("v");
    const TensorId seen =
        f_.op("copy", {f_.transpose(attend(q, k, values, p), {0, 2, 1})}, p + "image");
    const TensorId out = image_conv(f_.view(seen, s), p + "proj", s[1], {});
    return f_.residual({as_video(out, v[2]), x}, p + "residual");
  }
  TensorId up(TensorId x, size_t i, const std::string& p) {
    const int64_t channels = shape_of(x)[1];
    // The first chunk has one frame, which is not doubled.
    if (c_.grows_in_time[i] && !tile_.first) {
      keep_frames(x, p + "time_conv");
      const TensorId both = causal_conv(x, p + "time_conv", 2 * channels, 3, 1, true);
      const Shape s = shape_of(both);
      x = f_.op("copy", {f_.view(both, {s[0], channels, 2 * s[2], s[3], s[4]})}, p + "stack");
    } else if (c_.grows_in_time[i]) {
      // Its weights are there all the same.
      f_.weight(p + "time_conv.weight", {2 * channels, channels, 3, 1, 1});
      f_.weight(p + "time_conv.bias", {2 * channels});
    }
    const int64_t frames = shape_of(x)[2];
    const TensorId wide = f_.op("cast", {as_images(x, p)}, p + "fp32", {{"dtype", DType::kFp32}});
    const TensorId large = f_.op("cast", {f_.op("upsample", {wide}, p + "upsample")}, p + "cast",
                                 {{"dtype", f_.request().dtype}});
    return as_video(image_conv(large, p + "resample", channels / 2, {.size = 3}), frames);
  }
};

/// AutoencoderKLCogVideoX and AutoencoderKLHunyuanVideo: residual blocks with causal convolutions.
class VideoDecoder : public LatentDecoder {
 public:
  VideoDecoder(Graph& graph, const LatentDecoderConfig& config, const LatentTile& tile, DType dtype,
               bool by_latents)
      : LatentDecoder(graph, config, tile, dtype), by_latents_(by_latents) {}

  void build() {
    latents_ = latents();
    TensorId x = latents_;
    if (c_.quant_conv) x = causal_conv(x, "post_quant_conv", c_.latents, 1, 1, false);
    const int64_t middle = c_.channels.front();
    x = convolve(x, "decoder.conv_in", middle);
    x = block(x, "decoder.mid_block.resnets.0.", middle);
    if (c_.mid_attention) x = attention(x, "decoder.mid_block.attentions.0.");
    x = block(x, "decoder.mid_block.resnets.1.", middle);
    for (size_t i = 0; i < c_.channels.size(); ++i) {
      const std::string p = fmt::format("decoder.up_blocks.{}.", i);
      for (int64_t l = 0; l < c_.layers[i]; ++l)
        x = block(x, fmt::format("{}resnets.{}.", p, l), c_.channels[i]);
      if (i + 1 == c_.channels.size()) break;
      x = grow(x, c_.grows_in_time[i] && shape_of(x)[2] > 1 ? 2 : 1, p + "upsample");
      x = by_latents_ ? frame_conv(x, p + "upsamplers.0.conv", c_.channels[i], 3)
                      : convolve(x, p + "upsamplers.0.conv", c_.channels[i]);
    }
    x = silu(norm(x, "decoder.norm_out"), "decoder.conv_act");
    finish(convolve(x, "decoder.conv_out", c_.out));
  }

 private:
  TensorId convolve(TensorId x, const std::string& name, int64_t out) {
    if (by_latents_) keep_frames(x, name);
    return causal_conv(x, name, out, 3, 3, !by_latents_);
  }
  /// CogVideoX: scale and shift follow from the latents (CogVideoXSpatialNorm3D).
  TensorId norm(TensorId x, const std::string& name) {
    const Shape s = shape_of(x);
    if (!by_latents_) return group_norm(x, name);
    Shape size = s;
    size[1] = c_.latents;
    const TensorId z =
        f_.op("resize", {latents_}, name + ".latents", {{"shape", size}, {"mode", "nearest"}});
    const TensorId scale = causal_conv(z, name + ".conv_y", s[1], 1, 1, false);
    const TensorId shift = causal_conv(z, name + ".conv_b", s[1], 1, 1, false);
    const TensorId normal = group_norm(x, name + ".norm_layer");
    return f_.op("add", {f_.op("mul", {normal, scale}, name + ".mul"), shift}, name + ".add");
  }
  TensorId block(TensorId x, const std::string& p, int64_t out) {
    TensorId y = convolve(silu(norm(x, p + "norm1"), p + "act1"), p + "conv1", out);
    y = convolve(silu(norm(y, p + "norm2"), p + "act2"), p + "conv2", out);
    const TensorId from =
        shape_of(x)[1] == out ? x : causal_conv(x, p + "conv_shortcut", out, 1, 1, false);
    return f_.residual({y, from}, p + "residual");
  }
  /// Of all pixels of the tile to those of their own and earlier frames.
  TensorId attention(TensorId x, const std::string& p) {
    const Shape s = shape_of(x);
    const int64_t pixels = s[2] * s[3] * s[4];
    const TensorId flat = f_.view(x, {s[0], s[1], pixels});
    const TensorId rows =
        f_.op("copy", {f_.transpose(group_norm(flat, p + "group_norm"), {0, 2, 1})}, p + "rows");
    const auto project = [&](const char* name) { return f_.linear(rows, p + name, {s[1]}); };
    const TensorId q = project("to_q"), k = project("to_k"), v = project("to_v");
    const TensorId out = f_.linear(attend(q, k, v, p), p + "to_out", {s[1]});
    return f_.residual({f_.view(f_.transpose(out, {0, 2, 1}), s), x}, p + "residual");
  }

  bool by_latents_;
  TensorId latents_ = -1;
};

}  // namespace

void build_kl_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile, DType dtype) {
  KlDecoder(g, c, tile, dtype).build();
}
void build_dc_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile, DType dtype) {
  DcDecoder(g, c, tile, dtype).build();
}
void build_wan_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile,
                       DType dtype) {
  WanDecoder(g, c, tile, dtype).build();
}
void build_cogvideox_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile,
                             DType dtype) {
  VideoDecoder(g, c, tile, dtype, true).build();
}
void build_hunyuan_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile,
                           DType dtype) {
  VideoDecoder(g, c, tile, dtype, false).build();
}

}  // namespace tilecast
