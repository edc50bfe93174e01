// In which dtype the loss of training is computed.

#include <gtest/gtest.h>

#include "base/json.h"
#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

/// The dtype of the softmax of the loss of a small model that predicts masked words.
std::string loss_dtype(const std::string& type, const std::string& architecture, Fusion fusion) {
  const Json config = {
      {"model_type", type},       {"architectures", {architecture}}, {"hidden_size", 256},
      {"intermediate_size", 512}, {"num_hidden_layers", 2},          {"num_attention_heads", 4},
      {"vocab_size", 1000},       {"max_position_embeddings", 512},  {"type_vocab_size", 2},
      {"hidden_act", "gelu"},     {"torch_dtype", "bfloat16"}};
  Request request;
  request.mode = Mode::kTraining;
  request.seq = 128;
  request.execution.dtype = "bf16";
  request.execution.fusion = fusion;
  const Forecast f = forecaster().forecast(model_from_text(config.dump(), "config.json"),
                                           load_gpu_ref("H100"), request);
  for (const KernelForecast& k : f.kernels) {
    if (k.name.starts_with("loss.log_softmax")) return std::string(k.dtype);
  }
  return "none";
}

TEST(PassLoss, ModernBertCastsLogitsWhateverIsFused) {
  for (const Fusion fusion : {Fusion::kNone, Fusion::kPointwise})
    EXPECT_EQ(loss_dtype("modernbert", "ModernBertForMaskedLM", fusion), "fp32");
  EXPECT_EQ(loss_dtype("bert", "BertForMaskedLM", Fusion::kNone), "bf16") << "no cast";
  EXPECT_EQ(loss_dtype("bert", "BertForMaskedLM", Fusion::kPointwise), "bf16");
}

}  // namespace
}  // namespace tilecast
