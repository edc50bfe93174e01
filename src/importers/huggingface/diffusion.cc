// Reads diffusers configs of image generators: the U-Net of Stable Diffusion (UNet2DConditionModel)
// and the diffusion transformer (DiTTransformer2DModel). One pass is one denoising step.

#include <fmt/format.h>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

constexpr int64_t kLargestSide = 1 << 14;

/// Blocks that both models use.
class Diffusion {
 public:
  Diffusion(Graph& graph, const GraphRequest& request) : f_(graph, request) {}

 protected:
  GraphBuilder& b() { return f_.builder(); }
  const Shape& shape_of(TensorId x) { return b().graph().tensor(x).shape; }

  TensorId convolve(TensorId x, const std::string& name, int64_t out, int64_t kernel,
                    int64_t stride = 1) {
    const int64_t in = shape_of(x)[1];
    return f_.op("conv2d",
                 {x, f_.weight(name + ".weight", {out, in, kernel, kernel}),
                  f_.weight(name + ".bias", {out})},
                 name, {{"stride", stride}, {"padding", kernel / 2}});
  }

  /// Attention of x [b, s, hidden_dim] to `to`. In the U-Net, the projections of queries, keys and
  /// values have no bias.
  TensorId attention(TensorId x, TensorId to, const std::string& p, int64_t heads, bool bias) {
    const int64_t hidden_dim = shape_of(x).back();
    const auto project = [&](TensorId from, const char* name) {
      return f_.split_heads(f_.linear(from, p + name, {hidden_dim, bias}), heads);
    };
    const TensorId q = project(x, "to_q"), k = project(to, "to_k"), v = project(to, "to_v");
    const TensorId context = f_.attention(q, k, v, p + "attention", {});
    return f_.linear(context, p + "to_out", {hidden_dim});
  }

  /// Embeds the time step: sines and cosines, then two linear layers.
  TensorId embed_step(int64_t channels, int64_t hidden_dim, const std::string& p) {
    const TensorId waves =
        b().input("timestep_waves", {f_.request().batch, channels}, f_.request().dtype);
    const TensorId wide =
        f_.activation(f_.linear(waves, p + "linear_1", {hidden_dim}), "silu", p + "act");
    return f_.linear(wide, p + "linear_2", {hidden_dim});
  }

  Layers f_;
};

struct UnetConfig {
  int64_t side, in, out, groups, layers_per_block, context;
  std::vector<int64_t> channels, heads, depths;
  std::vector<bool> down_attention, up_attention;
};

std::vector<int64_t> per_block(const JsonObject& c, const std::string& key, size_t blocks,
                               int64_t otherwise) {
  const Json value = c.has(key) ? c.json()[key] : Json(otherwise);
  std::vector<int64_t> list(blocks, 0);
  for (size_t i = 0; i < blocks; ++i) {
    const Json& item = value.is_array() ? (i < value.size() ? value[i] : Json()) : value;
    if (!item.is_number_integer() || item.get<int64_t>() < 1)
      c.fail(key,
             fmt::format("expected a whole number above 0, or one for each of {} blocks", blocks));
    list[i] = item.get<int64_t>();
  }
  return list;
}

UnetConfig read_unet_config(const JsonObject& c) {
  UnetConfig u{};
  u.side = c.integer({"sample_size"}, 1, kLargestSide);
  u.in = c.integer({"in_channels"}, 1, kLargestConfigSize);
  u.out = c.integer({"out_channels"}, 1, kLargestConfigSize);
  u.groups = c.optional_integer({"norm_num_groups"}, 1, kLargestConfigSize).value_or(32);
  u.layers_per_block = c.optional_integer({"layers_per_block"}, 1, 64).value_or(2);
  u.context = c.integer({"cross_attention_dim"}, 1, kLargestConfigSize);
  const std::vector<std::string> down = c.strings("down_block_types"),
                                 up = c.strings("up_block_types");
  if (down.empty() || down.size() != up.size())
    c.fail("up_block_types", fmt::format("expected as many as down_block_types ({}), found {}",
                                         down.size(), up.size()));
  const auto attends = [&](const std::string& key, const std::string& type, const char* with,
                           const char* without) {
    if (type != with && type != without)
      c.fail(key,
             fmt::format("unknown block '{}'; known: {}, {}", shown_name(type), with, without));
    return type == with;
  };
  for (const std::string& type : down)
    u.down_attention.push_back(
        attends("down_block_types", type, "CrossAttnDownBlock2D", "DownBlock2D"));
  for (const std::string& type : up)
    u.up_attention.push_back(attends("up_block_types", type, "CrossAttnUpBlock2D", "UpBlock2D"));
  u.channels = per_block(c, "block_out_channels", down.size(), 0);
  // In old configs, the field attention_head_dim holds the number of heads.
  u.heads = per_block(c, "attention_head_dim", down.size(), 8);
  u.depths = per_block(c, "transformer_layers_per_block", down.size(), 1);
  for (size_t i = 0; i < down.size(); ++i) {
    if (u.channels[i] % u.groups != 0 || u.channels[i] % u.heads[i] != 0)
      c.fail("block_out_channels",
             fmt::format("{} channels are not divisible by {} groups and {} heads", u.channels[i],
                         u.groups, u.heads[i]));
  }
  if (u.side >> (down.size() - 1) < 1)
    c.fail("sample_size", fmt::format("{} is too small for {} blocks", u.side, down.size()));
  return u;
}

class Unet : public Diffusion {
 public:
  Unet(Graph& graph, const UnetConfig& config, const GraphRequest& request)
      : Diffusion(graph, request), graph_(graph), c_(config) {}

  void build() {
    b().begin_segment("unet", 1);
    const int64_t batch = f_.request().batch;
    const DType dtype = f_.request().dtype;
    const TensorId sample = b().input("sample", {batch, c_.in, c_.side, c_.side}, dtype);
    text_ = b().input("encoder_hidden_states", {batch, f_.request().seq, c_.context}, dtype);
    step_ = embed_step(c_.channels[0], 4 * c_.channels[0], "time_embedding.");
    TensorId x = convolve(sample, "conv_in", c_.channels[0], 3);
    std::vector<TensorId> skips = {x};
    const size_t blocks = c_.channels.size();
    for (size_t i = 0; i < blocks; ++i) {
      const std::string p = fmt::format("down_blocks.{}.", i);
      for (int64_t l = 0; l < c_.layers_per_block; ++l) {
        x = resnet(x, fmt::format("{}resnets.{}.", p, l), c_.channels[i]);
        if (c_.down_attention[i]) x = transformer(x, fmt::format("{}attentions.{}.", p, l), i);
        skips.push_back(x);
      }
      if (i + 1 == blocks) break;
      x = convolve(x, p + "downsample", c_.channels[i], 3, 2);
      skips.push_back(x);
    }
    const size_t last = blocks - 1;
    x = resnet(x, "mid_block.resnets.0.", c_.channels[last]);
    x = transformer(x, "mid_block.attentions.0.", last);
    x = resnet(x, "mid_block.resnets.1.", c_.channels[last]);
    for (size_t i = 0; i < blocks; ++i) {
      const std::string p = fmt::format("up_blocks.{}.", i);
      const size_t mirror = last - i;
      for (int64_t l = 0; l <= c_.layers_per_block; ++l) {
        x = f_.op("cat", {x, skips.back()}, fmt::format("{}cat.{}", p, l), {{"dim", 1}});
        skips.pop_back();
        x = resnet(x, fmt::format("{}resnets.{}.", p, l), c_.channels[mirror]);
        if (c_.up_attention[i]) x = transformer(x, fmt::format("{}attentions.{}.", p, l), mirror);
      }
      if (i == last) break;
      x = convolve(f_.op("upsample", {x}, p + "upsample"), p + "upsample.conv", c_.channels[mirror],
                   3);
    }
    x = f_.activation(norm(x, "conv_norm_out"), "silu", "conv_act");
    graph_.outputs = {convolve(x, "conv_out", c_.out, 3)};
  }

 private:
  TensorId norm(TensorId x, const std::string& name) { return f_.group_norm(x, c_.groups, name); }

  TensorId resnet(TensorId x, const std::string& p, int64_t out) {
    const int64_t in = shape_of(x)[1];
    TensorId y =
        convolve(f_.activation(norm(x, p + "norm1"), "silu", p + "act1"), p + "conv1", out, 3);
    const TensorId step =
        f_.linear(f_.activation(step_, "silu", p + "time_act"), p + "time_emb_proj", {out});
    y = f_.op("add", {y, f_.view(step, {f_.request().batch, out, 1, 1})}, p + "add_time");
    y = convolve(f_.activation(norm(y, p + "norm2"), "silu", p + "act2"), p + "conv2", out, 3);
    const TensorId shortcut = in == out ? x : convolve(x, p + "conv_shortcut", out, 1);
    return f_.residual({shortcut, y}, p + "residual");
  }

  TensorId transformer(TensorId x, const std::string& p, size_t block) {
    const Shape shape = shape_of(x);
    const int64_t hidden_dim = shape[1];
    TensorId y = convolve(norm(x, p + "norm"), p + "proj_in", hidden_dim, 1);
    y = f_.op("copy",
              {f_.transpose(f_.view(y, {shape[0], hidden_dim, shape[2] * shape[3]}), {0, 2, 1})},
              p + "to_rows");
    for (int64_t d = 0; d < c_.depths[block]; ++d) {
      const std::string q = fmt::format("{}transformer_blocks.{}.", p, d);
      const TensorId first = f_.layer_norm(y, q + "norm1");
      y = f_.residual({y, attention(first, first, q + "attn1.", c_.heads[block], false)},
                      q + "attn1.residual");
      y = f_.residual({y, attention(f_.layer_norm(y, q + "norm2"), text_, q + "attn2.",
                                    c_.heads[block], false)},
                      q + "attn2.residual");
      // GEGLU: gelu of one half of the columns times the other half.
      const TensorId wide =
          f_.linear(f_.layer_norm(y, q + "norm3"), q + "ff.proj", {8 * hidden_dim});
      const std::vector<TensorId> halves = b().add("split", {wide}, q + "ff.split", {{"parts", 2}});
      const TensorId gated =
          f_.op("mul", {halves[0], f_.op("gelu", {halves[1]}, q + "ff.gelu")}, q + "ff.mul");
      y = f_.residual({y, f_.linear(gated, q + "ff.out", {hidden_dim})}, q + "ff.residual");
    }
    y = f_.view(f_.op("copy", {f_.transpose(y, {0, 2, 1})}, p + "to_image"), shape);
    return f_.residual({x, convolve(y, p + "proj_out", hidden_dim, 1)}, p + "residual");
  }

  Graph& graph_;
  const UnetConfig& c_;
  TensorId step_ = -1, text_ = -1;
};

struct DitConfig {
  int64_t side, in, out, patch, hidden_dim, heads, layers, classes;
};

DitConfig read_dit_config(const JsonObject& c) {
  DitConfig d{};
  d.side = c.integer({"sample_size"}, 1, kLargestSide);
  d.in = c.integer({"in_channels"}, 1, kLargestConfigSize);
  d.out = c.optional_integer({"out_channels"}, 1, kLargestConfigSize).value_or(2 * d.in);
  d.patch = c.integer({"patch_size"}, 1, kLargestSide);
  d.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  d.hidden_dim = d.heads * c.integer({"attention_head_dim"}, 1, 1 << 16);
  d.layers = c.integer({"num_layers"}, 1, 100000);
  d.classes = c.optional_integer({"num_embeds_ada_norm"}, 1, kLargestConfigSize).value_or(1000);
  if (d.side % d.patch != 0)
    c.fail("patch_size", fmt::format("{} does not divide the sample's {} pixels", d.patch, d.side));
  return d;
}

class Dit : public Diffusion {
 public:
  Dit(Graph& graph, const DitConfig& config, const GraphRequest& request)
      : Diffusion(graph, request), graph_(graph), c_(config) {}

  void build() {
    const int64_t batch = f_.request().batch;
    const int64_t patches = c_.side / c_.patch, tokens = patches * patches;
    b().begin_segment("pos_embed", 1);
    const TensorId sample =
        b().input("hidden_states", {batch, c_.in, c_.side, c_.side}, f_.request().dtype);
    const TensorId cut = f_.op(
        "conv2d",
        {sample, f_.weight("pos_embed.proj.weight", {c_.hidden_dim, c_.in, c_.patch, c_.patch}),
         f_.weight("pos_embed.proj.bias", {c_.hidden_dim})},
        "pos_embed.proj", {{"stride", c_.patch}});
    const TensorId rows = f_.transpose(f_.view(cut, {batch, c_.hidden_dim, tokens}), {0, 2, 1});
    const TensorId position_embeds = b().tensor({.name = "pos_embed",
                                                 .shape = {1, tokens, c_.hidden_dim},
                                                 .dtype = f_.request().dtype,
                                                 .kind = TensorKind::kBuffer});
    const TensorId start = f_.op("add", {rows, position_embeds}, "pos_embed.add");
    b().begin_segment("transformer_blocks", c_.layers);
    const TensorId end = block(start);
    b().carry(start, end);
    b().begin_segment("head", 1);
    const TensorId condition = embed_condition("head.");
    const TensorId shift = f_.linear(f_.activation(condition, "silu", "proj_out_1.act"),
                                     "proj_out_1", {2 * c_.hidden_dim});
    const TensorId last = modulate(f_.op("layer_norm", {end}, "norm_out"), shift, 0, "norm_out");
    graph_.outputs = {f_.linear(last, "proj_out_2", {c_.patch * c_.patch * c_.out})};
  }

 private:
  /// Each block has its own embedding of time step and class (adaLN-Zero).
  TensorId embed_condition(const std::string& p) {
    const TensorId step = embed_step(256, c_.hidden_dim, p + "timestep_embedder.");
    const TensorId table = f_.weight(p + "class_embedder", {c_.classes + 1, c_.hidden_dim});
    const TensorId label =
        f_.embedding(table, f_.ids("class_labels", {f_.request().batch}), p + "class_embedder");
    return f_.op("add", {step, label}, p + "condition");
  }

  /// One part of the condition for each sample, [b, 1, hidden_dim].
  TensorId part(TensorId condition, const std::string& name) {
    return f_.view(f_.op("slice_columns", {condition}, name, {{"columns", c_.hidden_dim}}),
                   {f_.request().batch, 1, c_.hidden_dim});
  }

  TensorId modulate(TensorId x, TensorId condition, int which, const std::string& name) {
    const std::string p = fmt::format("{}.modulate{}", name, which);
    const TensorId scale = f_.op("add_scalar", {part(condition, p)}, p);
    return f_.op("add", {f_.op("mul", {x, scale}, p), part(condition, p)}, p);
  }

  TensorId block(TensorId x) {
    const std::string p = "transformer_blocks.0.";
    const TensorId silu = f_.activation(embed_condition(p + "norm1."), "silu", p + "norm1.act");
    const TensorId condition = f_.linear(silu, p + "norm1.linear", {6 * c_.hidden_dim});
    const TensorId first =
        modulate(f_.op("layer_norm", {x}, p + "norm1"), condition, 0, p + "norm1");
    const TensorId attn_out = attention(first, first, p + "attn1.", c_.heads, true);
    const TensorId hidden =
        f_.residual({x, f_.op("mul", {attn_out, part(condition, p + "gate1")}, p + "gate1")},
                    p + "attn1.residual");
    const TensorId second =
        modulate(f_.op("layer_norm", {hidden}, p + "norm3"), condition, 1, p + "norm3");
    const TensorId wide = f_.activation(f_.linear(second, p + "ff.in", {4 * c_.hidden_dim}),
                                        "gelu_pytorch_tanh", p + "ff.act");
    const TensorId mlp_out = f_.linear(wide, p + "ff.out", {c_.hidden_dim});
    return f_.residual({hidden, f_.op("mul", {mlp_out, part(condition, p + "gate2")}, p + "gate2")},
                       p + "ff.residual");
  }

  Graph& graph_;
  const DitConfig& c_;
};

Graph build_unet(const UnetConfig& config, const GraphRequest& request) {
  Graph graph;
  Unet(graph, config, request).build();
  return graph;
}

Graph build_dit(const DitConfig& config, const GraphRequest& request) {
  Graph graph;
  Dit(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_unet(const JsonObject& json) {
  const UnetConfig config = read_unet_config(json);
  constexpr int64_t kTextTokens = 77;  // of CLIP, which conditions Stable Diffusion
  Model model = make_model(config, kTextTokens, std::nullopt, build_unet);
  model.has_fused_attention = true;
  return model;
}

Model read_dit(const JsonObject& json) {
  const DitConfig config = read_dit_config(json);
  const int64_t patches = config.side / config.patch;
  Model model = make_model(config, patches * patches, std::nullopt, build_dit);
  model.fixed_seq = true;
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
