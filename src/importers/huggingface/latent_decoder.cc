// Graphs of the decoders of videos (diffusers, models/autoencoders).

#include "importers/huggingface/latent_decoder.h"

#include <fmt/format.h>

#include "importers/huggingface/latent_blocks.h"

namespace tilecast {
namespace {

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
    if (c_.mid_attention) x = pixel_attention(x, "decoder.mid_block.attentions.0.");
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

  bool by_latents_;
  TensorId latents_ = -1;
};

}  // namespace

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
