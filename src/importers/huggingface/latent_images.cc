// Graphs of the decoders of images (diffusers, models/autoencoders).

#include <fmt/format.h>

#include "importers/huggingface/latent_blocks.h"
#include "importers/huggingface/latent_decoder.h"

namespace tilecast {
namespace {

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
    if (c_.mid_attention) x = pixel_attention(x, "decoder.mid_block.attentions.0.");
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

}  // namespace

void build_kl_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile, DType dtype) {
  KlDecoder(g, c, tile, dtype).build();
}
void build_dc_decoder(Graph& g, const LatentDecoderConfig& c, const LatentTile& tile, DType dtype) {
  DcDecoder(g, c, tile, dtype).build();
}

}  // namespace tilecast
