// The classes of denoisers, and their configs.

#include <algorithm>

#include "importers/huggingface/denoiser.h"
#include "importers/huggingface/denoiser_classes.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

constexpr int64_t kMostDenoiserLayers = 1000, kMostPatch = 64, kLargestLatent = 1 << 14;

int64_t size(const JsonObject& c, const char* key) {
  return c.integer({key}, 1, kLargestConfigSize);
}
int64_t size_or(const JsonObject& c, const char* key, int64_t otherwise) {
  return c.optional_integer({key}, 1, kLargestConfigSize).value_or(otherwise);
}
int64_t count_or(const JsonObject& c, const char* key, int64_t otherwise) {
  return c.optional_integer({key}, 0, kMostDenoiserLayers).value_or(otherwise);
}

/// What all classes name alike.
DenoiserConfig common(const JsonObject& c) {
  DenoiserConfig d;
  constexpr int64_t kMostHeads = 1 << 12, kLargestHead = 1 << 12;
  d.heads = c.integer({"num_attention_heads"}, 1, kMostHeads);
  d.head_dim = c.integer({"attention_head_dim"}, 1, kLargestHead);
  d.layers = c.integer({"num_layers"}, 1, kMostDenoiserLayers);
  d.in = size(c, "in_channels");
  d.out = size_or(c, "out_channels", d.in);
  d.ffn_dim = 4 * d.hidden_dim();
  return d;
}
int64_t patch_of(const JsonObject& c, const char* key, int64_t otherwise) {
  return c.optional_integer({key}, 1, kMostPatch).value_or(otherwise);
}
int64_t sample_of(const JsonObject& c, int64_t otherwise) {
  return c.optional_integer({"sample_size"}, 1, kLargestLatent).value_or(otherwise);
}

DenoiserConfig read_pixart(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.patch = patch_of(c, "patch_size", 2);
  d.sample = sample_of(c, 128);
  d.text_dim = size(c, "caption_channels");
  return d;
}

DenoiserConfig read_hunyuan_dit(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.patch = patch_of(c, "patch_size", 2);
  d.sample = sample_of(c, 128);
  d.out = c.boolean("learn_sigma", true) ? 2 * d.in : d.in;
  d.text_dim = size(c, "cross_attention_dim");
  d.second_text_dim = size(c, "cross_attention_dim_t5");
  d.pooled_dim = size(c, "pooled_projection_dim");
  d.ffn_dim = static_cast<int64_t>(static_cast<double>(d.hidden_dim()) * factor(c, "mlp_ratio", 4));
  if (c.boolean("use_style_cond_and_image_meta_size", true))
    c.fail("use_style_cond_and_image_meta_size",
           "the conditions of HunyuanDiT before version 1.2 are not supported; expected false");
  return d;
}

DenoiserConfig read_sana(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.patch = patch_of(c, "patch_size", 1);
  d.sample = sample_of(c, 32);
  d.linear = true;
  d.text_dim = size(c, "caption_channels");
  d.cross_heads = size_or(c, "num_cross_attention_heads", d.heads);
  d.cross_head_dim = size_or(c, "cross_attention_head_dim", d.head_dim);
  d.ffn_dim =
      static_cast<int64_t>(static_cast<double>(d.hidden_dim()) * factor(c, "mlp_ratio", 2.5));
  d.qk_norm = c.optional_string({"qk_norm"}).has_value();
  return d;
}

DenoiserConfig read_wan(const JsonObject& c) {
  DenoiserConfig d = common(c);
  const std::vector<int64_t> patch = integers(c, "patch_size", 1, kMostPatch);
  if (patch.size() != 3 || patch[1] != patch[2])
    c.fail("patch_size", "expected three numbers, of frames, height and width, the last two equal");
  d.patch_t = patch[0];
  d.patch = patch[1];
  d.ffn_dim = size(c, "ffn_dim");
  d.time_dim = size_or(c, "freq_dim", 256);
  d.text_dim = size(c, "text_dim");
  d.qk_norm = c.optional_string({"qk_norm"}).has_value();
  d.cross_norm = c.boolean("cross_attn_norm", false);
  if (c.has("added_kv_proj_dim"))
    c.fail("added_kv_proj_dim", "videos from images are not supported; expected none");
  return d;
}

DenoiserConfig read_flux(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.single_layers = count_or(c, "num_single_layers", 0);
  d.patch = 2;  // FluxPipeline packs 2 x 2 latents into one token before the model
  if (d.in % 4 != 0) c.fail("in_channels", "expected a multiple of 4, of packed latents");
  d.in /= 4;
  d.out = d.in;
  d.text_dim = size(c, "joint_attention_dim");
  d.pooled_dim = size(c, "pooled_projection_dim");
  d.guidance = c.boolean("guidance_embeds", false);
  d.rotary = d.qk_norm = true;
  return d;
}

DenoiserConfig read_sd3(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.patch = patch_of(c, "patch_size", 2);
  d.sample = sample_of(c, 128);
  d.positions = c.integer({"pos_embed_max_size"}, 1, kLargestLatent);
  d.text_dim = size(c, "joint_attention_dim");
  d.pooled_dim = size(c, "pooled_projection_dim");
  d.qk_norm = c.optional_string({"qk_norm"}).has_value();
  if (!c.has("dual_attention_layers")) return d;
  const std::vector<int64_t> dual = integers(c, "dual_attention_layers", 0, kMostDenoiserLayers);
  for (size_t i = 0; i < dual.size(); ++i) {
    if (dual[i] != static_cast<int64_t>(i))
      c.fail("dual_attention_layers", "expected the first layers: 0, 1, 2, …");
  }
  d.dual_layers = static_cast<int64_t>(dual.size());
  return d;
}

DenoiserConfig read_cogvideox(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.patch = patch_of(c, "patch_size", 2);
  d.patch_t = patch_of(c, "patch_size_t", 1);
  d.text_dim = size(c, "text_embed_dim");
  d.time_dim = size_or(c, "time_embed_dim", 512);
  d.rotary = c.boolean("use_rotary_positional_embeddings", false);
  return d;
}

DenoiserConfig read_hunyuan_video(const JsonObject& c) {
  DenoiserConfig d = common(c);
  d.single_layers = count_or(c, "num_single_layers", 40);
  d.refiner_layers = count_or(c, "num_refiner_layers", 2);
  d.patch = patch_of(c, "patch_size", 2);
  d.patch_t = patch_of(c, "patch_size_t", 1);
  d.text_dim = size(c, "text_embed_dim");
  d.pooled_dim = size(c, "pooled_projection_dim");
  d.guidance = c.boolean("guidance_embeds", true);
  d.rotary = d.qk_norm = true;
  return d;
}

}  // namespace

const std::vector<DenoiserDef>& denoisers() {
  static const std::vector<DenoiserDef> table = {
      {"PixArtTransformer2DModel", "PixArt's denoiser (diffusers)", read_pixart, build_pixart},
      {"HunyuanDiT2DModel", "HunyuanDiT's denoiser (diffusers)", read_hunyuan_dit,
       build_hunyuan_dit},
      {"SanaTransformer2DModel", "Sana's denoiser, with linear attention (diffusers)", read_sana,
       build_sana},
      {"FluxTransformer2DModel", "FLUX.1's denoiser (diffusers)", read_flux, build_flux},
      {"SD3Transformer2DModel", "Stable Diffusion 3's denoiser (diffusers)", read_sd3, build_sd3},
      {"WanTransformer3DModel", "Wan's denoiser of videos (diffusers)", read_wan, build_wan},
      {"CogVideoXTransformer3DModel", "CogVideoX's denoiser of videos (diffusers)", read_cogvideox,
       build_cogvideox},
      {"HunyuanVideoTransformer3DModel", "HunyuanVideo's denoiser of videos (diffusers)",
       read_hunyuan_video, build_hunyuan_video}};
  return table;
}

const DenoiserDef* find_denoiser(std::string_view class_name) {
  const auto found =
      std::find_if(denoisers().begin(), denoisers().end(),
                   [&](const DenoiserDef& def) { return def.class_name == class_name; });
  return found == denoisers().end() ? nullptr : &*found;
}

}  // namespace tilecast
