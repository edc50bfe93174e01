// Denoisers that attend to the text by cross-attention: PixArt, HunyuanDiT, Sana, Wan (diffusers,
// models/transformers).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "importers/huggingface/denoiser.h"
#include "importers/huggingface/denoiser_classes.h"

namespace tilecast {
namespace {

constexpr int64_t kWaves = 256;  // channels of the time step's sines and cosines in these classes

/// Blocks that repeat, with what they share.
class CrossDenoiser : public Denoiser {
 public:
  using Denoiser::Denoiser;

 protected:
  Shape text_shape(size_t text, int64_t dim) const {
    return {batch_.samples, batch_.text_tokens.at(text), dim};
  }
  /// adaLN-single: six parts of one condition, of which each block adds a table of its own.
  TensorId condition_of_block(TensorId condition, const std::string& p) {
    return f_.op("add", {condition, f_.weight(p + "scale_shift_table", {1, 6 * c_.hidden_dim()})},
                 p + "scale_shift");
  }
  TensorId single_condition(const std::string& p) {
    step_ = embed_step(p + "timestep_embedder.", kWaves, c_.hidden_dim());
    return linear(f_.activation(step_, "silu", p + "silu"), p + "linear", 6 * c_.hidden_dim());
  }
  /// The end of a model whose last norm has a table of its own.
  void finish(TensorId x, TensorId step, bool wide) {
    b().begin_segment("head", 1);
    const TensorId pair = join({step, step}, "scale_shift.repeat", 1);
    const TensorId condition = f_.op(
        "add", {pair, f_.weight("scale_shift_table", {1, 2 * c_.hidden_dim()})}, "scale_shift");
    const TensorId normal = wide ? wide_norm(x, "norm_out", false) : layer_norm(x, "norm_out");
    unpatch(
        cast(modulate(normal, condition, "norm_out.modulate"), f_.request().dtype, "norm_out.cast"),
        "proj_out");
  }
  TensorId step_ = -1;
};

class PixArt : public CrossDenoiser {
 public:
  using CrossDenoiser::CrossDenoiser;

  void build() {
    const int64_t d = c_.hidden_dim();
    b().begin_segment("embed", 1);
    const TensorId rows = embed_patches("pos_embed.proj", true);
    const TensorId places = b().tensor({.name = "pos_embed",
                                        .shape = {1, tokens(), d},
                                        .dtype = f_.request().dtype,
                                        .kind = TensorKind::kBuffer});
    const TensorId start = f_.op("add", {rows, places}, "pos_embed.add");
    const TensorId condition = single_condition("adaln_single.");
    const TensorId text = mlp(input("encoder_hidden_states", text_shape(0, c_.text_dim)),
                              "caption_projection.linear_1", "caption_projection.linear_2", d, d,
                              "gelu_pytorch_tanh");
    b().begin_segment("transformer_blocks", c_.layers);
    const TensorId end = block(start, text, condition, "transformer_blocks.0.");
    b().carry(start, end);
    finish(end, step_, false);
  }

 private:
  TensorId heads(TensorId x, const std::string& name) {
    return heads_of(x, name, c_.heads, c_.head_dim);
  }

  TensorId block(TensorId x, TensorId text, TensorId condition, const std::string& p) {
    const int64_t d = c_.hidden_dim();
    const TensorId own = condition_of_block(condition, p);
    const TensorId first = modulate(layer_norm(x, p + "norm1"), own, p + "norm1.modulate");
    const TensorId q = heads(first, p + "attn1.to_q"), k = heads(first, p + "attn1.to_k"),
                   v = heads(first, p + "attn1.to_v");
    const TensorId seen = linear(attend(q, k, v, p + "attn1."), p + "attn1.to_out", d);
    x = add_gated(x, seen, own, p + "attn1.gate");
    const TensorId asked = heads(x, p + "attn2.to_q");
    const TensorId keys = heads(text, p + "attn2.to_k"), values = heads(text, p + "attn2.to_v");
    const TensorId read =
        linear(attend_to_text(asked, keys, values, p + "attn2."), p + "attn2.to_out", d);
    x = f_.residual({x, read}, p + "attn2.residual");
    const TensorId second = modulate(layer_norm(x, p + "norm2"), own, p + "norm2.modulate");
    return add_gated(x, mlp(second, p + "ff.in", p + "ff.out", c_.ffn_dim, d, "gelu_pytorch_tanh"),
                     own, p + "ff.gate");
  }
};

class HunyuanDit : public CrossDenoiser {
 public:
  using CrossDenoiser::CrossDenoiser;

  void build() {
    const int64_t d = c_.hidden_dim();
    b().begin_segment("embed", 1);
    const TensorId start = embed_patches("pos_embed.proj", true);
    const TensorId second = input("encoder_hidden_states_t5", text_shape(1, c_.second_text_dim));
    const TensorId step = embed_step("time_extra_emb.timestep_embedder.", kWaves, d);
    const TensorId pooled = pool(second, "time_extra_emb.pooler.");
    const TensorId extra = mlp(pooled, "time_extra_emb.extra_embedder.linear_1",
                               "time_extra_emb.extra_embedder.linear_2", 4 * d, d, "silu");
    condition_ = f_.op("add", {step, extra}, "time_extra_emb.add");
    const TensorId projected = mlp(second, "text_embedder.linear_1", "text_embedder.linear_2",
                                   4 * c_.second_text_dim, c_.text_dim, "silu");
    const TensorId both =
        join({input("encoder_hidden_states", text_shape(0, c_.text_dim)), projected}, "text.cat");
    const TensorId padding =
        f_.weight("text_embedding_padding", {1, shape_of(both)[1], c_.text_dim});
    const TensorId mask =
        b().input("text_mask", {batch_.samples, shape_of(both)[1], 1}, DType::kBool);
    text_ = f_.op("where", {mask, both, padding}, "text.where");
    const int64_t down = c_.layers / 2 + 1, up = c_.layers - down;
    b().begin_segment("blocks", down);
    const TensorId middle = block(start, "blocks.0.");
    b().carry(start, middle);
    TensorId end = middle;
    if (up > 0) {
      // The outputs of the first layers, which live until the last ones read them.
      const TensorId kept = input("skips", {batch_.samples, tokens(), up * d});
      b().begin_segment("skip_blocks", up);
      const std::string p = fmt::format("blocks.{}.", down);
      const TensorId both_x = join({middle, f_.slice(kept, d, p + "skip")}, p + "skip_cat", 2);
      const TensorId normal =
          cast(wide_norm(both_x, p + "skip_norm", true), f_.request().dtype, p + "skip_norm.cast");
      end = block(linear(normal, p + "skip_linear", d), p);
      b().carry(middle, end);
    }
    b().begin_segment("head", 1);
    const TensorId own =
        linear(f_.activation(condition_, "silu", "norm_out.silu"), "norm_out.linear", 2 * d);
    unpatch(modulate(layer_norm(end, "norm_out"), own, "norm_out.modulate"), "proj_out");
  }

 private:
  /// Attention of the mean to all tokens.
  TensorId pool(TensorId text, const std::string& p) {
    const Shape s = shape_of(text);
    const TensorId mean = f_.view(f_.mean_of_rows(text, p + "mean"), {s[0], 1, s[2]});
    const TensorId all = f_.op(
        "add",
        {join({mean, text}, p + "cat"), f_.weight(p + "positional_embedding", {1, s[1] + 1, s[2]})},
        p + "positions");
    constexpr int64_t kHeads = 8;  // of HunyuanDiTAttentionPool
    const auto heads = [&](TensorId x, const char* name) {
      return heads_of(x, p + name, kHeads, s[2] / kHeads);
    };
    const TensorId q = heads(rows(all, 1, p + "first"), "q_proj"), k = heads(all, "k_proj"),
                   v = heads(all, "v_proj");
    return f_.view(linear(attend_to_text(q, k, v, p), p + "c_proj", c_.pooled_dim),
                   {s[0], c_.pooled_dim});
  }

  TensorId half_norm(TensorId x, const std::string& name) {
    return cast(wide_norm(x, name, true), f_.request().dtype, name + ".cast");
  }

  TensorId block(TensorId x, const std::string& p) {
    const int64_t d = c_.hidden_dim();
    const auto normal = [&](TensorId t, const std::string& name) {
      return layer_norm(t, name, true);
    };
    const auto heads = [&](TensorId from, const std::string& name) {
      return heads_of(from, name, c_.heads, c_.head_dim);
    };
    const TensorId shift =
        linear(f_.activation(condition_, "silu", p + "norm1.silu"), p + "norm1.linear", d);
    const TensorId first = f_.op(
        "add", {half_norm(x, p + "norm1"), f_.view(shift, {batch_.samples, 1, d})}, p + "shift");
    const std::string a = p + "attn1.", c = p + "attn2.";
    const TensorId q = rotate(normal(heads(first, a + "to_q"), a + "norm_q"), a + "rotary_q");
    const TensorId k = rotate(normal(heads(first, a + "to_k"), a + "norm_k"), a + "rotary_k");
    const TensorId v = heads(first, a + "to_v");
    x = f_.residual({x, linear(attend(q, k, v, a), a + "to_out", d)}, a + "residual");
    const TensorId asks = half_norm(x, p + "norm2");
    const TensorId asked = rotate(normal(heads(asks, c + "to_q"), c + "norm_q"), c + "rotary_q");
    const TensorId keys = normal(heads(text_, c + "to_k"), c + "norm_k");
    const TensorId values = heads(text_, c + "to_v");
    x = f_.residual({x, linear(attend_to_text(asked, keys, values, c), c + "to_out", d)},
                    c + "residual");
    return f_.residual({x, mlp(half_norm(x, p + "norm3"), p + "ff.in", p + "ff.out", c_.ffn_dim, d,
                               "gelu_pytorch_tanh")},
                       p + "ff.residual");
  }

  TensorId condition_ = -1, text_ = -1;
};

class Sana : public CrossDenoiser {
 public:
  using CrossDenoiser::CrossDenoiser;

  void build() {
    const int64_t d = c_.hidden_dim();
    b().begin_segment("embed", 1);
    const TensorId start = embed_patches("patch_embed.proj", true);
    const TensorId condition = single_condition("time_embed.");
    const TensorId text = mlp(input("encoder_hidden_states", text_shape(0, c_.text_dim)),
                              "caption_projection.linear_1", "caption_projection.linear_2", d, d,
                              "gelu_pytorch_tanh");
    const TensorId normal = f_.rms_norm(text, "caption_norm");
    b().begin_segment("transformer_blocks", c_.layers);
    const TensorId end = block(start, normal, condition, "transformer_blocks.0.");
    b().carry(start, end);
    finish(end, step_, false);
  }

 private:
  TensorId projected(TensorId x, const std::string& name, const char* norm, int64_t width,
                     bool bias) {
    const TensorId y = linear(x, name, width, bias);
    return c_.qk_norm && norm != nullptr ? f_.rms_norm(y, name + norm) : y;
  }

  /// Keys and values are summed to one matrix of each head, in fp32; ranks add theirs.
  TensorId linear_attention(TensorId x, const std::string& p) {
    const int64_t d = c_.hidden_dim(), samples = batch_.samples, length = shape_of(x)[1];
    const auto columns = [&](TensorId t, const std::string& name, bool nonnegative) {
      const TensorId turned = f_.view(f_.op("copy", {f_.transpose(t, {0, 2, 1})}, name + ".turn"),
                                      {samples, c_.heads, c_.head_dim, length});
      const TensorId kept = nonnegative ? f_.op("relu", {turned}, name + ".relu") : turned;
      return cast(kept, DType::kFp32, name + ".fp32");
    };
    const TensorId q = columns(projected(x, p + "to_q", ".norm", d, false), p + "q", true);
    const TensorId k = columns(projected(x, p + "to_k", ".norm", d, false), p + "k", true);
    const TensorId v = columns(projected(x, p + "to_v", nullptr, d, false), p + "v", false);
    const TensorId ones = f_.op("pad", {v}, p + "pad", {{"pads", Shape{0, 0, 0, 0, 0, 0, 1, 0}}});
    TensorId scores = f_.op("matmul", {ones, k}, p + "scores", {{"transpose_b", 1}});
    if (ranks() > 1) scores = f_.op("all_reduce", {scores}, p + "all_reduce", {{"ranks", ranks()}});
    const TensorId read = f_.op("matmul", {scores, q}, p + "read");
    const TensorId sums = f_.op("slice", {read}, p + "sums", {{"dim", 2}, {"count", 1}});
    const TensorId values =
        f_.op("slice", {read}, p + "values", {{"dim", 2}, {"count", c_.head_dim}});
    const TensorId y = f_.op("div", {values, sums}, p + "div");
    const TensorId flat = f_.view(y, {samples, d, length});
    const TensorId rows_of =
        f_.op("cast", {f_.transpose(flat, {0, 2, 1})}, p + "cast", {{"dtype", f_.request().dtype}});
    return linear(rows_of, p + "to_out", d);
  }

  /// GLUMBConv; ranks convolve rows of their own, whose neighbours they exchange.
  TensorId mix(TensorId x, const std::string& p) {
    const int64_t d = c_.hidden_dim(), samples = batch_.samples, length = shape_of(x)[1];
    // A rank has a part of the image, as rows of its width.
    const int64_t width = std::min(length, batch_.width / c_.patch);
    const auto convolve = [&](TensorId t, const std::string& name, int64_t out, int64_t window,
                              int64_t groups, bool bias) {
      std::vector<TensorId> operands = {
          t, f_.weight(name + ".weight", {out, shape_of(t)[1] / groups, window, window})};
      if (bias) operands.push_back(f_.weight(name + ".bias", {out}));
      return f_.op("conv2d", std::move(operands), name,
                   {{"padding", window / 2}, {"groups", groups}});
    };
    const TensorId image =
        f_.view(f_.transpose(x, {0, 2, 1}), {samples, d, ceil_divide(length, width), width});
    const TensorId wide = f_.activation(
        convolve(image, p + "conv_inverted", 2 * c_.ffn_dim, 1, 1, true), "silu", p + "act");
    const TensorId deep = convolve(wide, p + "conv_depth", 2 * c_.ffn_dim, 3, 2 * c_.ffn_dim, true);
    const std::vector<TensorId> halves =
        b().add("split", {deep}, p + "chunk", {{"parts", 2}, {"dim", 1}});
    const TensorId gated =
        f_.op("mul", {halves[0], f_.activation(halves[1], "silu", p + "gate")}, p + "mul");
    const TensorId y = convolve(gated, p + "conv_point", d, 1, 1, false);
    return f_.transpose(f_.view(y, {samples, d, length}), {0, 2, 1});
  }

  TensorId block(TensorId x, TensorId text, TensorId condition, const std::string& p) {
    const int64_t d = c_.hidden_dim(), cross = c_.cross_heads * c_.cross_head_dim;
    const TensorId own = condition_of_block(condition, p);
    const TensorId first = modulate(layer_norm(x, p + "norm1"), own, p + "norm1.modulate");
    x = add_gated(x, linear_attention(first, p + "attn1."), own, p + "attn1.gate");
    const std::string c = p + "attn2.";
    const TensorId q = as_heads(projected(x, c + "to_q", ".norm", cross, true), c_.cross_heads);
    const TensorId k = as_heads(projected(text, c + "to_k", ".norm", cross, true), c_.cross_heads);
    const TensorId v = as_heads(projected(text, c + "to_v", nullptr, cross, true), c_.cross_heads);
    x = f_.residual({x, linear(attend_to_text(q, k, v, c), c + "to_out", d)}, c + "residual");
    const TensorId second = modulate(layer_norm(x, p + "norm2"), own, p + "norm2.modulate");
    return add_gated(x, mix(second, p + "ff."), own, p + "ff.gate");
  }
};

class Wan : public CrossDenoiser {
 public:
  using CrossDenoiser::CrossDenoiser;

  void build() {
    const int64_t d = c_.hidden_dim();
    b().begin_segment("embed", 1);
    const TensorId start = embed_patches("patch_embedding", true);
    step_ = embed_step("condition_embedder.time_embedder.", c_.time_dim, d);
    const TensorId condition = linear(f_.activation(step_, "silu", "condition_embedder.silu"),
                                      "condition_embedder.time_proj", 6 * d);
    const TensorId text =
        mlp(input("encoder_hidden_states", text_shape(0, c_.text_dim)),
            "condition_embedder.text_embedder.linear_1",
            "condition_embedder.text_embedder.linear_2", d, d, "gelu_pytorch_tanh");
    b().begin_segment("blocks", c_.layers);
    const TensorId end = block(start, text, cast(condition, DType::kFp32, "condition.fp32"));
    b().carry(start, end);
    finish(end, step_, true);
  }

 private:
  TensorId half(TensorId x, const std::string& name) {
    return cast(x, f_.request().dtype, name + ".cast");
  }
  /// x.float() + gate y
  TensorId add_wide(TensorId x, TensorId y, TensorId condition, const std::string& name) {
    return half(add_gated(cast(x, DType::kFp32, name + ".fp32"), y, condition, name), name);
  }

  /// Pairs of columns, with strides of two.
  TensorId rotate_pairs(TensorId x, const std::string& name) {
    const Shape s = shape_of(x);
    const Shape table = {1, s[1], 1, s[3] / 2};
    const TensorId cos = b().input(name + ".cos", table, DType::kFp32);
    const TensorId sin = b().input(name + ".sin", table, DType::kFp32);
    const TensorId odd = f_.slice(x, s[3] / 2, name + ".odd"),
                   even = f_.slice(x, s[3] / 2, name + ".even");
    const auto mixed = [&](const char* sum, TensorId first, TensorId second) {
      const TensorId y = f_.op(
          sum,
          {f_.op("mul", {odd, first}, name + ".mul"), f_.op("mul", {even, second}, name + ".mul")},
          name + "." + sum);
      return cast(y, f_.request().dtype, name + ".write");
    };
    const TensorId left = mixed("sub", cos, sin), right = mixed("add", sin, cos);
    return join({left, right}, name + ".out", 3);
  }

  TensorId block(TensorId x, TensorId text, TensorId condition) {
    const int64_t d = c_.hidden_dim();
    const std::string p = "blocks.0.", a = p + "attn1.", c = p + "attn2.";
    const auto projected = [&](TensorId from, const std::string& name, bool normal) {
      const TensorId y = linear(from, name, d);
      return as_heads(normal && c_.qk_norm ? f_.rms_norm(y, name + ".norm") : y, c_.heads);
    };
    const TensorId own = condition_of_block(condition, p);
    const TensorId first =
        half(modulate(wide_norm(x, p + "norm1", false), own, p + "norm1.modulate"), p + "norm1");
    const TensorId q = rotate_pairs(projected(first, a + "to_q", true), a + "rotary_q");
    const TensorId k = rotate_pairs(projected(first, a + "to_k", true), a + "rotary_k");
    const TensorId v = projected(first, a + "to_v", false);
    x = add_wide(x, linear(attend(q, k, v, a), a + "to_out", d), own, a + "gate");
    const TensorId asks = half(wide_norm(x, p + "norm2", c_.cross_norm), p + "norm2");
    const TensorId asked = projected(asks, c + "to_q", true);
    const TensorId keys = projected(text, c + "to_k", true);
    const TensorId values = projected(text, c + "to_v", false);
    x = f_.residual({x, linear(attend_to_text(asked, keys, values, c), c + "to_out", d)},
                    c + "residual");
    const TensorId second =
        half(modulate(wide_norm(x, p + "norm3", false), own, p + "norm3.modulate"), p + "norm3");
    const TensorId wide =
        mlp(second, p + "ffn.in", p + "ffn.out", c_.ffn_dim, d, "gelu_pytorch_tanh");
    return add_wide(x, wide, own, p + "ffn.gate");
  }
};

}  // namespace

void build_pixart(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<PixArt>(g, c, b, dtype);
}
void build_hunyuan_dit(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<HunyuanDit>(g, c, b, dtype);
}
void build_sana(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<Sana>(g, c, b, dtype);
}
void build_wan(Graph& g, const DenoiserConfig& c, const DenoiserBatch& b, DType dtype) {
  build_network<Wan>(g, c, b, dtype);
}

}  // namespace tilecast
