// A quantization_config of any content, or one of ModelOpt's files, either gives schemes and bytes
// of weights or an Error that is not a bug. A byte says which of the two it is, and the model.

#include <cstdint>
#include <string>
#include <string_view>

#include "importers/model.h"
#include "memory/by_purpose.h"
#include "passes/passes.h"
#include "passes/serving.h"
#include "tilecast/error.h"

namespace {

constexpr const char* kDense = R"({"model_type": "llama", "hidden_size": 256,
  "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 512,
  "max_position_embeddings": 4096, "vocab_size": 1000, "rms_norm_eps": 1e-6)";
constexpr const char* kExperts = R"({"model_type": "qwen3_moe", "hidden_size": 256,
  "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 512, "num_experts": 8,
  "num_experts_per_tok": 2, "moe_intermediate_size": 64, "max_position_embeddings": 4096,
  "vocab_size": 1000, "rms_norm_eps": 1e-6)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool beside = (data[0] & 1) != 0;
  std::string config = (data[0] & 2) != 0 ? kExperts : kDense;
  if (!beside) config += ", \"quantization_config\": " + std::string(text);
  config += "}";
  try {
    const tilecast::Model model = tilecast::import_model(
        tilecast::ModelText{config, "config.json", beside ? text : std::string_view()});
    if (!model.checkpoint.scheme_of) return 0;
    const tilecast::Graph modules = model.build({.dtype = tilecast::DType::kBf16});
    for (const int64_t ranks : {1, 2}) {
      tilecast::Graph step =
          tilecast::fuse(tilecast::shard(modules, ranks),
                         {.groups = {{2, 3, 0}},
                          .scheme_of = tilecast::scheme_by_name(model.checkpoint.scheme_of)});
      tilecast::store_weights(step, model.checkpoint.storage);
      tilecast::memory_by_purpose(step);
    }
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
