#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/embedded.h"
#include "base/file.h"
#include "importers/model.h"
#include "memory/by_purpose.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, BuildsForInferenceAndTraining) {
  const Model model = load_model(GetParam());
  for (const bool training : {false, true}) {
    if (training && model.pipeline) continue;  // forecast in inference only
    for (const int64_t batch : {1, 3}) {
      Graph graph = decompose(model.build({.batch = batch, .seq = 64}), {.training = training});
      EXPECT_GT(graph.parameter_count(), 0);
      if (training) add_backward(graph);
    }
  }
}

TEST_P(EveryModel, IsDividedOverRanks) {
  const Graph modules = load_model(GetParam()).build({.batch = 2, .seq = 64});
  const Graph half = shard(modules, 2);
  int64_t least = modules.parameter_count();
  for (const WeightSplit& split : modules.splits) {
    const Tensor& whole = modules.tensor(split.weight);
    least -= element_count(whole.shape) / 2 * modules.repeat_of(whole.segment);
  }
  EXPECT_GE(half.parameter_count(), least);  // what does not divide evenly is rounded up
  EXPECT_EQ(half.parameter_count() < modules.parameter_count(), !modules.splits.empty());
  const Graph graph = decompose(half, {});
  const OpId all_reduce = require_op("all_reduce");
  const bool sums = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                [&](const Node& node) { return node.op == all_reduce; });
  EXPECT_EQ(sums, !modules.splits.empty());
}

Graph step_of(const Model& model, std::vector<StepRequest::Group> groups) {
  return fuse(model.build({.dtype = DType::kBf16}), {.groups = std::move(groups)});
}

TEST_P(EveryModel, HasTheSameParametersServedAsTrained) {
  const Model model = load_model(GetParam());
  if (!model.decoder) return;
  const int64_t trained = model.build({.seq = 16}).parameter_count();
  EXPECT_EQ(step_of(model, {{2, 8, 0}}).parameter_count(), trained);
  EXPECT_EQ(step_of(model, {{2, 1, 8}}).parameter_count(), trained);
  EXPECT_EQ(step_of(model, {{2, 1, 8}, {1, 8, 0}, {3, 4, 0}, {1, 4, 4}}).parameter_count(),
            trained);
}

/// Work of the step's nodes: nodes of single groups, the rest of the layers, and of the output
/// layer.
struct StepWork {
  int64_t group_flops = 0, group_bytes = 0, group_kernels = 0;
  int64_t rest_flops = 0, rest_bytes = 0, rest_kernels = 0;
  int64_t head_flops = 0, head_bytes = 0;
};

StepWork work_of(const Graph& graph) {
  StepWork work;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& k : kernels) {
        const bool head = node.role == Role::kOutput;
        const bool group = node.role == Role::kGroup;
        (head    ? work.head_flops
         : group ? work.group_flops
                 : work.rest_flops) += k.flops * segment.repeat;
        (head    ? work.head_bytes
         : group ? work.group_bytes
                 : work.rest_bytes) += k.bytes() * segment.repeat;
        if (!head) (group ? work.group_kernels : work.rest_kernels) += segment.repeat;
      }
    }
  }
  return work;
}

TEST_P(EveryModel, AMixedStepIsTheSumOfItsGroups) {
  const Model model = load_model(GetParam());
  if (!model.decoder) return;
  const auto step = [&](std::vector<StepRequest::Group> groups) {
    return step_of(model, std::move(groups));
  };
  const std::vector<StepRequest::Group> groups = {{32, 1, 500}, {2, 96, 0}, {1, 64, 128}};
  const Graph mixed = step(groups);
  const StepWork work = work_of(mixed);
  int64_t flops = 0, bytes = 0, kernels = 0;
  for (const StepRequest::Group& g : groups) {
    const StepWork alone = work_of(step({g}));
    flops += alone.group_flops;
    bytes += alone.group_bytes;
    kernels += alone.group_kernels;
  }
  EXPECT_EQ(work.group_flops, flops);
  EXPECT_EQ(work.group_bytes, bytes);
  EXPECT_EQ(work.group_kernels, kernels);
  // 32 + 2 x 96 + 64 tokens, whoever they belong to; logits of 35 sequences.
  const Graph plain = step({{1, 288, 1}});
  EXPECT_EQ(work.rest_flops, work_of(plain).rest_flops);
  EXPECT_EQ(work.rest_bytes, work_of(plain).rest_bytes);
  EXPECT_EQ(work.rest_kernels, work_of(plain).rest_kernels);
  EXPECT_EQ(work.head_flops, work_of(step({{35, 1, 1}})).head_flops);

  // Two groups write into one buffer, which is there before the first of them.
  const Graph split = step({{34, 2, 1}, {1, 2, 1}});
  const MemoryByPurpose one = memory_by_purpose(step({{35, 2, 1}})), two = memory_by_purpose(split);
  EXPECT_EQ(one.weights_bytes, two.weights_bytes);
  EXPECT_EQ(one.cache_bytes, two.cache_bytes);
  int64_t buffer = 0;
  for (const Tensor& t : split.tensors) {
    if (t.name.ends_with(".outputs")) buffer = std::max(buffer, tensor_bytes(t));
  }
  EXPECT_GT(buffer, 0);
  EXPECT_GE(two.activations_bytes, one.activations_bytes);
  // The buffer, and queries, which live until the last group has read them.
  EXPECT_LE(two.activations_bytes, one.activations_bytes + 3 * buffer);
  // Every tensor that a node reads is made by a node before it, or given.
  std::vector<bool> made(mixed.tensors.size());
  for (size_t t = 0; t < made.size(); ++t)
    made[t] = mixed.tensors[t].kind != TensorKind::kActivation;
  for (const Node& node : mixed.nodes) {
    for (const TensorId id : node.inputs) EXPECT_TRUE(made[static_cast<size_t>(id)]) << node.name;
    for (const TensorId id : node.outputs) made[static_cast<size_t>(id)] = true;
  }
}

INSTANTIATE_TEST_SUITE_P(Bundled, EveryModel, testing::ValuesIn(bundled_models()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

struct PublishedCount {
  const char* model;
  double parameters;
  const char* source;
};

TEST(Parameters, AgreeWithPublishedCounts) {
  const PublishedCount rows[] = {
      {"gpt2_large", 774030080, "sum over the checkpoint openai-community/gpt2-large"},
      {"bert-base", 109514298, "sum over bert-base-uncased with its language head, tied"},
      {"opt_13", 1315758080, "sum over facebook/opt-1.3b"},
      {"llama-2-7b", 6738415616, "Touvron et al. 2023, 6.74 B"},
      {"llama-3-8b", 8030261248, "Llama 3 model card, 8.03 B"},
      {"mistral-7b", 7248023552, "Mistral-7B-v0.3 model card, 7.25 B with 32768 words"},
      {"qwen2-7b", 7615616512, "Qwen2-7B model card, 7.62 B"},
      {"t5-large", 737668096, "sum over google-t5/t5-large"},
  };
  for (const PublishedCount& row : rows) {
    const Graph graph = load_model(row.model).build({.batch = 1, .seq = 8});
    // 0.15 %: buffers, unused pooler weights and vocabulary padding differ between releases.
    EXPECT_NEAR(static_cast<double>(graph.parameter_count()), row.parameters,
                1.5e-3 * row.parameters)
        << row.model << ": " << row.source;
  }
}

/// A config of GPT-2 with some fields set otherwise: `changes` are members of a JSON object.
std::string config(const std::string& changes) {
  Json json = {{"model_type", "gpt2"}, {"n_embd", 768},      {"n_head", 12},
               {"n_layer", 2},         {"n_positions", 128}, {"vocab_size", 1000}};
  json.update(Json::parse("{" + changes + "}"));
  return json.dump();
}

TEST(BadConfig, IsRefusedWithTheFieldNamed) {
  EXPECT_ERROR(import_model("{}", "c.json"), kInput, "c.json: 'model_type': is missing");
  EXPECT_ERROR(import_model(R"({"model_type": "gpt3"})", "c.json"), kUnsupported,
               "unknown family 'gpt3'; did you mean 'gpt2'");
  EXPECT_ERROR(import_model(config(R"("n_head": 7)"), "c.json"), kInput,
               "7 heads do not divide the hidden size 768");
  EXPECT_ERROR(import_model(config(R"("n_layer": -1)"), "c.json"), kInput, "found -1");
  EXPECT_ERROR(import_model(config(R"("vocab_size": 1e30)"), "c.json"), kInput, "'vocab_size'");
  EXPECT_ERROR(import_model(config(R"("activation_function": "gellu")"), "c.json"), kUnsupported,
               "unknown activation 'gellu'; did you mean 'gelu'");
  EXPECT_ERROR(import_model("{\"a\": ", "c.json"), kInput, "c.json:1:7: not JSON");
  EXPECT_ERROR(import_model("hello", "notes.txt"), kUnsupported, "not a model file");
}

TEST(BadConfig, AbsurdSizesOverflowAsAnErrorNotAWrap) {
  const Model model = import_model(
      config(R"("n_embd": 2147483646, "n_head": 2, "n_positions": 2147483647)"), "c.json");
  EXPECT_ERROR(model.build({.batch = int64_t{1} << 31, .seq = int64_t{1} << 31}), kInput,
               "64 bits");
}

TEST(SwitchTransformers, TrainsWithExpertsInAnyPattern) {
  // Found by fuzzing: a dangling reference in the backward of scatter_rows, seen by ASan.
  const Model model = import_model(
      R"({"model_type": "switch_transformers", "d_ff": 64, "d_kv": 8, "d_model": 32, "num_layers": 7,
          "num_decoder_layers": 9, "num_experts": 3, "num_heads": 4, "num_sparse_decoder_layers": 2,
          "num_sparse_encoder_layers": 3, "vocab_size": 100})",
      "switch.json");
  Graph graph = decompose(model.build({.batch = 2, .seq = 16}), {.training = true});
  add_backward(graph);
  EXPECT_GT(graph.nodes.size(), 100u);
}

std::string llama_with(const std::string& rope) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 100,
    "max_position_embeddings": 4096, )" +
         rope + "}";
}

TEST(RopeScaling, ExtendsThePositionsAsServingSoftwareDoes) {
  const auto positions = [](const std::string& rope) {
    return *import_model(llama_with(rope), "config.json").max_positions;
  };
  EXPECT_EQ(positions(R"("rope_scaling": null)"), 4096);
  EXPECT_EQ(positions(R"("rope_scaling": {"type": "linear", "factor": 4.0})"), 16384);
  EXPECT_EQ(positions(R"("rope_scaling": {"rope_type": "dynamic", "factor": 2})"), 8192);
  EXPECT_EQ(positions(R"("rope_scaling": {"rope_type": "yarn", "factor": 4,
                         "original_max_position_embeddings": 3072})"),
            12288);
  EXPECT_EQ(positions(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})"), 4096);
  EXPECT_EQ(positions(R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e4})"), 4096);
  EXPECT_EQ(positions(R"("rope_parameters": {"full_attention": {"rope_type": "x"}})"), 4096);
  EXPECT_ERROR(positions(R"("rope_scaling": {"type": "yarm", "factor": 4})"), kInput,
               "config.json: rope_scaling: 'type': unknown scaling of rotary positions 'yarm'; did "
               "you mean 'yarn'");
  EXPECT_ERROR(positions(R"("rope_scaling": {"type": "linear", "factor": -1})"), kInput,
               "rope_scaling: 'factor': expected a number above 0");
}

TEST(RopeScaling, OnlyAnAttentionFactorScalesCosinesAndSines) {
  const auto steps = [](const std::string& rope) {
    const Model model = import_model(llama_with(rope), "config.json");
    const Graph graph = decompose(model.build({.batch = 1, .seq = 8}), {.fused_modules = true});
    const OpId rotary = require_op("rotary");
    int64_t count = 0;
    for (const Node& node : graph.nodes) {
      if (node.op == rotary) count += attribute<int64_t>(node, "steps");
    }
    return count;
  };
  const std::string yarn = R"("rope_scaling": {"rope_type": "yarn", "factor": 4)";
  EXPECT_EQ(steps(R"("rope_scaling": {"type": "linear", "factor": 4.0})"), 0);
  EXPECT_GT(steps(yarn + "}"), 0);
  EXPECT_EQ(steps(yarn + R"(, "attention_factor": 1.0})"), 0);
  EXPECT_GT(steps(yarn + R"(, "mscale": 1.0})"), 0);
  EXPECT_EQ(steps(yarn + R"(, "mscale": 1.0, "mscale_all_dim": 1.0})"), 0) << "DeepSeek-V3";
}

TEST(FusedModules, TransformerEngineIsTakenAsItIsWhateverTransformersDoes) {
  // Transformers does not tell SDPA of Falcon's shared key head, and copies DeepSeek's context.
  for (const char* name : {"falcon-7b", "deepseek-v2-lite"}) {
    for (const bool fused : {false, true}) {
      const Graph graph =
          decompose(load_model(name).build({.batch = 1, .seq = 16, .dtype = DType::kBf16}),
                    {.fused_attention = true, .fused_modules = fused});
      bool attention = false, merges = false;
      for (const Node& node : graph.nodes) {
        attention = attention || op_def(node.op).name == "attention";
        merges = merges || (op_def(node.op).name == "copy" && node.name.ends_with("merge"));
      }
      EXPECT_EQ(attention, fused || std::string_view(name) != "falcon-7b") << name;
      EXPECT_EQ(merges, !fused) << name;
    }
  }
}

TEST(TwoLengths, DecodersHaveTheirOwn) {
  const Model bart = import_model(
      R"({"model_type": "bart", "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
          "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 64,
          "decoder_ffn_dim": 64, "vocab_size": 100, "max_position_embeddings": 64})",
      "bart.json");
  const Model t5 = import_model(
      R"({"model_type": "t5", "d_ff": 64, "d_kv": 8, "d_model": 32, "num_layers": 2,
          "num_heads": 4, "vocab_size": 100})",
      "t5.json");
  for (const Model* model : {&bart, &t5}) {
    EXPECT_TRUE(model->has_two_lengths);
    const auto logits = [&](int64_t decoder_seq) {
      const Graph graph = model->build({.batch = 2, .seq = 16, .decoder_seq = decoder_seq});
      return graph.tensor(graph.outputs.front()).shape;
    };
    EXPECT_EQ(logits(0), (Shape{2, 16, 100}));
    EXPECT_EQ(logits(4), (Shape{2, 4, 100}));
    EXPECT_EQ(logits(40), (Shape{2, 40, 100}));
  }
  EXPECT_FALSE(import_model(llama_with(R"("x": 1)"), "config.json").has_two_lengths);
}

TEST(Model, NamesFromFilesAreShownSafely) {
  const TemporaryFolder folder;
  const auto path = folder.path() / ("a\x1b[31m" + std::string(100, 'b'));
  std::filesystem::create_directory(path);
  write_file(path / "config.json", llama_with(R"("x": NaN)"));
  const std::string name = load_model(path.string()).name;
  EXPECT_EQ(name.substr(0, 10), "a\\x1b[31mb");
  EXPECT_EQ(name.size(), 80u);  // what stands for the control character included
  const auto empty = folder.path() / "empty";
  std::filesystem::create_directory(empty);
  EXPECT_ERROR(load_model(empty.string()), kNotFound, "empty: a folder without config.json");
  EXPECT_ERROR(
      import_model(R"({"model_type": "x\u001b[2J)" + std::string(200, 'y') + "\"}", "c.json"),
      kUnsupported, "unknown family 'x\\x1b[2Jyyy");
  EXPECT_ERROR(import_model("graph g\ninput x: fp32[4]\ny = relu(\x1b)\n", "g.tcg"), kInput,
               "found '\\x1b)'");
}

TEST(LoadModel, TakesFilesFoldersAndNames) {
  const TemporaryFolder folder;
  write_file(folder.path() / "config.json", config(""));
  EXPECT_EQ(load_model(folder.path().string()).family, "gpt2");
  EXPECT_EQ(load_model((folder.path() / "config.json").string()).name, folder.path().filename());
  EXPECT_EQ(load_model("gpt2_large.json").name, "gpt2_large");
  EXPECT_EQ(load_model("LLAMA-3 8B").name, "llama-3-8b");
  EXPECT_ERROR(load_model("gpt2_larg"), kNotFound, "did you mean 'gpt2_large'");
}

TEST(Multimodal, TheTextPartIsReadWithTheFamilysDefaults) {
  // As google/gemma-3-4b-it has it; 3.88 billion parameters without the vision tower.
  const Model gemma = import_model(
      R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
          "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
          "vision_config": {"hidden_size": 1152}})",
      "config.json");
  EXPECT_NEAR(static_cast<double>(gemma.build({.seq = 16}).parameter_count()), 3.88e9, 0.01e9);
  ASSERT_EQ(gemma.decoder->caches.size(), 2u);
  EXPECT_EQ(gemma.decoder->caches[0].window, 1024);
  EXPECT_EQ(gemma.decoder->caches[0].layers, 29);
  EXPECT_EQ(gemma.decoder->caches[1].window, 0);
  EXPECT_EQ(gemma.decoder->caches[1].layers, 5) << "every sixth layer";
  EXPECT_ERROR(import_model(R"({"model_type": "llama4"})", "config.json"), kInput, "text_config");
  // As Qwen/Qwen2.5-VL-7B-Instruct has it: one object for both parts.
  const Model qwen = import_model(
      R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
          "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
          "vocab_size": 152064, "max_position_embeddings": 128000, "vision_config": {}})",
      "config.json");
  EXPECT_EQ(qwen.build({.seq = 16}).parameter_count(), 7615616512);
  EXPECT_EQ(qwen.warnings.size(), 1);
}

}  // namespace
}  // namespace tilecast
