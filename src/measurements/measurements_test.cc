#include "measurements/measurements.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(TileNames, AreReadFromBlasKernels) {
  EXPECT_EQ(tile_in_name("volta_sgemm_128x64_tn"), (Tile{128, 64}));
  EXPECT_EQ(tile_in_name("Cijk_Ailk_Bljk_SB_MT128x96x16_MI32x32x2x1_SE"), (Tile{128, 96}));
  EXPECT_EQ(tile_in_name("cutlass_80_simt_sgemm_256x128_8x4_nn_align1"), (Tile{256, 128}));
  EXPECT_EQ(tile_in_name("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"), (Tile{256, 128}));
  EXPECT_FALSE(tile_in_name("void gemv2T_kernel_val<int, float>"));
}

TEST(NeusightLayout, ColumnNIsTheReduction) {
  const TemporaryFolder folder;
  write_file(folder.path() / "bmm.csv",
             "OPName,Latency,Device,Kernel Name,B,M,N,K\nbmm,0.5,Tesla "
             "T4,volta_sgemm_64x64_nn,8,128,32,256\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 1u);
  const KernelMeasurement& m = set.kernels[0];
  EXPECT_EQ(m.kernel.m, 128);
  EXPECT_EQ(m.kernel.k, 32);
  EXPECT_EQ(m.kernel.n, 256);
  EXPECT_DOUBLE_EQ(m.measured_s, 0.5e-3);
  EXPECT_EQ(m.tile, (Tile{64, 64}));
}

TEST(NeusightLayout, OperatorsWithoutAForecastAreListed) {
  const TemporaryFolder folder;
  write_file(folder.path() / "conv.csv",
             "OPName,Latency,Device,B\npool,0.5,Tesla T4,8\npool,0.6,Tesla T4,8\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("operator 'pool' is not forecast"), std::string::npos);
}

TEST(NeusightLayout, LabelsNameModelAndOptions) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "label" / "Tesla_T4");
  write_file(folder.path() / "label/Tesla_T4/gpt2_large-train-1024-4-dp4.json",
             R"({"e2e_latency": 250.0})");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.models.size(), 1u);
  EXPECT_EQ(set.models[0].model, "gpt2_large");
  EXPECT_EQ(set.models[0].mode, "training");
  EXPECT_EQ(set.models[0].option, "dp4");
  EXPECT_DOUBLE_EQ(set.models[0].measured_s, 0.25);
}

TEST(OwnLayout, RowsNameTheirOperatorAndSizes) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv",
             "# gpu: "
             "T4\ngpu,op,dtype,batch,m,n,k,latency_s,protocol\nT4,linear,fp32,1,64,128,256,1e-5,"
             "single_call\n"
             "T4,softmax,fp32,,64,128,,2e-5,back_to_back\nT4,warp,fp32,1,1,1,1,1e-5,\n");
  const MeasurementSet set = read_measurements(folder.path() / "a.csv");
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_EQ(set.kernels[0].protocol, Protocol::kSingleCall);
  EXPECT_EQ(set.kernels[1].protocol, Protocol::kBackToBack);
  EXPECT_EQ(set.unmatched.size(), 1u);
}

TEST(OwnLayout, RowsThatAForecastDoesNotMeanAreListed) {
  const TemporaryFolder folder;
  write_file(folder.path() / "rows.csv",
             "gpu,op,dtype,m,n,l2,latency_s,status\n"
             "T4,softmax,fp32,64,128,cold,2e-5,ok\n"
             "T4,softmax,fp32,64,128,warm,1e-5,ok\n"
             "T4,softmax,fp32,64,128,cold,,out_of_memory\n"
             "T4,conv_forward,fp32,64,128,cold,1e-5,ok\n"
             "T4,transpose,fp32,64,128,cold,1e-5,ok\n");
  write_file(folder.path() / "simulated.csv",
             "# simulated: yes\ngpu,op,dtype,latency_s\nT4,add,fp32,1\n");
  const MeasurementSet set = read_measurements(folder.path());
  EXPECT_EQ(set.kernels.size(), 1u);
  EXPECT_EQ(set.unmatched.size(), 5u);
}

TEST(OwnLayout, ModelsBringTheirConfigAndSettings) {
  const TemporaryFolder folder;
  write_file(
      folder.path() / "models.csv",
      "gpu,model,mode,dtype,attention,compiled,optimizer,batch,seq,latency_s,config,status\n"
      "T4,x,training,bf16,eager,0,adamw,8,512,0.25,\"{\"\"model_type\"\": \"\"gpt2\"\"}\",ok\n"
      "T4,x,inference,fp32,sdpa,0,none,8,512,0.25,,ok\n"
      "T4,x,inference,fp32,eager,1,none,8,512,0.25,,ok\n"
      "T4,x,inference,fp32,eager,0,none,8,512,,,out_of_memory\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.models.size(), 3u);
  EXPECT_EQ(set.models[0].config_text, R"({"model_type": "gpt2"})");
  EXPECT_EQ(set.models[0].dtype, "bf16");
  EXPECT_EQ(set.models[0].optimizer, "adamw");
  EXPECT_EQ(set.models[0].option, "");
  EXPECT_EQ(set.models[1].option, "sdpa");
  EXPECT_EQ(set.models[2].option, "compiled");
  EXPECT_EQ(set.unmatched.size(), 1u);
  write_file(folder.path() / "models.csv",
             "gpu,model,mode,dtype,latency_s\nT4,x,sleeping,fp32,1\n");
  EXPECT_ERROR(read_measurements(folder.path()), kInput,
               "'mode': expected inference or training, found 'sleeping'");
}

TEST(Aiconfigurator, TablesAndTypesThatAreNotForecastAreListedWithTheirRows) {
  const TemporaryFolder folder;
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms,kernel\n"
             "nvidia-l40s,vllm 0.24.0,bfloat16,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,sq,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,int3,16,128,256,0.01,x\n"
             "nvidia-l40s,vllm 0.24.0,int3,32,128,256,0.01,x\n");
  // Linear attention: no dtype column.
  write_file(folder.path() / "gdn.csv",
             "gpu,software,phase,batch,seq_len,num_tokens,latency_ms,kernel\n"
             "nvidia-l40s,vllm 0.24.0,context,1,1,1,0.01,x\n");
  // Latent attention: no head_dim.
  write_file(folder.path() / "mla_prefill.csv",
             "gpu,software,dtype,kv_dtype,batch,seq_len,num_heads,latency_ms,kernel\n"
             "nvidia-l40s,vllm 0.24.0,bfloat16,bfloat16,1,16,1,0.01,x\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_EQ(set.kernels[1].kernel.scheme, Scheme::kInt8);
  ASSERT_EQ(set.unmatched.size(), 3u);
  EXPECT_NE(set.unmatched[0].find("1 rows of a table of this kind"), std::string::npos);
  EXPECT_TRUE(set.unmatched[1].ends_with("dtype 'int3' is not forecast (2 rows)"));
  EXPECT_NE(set.unmatched[2].find("mla_prefill.csv: 1 rows"), std::string::npos);
}

TEST(BadMeasurements, AreNamed) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv", "gpu,op,dtype,latency_s\nT4,add,fp32,fast\n");
  EXPECT_ERROR(read_measurements(folder.path()), kInput,
               "'latency_s': expected a number, found 'fast'");
  write_file(folder.path() / "a.csv", "x,y\n1,2\n");
  EXPECT_EQ(read_measurements(folder.path()).unmatched.size(), 1u);
  write_file(folder.path() / "b.csv.xz", "not xz");
  EXPECT_ERROR(read_measurements(folder.path() / "b.csv.xz"), kInput, "not a whole .xz file");
  EXPECT_ERROR(read_measurements(folder.path() / "none"), kNotFound, "no such file or folder");
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
  const Kernel& decode = set.kernels[0].kernel;
  EXPECT_EQ(decode.family, KernelFamily::kDecodeAttention);
  EXPECT_EQ(decode.n, 1024);
  EXPECT_TRUE(decode.warm);
  EXPECT_EQ(set.kernels[1].op, "attention (encoder)");
  EXPECT_FALSE(set.kernels[1].kernel.attention.causal);
  EXPECT_FALSE(set.kernels[2].kernel.warm);
  EXPECT_EQ(set.kernels[3].kernel.scheme, Scheme::kFp8Block);
  EXPECT_EQ(set.kernels[3].kernel.dtype, DType::kBf16);
  const Kernel& experts = set.kernels[4].kernel;
  EXPECT_EQ(experts.scheme, Scheme::kFp4WeightOnly);
  EXPECT_EQ(experts.n, 1440);
  EXPECT_EQ(experts.experts.ranks, 4);
  EXPECT_EQ(experts.experts.skew_percent, 120);
  // No gate: two matrices an expert.
  const ExpertShape& plain = set.kernels[5].kernel.experts;
  EXPECT_EQ(set.kernels[5].kernel.flops,
            static_cast<int64_t>(2.0 * 2 * 1856 * 2688 * plain.assignments));
  const Kernel& prefill = set.kernels[6].kernel;
  EXPECT_EQ(prefill.attention.kv_dtype, DType::kFp8);
  EXPECT_EQ(prefill.attention.window, 1024);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("distribution 'chaotic'"), std::string::npos);
}

TEST(Vidur, FourProductsOfALayer) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "compute/a40/org/model";
  std::filesystem::create_directories(path);
  write_file(path / "mlp.csv",
             "n_head,n_kv_head,n_embd,n_expanded_embd,use_gated_mlp,num_tokens,"
             "num_tensor_parallel_workers,time_stats.attn_pre_proj.median,"
             "time_stats.attn_post_proj.median,time_stats.mlp_up_proj.median,"
             "time_stats.mlp_down_proj.median\n64,8,8192,28672,True,128,2,0.1,0.2,0.3,0.4\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 4u);
  EXPECT_EQ(set.kernels[0].gpu, "a40");
  EXPECT_EQ(set.kernels[0].kernel.n, (32 + 2 * 4) * 128);
  EXPECT_EQ(set.kernels[1].kernel.k, 4096);
  EXPECT_EQ(set.kernels[2].kernel.n, 28672);
  EXPECT_EQ(set.kernels[3].measured_s, 0.4e-3);
}

}  // namespace
}  // namespace tilecast
