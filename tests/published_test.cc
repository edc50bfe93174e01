// Parameters and KV cache of published checkpoints, to 0.1 %. KV cache in bytes a token at 16 bits:
// 2 x layers x KV heads x head size. All parameters were counted again with Transformers 5.23: the
// model with the sizes of the row, on PyTorch's meta device, has exactly as many (DeepSeek-V3
// 14,848 less, the biases of its routers, which are buffers there). `source` says where the sizes
// are from. The numbers of other rows, and that the hub and the cards show the same counts, were
// written down from memory; a look at the hub would settle it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "importers/model.h"
#include "test_support.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

struct PublishedModel {
  const char* name;
  const char* source;
  std::string config;
  int64_t parameters;
  int64_t kv_bytes_per_token;
};

constexpr const char* kConfig = "its config.json";
constexpr const char* kConfigOfVl = "text_config of Qwen3-VL-4B-Instruct's config.json";
constexpr const char* kDefault = "default config of its class in Transformers 5.23";
constexpr const char* kMemory = "from memory";

/// The sizes that most decoders have.
std::string decoder(const char* type, int64_t hidden, int64_t layers, int64_t heads,
                    int64_t kv_heads, int64_t ffn, int64_t vocab, const char* more = "") {
  return fmt::format(R"({{"model_type": "{}", "hidden_size": {}, "num_hidden_layers": {},
    "num_attention_heads": {}, "num_key_value_heads": {}, "intermediate_size": {},
    "vocab_size": {}, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6{}}})",
                     type, hidden, layers, heads, kv_heads, ffn, vocab, more);
}

constexpr const char* kTied = R"(, "tie_word_embeddings": true)";
constexpr const char* kHead128 = R"(, "head_dim": 128)";
constexpr const char* kTied128 = R"(, "tie_word_embeddings": true, "head_dim": 128)";
constexpr const char* kGemma256 = R"(, "head_dim": 256, "sliding_window": 4096)";
constexpr const char* kGemma128 = R"(, "head_dim": 128, "sliding_window": 4096)";

std::string gpt2(int64_t hidden, int64_t layers, int64_t heads) {
  return fmt::format(R"({{"model_type": "gpt2", "n_embd": {}, "n_layer": {}, "n_head": {},
    "n_positions": 1024, "vocab_size": 50257}})",
                     hidden, layers, heads);
}

std::string opt(int64_t hidden, int64_t layers, int64_t heads) {
  return fmt::format(R"({{"model_type": "opt", "hidden_size": {0}, "num_hidden_layers": {1},
    "num_attention_heads": {2}, "ffn_dim": {3}, "max_position_embeddings": 2048,
    "vocab_size": 50272, "word_embed_proj_dim": {0}, "activation_function": "relu"}})",
                     hidden, layers, heads, 4 * hidden);
}

std::string experts(const char* count, int64_t number, int64_t top_k, const char* more = "") {
  return fmt::format(R"(, "{}": {}, "num_experts_per_tok": {}{})", count, number, top_k, more);
}

std::vector<PublishedModel> published() {
  return {
      {"Llama-2-7b", kDefault, decoder("llama", 4096, 32, 32, 32, 11008, 32000), 6'738'415'616,
       524'288},
      {"Llama-2-13b", kMemory, decoder("llama", 5120, 40, 40, 40, 13824, 32000), 13'015'864'320,
       819'200},
      {"Llama-2-70b", kMemory, decoder("llama", 8192, 80, 64, 8, 28672, 32000), 68'976'648'192,
       327'680},
      {"Llama-3.1-8B", kMemory, decoder("llama", 4096, 32, 32, 8, 14336, 128256), 8'030'261'248,
       131'072},
      {"Llama-3.1-70B", kConfig, decoder("llama", 8192, 80, 64, 8, 28672, 128256), 70'553'706'496,
       327'680},
      {"Llama-3.1-405B", kConfig, decoder("llama", 16384, 126, 128, 8, 53248, 128256),
       405'853'388'800, 516'096},
      {"Llama-3.2-1B", kMemory, decoder("llama", 2048, 16, 32, 8, 8192, 128256, kTied),
       1'235'814'400, 32'768},
      {"Llama-3.2-3B", kMemory, decoder("llama", 3072, 28, 24, 8, 8192, 128256, kTied128),
       3'212'749'824, 114'688},
      {"TinyLlama-1.1B", kMemory, decoder("llama", 2048, 22, 32, 4, 5632, 32000), 1'100'048'384,
       22'528},
      {"SmolLM2-135M", kMemory, decoder("llama", 576, 30, 9, 3, 1536, 49152, kTied), 134'515'008,
       23'040},
      {"SmolLM2-1.7B", kMemory, decoder("llama", 2048, 24, 32, 32, 8192, 49152, kTied),
       1'711'376'384, 196'608},
      {"Yi-6B", kMemory, decoder("llama", 4096, 32, 32, 4, 11008, 64000), 6'061'035'520, 65'536},
      {"Yi-34B", kMemory, decoder("llama", 7168, 60, 56, 8, 20480, 64000), 34'388'917'248, 245'760},
      {"Mistral-7B-v0.1", kDefault, decoder("mistral", 4096, 32, 32, 8, 14336, 32000),
       7'241'732'096, 131'072},
      {"Mistral-7B-v0.3", kMemory, decoder("mistral", 4096, 32, 32, 8, 14336, 32768), 7'248'023'552,
       131'072},
      {"Mixtral-8x7B-v0.1", kConfig,
       decoder("mixtral", 4096, 32, 32, 8, 14336, 32000,
               experts("num_local_experts", 8, 2).c_str()),
       46'702'792'704, 131'072},
      {"Qwen2.5-0.5B", kMemory, decoder("qwen2", 896, 24, 14, 2, 4864, 151936, kTied), 494'032'768,
       12'288},
      {"Qwen2.5-1.5B", kMemory, decoder("qwen2", 1536, 28, 12, 2, 8960, 151936, kTied),
       1'543'714'304, 28'672},
      {"Qwen2.5-3B", kMemory, decoder("qwen2", 2048, 36, 16, 2, 11008, 151936, kTied),
       3'085'938'688, 36'864},
      {"Qwen2.5-7B", kMemory, decoder("qwen2", 3584, 28, 28, 4, 18944, 152064), 7'615'616'512,
       57'344},
      {"Qwen2.5-14B", kMemory, decoder("qwen2", 5120, 48, 40, 8, 13824, 152064), 14'770'033'664,
       196'608},
      {"Qwen2.5-32B", kMemory, decoder("qwen2", 5120, 64, 40, 8, 27648, 152064), 32'763'876'352,
       262'144},
      {"Qwen2.5-72B", kMemory, decoder("qwen2", 8192, 80, 64, 8, 29568, 152064), 72'706'203'648,
       327'680},
      {"Qwen3-4B", kConfigOfVl, decoder("qwen3", 2560, 36, 32, 8, 9728, 151936, kTied128),
       4'022'468'096, 147'456},
      {"Qwen3-8B", kConfig, decoder("qwen3", 4096, 36, 32, 8, 12288, 151936, kHead128),
       8'190'735'360, 147'456},
      {"Qwen3-32B", kConfig, decoder("qwen3", 5120, 64, 64, 8, 25600, 151936, kHead128),
       32'762'123'264, 262'144},
      {"Qwen3-30B-A3B", kConfig,
       decoder("qwen3_moe", 2048, 48, 32, 4, 6144, 151936,
               experts("num_experts", 128, 8, R"(, "moe_intermediate_size": 768, "head_dim": 128)")
                   .c_str()),
       30'532'122'624, 98'304},
      {"Qwen3-1.7B", kConfig, decoder("qwen3", 2048, 28, 16, 8, 6144, 151936, kTied128),
       1'720'574'976, 114'688},
      {"Qwen3-235B-A22B", kConfig,
       decoder("qwen3_moe", 4096, 94, 64, 4, 12288, 151936,
               experts("num_experts", 128, 8, R"(, "moe_intermediate_size": 1536, "head_dim": 128)")
                   .c_str()),
       235'093'634'560, 192'512},
      {"Mixtral-8x22B-v0.1", kConfig,
       decoder("mixtral", 6144, 56, 48, 8, 16384, 32000,
               experts("num_local_experts", 8, 2).c_str()),
       140'620'634'112, 229'376},
      {"gemma-2-2b", kDefault, decoder("gemma2", 2304, 26, 8, 4, 9216, 256000, kGemma256),
       2'614'341'888, 106'496},
      {"gemma-2-9b", kMemory, decoder("gemma2", 3584, 42, 16, 8, 14336, 256000, kGemma256),
       9'241'705'984, 344'064},
      {"gemma-2-27b", kMemory, decoder("gemma2", 4608, 46, 32, 16, 36864, 256000, kGemma128),
       27'227'128'320, 376'832},
      {"Phi-3-mini-4k", kDefault, decoder("phi3", 3072, 32, 32, 32, 8192, 32064), 3'821'079'552,
       393'216},
      {"phi-4", kMemory, decoder("phi3", 5120, 40, 40, 10, 17920, 100352), 14'659'507'200, 204'800},
      {"gpt-oss-20b", kConfig,
       decoder("gpt_oss", 2880, 24, 64, 8, 2880, 201088,
               experts("num_local_experts", 32, 4, R"(, "head_dim": 64, "sliding_window": 128)")
                   .c_str()),
       20'914'757'184, 49'152},
      {"gpt-oss-120b", kDefault,
       decoder("gpt_oss", 2880, 36, 64, 8, 2880, 201088,
               experts("num_local_experts", 128, 4, R"(, "head_dim": 64, "sliding_window": 128)")
                   .c_str()),
       116'829'156'672, 73'728},
      {"DeepSeek-V3", kConfig,
       decoder("deepseek_v3", 7168, 61, 128, 128, 18432, 129280,
               experts("n_routed_experts", 256, 8,
                       R"(, "moe_intermediate_size": 2048, "n_shared_experts": 1,
                         "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
                         "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128)")
                   .c_str()),
       671'026'419'200, 70'272},
      {"falcon-7b", kDefault,
       R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
           "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true,
           "parallel_attn": true, "bias": false})",
       6'921'720'704, 8'192},
      {"gpt2", kDefault, gpt2(768, 12, 12), 124'439'808, 36'864},
      {"gpt2-medium", kMemory, gpt2(1024, 24, 16), 354'823'168, 98'304},
      {"gpt2-large", kMemory, gpt2(1280, 36, 20), 774'030'080, 184'320},
      {"gpt2-xl", kMemory, gpt2(1600, 48, 25), 1'557'611'200, 307'200},
      {"opt-125m", kDefault, opt(768, 12, 12), 125'239'296, 0},
      {"opt-1.3b", kMemory, opt(2048, 24, 32), 1'315'758'080, 0},
      {"opt-6.7b", kMemory, opt(4096, 32, 32), 6'658'473'984, 0}};
}

TEST(PublishedCheckpoints, HaveTheParametersAndCachesOfTheirCards) {
  constexpr double kTolerance = 1e-3;
  for (const PublishedModel& row : published()) {
    const Model model = import_model(row.config, "config.json");
    const auto parameters = static_cast<double>(model.build({.seq = 1}).parameter_count());
    const auto expected = static_cast<double>(row.parameters);
    EXPECT_NEAR(parameters, expected, kTolerance * expected) << row.name << ": " << row.source;
    if (!model.decoder || row.kv_bytes_per_token == 0) continue;
    constexpr int64_t kBytes = 2;
    int64_t kv_bytes = 0;
    for (const Decoder::Cache& cache : model.decoder->caches)
      kv_bytes += kBytes * cache.layers * cache.dim;
    EXPECT_EQ(kv_bytes, row.kv_bytes_per_token) << row.name;
  }
}

TEST(PublishedCheckpoints, BundledModelsAreThem) {
  // Some of the bundled models, by the name that they have above.
  const std::map<std::string, std::string> published_name = {
      {"gpt2", "gpt2"},
      {"gpt2_med", "gpt2-medium"},
      {"llama-2-7b", "Llama-2-7b"},
      {"llama-2-13b", "Llama-2-13b"},
      {"llama-2-70b", "Llama-2-70b"},
      {"llama-3-70b", "Llama-3.1-70B"},
      {"llama-3.1-70b", "Llama-3.1-70B"},
      {"llama-3.1-405b", "Llama-3.1-405B"},
      {"mixtral-8x7b", "Mixtral-8x7B-v0.1"},
      {"mixtral-8x22b", "Mixtral-8x22B-v0.1"},
      {"qwen2.5-7b", "Qwen2.5-7B"},
      {"qwen2.5-32b", "Qwen2.5-32B"},
      {"qwen2.5-72b", "Qwen2.5-72B"},
      {"qwen3-8b", "Qwen3-8B"},
      {"qwen3-235b-a22b", "Qwen3-235B-A22B"},
      {"deepseek-r1", "DeepSeek-V3"}};
  std::map<std::string, int64_t> parameters;
  for (const PublishedModel& row : published()) parameters[row.name] = row.parameters;
  size_t found = 0;
  for (const ModelEntry& model : model_catalog()) {
    const auto name = published_name.find(model.name);
    if (name == published_name.end()) continue;
    ++found;
    ASSERT_TRUE(parameters.count(name->second)) << name->second;
    EXPECT_NEAR(
        static_cast<double>(model.parameters) / static_cast<double>(parameters.at(name->second)),
        1.0, 1e-4)
        << model.name;
  }
  EXPECT_EQ(found, published_name.size());
}

}  // namespace
}  // namespace tilecast
