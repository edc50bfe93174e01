#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "measured_rows.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(Aiconfigurator, TablesAndTypesThatAreNotForecastAreListedWithTheirRows) {
  const TemporaryFolder folder;
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms,kernel\n"
             "nvidia-l40s,vllm 0.24.0,bfloat16,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,sq,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,int3,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,int3,32,128,256,0.01,x\n");
  write_file(folder.path() / "power.csv",
             "gpu,software,dtype,watts,latency_ms\n"
             "nvidia-l40s,vllm 0.24.0,half,256,0.01\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_EQ(set.kernels[1].kernel.scheme, QuantScheme::kInt8);
  ASSERT_EQ(set.unmatched.size(), 2u);
  EXPECT_TRUE(set.unmatched[0].ends_with("dtype 'int3' is not forecast (2 rows)"));
  EXPECT_NE(set.unmatched[1].find("power.csv: 1 rows of a table of this kind"), std::string::npos);
}

TEST(Aiconfigurator, ATableIsToldByItsColumns) {
  const TemporaryFolder folder;
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms\n"
             "H100,vllm 1,bfloat16,16,32,64,0.01\nH100,trtllm 1,fp8_block,16,32,64,0.01\n");
  write_file(
      folder.path() / "prefill.csv",
      "gpu,software,dtype,kv_dtype,batch,seq_len,num_heads,num_kv_heads,head_dim,window_size,"
      "latency_ms\nH100,vllm 1,bfloat16,fp8,2,512,32,8,128,1024,0.1\n");
  write_file(folder.path() / "encoder.csv",
             "gpu,software,dtype,batch,seq_len,num_heads,head_dim,latency_ms\n"
             "H100,vllm 1,bfloat16,2,512,16,64,0.1\n");
  write_file(folder.path() / "decode.csv",
             "gpu,software,dtype,kv_dtype,batch,kv_len,num_heads,num_kv_heads,head_dim,window_size,"
             "latency_ms\nH100,vllm 1,bfloat16,bfloat16,4,1023,32,8,128,0,0.1\n");
  write_file(
      folder.path() / "moe.csv",
      "gpu,software,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,tp,ep,distribution,"
      "latency_ms\nH100,trtllm 1,w4a16_mxfp4,64,2880,2880,4,128,2,4,power_law_1.2,0.1\n"
      "H100,trtllm 1,bfloat16,64,2688,1856,6,128,1,1,balanced,0.1\n"
      "H100,trtllm 1,bfloat16,64,2688,1856,6,128,1,1,chaotic,0.1\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 7u);
  const Attention& decode = *set.kernels[0].kernel.as<Attention>();
  EXPECT_TRUE(decode.is_decode());
  EXPECT_EQ(decode.keys, 1024);
  EXPECT_EQ(set.kernels[0].conditions.caches, Caches::kWarm);
  EXPECT_EQ(set.kernels[1].op, "attention (encoder)");
  EXPECT_FALSE(set.kernels[1].kernel.as<Attention>()->causal);
  EXPECT_EQ(set.kernels[2].conditions.caches, Caches::kAlternating);
  EXPECT_EQ(set.kernels[3].kernel.scheme, QuantScheme::kFp8Block);
  EXPECT_EQ(set.kernels[3].kernel.dtype, DType::kBf16);
  EXPECT_EQ(set.kernels[4].kernel.scheme, QuantScheme::kFp4WeightOnly);
  const Experts& experts = *set.kernels[4].kernel.as<Experts>();
  EXPECT_EQ(experts.ffn_dim, 1440);
  EXPECT_EQ(experts.ranks, 4);
  EXPECT_EQ(experts.skew_percent, 120);
  // No gate: two matrices an expert.
  const Experts& plain = *set.kernels[5].kernel.as<Experts>();
  EXPECT_EQ(set.kernels[5].kernel.flops,
            static_cast<int64_t>(2.0 * 2 * 1856 * 2688 * plain.assignments));
  const Attention& prefill = *set.kernels[6].kernel.as<Attention>();
  EXPECT_EQ(prefill.kv_dtype, DType::kFp8);
  EXPECT_EQ(prefill.window, 1024);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("distribution 'chaotic'"), std::string::npos);
}

TEST(Measurements, OfALayerMeasuredWithTwoKernelsTheOneThatRunsCounts) {
  // TensorRT-LLM has kernels for few tokens: up to 128 they run where a layer has them.
  const TemporaryFolder folder;
  write_file(
      folder.path() / "moe.csv",
      "gpu,software,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,tp,ep,distribution,"
      "latency_ms,kernel\n"
      "B200,trtllm 1,nvfp4,128,2048,768,8,128,1,1,balanced,0.2,moe_torch_flow_cutlass\n"
      "B200,trtllm 1,nvfp4,128,2048,768,8,128,1,1,balanced,0.1,moe_torch_flow_min_latency\n"
      "B200,trtllm 1,nvfp4,160,2048,768,8,128,1,1,balanced,0.21,moe_torch_flow_cutlass\n"
      "B200,trtllm 1,nvfp4,160,2048,768,8,128,1,1,balanced,0.11,moe_torch_flow_min_latency\n"
      "B200,trtllm 1,nvfp4,128,4096,1024,10,512,1,1,balanced,0.3,moe_torch_flow_cutlass\n"
      "B200,trtllm 1,bfloat16,128,2048,768,8,128,1,1,balanced,0.4,moe_torch_flow_cutlass\n");
  const MeasurementSet set = read_measurements(folder.path());
  std::vector<int64_t> kept_us;
  for (const auto& kernel : set.kernels) kept_us.push_back(std::llround(1e6 * kernel.measured_s));
  EXPECT_EQ(kept_us, (std::vector<int64_t>{100, 210, 300, 400}));
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("for fewer or more tokens only"), std::string::npos);
}

TEST(Aiconfigurator, LatentPrefillIsExpandedOrAbsorbedByItsKernel) {
  const MeasurementSet set =
      table_rows("mla_prefill.csv",
                 "gpu,software,dtype,kv_dtype,batch,seq_len,num_heads,latency_ms,kernel\n"
                 "H100,trtllm 1,bfloat16,fp8,2,100,16,0.5,default\n"
                 "H100,sglang 1,bfloat16,bfloat16,2,100,16,0.7,flash_attention\n"
                 "H100,vllm 1,bfloat16,bfloat16,2,100,16,0.9,vllm_flash_attn_mla\n"
                 "H100,vllm 1,bfloat16,bfloat16,2,200,16,0.9,vllm_flash_attn_mla\n");
  ASSERT_EQ(set.kernels.size(), 2u);
  const int64_t pairs = 2 * 16 * (100 * 101 / 2), tokens = 2 * 100;
  const Kernel& expanded = set.kernels[0].kernel;
  EXPECT_EQ(set.kernels[0].op, "attention (latent)");
  EXPECT_EQ(set.kernels[0].conditions.caches, Caches::kWarm);
  EXPECT_EQ(expanded.as<Attention>()->head_dim, 192);
  EXPECT_EQ(expanded.as<Attention>()->v_head_dim, 128);
  EXPECT_TRUE(expanded.as<Attention>()->causal);
  EXPECT_EQ(expanded.flops, 2 * (192 + 128) * pairs);
  EXPECT_EQ(expanded.read_bytes, tokens * 16 * (2 * 192 + 192 + 128)) << "keys and values in fp8";
  EXPECT_EQ(expanded.write_bytes, tokens * 16 * 2 * 128);
  const Kernel& absorbed = set.kernels[1].kernel;
  EXPECT_EQ(set.kernels[1].op, "cached_attention (latent)");
  EXPECT_TRUE(absorbed.as<Attention>()->latent);
  EXPECT_FALSE(absorbed.as<Attention>()->is_decode());
  EXPECT_EQ(absorbed.flops, 2 * (576 + 512) * pairs);
  EXPECT_EQ(absorbed.read_bytes, 2 * tokens * (16 * 576 + 576));
  EXPECT_EQ(absorbed.write_bytes, 2 * tokens * 16 * 512);
  EXPECT_EQ(reasons(set),
            "vLLM's latent attention was timed with other kernels and its host (2 rows)\n");
}

TEST(Aiconfigurator, LatentDecodeReadsOneVectorPerToken) {
  const MeasurementSet set =
      table_rows("mla_decode.csv",
                 "gpu,software,dtype,kv_dtype,batch,kv_len,num_heads,latency_ms,kernel\n"
                 "H100,sglang 1,bfloat16,fp8,8,1023,128,0.05,flash_attention\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  const Kernel& kernel = set.kernels[0].kernel;
  const Attention& a = *kernel.as<Attention>();
  EXPECT_EQ(set.kernels[0].op, "cached_attention (latent)");
  EXPECT_TRUE(a.is_decode() && a.latent);
  EXPECT_EQ(a.keys, 1024);
  EXPECT_EQ(a.kv_heads, 1);
  EXPECT_EQ(a.v_head_dim, 512);
  EXPECT_EQ(kernel.flops, int64_t{2} * (576 + 512) * 1024 * 128 * 8);
  EXPECT_EQ(kernel.read_bytes, 8 * (1024 * 576 + 2 * 128 * 576));
  EXPECT_EQ(kernel.write_bytes, 8 * 2 * 128 * 512);
}

TEST(Aiconfigurator, LatentProductsAreOneForEachHead) {
  const MeasurementSet set =
      table_rows("mla_bmm.csv",
                 "gpu,software,dtype,op,num_tokens,num_heads,latency_ms,kernel\n"
                 "H100,sglang 1,bfloat16,mla_gen_pre,7,16,0.01,sglang_torch_bmm\n"
                 "H100,sglang 1,fp8,mla_gen_post,7,16,0.01,sglang_sgl_kernel_bmm_fp8\n"
                 "H100,trtllm 1,fp8,mla_gen_post,7,16,0.01,trtllm_fp8_block_scaling_bmm_out\n"
                 "B200,trtllm 1,fp8,mla_gen_pre,7,16,0.01,trtllm_bmm_out_dequant_bf16\n"
                 "B200,trtllm 1,bfloat16,mla_gen_other,7,16,0.01,trtllm_bmm_out\n");
  ASSERT_EQ(set.kernels.size(), 4u);
  const Kernel& plain = set.kernels[0].kernel;
  EXPECT_EQ(set.kernels[0].op, "matmul (warm L2)");
  EXPECT_EQ(set.kernels[0].conditions.caches, Caches::kWarm);
  EXPECT_EQ(gemm_of(plain), (Gemm{16, 7, 512, 128, true}));
  EXPECT_EQ(plain.scheme, QuantScheme::kNone);
  EXPECT_EQ(plain.bytes(), 2 * 16 * (7 * 128 + 128 * 512 + 7 * 512));
  const Kernel& tensor = set.kernels[1].kernel;
  EXPECT_EQ(gemm_of(tensor), (Gemm{16, 7, 128, 512, true}));
  EXPECT_EQ(tensor.scheme, QuantScheme::kFp8);
  EXPECT_EQ(tensor.bytes(), 16 * (2 * 7 * 512 + 128 * 512 + 2 * 7 * 128)) << "weights in fp8";
  EXPECT_EQ(set.kernels[2].kernel.scheme, QuantScheme::kFp8Block);
  EXPECT_EQ(set.kernels[3].kernel.scheme, QuantScheme::kNone) << "weights converted to bf16";
  EXPECT_EQ(reasons(set), "operator 'mla_gen_other' is not forecast\n");
}

TEST(Aiconfigurator, DeltaNetsAreScansAndConvolutionsWithStates) {
  const std::string header =
      "gpu,software,phase,batch,seq_len,num_tokens,d_model,d_conv,num_k_heads,head_k_dim,"
      "num_v_heads,head_v_dim,latency_ms,kernel\n";
  const auto row = [](const std::string& software, const std::string& phase, int tokens,
                      const std::string& kernel) {
    return "H100," + software + "," + phase + ",2," + std::to_string(tokens) + "," +
           std::to_string(2 * tokens) + ",2048,4,8,128,16,64,0.1," + kernel + "\n";
  };
  const MeasurementSet set = table_rows(
      "gdn.csv",
      header + row("vllm 1", "context", 64, "chunk_gated_delta_rule_triton") +
          row("sglang 1", "generation", 1, "fused_recurrent_gated_delta_rule_packed_decode") +
          row("vllm 1", "context", 64, "causal_conv1d_fn") +
          row("trtllm 1", "context", 64, "causal_conv1d_fn") +
          row("sglang 0.5.10", "generation", 1, "causal_conv1d_update") +
          row("trtllm 1", "generation", 1, "fused_recurrent_gated_delta_rule") +
          row("vllm 1", "context", 64, "gating"));
  ASSERT_EQ(set.kernels.size(), 3u);
  const int64_t states = 2 * 16 * 64 * 128;
  const Kernel& prefill = set.kernels[0].kernel;
  EXPECT_EQ(set.kernels[0].op, "linear_scan");
  EXPECT_EQ(prefill.shape, KernelVariant(Scan{2, 64, 16, 64, 128}));
  EXPECT_EQ(prefill.flops, 7 * 64 * states);
  EXPECT_EQ(prefill.write_bytes, 2 * 2 * 64 * 16 * 64 + 4 * states);
  const Kernel& decode = set.kernels[1].kernel;
  EXPECT_EQ(set.kernels[1].op, "linear_scan (decode)");
  EXPECT_EQ(set.kernels[1].conditions.caches, Caches::kWarm);
  EXPECT_EQ(decode.flops, 7 * states);
  // Values, two keys for each of 8 groups, a decay in fp32; states are read and written.
  EXPECT_EQ(decode.read_bytes, 2 * 2 * (16 * 64 + 2 * 8 * 128) + 4 * 2 * 16 + 4 * states);
  const Kernel& convolution = set.kernels[2].kernel;
  const int64_t channels = 2 * 8 * 128 + 16 * 64;
  EXPECT_EQ(set.kernels[2].op, "causal_conv1d (warm L2)");
  EXPECT_EQ(convolution.flops, 2 * 4 * 2 * 64 * channels);
  EXPECT_EQ(convolution.bytes(), 2 * (2 * 2 * 64 * channels + 4 * channels + 2 * 2 * 3 * channels));
  EXPECT_EQ(reasons(set),
            "convolutions that were measured with other channels than the model's (2 rows)\n"
            "fused_recurrent_gated_delta_rule: the dtype of its states is not stated\n"
            "kernel 'gating' is not forecast\n");
}

TEST(Aiconfigurator, MambaConvolvesValuesKeysAndQueries) {
  const MeasurementSet set = table_rows(
      "mamba2.csv",
      "gpu,software,phase,batch,seq_len,num_tokens,d_model,d_state,d_conv,nheads,head_dim,n_groups,"
      "chunk_size,latency_ms,kernel\n"
      "L40S,trtllm 1,generation,32,1,32,4096,64,4,8,32,2,128,0.01,causal_conv1d_update\n"
      "L40S,trtllm 1,context,1,16,16,4096,64,4,8,32,2,128,0.01,chunk_scan\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  EXPECT_EQ(set.kernels[0].kernel.as<Stream>()->elements, 32 * (8 * 32 + 2 * 2 * 64));
  EXPECT_EQ(reasons(set), "kernel 'chunk_scan' is not forecast\n");
}

TEST(Aiconfigurator, ExpertsOnBlackwellMultiplyFourByEightBits) {
  const MeasurementSet set = table_rows(
      "moe.csv",
      "gpu,software,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,tp,ep,distribution,"
      "latency_ms\nB200,trtllm 1,w4a8_mxfp4_mxfp8,1,2880,2880,1,1,1,1,balanced,0.1\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  const Kernel& kernel = set.kernels[0].kernel;
  EXPECT_EQ(precision_name(kernel), "fp4_fp8");
  EXPECT_EQ(kernel.compute_dtype(), DType::kFp8);
  // Three matrices in 4 bits, with an 8-bit scale for 32 weights; the token and its result.
  EXPECT_EQ(kernel.bytes(), int64_t{3} * 2880 * 2880 / 2 * 17 / 16 + 2 * 2 * 2880);
}

}  // namespace
}  // namespace tilecast
