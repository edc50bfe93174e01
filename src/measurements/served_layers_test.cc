#include <gtest/gtest.h>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

MeasurementSet read_layers(const std::string& rows) {
  const TemporaryFolder folder;
  write_file(folder.path() / "layers.csv",
             "gpu,software,dtype,model,tp,layer,tokens,prefill_tokens,prefill_past,decodes,"
             "decode_past,activated_experts,latency_s\n" +
                 rows);
  return read_measurements(folder.path());
}

std::string layer(const std::string& name, const std::string& cells,
                  const std::string& model = "meta-llama--Llama-3.1-8B,1") {
  return "nvidia-rtx-4090,vllm 0.19.0,bf16," + model + ',' + name + ',' + cells + ",,1e-05\n";
}

TEST(ServedLayers, ProductsHaveTheModelsSizes) {
  const MeasurementSet set = read_layers(layer("qkv_proj", "5,,,,") + layer("o_proj", "5,,,,") +
                                         layer("gate_up_proj", "5,,,,") +
                                         layer("down_proj", "5,,,,") + layer("lm_head", "5,,,,"));
  const int64_t expected[][2] = {
      {6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}, {128256, 4096}};
  ASSERT_EQ(set.kernels.size(), std::size(expected));
  for (size_t i = 0; i < set.kernels.size(); ++i) {
    const Gemm* gemm = set.kernels[i].kernel.as<Gemm>();
    ASSERT_NE(gemm, nullptr);
    EXPECT_EQ(gemm->m, 5);
    EXPECT_EQ(gemm->n, expected[i][0]);
    EXPECT_EQ(gemm->k, expected[i][1]);
    EXPECT_EQ(set.kernels[i].conditions.caches, Caches::kCold);
    EXPECT_EQ(software_name(set.kernels[i].conditions.software), "vllm");
  }
}

TEST(ServedLayers, RanksDivideHeadsAndTheInnerSize) {
  const std::string two = "meta-llama--Llama-3.1-8B,2";
  const MeasurementSet set =
      read_layers(layer("qkv_proj", "5,,,,", two) + layer("down_proj", "5,,,,", two) +
                  layer("act_fn", "5,,,,", "meta-llama--Llama-3.1-8B,3"));
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_EQ(set.kernels[0].kernel.as<Gemm>()->n, 3072);
  EXPECT_EQ(set.kernels[0].kernel.as<Gemm>()->k, 4096);
  EXPECT_EQ(set.kernels[1].kernel.as<Gemm>()->k, 7168);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("ranks do not divide a layer"), std::string::npos);
}

TEST(ServedLayers, ReadsRowKernels) {
  const MeasurementSet set = read_layers(layer("act_fn", "5,,,,") + layer("layernorm", "5,,,,") +
                                         layer("final_layernorm", "5,,,,") +
                                         layer("rotary_emb", "5,,,,") + layer("sampler", "5,,,,"));
  ASSERT_EQ(set.kernels.size(), 4u);
  EXPECT_EQ(set.kernels[0].op, "gated_activation");
  EXPECT_EQ(set.kernels[1].op, "add_rms_norm");
  EXPECT_EQ(set.kernels[2].op, "add_rms_norm");
  EXPECT_EQ(set.kernels[3].op, "rotary");
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("layer 'sampler' is not compared"), std::string::npos);
}

TEST(ServedLayers, ReadsPromptsAndDecodesApart) {
  const MeasurementSet set =
      read_layers(layer("attention", ",128,0,0,0") + layer("attention", ",128,512,0,0") +
                  layer("attention", ",0,0,4,1024") + layer("attention", ",128,0,4,1024"));
  ASSERT_EQ(set.kernels.size(), 3u);
  const Attention* prompt = set.kernels[0].kernel.as<Attention>();
  const Attention* chunk = set.kernels[1].kernel.as<Attention>();
  const Attention* decode = set.kernels[2].kernel.as<Attention>();
  ASSERT_TRUE(prompt != nullptr && chunk != nullptr && decode != nullptr);
  EXPECT_EQ(set.kernels[0].op, "attention");
  EXPECT_TRUE(prompt->causal);
  EXPECT_EQ(prompt->queries, 128);
  EXPECT_EQ(prompt->keys, 128);
  EXPECT_EQ(prompt->kv_heads, 8);
  EXPECT_EQ(set.kernels[1].op, "attention (after a prefix)");
  EXPECT_EQ(chunk->keys, 640);
  EXPECT_EQ(set.kernels[2].op, "cached_attention");
  EXPECT_EQ(decode->batch, 4);
  EXPECT_EQ(decode->keys, 1025);
  ASSERT_EQ(set.unmatched.size(), 1u);
}

TEST(ServedLayers, ModelsOfUnknownSizesAreListed) {
  const MeasurementSet set = read_layers(layer("o_proj", "5,,,,", "a-model,1"));
  EXPECT_TRUE(set.kernels.empty());
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("the sizes of model 'a-model' are not known"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
