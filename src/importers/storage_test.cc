// Bytes of the weights of quantized checkpoints, by hand.

#include "graph/storage.h"

#include <gtest/gtest.h>

#include "importers/model.h"
#include "passes/passes.h"
#include "passes/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kHidden = 256, kFfn = 512;

Model stored_llama(const std::string& quantization, const std::string& beside = "") {
  std::string config = R"({"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
    "num_hidden_layers": 1, "intermediate_size": 512, "max_position_embeddings": 4096,
    "vocab_size": 1000, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16")";
  if (!quantization.empty()) config += ", \"quantization_config\": " + quantization;
  return import_model(ModelText{config + "}", "config.json", beside});
}

/// Bytes of down_proj [256, 512] with its scales in a step of serving software.
int64_t down_bytes(const Model& model) {
  Graph step =
      fuse(model.build({.dtype = DType::kBf16}),
           {.groups = {{1, 8, 0}}, .scheme_of = scheme_by_name(model.checkpoint.scheme_of)});
  store_weights(step, model.checkpoint.storage);
  int64_t bytes = 0;
  for (const Tensor& tensor : step.tensors) {
    const bool held = tensor.kind == TensorKind::kWeight || tensor.kind == TensorKind::kBuffer;
    if (held && tensor.name.find("down_proj") != std::string::npos) bytes += memory_bytes(tensor);
  }
  return bytes;
}

TEST(Storage, EveryLayoutByteByByte) {
  constexpr int64_t kRows = kHidden, kColumns = kFfn, kWeights = kRows * kColumns;
  const std::string group = R"({"quant_method": "compressed-tensors", "config_groups": {"g":
      {"targets": ["Linear"], "weights": )";
  const std::pair<std::string, int64_t> rows[] = {
      // Weights in 4 bits; a scale in 16 bits and a zero point in 4 for each group.
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64})",
       kWeights / 2 + kWeights / 64 * 20 / 8},
      // The same, and the group of each input.
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128})",
       kWeights / 2 + kWeights / 128 * 20 / 8 + kColumns * 4},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": -1})",
       kWeights + kRows * 3 + kColumns * 4},
      // Blocks of 128 x 128 with an fp32 scale each.
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", kWeights + 2 * 4 * 4},
      {R"({"quant_method": "fp8"})", kWeights + 4},
      {R"({"quant_method": "fp8", "activation_scheme": "static"})", kWeights + 8},
      {R"({"quant_method": "fbgemm_fp8"})", kWeights + kRows * 4},
      {R"({"quant_algo": "FP8"})", kWeights + 8},
      {R"({"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"})", kWeights + kRows * 4},
      {R"({"quant_algo": "NVFP4", "group_size": 16})", kWeights / 2 + kWeights / 16 + 8},
      {R"({"quant_algo": "W4A16_AWQ", "group_size": 128})", kWeights / 2 + kWeights / 128 * 2},
      // Blocks of 64 with an fp32 scale each, and a table of 16 values.
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})",
       kWeights / 2 + kWeights / 64 * 4 + 64},
      // Scales in 8 bits, an fp32 scale for 256 of them, a table of 256 values and their mean.
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_use_double_quant": true})",
       kWeights / 2 + kWeights / 64 + kWeights / 64 / 256 * 4 + 64 + 257 * 4},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", kWeights + kRows * 4},
      {group + R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}})",
       kWeights / 2 + kWeights / 32 * 2},
      {group + R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
                   "symmetric": false, "actorder": "group"}}}})",
       kWeights / 2 + kWeights / 32 * 20 / 8 + kColumns * 4},
      {group + R"({"num_bits": 8, "type": "int", "strategy": "channel"},
                   "input_activations": {"num_bits": 8, "type": "int"}}}})",
       kWeights + kRows * 4},
      {group +
           R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [64, 128]},
                   "input_activations": {"num_bits": 8, "type": "float"}}}})",
       kWeights + 4 * 4 * 4},
      {group + R"({"num_bits": 4, "type": "float", "group_size": 16},
                   "input_activations": {"num_bits": 4, "type": "float"}}}})",
       kWeights / 2 + kWeights / 16 + 8},
      {group + R"({"num_bits": 4, "type": "float", "group_size": 32},
                   "input_activations": {"num_bits": 8, "type": "float"}}}})",
       kWeights / 2 + kWeights / 32}};
  for (const auto& [config, bytes] : rows) {
    const Model model = stored_llama(config);
    EXPECT_EQ(model.checkpoint.problem, "") << config;
    EXPECT_EQ(down_bytes(model), bytes) << config;
  }
}

TEST(Storage, PartialBlocksCountWhole) {
  const WeightStorage s{
      .weight_bits = 8, .block_rows = 128, .block_columns = 128, .block_bits = 32};
  EXPECT_EQ(stored_bytes(s, 576, 7168), 576 * 7168 + 5 * 56 * 4);  // DeepSeek's kv_a_proj_with_mqa
}

TEST(Storage, GptOssHasTheBytesOfItsFiles) {
  // model.safetensors.index.json of openai/gpt-oss-20b: "total_size": 13761264768.
  const Model model = import_model(
      R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
          "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
          "intermediate_size": 2880, "vocab_size": 201088, "max_position_embeddings": 131072,
          "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
          "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4",
          "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
          "model.embed_tokens", "lm_head"]}})",
      "config.json");
  Graph step =
      fuse(model.build({.dtype = DType::kBf16}),
           {.groups = {{1, 8, 0}}, .scheme_of = scheme_by_name(model.checkpoint.scheme_of)});
  store_weights(step, model.checkpoint.storage);
  EXPECT_EQ(weights_bytes(step), 13'761'264'768);
  EXPECT_EQ(model.checkpoint.schemes, std::vector<QuantScheme>{QuantScheme::kFp4Fp8});
}

TEST(Storage, Nvfp4ExpertsInAnFp8Checkpoint) {
  // As the NVFP4 checkpoints of DeepSeek-V4: what ModelOpt's list leaves out stays in FP8.
  const Model model = stored_llama(R"({"quant_method": "fp8", "weight_block_size": [128, 128],
      "quant_algo": "MIXED_PRECISION", "ignore": ["*.self_attn.*"], "quantized_layers": {
      "layers.0.mlp.down_proj": {"quant_algo": "NVFP4", "group_size": 16}}})");
  EXPECT_EQ(model.checkpoint.scheme_of("layers.0.mlp.down_proj"), QuantScheme::kFp4);
  EXPECT_EQ(model.checkpoint.scheme_of("layers.0.self_attn.o_proj"), QuantScheme::kFp8Block);
}

TEST(Storage, TheCacheOfModelOptsOwnFileCounts) {
  const Model model =
      stored_llama(R"({"quant_method": "modelopt", "quant_algo": "FP8"})",
                   R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})");
  EXPECT_EQ(model.checkpoint.kv_dtype, DType::kFp8);
}

TEST(Storage, BadFieldsAreSaid) {
  EXPECT_ERROR(stored_llama(R"({"quant_method": "fp8", "weight_block_size": [128]})"), kInput,
               "'weight_block_size': expected two whole numbers");
  EXPECT_ERROR(stored_llama(R"({"quant_method": "fp8", "weight_block_size": [128, 0]})"), kInput,
               "'weight_block_size': expected two whole numbers");
}

}  // namespace
}  // namespace tilecast
