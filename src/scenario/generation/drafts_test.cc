#include "scenario/generation/drafts.h"

#include <gtest/gtest.h>

#include "test_support.h"
#include "text_requests.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

GenerationForecast with_drafts(const char* model, std::optional<DraftMethod> method,
                               std::optional<double> rate = {}, int64_t tp = 1) {
  Request r{.prompt = 500, .output = 100};
  r.batch = 4;
  r.execution.tp = tp;
  r.deployment.speculation = {.tokens = 3, .method = method, .acceptance_rate = rate};
  return forecast_text(model, "H100", r);
}

TEST(Drafts, TheDefaultRateIsSaidWithItsSource) {
  const GenerationForecast given = with_drafts("llama-3.1-8b", DraftMethod::kNgram, 0.5);
  EXPECT_EQ(given.drafts->acceptance_source, "given");
  EXPECT_EQ(given.drafts->tokens_per_step, 1.875);
  const GenerationForecast guessed = with_drafts("llama-3.1-8b", DraftMethod::kNgram);
  EXPECT_EQ(guessed.drafts->acceptance_source.rfind("guess", 0), 0u);
  EXPECT_EQ(*guessed.used.deployment.speculation.acceptance_rate, guessed.drafts->acceptance_rate);
  EXPECT_EQ(guessed.drafts->method, "ngram");
}

TEST(Drafts, ASearchInTheTextTakesTheHostsTimeAndNoMemory) {
  Request plain{.prompt = 500, .output = 100};
  plain.batch = 4;
  const GenerationForecast without = forecast_text("llama-3.1-8b", "H100", plain),
                           with = with_drafts("llama-3.1-8b", DraftMethod::kNgram, 1.0);
  EXPECT_EQ(with.drafts->weights_bytes, 0);
  EXPECT_EQ(with.ttft, without.ttft);
  EXPECT_EQ(with.memory.weights_bytes, without.memory.weights_bytes);
  EXPECT_EQ(with.kv_bytes_per_token, without.kv_bytes_per_token);
  // 4 sequences of some 550 tokens.
  EXPECT_NEAR(with.drafts->time.value, 4 * 550 * 1.5e-9, 5e-7);
  EXPECT_LT(with.tpot.value, without.tpot.value / 3.5);
}

TEST(Drafts, AHeadIsALayerWithAProjection) {
  // Llama-3.1-8B: 4 q and o of 4096, k and v of 1024, three of 14336; norms.
  constexpr int64_t kHidden = 4096, kQkv = 6144, kLayer = kHidden * (kQkv + kHidden + 3 * 14336);
  const GenerationForecast eagle = with_drafts("llama-3.1-8b", DraftMethod::kEagle),
                           eagle3 = with_drafts("llama-3.1-8b", DraftMethod::kEagle3);
  EXPECT_NEAR(static_cast<double>(eagle.drafts->weights_bytes),
              2.0 * static_cast<double>(kLayer + 2 * kHidden * kHidden), 1e5);
  EXPECT_NEAR(static_cast<double>(eagle3.drafts->weights_bytes),
              2.0 * static_cast<double>(kLayer + kHidden * (3 * kHidden + kQkv + 32'000)), 1e5);
  // It predicts 32,000 of 128,256 tokens.
  EXPECT_LT(eagle3.drafts->time.value, eagle.drafts->time.value);
  // One layer more in the cache, and in the prompt's time.
  const GenerationForecast ngram = with_drafts("llama-3.1-8b", DraftMethod::kNgram);
  EXPECT_GT(eagle.ttft.value, ngram.ttft.value);
  EXPECT_LT(*eagle.memory.largest_batch, *ngram.memory.largest_batch);
  EXPECT_LT(with_drafts("llama-3.1-8b", DraftMethod::kEagle3, {}, 4).drafts->weights_bytes,
            eagle3.drafts->weights_bytes / 2);
}

TEST(Drafts, MethodsThatCannotBeAreRefused) {
  EXPECT_ERROR(with_drafts("llama-3.1-8b", DraftMethod::kMtp), kUnsupported, "num_nextn");
  EXPECT_ERROR(with_drafts("mixtral-8x7b", DraftMethod::kEagle, {}, 2), kUnsupported,
               "heads of EAGLE are dense layers");
  EXPECT_ERROR(with_drafts("llama-3.1-8b", DraftMethod::kDraftModel), kInput, "`draft-model`");
}

}  // namespace
}  // namespace tilecast
