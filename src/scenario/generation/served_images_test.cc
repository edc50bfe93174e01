// Images of prompts: tokens, work and memory of vision towers, by hand.

#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "scenario/internal.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "vision_towers.h"

namespace tilecast {
namespace {

/// A model of the family with a small language model of 1024 columns.
Json config_of(const std::string& type, const Json& vision) {
  return {{"model_type", type},
          {"text_config",
           {{"model_type", "llama"},
            {"hidden_size", 1024},
            {"intermediate_size", 4096},
            {"num_hidden_layers", 4},
            {"num_attention_heads", 16},
            {"num_key_value_heads", 4},
            {"head_dim", 64},
            {"vocab_size", 32000},
            {"max_position_embeddings", 32768}}},
          {"vision_config", vision}};
}

Model import(const std::string& type, const Json& vision) {
  return import_model(config_of(type, vision).dump(), "config.json");
}

/// As published with Gemma 3 4B (siglip-so400m-patch14 at 896 pixels).
const Json kSiglip = {{"hidden_size", 1152},       {"image_size", 896},
                      {"intermediate_size", 4304}, {"num_attention_heads", 16},
                      {"num_hidden_layers", 27},   {"patch_size", 14},
                      {"vision_use_head", false}};
const Json kQwen2_5 = qwen2_5_tower();
const Json kLlama4 = {
    {"hidden_size", 1408},       {"image_size", 336},           {"intermediate_size", 5632},
    {"patch_size", 14},          {"projector_input_dim", 4096}, {"projector_output_dim", 4096},
    {"vision_output_dim", 4096}, {"num_hidden_layers", 34},     {"pixel_shuffle_ratio", 0.5}};

TEST(Images, HaveTheTokensOfTheProcessor) {
  struct Row {
    const char* type;
    Json vision;
    int64_t given, side, tokens;
  };
  const Json pixtral = {{"model_type", "pixtral"}};
  const Row rows[] = {
      // The nearest multiple of 28 pixels; 42 is half way, which Python rounds to the even number.
      {"qwen2_5_vl", kQwen2_5, 1024, 1036, 37 * 37},
      {"qwen2_5_vl", kQwen2_5, 224, 224, 64},
      {"qwen2_5_vl", kQwen2_5, 42, 56, 4},
      {"qwen2_5_vl", kQwen2_5, 1, 28, 1},
      {"qwen3_vl", {{"depth", 27}}, 1000, 992, 31 * 31},
      {"gemma3", kSiglip, 100, 896, 256},
      {"gemma4", {{"patch_size", 16}}, 5000, 768, 256},
      // Tiles of 336 pixels with 144 tokens, at most 4 x 4, and the whole image.
      {"llama4", kLlama4, 336, 336, 144},
      {"llama4", kLlama4, 337, 672, 5 * 144},
      {"llama4", kLlama4, 65536, 1344, 17 * 144},
      {"mistral3", pixtral, 300, 308, 121},
      {"mistral3", pixtral, 9000, 1540, 55 * 55},
      {"kimi_k25", {{"patch_size", 14}}, 300, 308, 121}};
  for (const Row& row : rows) {
    const Model model = import(row.type, row.vision);
    ASSERT_TRUE(model.vision) << row.type;
    const VisionTower::Image image = model.vision->image(row.given);
    EXPECT_EQ(image.side, row.side) << row.type << " " << row.given;
    EXPECT_EQ(image.tokens, row.tokens) << row.type << " " << row.given;
  }
}

/// FLOPs of products and of attention.
std::pair<int64_t, int64_t> work(const Model& model, int64_t side, int64_t images) {
  const Graph graph = decompose(
      model.vision->build({.batch = images, .dtype = DType::kBf16}, model.vision->image(side)),
      {.fused_attention = true});
  std::pair<int64_t, int64_t> flops;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) {
        if (kernel.is<Attention>()) flops.second += kernel.flops * segment.repeat;
        if (kernel.is<Gemm>() && node.name != "vision.rotary_emb")
          flops.first += kernel.flops * segment.repeat;
      }
    }
  }
  return flops;
}

TEST(Images, SiglipHasTheWorkOfItsLayers) {
  const Model model = import("gemma3", kSiglip);
  const int64_t n = 4096, h = 1152, ffn = 4304, layers = 27, images = 3;
  const auto [products, attention] = work(model, 1, images);
  EXPECT_EQ(products, images * (2 * n * 588 * h + layers * (8 * n * h * h + 4 * n * h * ffn) +
                                2 * 256 * h * 1024));
  EXPECT_EQ(attention, images * layers * 4 * n * n * h);
}

TEST(Images, WindowsOfQwenAttendToThemselves) {
  const Model model = import("qwen2_5_vl", kQwen2_5);
  // 72 x 72 patches: 81 windows of 64; the tower has 4 layers without windows.
  const int64_t n = 5184, h = 1280, ffn = 3420, wide = 4 * h;
  const auto [products, attention] = work(model, 1008, 1);
  EXPECT_EQ(products, 2 * n * 1176 * h + 32 * (8 * n * h * h + 6 * n * h * ffn) +
                          2 * n / 4 * wide * (wide + 1024));
  EXPECT_EQ(attention, 28 * 4 * n * 64 * h + 4 * 4 * n * n * h);
  // Windows that the image cuts: 74 x 74 patches as windows of 74, the divisor nearest to 64.
  EXPECT_EQ(work(model, 1024, 1).second, (28 * 74 + 4 * 5476) * 4 * 5476 * h);
}

ModelRef model_of(const Json& config) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << config.dump();
  return load_model_ref((folder.path() / "config.json").string());
}

GenerationForecast forecast_images(const Json& config, const Request& request,
                                   const char* gpu = "H100") {
  return forecast_generation(forecaster(), model_of(config), load_gpu_ref(gpu), request);
}

TEST(Images, AddTheirTokensAndTheTowerToThePrefill) {
  const Json config = config_of("gemma3", kSiglip);
  const Request text = {.kind = RequestKind::kGenerate, .prompt = 300, .output = 16};
  Request with = text, longer = text;
  with.images = 2;
  longer.prompt = 300 + 2 * 256;
  const GenerationForecast f = forecast_images(config, with),
                           plain = forecast_images(config, longer);
  EXPECT_EQ(f.prompt, 300);
  EXPECT_EQ(f.used.prompt, 300);
  EXPECT_EQ(f.vision->prompt_tokens, 512);
  EXPECT_EQ(f.vision->image_side, 896);
  EXPECT_EQ(f.vision->together, 2);
  EXPECT_GT(f.vision->time.value, 0);
  EXPECT_DOUBLE_EQ(f.ttft.value, plain.ttft.value + f.vision->time.value);
  EXPECT_DOUBLE_EQ(f.tpot.value, plain.tpot.value);
  EXPECT_EQ(f.memory.cache_bytes, plain.memory.cache_bytes);
  EXPECT_GT(f.memory.activations_bytes, plain.memory.activations_bytes);
  EXPECT_GT(f.flops, plain.flops);
  // The tower takes its memory without images too.
  EXPECT_EQ(plain.vision->images, 0);
  EXPECT_EQ(plain.memory.weights_bytes, f.memory.weights_bytes);
  EXPECT_EQ(f.parameters, plain.parameters);
  EXPECT_EQ(f.vision->weights_bytes, 2 * f.vision->parameters);
  Json alone = config["text_config"];
  EXPECT_EQ(plain.memory.weights_bytes - forecast_images(alone, longer).memory.weights_bytes,
            f.vision->weights_bytes);
}

TEST(Images, AreEncodedInRunsOfTheLargestStep) {
  Request request = {.kind = RequestKind::kGenerate, .batch = 5, .prompt = 100, .output = 4};
  request.images = 9;
  request.execution.max_num_batched_tokens = 1024;  // 4 images of 256 tokens; one prompt a step
  const GenerationForecast f = forecast_images(config_of("gemma3", kSiglip), request);
  EXPECT_EQ(f.vision->together, 4);
  int64_t runs = 0;
  for (const KernelForecast& k : f.kernels)
    if (k.phase == "vision" && k.name == "vision.patch_embed") runs += k.count;
  EXPECT_EQ(runs, 5 * 3) << "4 + 4 + 1 images of each prompt";
}

TEST(Images, RanksDivideTheTowerIfTheyDivideItsHeads) {
  Request request = {.kind = RequestKind::kGenerate, .prompt = 100, .output = 4};
  request.images = 1;
  request.execution.tp = 4;
  const GenerationForecast four = forecast_images(config_of("gemma3", kSiglip), request);
  EXPECT_LT(four.vision->weights_bytes, four.vision->parameters);
  Json odd = kSiglip;
  odd["num_attention_heads"] = 18;
  EXPECT_EQ(forecast_images(config_of("gemma3", odd), request).vision->weights_bytes,
            2 * four.vision->parameters);
}

TEST(Images, OfAServerDelayItsPrompts) {
  Request request = {.kind = RequestKind::kServe, .prompt = 556, .output = 8};
  request.load.concurrency = 4;
  request.load.requests = 40;
  const GenerationForecast text = forecast_images(config_of("gemma3", kSiglip), request);
  request.prompt = 300;
  request.images = 1;
  const GenerationForecast images = forecast_images(config_of("gemma3", kSiglip), request);
  EXPECT_GT(images.serving->all.ttft.mean.value,
            text.serving->all.ttft.mean.value + 0.9 * images.vision->time.value);
}

Request served_images(int64_t images) {
  Request request = {.kind = RequestKind::kServe, .prompt = 300, .output = 8, .images = images};
  request.load.rate = 8;
  request.load.requests = 120;
  return request;
}

TEST(Images, EncodeWorkersHaveTheTowerAndGpusOfTheirOwn) {
  const Json config = config_of("gemma3", kSiglip);
  Request request = served_images(3);
  request.execution.software = software_of("sglang");
  const GenerationForecast own = forecast_images(config, request);
  request.deployment.encode = {.workers = 3, .tp = 2};
  request.deployment.replicas = 2;
  const GenerationForecast f = forecast_images(config, request);
  ASSERT_TRUE(f.serving && f.serving->encode_pool);
  EXPECT_FALSE(own.serving->encode_pool);
  EXPECT_EQ(f.gpus, 2 + 3 * 2);
  EXPECT_EQ(f.serving->gpus, 2 + 3 * 2);
  const EncodePoolForecast& pool = *f.serving->encode_pool;
  EXPECT_EQ(pool.workers, 3);
  EXPECT_EQ(pool.gpus, 2);
  EXPECT_GT(pool.busy_share, 0);
  EXPECT_EQ(pool.images_together, 8192 / 256);
  EXPECT_GE(pool.mean_images, 1);
  EXPECT_GE(pool.peak_bytes, f.vision->weights_bytes);
  // 256 tokens of 1024 columns and 2 bytes over a link of 450 GB/s at most.
  EXPECT_GT(pool.transfer_s, 256 * 1024 * 2 / 450e9);
  EXPECT_LT(pool.transfer_s, 1e-3);
  // One image each: the tower, the link, the prompt.
  EXPECT_GE(pool.mean_encode_s, f.vision->time.value + pool.transfer_s);
  EXPECT_LT(f.vision->time.value, own.vision->time.value);
  EXPECT_NEAR(f.ttft.value - own.ttft.value,
              f.vision->time.value + pool.transfer_s - own.vision->time.value, 1e-9);
  EXPECT_EQ(own.memory.weights_bytes - f.memory.weights_bytes, own.vision->weights_bytes);
  EXPECT_LT(f.flops, own.flops) << "without the tower's";
}

TEST(Images, EncodeWorkersTakePowerAndCost) {
  const Json config = config_of("gemma3", kSiglip);
  Request request = served_images(3);
  request.energy.price_per_gpu_hour = 2;
  double energy = 0;
  for (const int64_t workers : {1, 4}) {
    request.deployment.encode.workers = workers;
    const GenerationForecast f = forecast_images(config, request);
    ASSERT_TRUE(f.power);
    // All GPUs, in the time in which a request is answered.
    const double gpu_s =
        static_cast<double>(1 + workers) / f.serving->steady_or_all().requests_per_s;
    EXPECT_NEAR(*f.power->gpu_cost, 2 * gpu_s / 3600, 1e-3 * 2 * gpu_s / 3600);
    EXPECT_NEAR(f.power->energy_j.value, f.power->power_w.value * gpu_s,
                1e-3 * f.power->energy_j.value);
    EXPECT_GT(f.power->energy_j.value, energy) << "idle workers take power too";
    energy = f.power->energy_j.value;
  }
}

TEST(Images, VllmsServersKeepTheTowerBesideEncodeWorkers) {
  const Json config = config_of("gemma3", kSiglip);
  Request request = served_images(1);
  const GenerationForecast own = forecast_images(config, request);
  request.deployment.encode.workers = 1;
  EXPECT_EQ(forecast_images(config, request).memory.weights_bytes, own.memory.weights_bytes);
}

TEST(Images, MoreEncodeWorkersAreNeverSlower) {
  const Json config = config_of("gemma3", kSiglip);
  Request request = served_images(4);
  double before = 1e9;
  for (const int64_t workers : {1, 2, 4, 8}) {
    request.deployment.encode.workers = workers;
    const GenerationForecast f = forecast_images(config, request);
    const double ttft = f.serving->all.ttft.mean.value;
    EXPECT_LT(ttft, 1.01 * before) << workers;
    EXPECT_GT(ttft, f.serving->encode_pool->mean_encode_s);
    before = ttft;
  }
}

TEST(Images, EncodeWorkersAreRefusedWhereTheyCannotBe) {
  const Json config = config_of("gemma3", kSiglip);
  Request request = served_images(0);
  request.deployment.encode.workers = 1;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "`encode-workers` has no effect without `images`");
  request.deployment.encode = {.tp = 2};
  EXPECT_ERROR(forecast_images(config, request), kInput, "`encode-tp` needs `encode-workers`");
  request = served_images(1);
  request.deployment.encode.workers = 9;
  request.parallel.nodes = 1;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "10 GPUs are needed (1 replicas of 1 and 9 encode workers of 1), but `nodes` 1");
}

TEST(Images, RanksOfAnEncodeWorkerDivideTheTowerOfANode) {
  Json config = config_of("qwen2_5_vl", kQwen2_5);
  Request request = served_images(1);
  request.deployment.encode = {.workers = 1, .tp = 3};
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "`encode-tp` 3 does not divide the 16 attention heads of the vision tower");
  request.deployment.encode.tp = 16;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "`encode-tp` 16 does not divide the 3420 columns of the MLP (ffn_dim)");
  config["vision_config"]["intermediate_size"] = 3456;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "`encode-tp` 16 does not fit into a node of 8 GPUs");
  request.deployment.encode.tp = 4;
  EXPECT_EQ(forecast_images(config, request).serving->encode_pool->tp, 4);
}

TEST(Images, AreRefusedWhereTheyCannotBe) {
  Request request = {.kind = RequestKind::kGenerate, .prompt = 100, .output = 4};
  const Json config = config_of("qwen2_5_vl", kQwen2_5);
  request.image_size = 512;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "`image-size` has no effect without `images`");
  request.images = 1;
  EXPECT_ERROR(forecast_images(config["text_config"], request), kUnsupported,
               "has no vision tower");
  request.image_size = 65536;
  EXPECT_ERROR(forecast_images(config, request), kInput,
               "5480281 of images) and an output of 4 tokens");
  request.image_size = 65537;
  EXPECT_ERROR(forecast_images(config, request), kInput, "image-size");
  request.image_size = 512;
  request.images = 1'000'000;
  EXPECT_ERROR(forecast_images(config, request), kInput, "longer than the model's 32768 positions");
}

TEST(VisionTowers, NameTheFieldThatIsWrong) {
  const auto changed = [](Json config, const char* key, const Json& value) {
    config[key] = value;
    return config;
  };
  EXPECT_ERROR(import("gemma3", changed(kSiglip, "image_size", 100)), kInput,
               "'mm_tokens_per_image': 256 tokens do not divide the 7 x 7 patches");
  EXPECT_ERROR(import("gemma3", changed(kSiglip, "num_attention_heads", 7)), kInput,
               "7 heads do not divide the hidden size 1152");
  EXPECT_ERROR(import("qwen2_5_vl", changed(kQwen2_5, "fullatt_block_indexes", {32})), kInput,
               "config.json: vision_config: 'fullatt_block_indexes[0]'");
  EXPECT_ERROR(import("qwen2_5_vl", changed(kQwen2_5, "window_size", 20)), kInput,
               "'window_size': expected 28 pixels or more");
  EXPECT_ERROR(import("llama4", changed(kLlama4, "image_size", 340)), kInput,
               "an image of 340 pixels is not a whole number of tokens of 28 x 28");
  EXPECT_ERROR(import("llama4", changed(kLlama4, "vision_output_dim", 7680)), kInput,
               "expected 4096, the 'projector_input_dim'; found 7680");
  EXPECT_ERROR(import("llama4", changed(kLlama4, "pixel_shuffle_ratio", 0.3)), kInput,
               "'pixel_shuffle_ratio'");
  // Towers that are not known are left out with a warning.
  const Model other = import("mistral3", {{"model_type", "another"}});
  EXPECT_FALSE(other.vision);
  EXPECT_EQ(other.warnings.size(), 1u);
}

/// Absurd and missing numbers are read or refused by a message that names the file.
TEST(VisionTowers, SurviveAbsurdNumbers) {
  const std::pair<const char*, Json> towers[] = {
      {"gemma3", kSiglip}, {"qwen2_5_vl", kQwen2_5}, {"llama4", kLlama4}};
  for (const auto& [type, vision] : towers) {
    for (const auto& item : vision.items()) {
      for (const Json& value : {Json(-1), Json(0), Json(1e30), Json("many"), Json(0.37), Json(8191),
                                Json(1 << 20), Json::array()}) {
        Json changed = vision;
        changed[item.key()] = value;
        try {
          const Model model = import(type, changed);
          model.vision->build({.dtype = DType::kBf16}, model.vision->image(500));
        } catch (const Error& error) {
          EXPECT_NE(error.kind(), ErrorKind::kInternal) << item.key() << ": " << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilecast
