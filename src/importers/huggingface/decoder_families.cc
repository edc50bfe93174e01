// The table of decoder families. A family that combines known parts is one row: its traits, and the
// fields that only it has.

#include <fmt/format.h>

#include "importers/huggingface/decoder_reading.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Bias = DecoderTraits::BiasField;
using Gate = DecoderTraits::OutputGate;
using Norm = DecoderTraits::Norm;
using QkNorm = DecoderTraits::QkNorm;

// Norms with weight and bias, an MLP of two layers, biases everywhere.
constexpr DecoderTraits kGpt = {.norm = Norm::kLayer,
                                .qkv_bias = true,
                                .out_bias = true,
                                .mlp_bias = true,
                                .gated_mlp = false,
                                .ffn_per_hidden = 4,
                                .default_activation = "gelu_new"};

constexpr DecoderTraits gpt(void (*change)(DecoderTraits&)) {
  DecoderTraits traits = kGpt;
  change(traits);
  return traits;
}

constexpr DecoderTraits kQwen2 = {.bias_field = Bias::kNone, .qkv_bias = true};
constexpr DecoderTraits kOlmo2 = {.qk_norm = QkNorm::kAllHeads,
                                  .pre_norms = false,
                                  .post_norms = true,
                                  .window_pattern = 4,
                                  .wide_norm_weight = true};
constexpr DecoderTraits kGemma2 = {.post_norms = true,
                                   .scaled_embedding = true,
                                   .tied_embeddings = true,
                                   .window_pattern = 2,
                                   .wide_norm_weight = true};
constexpr DecoderTraits kGemma3 = {.qk_norm = QkNorm::kHead,
                                   .post_norms = true,
                                   .scaled_embedding = true,
                                   .tied_embeddings = true,
                                   .wide_norm_weight = true};
constexpr DecoderTraits kGemma4 = [] {
  DecoderTraits traits = kGemma3;
  traits.fp32_routing = true;
  return traits;
}();
constexpr DecoderTraits kCohere = {.norm = Norm::kLayer,
                                   .norm_bias = false,
                                   .parallel_attention = true,
                                   .tied_embeddings = true,
                                   .window_pattern = 4,
                                   .scaled_logits = true};
constexpr DecoderTraits kDeltaNets = {
    .qk_norm = QkNorm::kHead, .output_gate = Gate::kInQuery, .wide_norm_weight = true};
constexpr DecoderTraits kSinks = {
    .scaled_embedding = true, .sinks = true, .window_pattern = 4, .scaled_logits = true};

constexpr DecoderTraits kFp32Routing = {.fp32_routing = true, .fp32_router = true};

constexpr DecoderFamily kDecoderFamilies[] = {
    {"llama", "Llama", "Llama 1, 2, 3"},
    {"llama4_text",
     "Llama4",
     "Llama 4, text part",
     llama4,
     {.softmax_fp32 = false, .dense_experts = true}},
    {"mistral", "Mistral", "Mistral", nullptr, {.window_pattern = 1}},
    {"ministral3", "Ministral3", "Ministral 3", nullptr, {.window_pattern = 1}},
    {"mixtral", "Mixtral", "Mixtral", mixtral, {.window_pattern = 1, .fp32_routing = true}},
    {"qwen2", "Qwen2", "Qwen2 and 2.5", nullptr, kQwen2},
    {"qwen2_vl_text", "", "Qwen2-VL, text part", nullptr, kQwen2},
    {"qwen2_5_vl_text", "", "Qwen2.5-VL, text part", nullptr, kQwen2},
    {"qwen2_moe", "Qwen2Moe", "Qwen2 with experts", qwen2_moe, {.bias_field = Bias::kNone}},
    {"qwen3", "Qwen3", "Qwen3", nullptr, {.qk_norm = QkNorm::kHead}},
    {"qwen3_moe", "Qwen3Moe", "Qwen3 with experts", qwen3_moe, {.qk_norm = QkNorm::kHead}},
    {"qwen3_vl_text", "", "Qwen3-VL, text part", nullptr, {.qk_norm = QkNorm::kHead}},
    {"qwen3_vl_moe_text",
     "",
     "Qwen3-VL with experts, text part",
     qwen3_moe,
     {.qk_norm = QkNorm::kHead}},
    {"qwen3_next", "Qwen3Next", "Qwen3-Next: gated delta nets and attention", qwen3_next,
     kDeltaNets},
    {"qwen3_5_text", "", "Qwen3.5, text part: gated delta nets and attention", qwen3_5, kDeltaNets},
    {"qwen3_5_moe_text", "", "Qwen3.5 with experts, text part", qwen3_5, kDeltaNets},
    {"mimo", "MiMo", "MiMo: a Qwen2", nullptr, kQwen2},
    {"mimo_v2_flash",
     "MiMoV2Flash",
     "MiMo-V2-Flash",
     mimo_v2,
     {.sinks = true, .softmax_fp32 = false, .fp32_routing = true, .fp32_router = true}},
    {"smollm3", "SmolLM3", "SmolLM3"},
    {"seed_oss", "SeedOss", "Seed-OSS", seed_oss, {.bias_field = Bias::kQkv, .qkv_bias = true}},
    {"helium", "Helium", "Helium", nullptr, {.wide_norm_weight = true}},
    {"arcee", "Arcee", "Arcee", nullptr, {.gated_mlp = false, .default_activation = "relu2"}},
    {"granite", "Granite", "Granite", nullptr, {.scaled_embedding = true, .scaled_logits = true}},
    {"granitemoe",
     "GraniteMoe",
     "Granite with experts",
     mixtral,
     {.scaled_embedding = true, .scaled_logits = true}},
    {"granitemoeshared",
     "GraniteMoeShared",
     "Granite with shared experts",
     mixtral,
     {.scaled_embedding = true, .scaled_logits = true}},
    {"granite_swa", "GraniteSWA", "Granite with sliding windows", nullptr, kSinks},
    {"granitemoe_swa", "GraniteMoeSWA", "Granite with experts and sliding windows", mixtral,
     kSinks},
    {"granitemoehybrid",
     "GraniteMoeHybrid",
     "Granite 4: Mamba-2 and attention",
     granite_hybrid,
     {.scaled_embedding = true, .scaled_logits = true}},
    {"bamba", "Bamba", "Bamba: Mamba-2 and attention", bamba},
    {"mamba2", "Mamba2", "Mamba-2", mamba2, {.rotary = false}},
    {"nemotron_h",
     "NemotronH",
     "Nemotron-H and Nemotron 3: Mamba-2, attention, MLPs, experts",
     nemotron_h,
     {.gated_mlp = false,
      .rotary = false,
      .default_activation = "relu2",
      .attention_part = "mixer",
      .ffn_part = "mixer",
      .wide_norm_weight = true}},
    {"nemotron-nas", "DeciLM", "Llama-Nemotron: layers by architecture search", nemotron_nas},
    {"nemotron",
     "Nemotron",
     "Nemotron and Minitron",
     nullptr,
     {.norm = Norm::kLayer, .gated_mlp = false, .default_activation = "relu2"}},
    {"gemma",
     "Gemma",
     "Gemma",
     nullptr,
     {.scaled_embedding = true,
      .tied_embeddings = true,
      .default_activation = "gelu_pytorch_tanh",
      .wide_norm_weight = true}},
    {"gemma2", "Gemma2", "Gemma 2", softcaps, kGemma2},
    {"gemma3_text", "Gemma3", "Gemma 3, text part", gemma3, kGemma3},
    {"gemma4_text", "Gemma4", "Gemma 4, text part", gemma4, kGemma4},
    {"vaultgemma",
     "VaultGemma",
     "VaultGemma",
     softcaps,
     {.scaled_embedding = true,
      .tied_embeddings = true,
      .window_pattern = 2,
      .wide_norm_weight = true}},
    {"cohere", "Cohere", "Command R", cohere, kCohere},
    {"cohere2", "Cohere2", "Command R7B and A", cohere, kCohere},
    {"cohere2_moe", "Cohere2Moe", "Command with experts", cohere, kCohere},
    {"phi", "Phi", "Phi-1 and Phi-2", phi, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.head_bias = t.parallel_attention = t.splits_rotated = t.joins_rotated = true;
     })},
    {"phi3",
     "Phi3",
     "Phi-3 and Phi-4",
     nullptr,
     {.fused_qkv = true, .fused_gate = true, .window_pattern = 1, .joins_rotated = true}},
    {"phimoe",
     "Phimoe",
     "Phi-3.5 with experts",
     mixtral,
     {.norm = Norm::kLayer, .window_pattern = 1}},
    {"gpt_oss",
     "GptOss",
     "gpt-oss",
     gpt_oss,
     {.qkv_bias = true,
      .out_bias = true,
      .sinks = true,
      .window_pattern = 2,
      .wide_norm_weight = true,
      .softmax_fp32 = false}},
    {"gpt_neox", "GPTNeoX", "GPT-NeoX and Pythia", gpt_neox, gpt([](DecoderTraits& t) {
       t.parallel_attention = t.parallel_norm = t.fused_qkv = true;
       t.default_activation = "gelu";
     })},
    {"gptj", "GPTJ", "GPT-J", nullptr, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.qkv_bias = t.out_bias = false;
       t.parallel_attention = t.head_bias = true;
       t.softmax_fp32 = false;
       t.fp32_scores = t.splits_rotated = true;
     })},
    {"codegen", "CodeGen", "CodeGen", nullptr, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.qkv_bias = t.out_bias = false;
       t.parallel_attention = t.head_bias = t.fused_qkv = true;
       t.softmax_fp32 = false;
       t.fp32_scores = t.splits_rotated = t.copies_parts = true;
     })},
    {"gpt_neo", "GPTNeo", "GPT-Neo", gpt_neo, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.qkv_bias = t.rotary = false;
       t.learned_positions = t.tied_embeddings = true;
       t.softmax_fp32 = false;
       t.fp32_scores = t.holds_fp32 = t.returns_weights = true;
     })},
    {"gpt_bigcode", "GPTBigCode", "StarCoder", gpt_bigcode, gpt([](DecoderTraits& t) {
       t.rotary = false;
       t.learned_positions = t.tied_embeddings = t.fused_qkv = true;
     })},
    {"starcoder2", "Starcoder2", "StarCoder2", starcoder2, gpt([](DecoderTraits& t) {
       t.tied_embeddings = true;
       t.window_pattern = 1;
     })},
    {"stablelm",
     "StableLm",
     "StableLM",
     stablelm,
     {.norm = Norm::kLayer,
      .bias_field = Bias::kNone,
      .joins_rotated = true,
      .splits_rotated = true}},
    {"persimmon", "Persimmon", "Persimmon", persimmon, gpt([](DecoderTraits& t) {
       t.qk_norm = QkNorm::kHeadLayerNorm;
       t.fused_qkv = t.splits_rotated = t.joins_rotated = true;
       t.default_activation = "relu2";
     })},
    {"bloom", "Bloom", "BLOOM", nullptr, gpt([](DecoderTraits& t) {
       t.rotary = false;
       t.fused_qkv = t.embedding_norm = t.tied_embeddings = true;
       t.default_activation = "gelu";
     })},
    {"mpt",
     "Mpt",
     "MPT",
     mpt,
     {.norm = Norm::kLayer,
      .norm_bias = false,
      .gated_mlp = false,
      .fused_qkv = true,
      .rotary = false,
      .tied_embeddings = true,
      .default_activation = "gelu",
      .returns_weights = true}},
    {"biogpt", "BioGpt", "BioGPT", nullptr, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.rotary = false;
       t.learned_positions = t.scaled_embedding = t.tied_embeddings = true;
       t.position_offset = 2;
       t.default_activation = "gelu";
       t.softmax_fp32 = false;
     })},
    {"xglm", "XGLM", "XGLM", nullptr, gpt([](DecoderTraits& t) {
       t.bias_field = Bias::kNone;
       t.rotary = false;
       t.scaled_embedding = t.tied_embeddings = true;
       t.default_activation = "gelu";
       t.softmax_fp32 = false;
       t.clamps_scores = true;
     })},
    {"jais2", "Jais2", "Jais 2", nullptr,
     gpt([](DecoderTraits& t) { t.default_activation = "relu2"; })},
    {"falcon", "Falcon", "Falcon", falcon, gpt([](DecoderTraits& t) {
       t.fused_qkv = t.tied_embeddings = t.parallel_attention = true;
       t.default_activation = "gelu";
       t.default_positions = 2048;  // FalconConfig of transformers; falcon-7b's config has no field
       t.softmax_fp32 = false;
       t.returns_weights = t.masks_in_call = t.equal_heads = true;
     })},
    {"olmo", "Olmo", "OLMo", nullptr, {.norm = Norm::kLayer, .norm_weight = false}},
    {"olmo2", "Olmo2", "OLMo 2", nullptr, kOlmo2},
    {"olmo3", "Olmo3", "OLMo 3", nullptr, kOlmo2},
    {"olmoe", "Olmoe", "OLMoE", mixtral, {.qk_norm = QkNorm::kAllHeads}},
    {"flex_olmo", "FlexOlmo", "FlexOlmo", mixtral, kOlmo2},
    {"exaone4",
     "Exaone4",
     "EXAONE 4",
     exaone4,
     {.qk_norm = QkNorm::kHead, .pre_norms = false, .post_norms = true}},
    {"exaone_moe",
     "ExaoneMoe",
     "EXAONE with experts",
     moe,
     {.qk_norm = QkNorm::kHead, .window_pattern = 4, .fp32_routing = true, .fp32_router = true}},
    {"ernie4_5", "Ernie4_5", "ERNIE 4.5", use_bias, {.tied_embeddings = true}},
    {"ernie4_5_moe",
     "Ernie4_5_Moe",
     "ERNIE 4.5 with experts",
     balanced_moe,
     {.tied_embeddings = true, .fp32_router = true}},
    {"nanochat",
     "NanoChat",
     "nanochat",
     softcaps,
     {.norm_weight = false,
      .qk_norm = QkNorm::kHeadNoWeight,
      .gated_mlp = false,
      .embedding_norm = true,
      .default_activation = "relu2"}},
    {"afmoe",
     "Afmoe",
     "Trinity (AFMoE)",
     afmoe,
     {.qk_norm = QkNorm::kHead,
      .output_gate = Gate::kProjection,
      .post_norms = true,
      .window_pattern = 4,
      .wide_norm_weight = true,
      .fp32_routing = true}},
    {"hy_v3",
     "HYV3",
     "Hunyuan 3",
     moe,
     {.qk_norm = QkNorm::kHead, .fp32_routing = true, .fp32_router = true}},
    {"solar_open", "SolarOpen", "Solar Open", moe, kFp32Routing},
    {"dots1",
     "Dots1",
     "dots.llm1",
     moe,
     {.qk_norm = QkNorm::kHead, .fp32_routing = true, .fp32_router = true}},
    {"minimax_m2", "MiniMaxM2", "MiniMax M2", minimax_m2, {.fp32_routing = true}},
    {"minimax_m3",
     "MiniMaxM3",
     "MiniMax M3: sparse attention by blocks of keys",
     minimax_m3,
     {.qk_norm = QkNorm::kHead, .wide_norm_weight = true, .fp32_routing = true}},
    {"minimax_m3_vl_text",
     "",
     "MiniMax M3, text part",
     minimax_m3,
     {.qk_norm = QkNorm::kHead, .wide_norm_weight = true, .fp32_routing = true}},
    {"glm",
     "Glm",
     "GLM",
     nullptr,
     {.bias_field = Bias::kQkv, .qkv_bias = true, .fused_gate = true, .joins_rotated = true}},
    {"glm4",
     "Glm4",
     "GLM-4",
     nullptr,
     {.bias_field = Bias::kQkv,
      .qkv_bias = true,
      .post_norms = true,
      .fused_gate = true,
      .joins_rotated = true}},
    {"glm4_moe",
     "Glm4Moe",
     "GLM-4.5 with experts",
     glm4_moe,
     {.bias_field = Bias::kQkv, .fp32_routing = true, .fp32_router = true, .joins_rotated = true}},
    {"glm4_moe_lite", "Glm4MoeLite", "GLM-4.7-Flash", deepseek, kFp32Routing},
    {"glm_moe_dsa", "GlmMoeDsa", "GLM-5: sparse attention", deepseek_sparse, kFp32Routing},
    {"deepseek_v2", "DeepseekV2", "DeepSeek-V2", deepseek, kFp32Routing},
    {"deepseek_v3", "DeepseekV3", "DeepSeek-V3 and R1", deepseek, kFp32Routing},
    {"kimi_k2", "", "Kimi K2: a DeepSeek-V3", deepseek, kFp32Routing},
    {"kimi_linear", "KimiLinear",
     "Kimi Linear and Kimi K3, text part: delta nets and latent attention", kimi_linear},
    {"deepseek_v32", "DeepseekV32", "DeepSeek-V3.2: sparse attention", deepseek_sparse,
     kFp32Routing},
    {"deepseek_v4",
     "DeepseekV4",
     "DeepSeek-V4: compressed sparse attention",
     deepseek_v4,
     {.attention_part = "attn", .ffn_part = "ffn", .wide_norm_weight = true}},
    {"youtu", "Youtu", "Youtu-LLM", read_latent},
    {"step3p5",
     "Step3p5",
     "Step-3.5 and 3.7, text part",
     step3,
     {.qk_norm = QkNorm::kHead, .output_gate = Gate::kPerHead, .wide_norm_weight = true}},
    {"step3p7",
     "Step3p7Flash",
     "Step-3.7, text part",
     step3,
     {.qk_norm = QkNorm::kHead, .output_gate = Gate::kPerHead, .wide_norm_weight = true}},
};

}  // namespace

std::span<const DecoderFamily> decoder_families() { return kDecoderFamilies; }

DecoderConfig read_decoder_config(const JsonObject& json) {
  const std::string type = json.string("model_type");
  for (const DecoderFamily& family : kDecoderFamilies) {
    if (family.model_type != type) continue;
    DecoderConfig config(family.traits);
    read_common(json, config);
    if (family.read != nullptr) family.read(json, config);
    for (const DecoderConfig::Layer& layer : config.layers) {
      // Names the field if the config has no size for its MLPs.
      if (layer.has_ffn && !layer.is_moe && config.ffn_dim_of(layer) == 0)
        config.ffn_dim = json.integer({"intermediate_size"}, 1, kLargestConfigSize);
    }
    return config;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: 'model_type': '{}' is not a known decoder", json.where(), type));
}

}  // namespace tilecast
