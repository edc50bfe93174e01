#pragma once

// Parts of a config that several decoder families share.

#include <string>
#include <vector>

#include "importers/huggingface/decoder.h"

namespace tilecast {

inline constexpr int64_t kMaxLayers = 100000;

/// The fields that most families have. Where a family has another name for one, the config is read
/// by the first name that it has.
void read_common(const JsonObject& c, DecoderConfig& config);

/// Which layers have a sliding window: `layer_types` lists them, else all but every `pattern`-th;
/// 0: only where they are listed.
void read_windows(const JsonObject& c, DecoderConfig& config, const std::string& key,
                  int64_t pattern);

/// The words of a list with one entry for each layer; empty if the config has no such list. Throws
/// Error{kInput} that names the field if their number differs or one is not in `known`.
std::vector<std::string> layer_words(const JsonObject& c, const DecoderConfig& config,
                                     const std::string& key, const std::vector<std::string>& known);

/// Layers of experts: their number by the first of `count_keys`, their size by `inner_key`; which
/// layers have them.
void read_experts(const JsonObject& c, DecoderConfig& config,
                  const std::vector<std::string>& count_keys, const std::string& inner_key);
/// The same with the names that most families use.
void read_experts(const JsonObject& c, DecoderConfig& config);
/// Shared experts, of the size of one routed expert each.
void read_shared_experts(const JsonObject& c, DecoderConfig& config);

void read_latent(const JsonObject& c, DecoderConfig& config);
void read_indexer(const JsonObject& c, DecoderConfig& config);

// Families whose layers differ in kind (decoder_hybrids.cc).
void qwen3_next(const JsonObject& c, DecoderConfig& config);
void qwen3_5(const JsonObject& c, DecoderConfig& config);
void mamba2(const JsonObject& c, DecoderConfig& config);
void bamba(const JsonObject& c, DecoderConfig& config);
void granite_hybrid(const JsonObject& c, DecoderConfig& config);
void nemotron_h(const JsonObject& c, DecoderConfig& config);
void nemotron_nas(const JsonObject& c, DecoderConfig& config);
void gemma4(const JsonObject& c, DecoderConfig& config);
void step3(const JsonObject& c, DecoderConfig& config);
void kimi_linear(const JsonObject& c, DecoderConfig& config);
void minimax_m3(const JsonObject& c, DecoderConfig& config);
void mimo_v2(const JsonObject& c, DecoderConfig& config);
void deepseek_v4(const JsonObject& c, DecoderConfig& config);

// Families with fields of their own (decoder_variants.cc).
void use_bias(const JsonObject& c, DecoderConfig& config);
void moe(const JsonObject& c, DecoderConfig& config);
void mixtral(const JsonObject& c, DecoderConfig& config);
void qwen2_moe(const JsonObject& c, DecoderConfig& config);
void qwen3_moe(const JsonObject& c, DecoderConfig& config);
void softcaps(const JsonObject& c, DecoderConfig& config);
void gemma3(const JsonObject& c, DecoderConfig& config);
void gpt_oss(const JsonObject& c, DecoderConfig& config);
void glm4_moe(const JsonObject& c, DecoderConfig& config);
void deepseek(const JsonObject& c, DecoderConfig& config);
void deepseek_sparse(const JsonObject& c, DecoderConfig& config);
void minimax_m2(const JsonObject& c, DecoderConfig& config);
void llama4(const JsonObject& c, DecoderConfig& config);
void falcon(const JsonObject& c, DecoderConfig& config);
void gpt_neox(const JsonObject& c, DecoderConfig& config);
void stablelm(const JsonObject& c, DecoderConfig& config);
void phi(const JsonObject& c, DecoderConfig& config);
void persimmon(const JsonObject& c, DecoderConfig& config);
void cohere(const JsonObject& c, DecoderConfig& config);
void gpt_bigcode(const JsonObject& c, DecoderConfig& config);
void gpt_neo(const JsonObject& c, DecoderConfig& config);
void mpt(const JsonObject& c, DecoderConfig& config);
void seed_oss(const JsonObject& c, DecoderConfig& config);
void starcoder2(const JsonObject& c, DecoderConfig& config);
void exaone4(const JsonObject& c, DecoderConfig& config);
void balanced_moe(const JsonObject& c, DecoderConfig& config);
void afmoe(const JsonObject& c, DecoderConfig& config);

}  // namespace tilecast
