// Denoisers whose attention joins the tokens of text and image: FLUX, Stable Diffusion 3,
// CogVideoX, HunyuanVideo (diffusers, models/transformers). Ranks that share a sequence share the
// text too.

#include <algorithm>
#include <utility>

#include "importers/huggingface/denoiser.h"
#include "importers/huggingface/denoiser_classes.h"

namespace tilecast {
namespace {

constexpr int64_t kWaveChannels = 256;  // of the time step's sines and cosines

class JointDenoiser : public Denoiser {
 public:
  using Denoiser::Denoiser;

 protected:
  struct Streams {
    TensorId image = -1, text = -1;
  };

  TensorId own_condition(const std::string& p, int64_t parts) {
    return linear(f_.activation(condition_, "silu", p + "silu"), p + "linear",
                  parts * c_.hidden_dim());
  }
  TensorId head_norm(TensorId x, const std::string& name) {
    return c_.qk_norm ? rms_of_heads(x, name) : x;
  }
  TensorId mlp_of(TensorId x, const std::string& p) {
    return mlp(x, p + "in", p + "out", c_.ffn_dim, c_.hidden_dim(), "gelu_pytorch_tanh");
  }
  /// Queries, keys and values of one stream, [b, s, heads, d].
  std::vector<TensorId> qkv(TensorId x, const std::string& p, const std::string& before,
                            const std::string& after, const std::string& norm) {
    std::vector<TensorId> all;
    for (const char* which : {"q", "k", "v"}) {
      std::string name = p;
      name.append(before).append(which).append(after);
      TensorId y = heads_of(x, name, c_.heads, c_.head_dim);
      if (which[0] != 'v') y = head_norm(y, p + norm + which);
      all.push_back(y);
    }
    return all;
  }

  /// A block with weights of its own for each stream (MM-DiT). `last`: of the text, only keys and
  /// values matter.
  Streams double_block(Streams x, const std::string& p, bool text_first, bool dual, bool last) {
    const int64_t d = c_.hidden_dim();
    const TensorId own = own_condition(p + "norm1.", dual ? 9 : 6);
    const TensorId of_text = own_condition(p + "norm1_context.", last ? 2 : 6);
    const TensorId plain = layer_norm(x.image, p + "norm1");
    const TensorId image = modulate(plain, own, p + "norm1.modulate");
    const TensorId text =
        modulate(layer_norm(x.text, p + "norm1_context"), of_text, p + "norm1_context.modulate");
    const std::string a = p + "attn.";
    const std::vector<TensorId> of_image = qkv(image, a, "to_", "", "norm_");
    const std::vector<TensorId> of_words = qkv(text, a, "add_", "_proj", "norm_added_");
    std::vector<TensorId> both;
    for (size_t i = 0; i < of_image.size(); ++i) {
      TensorId t = text_first ? join({of_words[i], of_image[i]}, a + "cat")
                              : join({of_image[i], of_words[i]}, a + "cat");
      if (c_.rotary && i < 2) t = rotate(t, a + "rotary");
      both.push_back(t);
    }
    const TensorId seen = attend(both[0], both[1], both[2], a);
    const TensorId image_out =
        linear(rows(seen, shape_of(x.image)[1], a + "image"), a + "to_out", d);
    Streams y;
    y.image = add_gated(x.image, image_out, own, p + "gate");
    if (dual) {
      const std::string a2 = p + "attn2.";
      const std::vector<TensorId> alone =
          qkv(modulate(plain, own, p + "norm1.modulate2"), a2, "to_", "", "norm_");
      y.image =
          add_gated(y.image, linear(attend(alone[0], alone[1], alone[2], a2), a2 + "to_out", d),
                    own, p + "gate2");
    }
    const TensorId second = modulate(layer_norm(y.image, p + "norm2"), own, p + "norm2.modulate");
    y.image = add_gated(y.image, mlp_of(second, p + "ff."), own, p + "ff.gate");
    if (last) return y;
    const TensorId text_out =
        linear(rows(seen, shape_of(x.text)[1], a + "text"), a + "to_add_out", d);
    y.text = add_gated(x.text, text_out, of_text, p + "gate_context");
    const TensorId third =
        modulate(layer_norm(y.text, p + "norm2_context"), of_text, p + "norm2_context.modulate");
    y.text = add_gated(y.text, mlp_of(third, p + "ff_context."), of_text, p + "ff_context.gate");
    return y;
  }

  void double_blocks(Streams& x, int64_t count, bool text_first, bool dual) {
    if (count == 0) return;
    b().begin_segment(dual ? "dual_transformer_blocks" : "transformer_blocks", count);
    const Streams end = double_block(
        x, dual ? "transformer_blocks.0.dual." : "transformer_blocks.0.", text_first, dual, false);
    b().carry(x.image, end.image);
    b().carry(x.text, end.text);
    x = end;
  }

  /// Attention and feed-forward layer side by side, over both streams.
  void single_blocks(Streams& x, bool text_first) {
    if (c_.single_layers == 0) return;
    const int64_t d = c_.hidden_dim();
    const std::string p = "single_transformer_blocks.0.", a = p + "attn.";
    b().begin_segment("single_transformer_blocks", c_.single_layers);
    const TensorId both =
        text_first ? join({x.text, x.image}, p + "cat") : join({x.image, x.text}, p + "cat");
    const TensorId own = own_condition(p + "norm.", 3);
    const TensorId normal = modulate(layer_norm(both, p + "norm"), own, p + "norm.modulate");
    const TensorId wide = f_.activation(linear(normal, p + "proj_mlp", c_.ffn_dim),
                                        "gelu_pytorch_tanh", p + "act_mlp");
    std::vector<TensorId> all = qkv(normal, a, "to_", "", "norm_");
    for (size_t i = 0; c_.rotary && i < 2; ++i) all[i] = rotate(all[i], a + "rotary");
    const TensorId out = linear(join({attend(all[0], all[1], all[2], a), wide}, p + "cat_mlp", 2),
                                p + "proj_out", d);
    const TensorId sum = add_gated(both, out, own, p + "gate");
    const TensorId text = rows(sum, shape_of(x.text)[1], p + "text");
    const TensorId image = rows(sum, shape_of(x.image)[1], p + "image");
    b().carry(x.text, text);
    b().carry(x.image, image);
    x = {image, text};
  }

  /// Time step, guidance and the pooled text.
  void embed_condition(const std::string& p) {
    const int64_t d = c_.hidden_dim();
    condition_ = embed_step(p + "timestep_embedder.", kWaveChannels, d);
    if (c_.guidance)
      condition_ =
          f_.op("add", {condition_, embed_step(p + "guidance_embedder.", kWaveChannels, d)},
                p + "add_guidance");
    if (c_.pooled_dim == 0) return;
    const TensorId pooled =
        mlp(input("pooled_projections", {batch_.samples, c_.pooled_dim}),
            p + "text_embedder.linear_1", p + "text_embedder.linear_2", d, d, "silu");
    condition_ = f_.op("add", {condition_, pooled}, p + "add_text");
  }

  TensorId text_input(int64_t dim) {
    return input("encoder_hidden_states", {batch_.samples, share(batch_.text_tokens.at(0)), dim});
  }

  void finish(TensorId image, const std::string& norm) {
    b().begin_segment("head", 1);
    const TensorId own = own_condition(norm + ".", 2);
    unpatch(modulate(layer_norm(image, norm), own, norm + ".modulate"), "proj_out");
  }

  TensorId condition_ = -1;
};

class Flux : public JointDenoiser {
 public:
  using JointDenoiser::JointDenoiser;

  void build() {
    b().begin_segment("embed", 1);
    Streams x;
    x.image = embed_patches("x_embedder", false);
    embed_condition("time_text_embed.");
    x.text = linear(text_input(c_.text_dim), "context_embedder", c_.hidden_dim());
    double_blocks(x, c_.layers, true, false);
    single_blocks(x, true);
    finish(x.image, "norm_out");
  }
};

class StableDiffusion3 : public JointDenoiser {
 public:
  using JointDenoiser::JointDenoiser;

  void build() {
    b().begin_segment("embed", 1);
    Streams x;
    const TensorId cut = embed_patches("pos_embed.proj", true);
    const TensorId places = b().tensor({.name = "pos_embed",
                                        .shape = {1, c_.positions * c_.positions, c_.hidden_dim()},
                                        .dtype = f_.request().dtype,
                                        .kind = TensorKind::kBuffer});
    // A part of the table of the largest image.
    x.image =
        f_.op("add", {cut, rows(places, std::min(tokens(), c_.positions * c_.positions), "crop")},
              "pos_embed.add");
    embed_condition("time_text_embed.");
    x.text = linear(text_input(c_.text_dim), "context_embedder", c_.hidden_dim());
    const int64_t pairs = c_.layers - 1;  // the last block drops the text
    double_blocks(x, std::min(c_.dual_layers, pairs), false, true);
    double_blocks(x, pairs - std::min(c_.dual_layers, pairs), false, false);
    b().begin_segment("last_transformer_block", 1);
    x = double_block(x, "transformer_blocks.last.", false, c_.dual_layers > pairs, true);
    finish(x.image, "norm_out");
  }
};

class HunyuanVideo : public JointDenoiser {
 public:
  using JointDenoiser::JointDenoiser;

  void build() {
    b().begin_segment("embed", 1);
    Streams x;
    // A convolution whose windows do not overlap, as a product.
    x.image = embed_patches("x_embedder.proj", false);
    x.text = refine();
    b().begin_segment("condition", 1);
    embed_condition("time_text_embed.");
    double_blocks(x, c_.layers, false, false);
    single_blocks(x, false);
    finish(x.image, "norm_out");
  }

 private:
  /// Attention of the text alone, before the blocks.
  TensorId refine() {
    const int64_t d = c_.hidden_dim();
    const std::string p = "context_embedder.";
    const TensorId text = text_input(c_.text_dim);
    condition_ = embed_step(p + "time_text_embed.timestep_embedder.", kWaveChannels, d);
    const TensorId pooled =
        mlp(f_.mean_of_rows(text, p + "pool"), p + "time_text_embed.text_embedder.linear_1",
            p + "time_text_embed.text_embedder.linear_2", d, d, "silu");
    condition_ = f_.op("add", {condition_, pooled}, p + "time_text_embed.add");
    TensorId x = linear(text, p + "proj_in", d);
    if (c_.refiner_layers == 0) return x;
    b().begin_segment("token_refiner", c_.refiner_layers);
    const std::string q = p + "refiner_blocks.0.";
    const TensorId own = own_condition(q + "norm_out.", 2);
    const TensorId first = layer_norm(x, q + "norm1", true);
    const auto heads = [&](const char* name) {
      return heads_of(first, q + name, c_.heads, c_.head_dim);
    };
    const TensorId query = heads("to_q"), keys = heads("to_k"), values = heads("to_v");
    const TensorId out = linear(attend_to_text(query, keys, values, q), q + "to_out", d);
    TensorId y = add_gated(x, out, own, q + "gate");
    const TensorId wide =
        mlp(layer_norm(y, q + "norm2", true), q + "ff.in", q + "ff.out", c_.ffn_dim, d, "silu");
    y = add_gated(y, wide, own, q + "ff.gate");
    b().carry(x, y);
    return y;
  }
};

class CogVideoX : public JointDenoiser {
 public:
  using JointDenoiser::JointDenoiser;

  void build() {
    const int64_t d = c_.hidden_dim();
    b().begin_segment("embed", 1);
    Streams x;
    x.image = embed_patches("patch_embed.proj", c_.patch_t == 1, true);
    x.text = linear(text_input(c_.text_dim), "patch_embed.text_proj", d);
    condition_ = mlp(input("time_waves", {batch_.samples, d}), "time_embedding.linear_1",
                     "time_embedding.linear_2", c_.time_dim, c_.time_dim, "silu");
    if (!c_.rotary) {
      const TensorId both = join({x.text, x.image}, "patch_embed.cat");
      const TensorId places = b().tensor({.name = "pos_embedding",
                                          .shape = {1, shape_of(both)[1], d},
                                          .dtype = f_.request().dtype,
                                          .kind = TensorKind::kBuffer});
      const TensorId sum = f_.op("add", {both, places}, "patch_embed.add");
      x = {rows(sum, shape_of(x.image)[1], "patch_embed.image"),
           rows(sum, shape_of(x.text)[1], "patch_embed.text")};
    }
    b().begin_segment("transformer_blocks", c_.layers);
    const Streams end = block(x, "transformer_blocks.0.");
    b().carry(x.image, end.image);
    b().carry(x.text, end.text);
    b().begin_segment("head", 1);
    const TensorId both = join({end.text, end.image}, "norm_final.cat");
    const TensorId image =
        rows(layer_norm(both, "norm_final", true), shape_of(end.image)[1], "norm_final.image");
    const TensorId own =
        linear(f_.activation(condition_, "silu", "norm_out.silu"), "norm_out.linear", 2 * d);
    unpatch(modulate(layer_norm(image, "norm_out", true), own, "norm_out.modulate"), "proj_out");
  }

 private:
  /// CogVideoXLayerNormZero: one norm for both streams, conditions of their own.
  Streams normal(const Streams& x, TensorId own, const std::string& p) {
    const TensorId scale = f_.weight(p + "norm.weight", {c_.hidden_dim()}),
                   shift = f_.weight(p + "norm.bias", {c_.hidden_dim()});
    const auto each = [&](TensorId t, const char* name) {
      return modulate(f_.op("layer_norm", {t, scale, shift}, p + "norm"), own, p + name);
    };
    return {each(x.image, "image"), each(x.text, "text")};
  }
  Streams gated(const Streams& x, const Streams& y, TensorId own, const std::string& p) {
    return {add_gated(x.image, y.image, own, p + "image"),
            add_gated(x.text, y.text, own, p + "text")};
  }
  Streams parts_of(TensorId both, const Streams& like, const std::string& p) {
    return {rows(both, shape_of(like.image)[1], p + "image"),
            rows(both, shape_of(like.text)[1], p + "text")};
  }

  Streams block(const Streams& x, const std::string& p) {
    const int64_t d = c_.hidden_dim();
    const std::string a = p + "attn1.";
    const TensorId own = own_condition(p + "norm1.", 6);
    const Streams first = normal(x, own, p + "norm1.");
    const TensorId both = join({first.text, first.image}, a + "cat");
    const auto heads = [&](const char* name) {
      return heads_of(both, a + name, c_.heads, c_.head_dim);
    };
    TensorId q = layer_norm(heads("to_q"), a + "norm_q", true);
    TensorId k = layer_norm(heads("to_k"), a + "norm_k", true);
    const TensorId v = heads("to_v");
    if (c_.rotary) {
      // Of the image's tokens only.
      const auto turn = [&](TensorId t, const std::string& name) {
        const TensorId image = rotate(rows(t, shape_of(x.image)[1], name + ".image"), name);
        return join({rows(t, shape_of(x.text)[1], name + ".text"), image}, name + ".write");
      };
      q = turn(q, a + "rotary_q");
      k = turn(k, a + "rotary_k");
    }
    const TensorId seen = linear(attend(q, k, v, a), a + "to_out", d);
    const Streams middle = gated(x, parts_of(seen, x, a), own, p + "gate.");
    const TensorId again = own_condition(p + "norm2.", 6);
    const Streams second = normal(middle, again, p + "norm2.");
    const TensorId wide = mlp_of(join({second.text, second.image}, p + "ff.cat"), p + "ff.");
    return gated(middle, parts_of(wide, x, p + "ff."), again, p + "ff.gate.");
  }
};

}  // namespace

void build_flux(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<Flux>(g, c, b, dtype);
}
void build_sd3(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<StableDiffusion3>(g, c, b, dtype);
}
void build_cogvideox(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<CogVideoX>(g, c, b, dtype);
}
void build_hunyuan_video(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<HunyuanVideo>(g, c, b, dtype);
}

}  // namespace tilecast
