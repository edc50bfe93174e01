#include "passes/vocabulary.h"

#include <gtest/gtest.h>

#include "importers/model.h"
#include "ops/validate.h"

namespace tilecast {
namespace {

TEST(PaddedVocabulary, IsAMultipleInTableAndLogits) {
  Graph graph = load_model("gpt2").build({.batch = 2, .seq = 16});
  const int64_t parameters = graph.parameter_count();
  const std::optional<PaddedVocabulary> padded = pad_vocabulary(graph, 128 * 8);
  ASSERT_TRUE(padded.has_value());
  EXPECT_EQ(padded->rows, 50257);
  EXPECT_EQ(padded->padded, 51200);  // 50 · 1024
  validate(graph);
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape.back(), 51200);
  EXPECT_EQ(graph.parameter_count(), parameters + (51200 - 50257) * 768) << "the table is tied";
}

TEST(PaddedVocabulary, LeavesTablesOfHeadsAlone) {
  Graph graph = load_model("t5-large").build({.batch = 1, .seq = 16});
  const auto shape_of = [&](const char* name) {
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.name == name) return tensor.shape;
    }
    return Shape{};
  };
  ASSERT_TRUE(pad_vocabulary(graph, 128 * 3).has_value());
  EXPECT_EQ(shape_of("encoder.relative_attention_bias.weight"), (Shape{32, 16}));
  validate(graph);
}

TEST(PaddedVocabulary, CoversAnOutputLayerWhoseLogitsAreScaled) {
  // Its weight is its own, not the table.
  Graph graph = import_model(R"({"model_type": "granite", "vocab_size": 1000, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 4, "max_position_embeddings": 128, "tie_word_embeddings": false,
    "logits_scaling": 8.0})",
                             "granite")
                    .build({.batch = 1, .seq = 16});
  const int64_t parameters = graph.parameter_count();
  ASSERT_TRUE(pad_vocabulary(graph, 128).has_value());
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape.back(), 1024);
  EXPECT_EQ(graph.parameter_count(), parameters + 2 * (1024 - 1000) * 64);
  validate(graph);
}

TEST(PaddedVocabulary, StaysWhereItIsAMultiple) {
  Graph graph = load_model("llama-3.1-8b").build({.batch = 1, .seq = 16});
  EXPECT_FALSE(pad_vocabulary(graph, 128 * 2).has_value());
}

}  // namespace
}  // namespace tilecast
