// Vision towers in one pass: what is trained, what is only held, what runs.

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "memory/by_purpose.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"
#include "vision_towers.h"

namespace tilecast {
namespace {

/// A small language model beside Qwen2.5-VL's tower with eight layers.
const Json kConfig = {{"model_type", "qwen2_5_vl"},
                      {"hidden_size", 1024},
                      {"intermediate_size", 4096},
                      {"num_hidden_layers", 4},
                      {"num_attention_heads", 16},
                      {"num_key_value_heads", 4},
                      {"vocab_size", 32000},
                      {"hidden_act", "silu"},
                      {"max_position_embeddings", 4096},
                      {"torch_dtype", "bfloat16"},
                      {"vision_config", qwen2_5_tower(8, {3, 7})}};

Forecast forecast(const Json& config, const Request& request) {
  return forecaster().forecast(model_from_text(config.dump(), "config.json"), load_gpu_ref("H200"),
                               request);
}

Json text_alone() {
  Json text = kConfig;
  text.erase("vision_config");
  text["model_type"] = "qwen2";
  return text;
}

const Request kTraining = as_published({.mode = Mode::kTraining,
                                        .seq = 512,
                                        .optimizer = Optimizer::kAdamW,
                                        .execution = {.dtype = "bf16"}});

Request with_images(Request request, int64_t images, int64_t side) {
  request.images = images;
  request.image_size = side;
  return request;
}

/// Parameters of the tower, from its sizes: eight layers with biases and RMS norms, a patch
/// embedding of two frames without bias, a merger of four patches.
constexpr int64_t kHidden = 1280, kFfn = 3420, kText = 1024;
constexpr int64_t kLayer = kHidden * 3 * kHidden + 3 * kHidden + kHidden * kHidden + kHidden +
                           3 * kHidden * kFfn + 2 * kFfn + kHidden + 2 * kHidden;
constexpr int64_t kTower = 8 * kLayer + 3 * 2 * 14 * 14 * kHidden + kHidden +
                           4 * kHidden * 4 * kHidden + 4 * kHidden + 4 * kHidden * kText + kText;

TEST(PassImages, WithoutImagesTheTowerIsHeldButNotTrained) {
  const Forecast text = forecast(text_alone(), kTraining), whole = forecast(kConfig, kTraining);
  EXPECT_EQ(whole.parameters, text.parameters + kTower);
  EXPECT_EQ(whole.memory.weights_bytes, text.memory.weights_bytes + 2 * kTower);
  EXPECT_EQ(whole.memory.gradients_bytes, text.memory.gradients_bytes);
  EXPECT_EQ(whole.memory.optimizer_bytes, text.memory.optimizer_bytes);
  EXPECT_EQ(whole.flops, text.flops);
  const std::vector<std::string> said = warning_texts(whole.warnings);
  EXPECT_NE(join(said, "; ").find("have no gradients and no optimizer states"), std::string::npos);
}

TEST(PassImages, WithImagesTheTowerIsTrained) {
  // 112 pixels: 8 x 8 patches, 16 tokens an image.
  const Forecast f = forecast(kConfig, with_images(kTraining, 2, 112));
  Request longer = kTraining;
  longer.seq = 512 + 32;
  const Forecast text = forecast(text_alone(), longer);
  EXPECT_EQ(f.seq, 512 + 32);
  EXPECT_EQ(f.parameters, text.parameters + kTower);
  EXPECT_EQ(f.memory.gradients_bytes, 2 * f.parameters);
  EXPECT_EQ(f.memory.optimizer_bytes, 4 * f.parameters);
  // Two products in backward for each in forward, but for the pixels' gradient.
  const int64_t patches = 2 * 64, embedding = 2 * patches * 3 * 2 * 14 * 14 * kHidden;
  const int64_t products = 2 * patches * 8 * (4 * kHidden * kHidden + 3 * kHidden * kFfn) +
                           2 * (patches / 4) * (4 * kHidden * 4 * kHidden + 4 * kHidden * kText);
  int64_t tower = 0;
  for (const KernelForecast& k : f.kernels) {
    if ((k.op == "linear" || k.op == "gemm") && k.name.find("vision.") != std::string_view::npos)
      tower += k.flops * k.count;
  }
  const auto expected = static_cast<double>(3 * products + 2 * embedding);
  EXPECT_NEAR(static_cast<double>(tower), expected, 0.01 * expected) << "biases add a little";
}

TEST(PassImages, AdaptersAreBesideTheTowerTooIfItRuns) {
  Request request = kTraining;
  request.lora_rank = 8;
  const Forecast text = forecast(text_alone(), request);
  const Forecast f = forecast(kConfig, with_images(request, 1, 112));
  const int64_t adapters = 8 * (8 * (kHidden + 3 * kHidden) + 8 * 2 * kHidden +
                                2 * 8 * (kHidden + kFfn) + 8 * (kHidden + kFfn));
  const int64_t merger = 8 * (8 * kHidden) + 8 * (4 * kHidden + kText),
                patch = 8 * (3 * 2 * 14 * 14 + kHidden);
  // The gate and up projections are one layer here.
  const int64_t fused = adapters - 8 * 8 * kHidden;
  EXPECT_EQ(f.parameters - text.parameters - kTower, fused + merger + patch);
}

TEST(PassImages, ATowersAttentionIsNotPacked) {
  Request request = with_images(kTraining, 1, 112);
  request.execution.attention = AttentionKind::kFlash;
  // Of the tower's attention, or of the text's.
  const auto flops = [&](bool of_tower) {
    int64_t all = 0;
    for (const KernelForecast& k : forecast(kConfig, request).kernels) {
      if (k.op == "attention" && std::string(k.name).starts_with("vision") == of_tower)
        all += k.flops * k.count;
    }
    return all;
  };
  const int64_t tower = flops(true), text = flops(false);
  request.packed_length = 264;  // of 512 + 16 tokens
  EXPECT_GT(tower, 0);
  EXPECT_EQ(flops(true), tower);
  EXPECT_EQ(flops(false) * 529, text * 265) << "n (n + 1) / 2 pairs";
}

TEST(PassImages, ATeacherSeesTheImagesToo) {
  const std::string file = testing::TempDir() + "tilecast_pass_images_teacher.json";
  std::ofstream(file) << kConfig.dump();
  Request request = with_images(kTraining, 1, 112);
  const Forecast student = forecast(kConfig, request);
  Request inference = with_images({.seq = 512, .execution = {.dtype = "bf16"}}, 1, 112);
  inference.execution.attention = AttentionKind::kEager;
  const Forecast teacher = forecast(kConfig, inference);
  request.teacher = file;
  const auto products = [](const Forecast& f) {
    int64_t all = 0;
    for (const KernelForecast& k : f.kernels) all += k.shape.type == "gemm" ? k.flops * k.count : 0;
    return all;
  };
  EXPECT_EQ(products(forecast(kConfig, request)), products(student) + products(teacher));
}

TEST(PassImages, WhatIsNotModelledIsRefused) {
  Request request = with_images(kTraining, 1, 112);
  request.execution.pp = 2;
  request.batch = 2;
  EXPECT_ERROR(forecast(kConfig, request), kUnsupported, "`images` with `pp`");
  EXPECT_ERROR(forecast(text_alone(), with_images(kTraining, 1, 112)), kUnsupported,
               "has no vision tower");
  EXPECT_ERROR(forecast(kConfig, with_images(kTraining, 250, 112)), kInput,
               "a sequence of 4512 tokens, 4000 of images, is longer than the model's 4096");
}

TEST(PassImages, SeveralRanksTrainItToo) {
  Request request = with_images(kTraining, 1, 112);
  const Forecast one = forecast(kConfig, request);
  request.batch = 2;
  request.execution.dp = 2;
  const Forecast two = forecast(kConfig, request);
  EXPECT_EQ(two.parameters, one.parameters);
  EXPECT_EQ(two.memory.gradients_bytes, one.memory.gradients_bytes);
  request.execution.dp = 1;
  request.execution.tp = 2;
  const Forecast divided = forecast(kConfig, request);
  EXPECT_LT(divided.memory.weights_bytes, one.memory.weights_bytes * 3 / 5);
  Request stages = kTraining;
  stages.batch = 2;
  stages.execution.pp = 2;
  stages.execution.microbatches = 2;
  const Forecast staged = forecast(kConfig, stages);
  EXPECT_GT(staged.parallel->stages[0].memory.weights_bytes, 2 * kTower)
      << "held by the first stage";
}

TEST(PassImages, ATowerOfAnotherWidthThanTheTextIsRefusedWithImages) {
  Json config = kConfig;
  config["vision_config"]["out_hidden_size"] = 300;
  EXPECT_NO_THROW(forecast(config, {.seq = 64}));
  EXPECT_ERROR(forecast(config, with_images({.seq = 64}, 1, 224)), kInput,
               "the vision tower's tokens have a width of 300, those of the text, which they "
               "replace, of 1024");
  Request prompt{.kind = RequestKind::kGenerate, .prompt = 64, .output = 2};
  EXPECT_ERROR(forecast_generation(forecaster(), model_from_text(config.dump(), "config.json"),
                                   load_gpu_ref("H200"), with_images(prompt, 1, 224)),
               kInput, "tokens have a width of 300");
}

}  // namespace
}  // namespace tilecast
