// Types of checkpoints and families of models, as configs state them.

#include <gtest/gtest.h>

#include <regex>

#include "importers/huggingface/quantization.h"
#include "importers/model.h"
#include "passes/serving.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kSizes =
    R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 512,
       "max_position_embeddings": 4096, "vocab_size": 1000, "rms_norm_eps": 1e-6)";

Model model_of(const std::string& type, const std::string& more, const std::string& beside = "") {
  const std::string text = R"({"model_type": ")" + type + "\", " + kSizes + more + "}";
  return import_model(ModelText{text, "config.json", beside});
}

Model quantized(const std::string& config) {
  return model_of("llama", ", \"quantization_config\": " + config);
}

TEST(Checkpoint, TypesAreReadFromBothFields) {
  EXPECT_EQ(model_of("llama", "").checkpoint.dtype, std::nullopt);
  EXPECT_EQ(model_of("llama", R"(, "torch_dtype": "bfloat16")").checkpoint.dtype, DType::kBf16);
  const Model half = model_of("llama", R"(, "dtype": "float16")");
  EXPECT_EQ(half.checkpoint.dtype, DType::kFp16);
  EXPECT_EQ(half.checkpoint.dtype_field, "dtype");
  EXPECT_NE(model_of("llama", R"(, "torch_dtype": "float64")").checkpoint.problem.find("float64"),
            std::string::npos);
  EXPECT_NE(
      model_of("llama", R"(, "torch_dtype": "\u001b[2J")").checkpoint.problem.find("\\x1b[2J"),
      std::string::npos);
  // Keys are shown too.
  EXPECT_ERROR(
      quantized(R"({"quant_algo": "MIXED_PRECISION", "quantized_layers": {"\u001b[2J": 8}})"),
      kInput, "\\x1b[2J: expected a JSON object");
}

TEST(Checkpoint, EveryWayToSayAScheme) {
  const std::pair<const char*, QuantScheme> rows[] = {
      {R"({"quant_method": "fp8"})", QuantScheme::kFp8},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", QuantScheme::kFp8Block},
      {R"({"quant_method": "awq"})", QuantScheme::kInt4WeightOnly},
      {R"({"quant_method": "gptq", "bits": 8})", QuantScheme::kInt8WeightOnly},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", QuantScheme::kFp4},
      {R"({"quant_algo": "FP8"})", QuantScheme::kFp8},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})",
       QuantScheme::kInt4WeightOnly},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 8, "type": "int"},
           "input_activations": {"num_bits": 8, "type": "int"}}}})",
       QuantScheme::kInt8},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 8, "type": "float"}}}})",
       QuantScheme::kFp8WeightOnly},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": null}}})",
       QuantScheme::kNvfp4WeightOnly},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", QuantScheme::kInt4WeightOnly}};
  for (const auto& [config, scheme] : rows) {
    const Checkpoint c = quantized(config).checkpoint;
    ASSERT_EQ(c.schemes.size(), 1u) << config << c.problem;
    EXPECT_EQ(c.schemes[0], scheme) << config;
    EXPECT_EQ(c.quantization, "quantization_config");
    EXPECT_EQ(c.scheme_of("layers.1.self_attn.qkv_proj"), scheme) << config;
    EXPECT_EQ(c.scheme_of("lm_head"), QuantScheme::kNone) << config;
  }
}

TEST(Checkpoint, ModelOptsFileBesideTheConfigCounts) {
  const Model model = model_of("llama", R"(, "torch_dtype": "bfloat16")",
                               R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo":
      "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"]}})");
  const Checkpoint& c = model.checkpoint;
  EXPECT_EQ(c.quantization, "hf_quant_config.json");
  EXPECT_EQ(c.kv_dtype, DType::kFp8);
  EXPECT_EQ(c.scheme_of("layers.0.mlp.down_proj"), QuantScheme::kNone);
  EXPECT_EQ(c.scheme_of("layers.2.mlp.down_proj"), QuantScheme::kFp4);
}

TEST(Checkpoint, GroupsOfAnotherSizeAreSaid) {
  // As Kimi K2.5 stores its experts.
  const Checkpoint c =
      quantized(
          R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
          "weights": {"num_bits": 4, "type": "int", "group_size": 32}}}})")
          .checkpoint;
  ASSERT_EQ(c.warnings.size(), 1u);
  EXPECT_NE(c.warnings[0].find("groups of 32 weights"), std::string::npos);
  EXPECT_TRUE(
      quantized(R"({"quant_method": "awq", "group_size": 128})").checkpoint.warnings.empty());
}

TEST(Checkpoint, ModulesThatAreLeftOutKeepTheirType) {
  struct Row {
    const char* names;
    const char* module;
    QuantScheme scheme;
  };
  const Row rows[] = {
      {R"(["model.layers.*.self_attn"])", "layers.7.self_attn.q_proj", QuantScheme::kNone},
      {R"(["model.layers.*.self_attn"])", "layers.7.mlp.up_proj", QuantScheme::kFp8},
      {R"(["re:.*self_attn.*"])", "layers.7.self_attn.o_proj", QuantScheme::kNone},
      {R"(["re:.*mlp\\.(gate|up|gate_up|down)_proj.*"])", "layers.0.mlp.down_proj",
       QuantScheme::kNone},
      {R"(["re:.*mlp\\.(gate|up|gate_up|down)_proj.*"])", "layers.0.mlp.experts",
       QuantScheme::kFp8},
      {R"(["gate"])", "layers.0.mlp.gate_proj", QuantScheme::kFp8},
      {R"(["q_proj"])", "layers.0.self_attn.qkv_proj", QuantScheme::kNone},
      {R"(["model.layers.1*"])", "layers.12.mlp.up_proj", QuantScheme::kNone},
      {R"(["model.layers.1.*"])", "layers.12.mlp.up_proj", QuantScheme::kFp8},
      {R"(["language_model.model.layers.1.mlp.shared_experts*"])",
       "layers.1.mlp.shared_experts.gate_up_proj", QuantScheme::kNone},
      {R"(["model.layers.1.mlp.shared_expert"])", "layers.1.mlp.shared_experts.down_proj",
       QuantScheme::kNone},
      {R"(["model.layers.1.block_sparse_moe.experts"])", "layers.1.mlp.experts",
       QuantScheme::kNone},
      {R"(["re:.*layers.[0-1].*"])", "layers.0.mlp.up_proj", QuantScheme::kNone},
      {R"(["re:.*layers.[0-1].*"])", "layers.2.mlp.up_proj", QuantScheme::kFp8},
      {R"(["re:.*mlp.gate$"])", "layers.2.mlp.gate_proj", QuantScheme::kFp8},
      {R"(["re:model\\.layers\\.\\d+\\.mlp\\.*"])", "layers.12.mlp.up_proj", QuantScheme::kNone},
      {R"(["re:^language_model.model.layers.1{1,2}\\..*"])", "layers.11.mlp.up_proj",
       QuantScheme::kNone},
      // From the start, as Python's re.match.
      {R"(["re:mlp.*"])", "layers.1.mlp.up_proj", QuantScheme::kFp8},
      {R"(["self_attn.k_proj", "mtp*"])", "layers.1.self_attn.o_proj", QuantScheme::kFp8},
      {R"(["model.layers.1.self_attn.indexers_proj"])", "layers.1.self_attn.indexer.weights_proj",
       QuantScheme::kNone},
  };
  for (const Row& row : rows) {
    const Model model = quantized(
        std::string(R"({"quant_method": "fp8", "modules_to_not_convert": )") + row.names + "}");
    EXPECT_EQ(model.checkpoint.scheme_of(row.module), row.scheme) << row.names << row.module;
  }
}

TEST(Checkpoint, SeveralSchemesAreHonouredLayerByLayer) {
  const Model model = quantized(
      R"({"quant_algo": "MIXED_PRECISION", "quantized_layers": {
          "model.layers.0.self_attn.o_proj": {"quant_algo": "FP8"},
          "model.layers.1.mlp.gate_proj": {"quant_algo": "W4A16_NVFP4"},
          "model.layers.1.mlp.up_proj": {"quant_algo": "W4A16_NVFP4"},
          "model.layers.1.mlp.down_proj": {"quant_algo": "W4A16_NVFP4"}}})");
  const Checkpoint& c = model.checkpoint;
  EXPECT_EQ(c.schemes,
            (std::vector<QuantScheme>{QuantScheme::kNvfp4WeightOnly, QuantScheme::kFp8}));
  // Layers that differ are not taken for repetitions of one.
  const Graph graph = fuse(model.build({.dtype = DType::kBf16}),
                           {.groups = {{1, 8, 0}}, .scheme_of = scheme_by_name(c.scheme_of)});
  int fp8 = 0, fp4 = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight) continue;
    fp8 += tensor.dtype == DType::kFp8 ? static_cast<int>(graph.repeat_of(tensor.segment)) : 0;
    fp4 += tensor.dtype == DType::kFp4 ? static_cast<int>(graph.repeat_of(tensor.segment)) : 0;
  }
  EXPECT_EQ(fp8, 1);
  EXPECT_EQ(fp4, 2) << "gate and up in one, down";
}

std::string one_group(const std::string& targets, const std::string& more = "") {
  return R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": )" +
         targets + R"(, "weights": {"num_bits": 4, "type": "int", "group_size": 128}}})" + more +
         "}";
}

TEST(Checkpoint, PatternsNameTheModulesOfAScheme) {
  const Model model = quantized(one_group(R"(["re:model.layers.\\d+.mlp.*"])"));
  const Checkpoint& c = model.checkpoint;
  EXPECT_EQ(c.schemes, std::vector<QuantScheme>{QuantScheme::kInt4WeightOnly});
  EXPECT_EQ(c.problem, "");
  EXPECT_EQ(c.scheme_of("layers.1.mlp.down_proj"), QuantScheme::kInt4WeightOnly);
  EXPECT_EQ(c.scheme_of("layers.1.self_attn.o_proj"), QuantScheme::kNone);
  const Model experts = import_model(
      std::string(R"({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
                      "moe_intermediate_size": 64, "quantization_config": )") +
          one_group(R"(["re:.*mlp\\.experts\\.\\d+\\..*"])") + ", " + kSizes + "}",
      "config.json");
  EXPECT_EQ(experts.checkpoint.scheme_of("layers.1.mlp.experts"), QuantScheme::kInt4WeightOnly);
}

TEST(Checkpoint, GemmasExpertsAreNoPartOfTheirMlp) {
  std::string others;
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* part : {"mlp*", "router*", "self_attn*"})
      others += "\"model.language_model.layers." + std::to_string(layer) + "." + part + "\", ";
  }
  const Model model =
      model_of("gemma4_text", R"(, "enable_moe_block": true, "num_experts": 8, "top_k_experts": 2,
          "moe_intermediate_size": 64, "quantization_config": {"quant_method": "modelopt",
          "quant_algo": "NVFP4", "ignore": [)" +
                                  others + R"("lm_head"]})");
  EXPECT_EQ(model.checkpoint.problem, "");
  EXPECT_EQ(model.checkpoint.schemes, std::vector<QuantScheme>{QuantScheme::kFp4});
  EXPECT_EQ(model.checkpoint.scheme_of("layers.1.experts"), QuantScheme::kFp4);
  EXPECT_EQ(model.checkpoint.scheme_of("layers.1.router.proj"), QuantScheme::kNone);
  EXPECT_EQ(model.checkpoint.scheme_of("layers.1.mlp.down_proj"), QuantScheme::kNone);
}

TEST(Checkpoint, WhatIsLeftOutCountsBeforeWhatIsNamed) {
  const Model model =
      quantized(one_group(R"(["re:.*proj$"])", R"(, "ignore": ["re:.*self_attn.*", "lm_head"])"));
  EXPECT_EQ(model.checkpoint.scheme_of("layers.1.mlp.up_proj"), QuantScheme::kInt4WeightOnly);
  EXPECT_EQ(model.checkpoint.scheme_of("layers.1.self_attn.o_proj"), QuantScheme::kNone);
}

TEST(Checkpoint, PatternsMatchAsRegularExpressionsDo) {
  // A text that a name needs is looked for first: what is optional or one of several is none.
  const std::pair<const char*, bool> rows[] = {
      {R"(.*layers\\.1\\.mlp)", true},      {R"(.*layers\\.2\\.mlp)", false},
      {R"(.*\\.mlpx*\\.)", true},           {R"(.*\\.mlpx?\\.up)", true},
      {R"(.*\\.mlpx+\\.up)", false},        {R"(.*\\.ml+p\\.up_proj$)", true},
      {R"(.*\\.mlp\\.upx{0}_proj$)", true}, {R"(.*\\.mlp\\.upx{0,2}_pr{1}oj$)", true},
      {R"(.*\\.mlp\\.u{2}p)", false},       {R"(.*\\.(attn|mlp)\\.up)", true},
      {R"(.*attn|.*up_proj|.*gate)", true}, {R"(model\\.layers\\.[0-1)x]\\.mlp)", true},
      {R"(.*\\.[\\]m]lp\\.)", true},        {R"(.*(x[)]y\\))?\\.mlp)", true},
      {R"(.*mlp\\.(?!gate)up)", true},      {R"(.*mlp\\.(?!up)\\w+)", false},
      {R"(.*\\bmlp\\b.*)", true},           {R"(layers\\.1.mlp.*)", true},
      {R"(mlp\\.up_proj)", false},
  };
  for (const auto& [pattern, matches] : rows) {
    const Model model =
        quantized(R"({"quant_method": "fp8", "ignore": ["re:)" + std::string(pattern) + "\"]}");
    EXPECT_TRUE(model.checkpoint.warnings.empty()) << pattern;
    EXPECT_EQ(model.checkpoint.scheme_of("layers.1.mlp.up_proj"),
              matches ? QuantScheme::kNone : QuantScheme::kFp8)
        << pattern;
  }
}

TEST(Checkpoint, PatternsThatTakeTooLongAreRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs more memory than this limit leaves";
#endif
  const auto find = [](const std::string& pattern, size_t count) {
    std::string names;
    for (size_t i = 0; i < count; ++i)
      names += (i > 0 ? ", \"" : "\"") + pattern + std::to_string(i) + "\"";
    const Model model = quantized(R"({"quant_method": "fp8", "ignore": [)" + names + "]}");
    return model.checkpoint.scheme_of("layers.1.mlp.gate_up_proj");
  };
  const char* const refused =
      "config.json: more than 200,000 steps of comparing modules with the patterns of a "
      "quantization config, the most for 391 KiB of memory; `max-memory` allows more";
  const LimitScope scope({.memory_bytes = 400'000, .seconds = {}});
  EXPECT_ERROR(find("re:.*.*.*[x]", 50), kUnsupported, refused);
  EXPECT_ERROR(find("*.mlp.*x", 1000), kUnsupported, refused);
  EXPECT_EQ(find("*layers.1.*x", 50), QuantScheme::kFp8);
  EXPECT_EQ(find(R"(re:.*layers\\.1\\.x)", 50), QuantScheme::kFp8);
}

TEST(Checkpoint, PatternsThatCannotBeReadAreSaid) {
  for (const char* pattern :
       {"re:(?P<a>x).*", "re:.*\\\\Z", "re:(", "re:a{100}", "re:(?<!a)b", "re:", "re:\\u001b["}) {
    const Model model = quantized(R"({"quant_method": "fp8", "modules_to_not_convert": [")" +
                                  std::string(pattern) + "\"]}");
    ASSERT_EQ(model.checkpoint.warnings.size(), 1u) << pattern;
    EXPECT_NE(model.checkpoint.warnings[0].find("not a supported pattern"), std::string::npos);
    EXPECT_EQ(model.checkpoint.warnings[0].find('\x1b'), std::string::npos);
  }
  // Would take hours where a matcher goes back.
  EXPECT_EQ(
      quantized(R"({"quant_method": "fp8", "ignore": ["re:(.*.*.*.*.*.*)*z"]})").checkpoint.schemes,
      std::vector<QuantScheme>{QuantScheme::kFp8});
}

TEST(Checkpoint, SchemesThatNoLayerHasAreSaid) {
  const Checkpoint none = quantized(one_group(R"(["re:.*vision.*"])")).checkpoint;
  EXPECT_EQ(none.problem,
            "config.json: 'quantization_config': stores weights in int4_wo, but no layer of the "
            "model is among its modules");
  EXPECT_NE(quantized(R"({"quant_method": "mxfp4"})").checkpoint.problem, "") << "has no experts";
  const Checkpoint one = quantized(R"({"quant_algo": "MIXED_PRECISION", "quantized_layers": {
      "model.layers.0.mlp.down_proj": {"quant_algo": "FP8"},
      "model.layers.9.mlp.down_proj": {"quant_algo": "NVFP4"}}})")
                             .checkpoint;
  EXPECT_EQ(one.problem, "");
  ASSERT_EQ(one.warnings.size(), 1u);
  EXPECT_NE(one.warnings[0].find("is stored in fp4"), std::string::npos);
}

TEST(Checkpoint, SchemesOfNamedModulesCountWithoutALanguageModel) {
  const Model bert = import_model(
      std::string(R"({"model_type": "bert", "type_vocab_size": 2, "quantization_config": )") +
          one_group(R"(["re:.*proj$"])") + ", " + kSizes + "}",
      "config.json");
  EXPECT_EQ(bert.checkpoint.schemes, std::vector<QuantScheme>{QuantScheme::kInt4WeightOnly});
}

TEST(Checkpoint, ACacheOfAnotherTypeIsSaid) {
  const auto with = [](const std::string& cache) {
    return quantized(R"({"quant_algo": "FP8", "kv_cache_quant_algo": )" + cache + "}").checkpoint;
  };
  ASSERT_EQ(with("\"NVFP4\"").warnings.size(), 1u);
  EXPECT_NE(with("\"NVFP4\"").warnings[0].find("the checkpoint's KV cache is in 'nvfp4'"),
            std::string::npos);
  EXPECT_EQ(with("\"NVFP4\"").kv_dtype, std::nullopt);
  EXPECT_TRUE(with("null").warnings.empty());
  EXPECT_TRUE(with("\"FP8\"").warnings.empty());
}

TEST(Checkpoint, MixedPrecisionNeedsItsLayers) {
  EXPECT_ERROR(quantized(R"({"quant_algo": "MIXED_PRECISION"})"), kInput,
               "'quantized_layers': is missing");
  const std::string known = quantized(R"({"quant_algo": "FP7"})").checkpoint.problem;
  for (const char* name : {"FP8_PB_WO", "INT4_AWQ", "NVFP4_AWQ", "MIXED_PRECISION"})
    EXPECT_NE(known.find(name), std::string::npos) << known;
}

TEST(Checkpoint, Gemma3CountsItsScaledPositionsAlready) {
  const char* linear = R"(, "head_dim": 64, "sliding_window": 128, "query_pre_attn_scalar": 64,
      "hidden_activation": "gelu_pytorch_tanh", "rope_scaling": {"rope_type": "linear", "factor": 8.0})";
  EXPECT_EQ(model_of("gemma3_text", linear).max_positions, 4096);
  EXPECT_EQ(model_of("llama", linear).max_positions, 8 * 4096);
}

TEST(Checkpoint, AnUnknownSchemeIsAProblemNotAnError) {
  const Model model = quantized(R"({"quant_method": "squeezellm"})");
  EXPECT_NE(model.checkpoint.problem.find("unknown quantization scheme 'squeezellm'"),
            std::string::npos);
  EXPECT_ERROR(quantized(R"({"quant_method": 8})"), kInput, "expected a text");
}

TEST(Families, AnArchitectureDecidesWhereTheTypeIsNew) {
  const Model model = model_of("my_new_type", R"(, "architectures": ["Qwen2ForCausalLM"])");
  EXPECT_EQ(model.family, "qwen2");
  EXPECT_EQ(model.build({.seq = 8}), model_of("qwen2", "").build({.seq = 8}));
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_EQ(model_of("mimo", R"(, "attention_bias": true)").build({.seq = 8}),
            model_of("qwen2", "").build({.seq = 8}));
}

TEST(Families, TheListNamesOuterConfigsToo) {
  for (const std::string name : {"llama4", "gemma3", "qwen3_vl", "qwen3_vl_moe", "kimi_k2"})
    EXPECT_ERROR(model_of(name + "x", R"(, "gates": 3)"), kUnsupported, "'" + name + "'");
  EXPECT_ERROR(model_of("lama4", R"(, "gates": 3)"), kUnsupported,
               "did you mean 'llama4_text', 'llama4'");
}

TEST(Families, DisagreementIsSaid) {
  const Model model = model_of("llama", R"(, "architectures": ["MistralForCausalLM"])");
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_NE(model.warnings[0].find("'mistral'; read as 'llama'"), std::string::npos);
}

TEST(Families, TheFieldsOfALlamaAreReadAsOneWithAWarning) {
  const Model model = model_of("yi2", R"(, "torch_dtype": "bfloat16")");
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_NE(model.warnings[0].find("unknown family 'yi2'"), std::string::npos);
  EXPECT_ERROR(model_of("yi2", R"(, "num_experts": 8)"), kUnsupported, "unknown family 'yi2'");
  EXPECT_ERROR(model_of("yi2", R"(, "architectures": ["Yi2ForCausalLM"], "mlp_scale": 2)"),
               kUnsupported, "architecture 'Yi2', not known either");
}

TEST(Families, TheLanguageModelOfSeveralTowersIsRead) {
  const auto read = [](const std::string& text) {
    return import_model(R"({"model_type": "new_vl", "torch_dtype": "bfloat16", "text_config": )" +
                            text + R"(, "vision_config": {}})",
                        "config.json");
  };
  const std::string sizes(kSizes);
  const Model known = read(R"({"model_type": "qwen3_vl_text", )" + sizes + "}");
  EXPECT_EQ(known.family, "qwen3_vl_text");
  EXPECT_EQ(known.checkpoint.dtype, DType::kBf16);
  ASSERT_EQ(known.warnings.size(), 1u);
  EXPECT_NE(known.warnings[0].find("only the language model"), std::string::npos);
  // A text part of an unknown family was once read as a Llama without a word.
  EXPECT_ERROR(read(R"({"model_type": "gemma9_text", "gates": 3, )" + sizes + "}"), kUnsupported,
               "unknown family 'gemma9_text'");
}

TEST(BundledNames, AgreeWithTheParametersOrCarryANote) {
  const std::regex size("(^|[-_])(\\d+(\\.\\d+)?)b($|-)");
  for (const std::string& name : bundled_models()) {
    const Model model = load_model(name);
    std::smatch found;
    if (!std::regex_search(name, found, size)) continue;
    const double said = std::stod(found[2]) * 1e9;
    const auto parameters = static_cast<double>(model.build({.seq = 1}).parameter_count());
    // Llama 3.2's 1B has 1.24 G.
    EXPECT_TRUE(std::abs(parameters / said - 1) < 0.25 || !model.note.empty())
        << name << " has " << parameters;
  }
  EXPECT_NE(load_model("opt").note, "");
  EXPECT_NE(load_model("gpt3_xl").note, "");
}

}  // namespace
}  // namespace tilecast
