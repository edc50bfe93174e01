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
  EXPECT_EQ(m.kernel.shape, KernelVariant(Gemm{8, 128, 256, 32, true}));
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
  EXPECT_EQ(set.kernels.size(), 4u);  // a warm row, a convolution and a transposition among them
  EXPECT_EQ(set.unmatched.size(), 2u);
}

/// Rows as the kit writes them: some of the columns of its families.
MeasurementSet kit_rows(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.path() / "rows.csv", text);
  return read_measurements(folder.path());
}

TEST(OwnLayout, TheKitsAttentionKeepsItsStageHeadsAndCache) {
  const MeasurementSet set = kit_rows(
      "gpu,op,dtype,batch,heads,kv_heads,queries,keys,head_size,causal,load,l2,latency_s,status\n"
      "H100,attention,bf16,4,32,8,1,2048,128,0,burst,cold,1e-5,ok\n"
      "H100,attention,bf16,2,32,8,512,512,128,1,burst,warm,2e-5,ok\n"
      "H100,attention,fp16,2,16,16,512,512,64,0,burst,cold,3e-5,ok\n"
      "H100,attention_backward,bf16,2,32,8,512,512,128,1,burst,cold,4e-5,ok\n");
  EXPECT_TRUE(set.unmatched.empty());
  ASSERT_EQ(set.kernels.size(), 4u);
  const KernelMeasurement& decode = set.kernels[0];
  EXPECT_EQ(decode.op, "cached_attention");
  EXPECT_TRUE(decode.kernel.as<Attention>()->is_decode());
  EXPECT_EQ(decode.measured_s, 1e-5);
  // Each head multiplies one query by 2048 keys and values of 128: 4 * 128 FLOPs a pair.
  EXPECT_EQ(decode.kernel.flops, 4ll * 128 * 2048 * 32 * 4);
  // The cache of 8 key heads once, in two bytes; one query and its output.
  EXPECT_EQ(decode.kernel.read_bytes, 2ll * 4 * (2048 * 8 * 2 * 128 + 32 * 128));
  EXPECT_EQ(decode.kernel.write_bytes, 2ll * 4 * 32 * 128);
  EXPECT_EQ(decode.conditions.caches, Caches::kCold);
  const KernelMeasurement& prefill = set.kernels[1];
  EXPECT_EQ(prefill.op, "attention (warm L2)");
  EXPECT_EQ(prefill.conditions.caches, Caches::kWarm);
  EXPECT_TRUE(prefill.kernel.as<Attention>()->causal);
  EXPECT_EQ(prefill.kernel.as<Attention>()->kv_heads, 8);
  EXPECT_EQ(prefill.kernel.flops, 4ll * 128 * (512 * 513 / 2) * 32 * 2);
  EXPECT_EQ(set.kernels[2].op, "attention (encoder)");
  EXPECT_EQ(set.kernels[2].kernel.dtype, DType::kFp16);
  EXPECT_EQ(set.kernels[3].op, "attention_backward");
  EXPECT_EQ(set.kernels[3].kernel.flops, prefill.kernel.flops / 2 * 5);
}

TEST(OwnLayout, AttentionMayNameAWindowAndACachesType) {
  const MeasurementSet set = kit_rows(
      "gpu,op,dtype,kv_dtype,batch,heads,kv_heads,queries,keys,head_size,window,latency_s\n"
      "H100,attention,bf16,fp8,4,32,8,1,2048,128,1024,1e-5\n"
      "H100,attention,bf16,fp7,4,32,8,1,2048,128,1024,1e-5\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  EXPECT_EQ(set.kernels[0].kernel.as<Attention>()->window, 1024);
  EXPECT_EQ(set.kernels[0].kernel.as<Attention>()->kv_dtype, DType::kFp8);
  EXPECT_EQ(set.kernels[0].kernel.flops, 4ll * 128 * 1024 * 32 * 4);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("kv_dtype 'fp7' is not forecast"), std::string::npos);
}

TEST(OwnLayout, TheKitsConvolutionsKeepAllTheirSizes) {
  const std::string header =
      "gpu,op,dtype,batch,channels,height,width,filters,kernel_height,kernel_width,stride,padding,"
      "groups,load,l2,latency_s,status\n";
  const MeasurementSet set =
      kit_rows(header +
               "V100,conv_forward,fp16,8,64,56,56,256,1,1,1,0,1,burst,cold,1e-5,ok\n"
               "V100,conv_backward_data,fp16,8,64,56,56,128,3,3,2,1,1,burst,cold,2e-5,ok\n"
               "V100,conv_backward_weight,fp16,8,64,56,56,128,3,3,2,1,1,burst,cold,3e-5,ok\n"
               "V100,conv_forward,fp32,2,96,20,30,96,7,5,1,2,96,burst,cold,4e-5,ok\n");
  EXPECT_TRUE(set.unmatched.empty());
  ASSERT_EQ(set.kernels.size(), 4u);
  const Kernel& plain = set.kernels[0].kernel;
  EXPECT_EQ(set.kernels[0].op, "conv2d");
  EXPECT_EQ(plain.flops, 2ll * 8 * 56 * 56 * 256 * 64);
  EXPECT_EQ(plain.bytes(), 2ll * (8 * 64 * 56 * 56 + 256 * 64 + 8 * 256 * 56 * 56));
  // 56 pixels padded to 58, in steps of 2: 28. Both gradients are products of the same size.
  for (const size_t i : {size_t{1}, size_t{2}})
    EXPECT_EQ(set.kernels[i].kernel.flops, 2ll * 8 * 28 * 28 * 128 * 64 * 9);
  EXPECT_EQ(set.kernels[1].op, "conv2d_input_backward");
  EXPECT_EQ(set.kernels[1].kernel.write_bytes, 2ll * 8 * 64 * 56 * 56);
  EXPECT_EQ(set.kernels[2].op, "conv2d_weight_backward");
  EXPECT_EQ(set.kernels[2].kernel.write_bytes, 2ll * 128 * 64 * 9);
  // 20 x 30 pixels padded by 2, a window of 7 x 5: 18 x 30; each channel for itself.
  const Kernel& depthwise = set.kernels[3].kernel;
  EXPECT_EQ(gemm_of(depthwise), (Gemm{96, 2 * 18 * 30, 1, 35, true}));
  EXPECT_EQ(depthwise.flops, 2ll * 2 * 18 * 30 * 96 * 35);
  EXPECT_EQ(set.kernels[3].measured_s, 4e-5);
  EXPECT_ERROR(
      kit_rows(header + "V100,conv_forward,fp16,8,64,56,56,256,1,1,1,0,3,burst,cold,1,ok\n"),
      kInput, "line 2: conv2d: 3 groups do not divide 64 and 256 channels");
}

TEST(OwnLayout, EmbeddingBagsSayHowOftenTheirRowsAreUsed) {
  const std::string header = "gpu,op,dtype,m,n,k,pooling,reuse,latency_s\n";
  const auto hits = [](const KernelMeasurement& row) {
    return row.kernel.as<EmbeddingBag>()->hits.at(1e9);
  };
  // 4,000 lookups: of 1,000 rows each used 4 times, three quarters are found in a large cache; of
  // rows that are all used once, none.
  const MeasurementSet own = kit_rows(header +
                                      "V100,embedding_bag,fp32,500,64,100000,8,0:0:1000,1e-5\n"
                                      "V100,embedding_bag,fp32,500,64,100000,8,0,1e-5\n"
                                      "V100,embedding_bag,fp32,500,64,1000,8,,1e-5\n");
  ASSERT_EQ(own.kernels.size(), 3U);
  EXPECT_NEAR(hits(own.kernels[0]), 0.75, 0.01);
  EXPECT_NEAR(hits(own.kernels[1]), 0, 0.01);
  // Any of 1,000 rows: 982 of them are used.
  EXPECT_NEAR(hits(own.kernels[2]), 1 - 0.982 / 4, 0.01);
  EXPECT_ERROR(kit_rows(header + "V100,embedding_bag,fp32,500,64,900,8,0:0:1000,1e-5\n"), kInput,
               "line 2: embedding_bag: reuse 0:0:1000: it counts 1000 rows, the table has 900");
  EXPECT_ERROR(kit_rows(header + "V100,embedding_bag,fp32,500,64,900,8,4;2,1e-5\n"), kInput,
               "line 2: expected whole numbers with colons between them (4:2:1), found '4;2'");
  // The kit takes rows in turn.
  const MeasurementSet kit = kit_rows("# measured_by: Tilecast measurement kit\n" + header +
                                      "V100,embedding_bag,fp32,500,64,1000,8,,1e-5\n"
                                      "V100,embedding_bag,fp32,500,64,900,8,1000:0:100,1e-5\n");
  ASSERT_EQ(kit.kernels.size(), 2U);
  EXPECT_NEAR(hits(kit.kernels[0]), 0.75, 0.01);
  EXPECT_NEAR(hits(kit.kernels[1]), 1 - 900.0 / 4000, 0.01);
}

TEST(OwnLayout, WarmRowsAreWarmKernelsAndCountForThemselves) {
  const MeasurementSet set = kit_rows(
      "gpu,op,dtype,batch,m,n,k,trans_a,trans_b,load,l2,latency_s,status\n"
      "V100,gemm,fp32,1,64,128,256,0,1,burst,warm,1e-5,ok\n"
      "V100,gemm,fp32,1,64,128,256,0,1,burst,cold,2e-5,ok\n"
      "V100,transpose,fp32,,64,128,,,,burst,cold,3e-5,ok\n");
  ASSERT_EQ(set.kernels.size(), 3u);
  EXPECT_EQ(set.kernels[0].op, "gemm (warm L2)");
  EXPECT_EQ(set.kernels[0].conditions.caches, Caches::kWarm);
  EXPECT_EQ(set.kernels[1].op, "gemm");
  EXPECT_EQ(set.kernels[2].op, "transpose");
  EXPECT_EQ(set.kernels[2].kernel.bytes(), 2ll * 4 * 64 * 128);
}

TEST(OwnLayout, WhatIsLeftOutIsCountedByReason) {
  const MeasurementSet set = kit_rows(
      "gpu,op,dtype,m,n,latency_s,status\n"
      "T4,eigenvalues,fp32,64,128,1e-5,ok\nT4,eigenvalues,fp32,64,128,1e-5,ok\nT4,determinant,fp32,"
      "64,128,1,ok\n"
      "T4,softmax,fp64,64,128,1e-5,ok\nT4,softmax,fp32,64,128,,failed\nT4,softmax,fp32,64,128,,\n"
      "T4,softmax,fp32,64,128,,\nT4,\x1b[2Jevil,fp32,64,128,1,\n");
  EXPECT_TRUE(set.kernels.empty());
  ASSERT_EQ(set.unmatched.size(), 6u);
  std::string all;
  for (const std::string& line : set.unmatched) all += line.substr(line.find(": ")) + "\n";
  EXPECT_EQ(all,
            ": operator 'eigenvalues' is not forecast (2 rows)\n"
            ": operator 'determinant' is not forecast\n"
            ": dtype 'fp64' is not forecast\n"
            ": no time was measured (failed)\n"
            ": latency_s is empty (2 rows)\n"
            ": operator '\\x1b[2Jevil' is not forecast\n");
  // The families that hold no kernels to forecast say so.
  const auto reason = [&](const std::string& text) {
    const MeasurementSet found = kit_rows(text);
    return found.unmatched.size() == 1 ? found.unmatched[0] : "";
  };
  EXPECT_NE(reason("gpu,op,n,l2,latency_s\nT4,read_bandwidth,65536,cold,1e-5\n")
                .find("of the device itself are not forecast (1 row)"),
            std::string::npos);
  EXPECT_NE(reason("gpu,model,mode,kernel_name,calls,total_s\nT4,x,inference,k,1,1\n")
                .find("have no sizes to forecast from"),
            std::string::npos);
  EXPECT_NE(reason("gpu,model,mode,dtype,other_model,together_s\nT4,x,inference,fp32,y,1\n")
                .find("two processes on one GPU"),
            std::string::npos);
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

TEST(OwnLayout, ModelsBringTheSettingsOfTheirSteps) {
  const TemporaryFolder folder;
  const std::string header =
      "gpu,model,mode,dtype,attention,checkpointing,optimizer,batch,seq,latency_s,loss\n";
  write_file(folder.path() / "models.csv",
             header +
                 "T4,x,training,bf16,sdpa,1,adamw-forloop,8,512,0.25,1\n"
                 "T4,x,training,fp32,eager,0,adamw,8,512,0.25,0\n");
  MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.models.size(), 2U);
  EXPECT_EQ(set.models[0].optimizer, "adamw");
  EXPECT_EQ(set.models[0].optimizer_impl, "for-loop");
  EXPECT_TRUE(set.models[0].checkpointing);
  EXPECT_TRUE(set.models[0].loss);
  EXPECT_EQ(set.models[1].optimizer_impl, "foreach");
  EXPECT_FALSE(set.models[1].checkpointing);
  EXPECT_FALSE(set.models[1].loss);
  // Steps of the kit use the fused AdamW and a loss.
  write_file(folder.path() / "models.csv",
             "# measured_by: Tilecast measurement kit, commit 0\n"
             "gpu,model,mode,dtype,optimizer,batch,seq,latency_s\n"
             "T4,x,training,fp32,adamw,8,512,0.25\nT4,x,inference,fp32,none,8,512,0.25\n");
  set = read_measurements(folder.path());
  ASSERT_EQ(set.models.size(), 2U);
  EXPECT_EQ(set.models[0].optimizer_impl, "fused");
  EXPECT_TRUE(set.models[0].loss);
  EXPECT_EQ(set.models[1].optimizer_impl, "foreach") << "as not given: inference has no optimizer";
  EXPECT_FALSE(set.models[1].loss);
}

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

TEST(Aiconfigurator, OfSeveralKernelsForALayerTheFastestCounts) {
  const TemporaryFolder folder;
  write_file(
      folder.path() / "moe.csv",
      "gpu,software,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,tp,ep,distribution,"
      "latency_ms,kernel\n"
      "B200,trtllm 1,nvfp4,16,7168,2048,8,256,8,1,balanced,0.19,cutlass\n"
      "B200,trtllm 1,nvfp4,16,7168,2048,8,256,8,1,balanced,0.05,min_latency\n"
      "B200,trtllm 1,nvfp4,64,7168,2048,8,256,8,1,balanced,0.30,cutlass\n"
      "B200,trtllm 1,nvfp4,64,7168,2048,8,256,8,1,balanced,0.32,min_latency\n"
      "B200,trtllm 1,nvfp4,64,7168,2048,8,256,8,1,balanced,0.28,cutlass\n");
  const MeasurementSet set = read_measurements(folder.path());
  std::vector<double> seconds;
  for (const auto& row : set.kernels) seconds.push_back(row.measured_s);
  EXPECT_EQ(seconds, (std::vector<double>{0.05 * 1e-3, 0.30 * 1e-3, 0.28 * 1e-3}));
}

/// Rows of one table.
MeasurementSet table_rows(const std::string& file, const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.path() / file, text);
  return read_measurements(folder.path());
}

/// The reasons why rows are left out, without the files' names.
std::string reasons(const MeasurementSet& set) {
  std::string all;
  for (const std::string& line : set.unmatched) all += line.substr(line.find(": ") + 2) + "\n";
  return all;
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

TEST(Rocm, ProductsAreByRowsAndAtTheClockInForce) {
  const MeasurementSet set = table_rows(
      "gemm.csv",
      "gpu,library,trans_a,trans_b,in,acc,out,m,n,batch,k,latency_us,tflops,tile_m,tile_n,depth_u,"
      "split,matrix_instruction,solution,unit,clock_mhz,file,commit\n"
      "MI100,rocblas,N,N,fp16,fp32,fp16,320,48,1,64,20,1,64,32,16,1,16x16x4x1,1,percent,1087,a,b\n"
      "MI100,rocblas,T,N,fp32,fp32,fp32,320,48,6,64,20,1,,,16,1,,1,gflops,,a,b\n"
      "MI100,rocblas,T,N,int8,int32,int32,320,48,1,64,20,1,64,32,16,1,,1,gflops,,a,b\n"
      "MI100,rocblas,T,N,int8,int32,int32,320,48,2,64,20,1,64,32,16,1,,1,gflops,,a,b\n"
      "MI100,rocblas,T,N,bf16,fp32,fp32,320,48,1,64,310,1,64,32,16,1,,1,percent_stream,1087,a,b\n"
      "MI100,rocblas,T,N,bf16,fp32,fp32,320,48,1,64,290,1,64,32,16,1,,1,percent_stream,1087,a,b\n"
      "MI100,rocblas,T,N,fp16,fp16,fp16,320,48,1,64,20,1,64,32,16,1,,1,gflops,,a,b\n"
      "MI100,rocblas,T,N,fp64,fp64,fp64,320,48,1,64,20,1,64,32,16,1,,1,gflops,,a,b\n"
      "MI100,magma,T,N,fp16,fp32,fp16,320,48,1,64,20,1,64,32,16,1,,1,gflops,,a,b\n");
  ASSERT_EQ(set.kernels.size(), 6u);
  const KernelMeasurement& clocked = set.kernels[0];
  EXPECT_EQ(clocked.op, "gemm (warm L2)");
  EXPECT_EQ(gemm_of(clocked.kernel), (Gemm{1, 48, 320, 64, false}));
  EXPECT_EQ(clocked.kernel.dtype, DType::kFp16);
  EXPECT_DOUBLE_EQ(clocked.measured_s, 20e-6);
  EXPECT_EQ(
      clocked.conditions,
      (Conditions{.software = Software::kRocBlas, .caches = Caches::kWarm, .clock_hz = 1087e6}));
  EXPECT_FALSE(clocked.conditions.half_sums);
  EXPECT_EQ(clocked.protocol, Protocol::kBackToBack);
  EXPECT_EQ(clocked.tile, (Tile{64, 32}));
  EXPECT_EQ(gemm_of(set.kernels[1].kernel), (Gemm{6, 48, 320, 64, true}));
  EXPECT_FALSE(set.kernels[1].conditions.clock_hz);
  EXPECT_FALSE(set.kernels[1].tile);
  EXPECT_EQ(set.kernels[2].op, "quantized_linear (warm L2)");
  EXPECT_EQ(set.kernels[2].kernel.compute_dtype(), DType::kInt8);
  EXPECT_EQ(gemm_of(set.kernels[3].kernel), (Gemm{2, 48, 320, 64, true}));
  EXPECT_EQ(set.kernels[3].kernel.scheme, QuantScheme::kInt8);
  EXPECT_EQ(set.kernels[4].op, "gemm (warm L2, fp32 output)");
  EXPECT_EQ(set.kernels[5].op, "gemm (warm L2, fp16 sums)");
  EXPECT_TRUE(set.kernels[5].conditions.half_sums);
  EXPECT_EQ(reasons(set),
            "times below 0.3 ms of the unit percent_stream hold the host's\n"
            "dtype 'fp64' is not forecast\n"
            "library 'magma' is unknown\n");
}

TEST(BadMeasurements, SizesThatAnOperatorDoesNotTakeAreNamedWithTheirLine) {
  EXPECT_ERROR(table_rows("gemm_fp8.csv", "gpu,m,n,k,latency_us\nH20,4,384,2048,22\nH20,0,1,1,2\n"),
               kInput, "gemm_fp8.csv: line 3: quantized_linear: m must be at least 1, found 0");
  EXPECT_ERROR(table_rows("mla_decode.csv",
                          "gpu,software,dtype,kv_dtype,batch,kv_len,num_heads,latency_ms,kernel\n"
                          "H100,sglang 1,bfloat16,fp8,8,5,0,0.05,flash_attention\n"),
               kInput, "mla_decode.csv: line 2: cached_attention: heads must be at least 1");
}

TEST(PipeWeave, ItsProductsAreQuantizedLayers) {
  const std::string rows = "gpu,m,n,k,latency_us\nNVIDIA H20,4,384,2048,22\n";
  const MeasurementSet set = table_rows("gemm_fp8.csv", rows);
  ASSERT_EQ(set.kernels.size(), 1u);
  EXPECT_EQ(set.kernels[0].op, "quantized_linear");
  EXPECT_EQ(gemm_of(set.kernels[0].kernel), (Gemm{.m = 4, .n = 384, .k = 2048, .trans_b = 1}));
  EXPECT_EQ(set.kernels[0].kernel.scheme, QuantScheme::kFp8);
  EXPECT_EQ(set.kernels[0].conditions, (Conditions{.software = Software::kPipeWeave}));
  EXPECT_DOUBLE_EQ(set.kernels[0].measured_s, 22e-6);
  EXPECT_NE(reasons(table_rows("products.csv", rows)).find("state a dtype"), std::string::npos);
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
  EXPECT_EQ(set.kernels[0].kernel.as<Gemm>()->n, (32 + 2 * 4) * 128);
  EXPECT_EQ(set.kernels[1].kernel.as<Gemm>()->k, 4096);
  EXPECT_EQ(set.kernels[2].kernel.as<Gemm>()->n, 28672);
  EXPECT_EQ(set.kernels[3].measured_s, 0.4e-3);
}

TEST(Vidur, NormsActivationsAndRotaryEmbeddingOfGatedLayersAreVllms) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "compute/h100/org/model";
  std::filesystem::create_directories(path);
  write_file(path / "mlp.csv",
             "n_head,n_kv_head,n_embd,n_expanded_embd,use_gated_mlp,num_tokens,"
             "num_tensor_parallel_workers,time_stats.attn_pre_proj.median,"
             "time_stats.attn_post_proj.median,time_stats.mlp_up_proj.median,"
             "time_stats.mlp_down_proj.median,time_stats.input_layernorm.median,"
             "time_stats.post_attention_layernorm.median,time_stats.mlp_act.median,"
             "time_stats.attn_rope.median\n"
             "64,8,8192,28672,True,128,2,0.1,0.2,0.3,0.4,0.006,0.007,0.012,0.005\n"
             "32,32,2560,10240,False,128,1,0.1,0.2,0.3,0.4,0.006,,0.003,0.003\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.kernels.size(), 4u + 4u + 4u);
  const auto expect_row = [&](size_t i, const char* op, KernelVariant shape, double seconds) {
    const KernelMeasurement& m = set.kernels[i];
    EXPECT_EQ(m.op, op);
    EXPECT_EQ(m.kernel.shape, shape);
    EXPECT_EQ(m.kernel.dtype, DType::kFp16);
    EXPECT_EQ(m.conditions.software, Software::kVllm);
    EXPECT_EQ(m.protocol, Protocol::kBackToBack);
    EXPECT_DOUBLE_EQ(m.measured_s, seconds);
  };
  const Rows norm{128, 8192, Rows::Function::kNorm};
  expect_row(4, "rms_norm", norm, 6e-6);
  expect_row(5, "rms_norm", norm, 7e-6);
  // Two ranks divide the FFN and the heads: 32 of the queries, 4 of the keys.
  expect_row(6, "gated_activation", Stream{128, 14336}, 12e-6);
  expect_row(7, "rotary", Stream{128, (32 + 4) * 128}, 5e-6);
  // PyTorch's kernels, of which the file does not say enough: only the products are read.
  for (size_t i = 8; i < 12; ++i) EXPECT_TRUE(set.kernels[i].kernel.is<Gemm>());
  EXPECT_TRUE(set.unmatched.empty());
}

TEST(CollectiveLayouts, NcclCountsElementsOfTheWholeBuffer) {
  const TemporaryFolder folder;
  write_file(folder.path() / "nccl.csv",
             "gpu,software,dtype,collective,num_gpus,elements,latency_ms\n"
             "H100,nccl 2.27.3,half,alltoall,4,1024,0.007\n"
             "H100,nccl 2.27.3,int8,all_gather,8,1024,0.01\n"
             "H100,nccl 2.27.3,half,gossip,8,1024,0.01\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 2u);
  EXPECT_EQ(set.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(set.collectives[0].bytes, 2048);
  EXPECT_EQ(set.collectives[0].group.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 7e-6);
  EXPECT_EQ(set.collectives[1].bytes, 1024);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("'gossip'"), std::string::npos);
}

TEST(CollectiveLayouts, OfTwoTimesOfServingSoftwareTheReplayedOneCounts) {
  const TemporaryFolder folder;
  write_file(folder.path() / "custom_allreduce.csv",
             "gpu,software,dtype,num_gpus,elements,latency_ms\n"
             "H100,vllm 0.24.0,bfloat16,2,128,0.042\n"
             "H100,vllm 0.24.0,bfloat16,2,128,0.0043\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 1u);
  EXPECT_EQ(set.collectives[0].software, Software::kVllm);
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 4.3e-6);
  EXPECT_EQ(set.unmatched.size(), 1u);
}

TEST(CollectiveLayouts, ARowOfDeepEpIsADispatchAndACombine) {
  const TemporaryFolder folder;
  write_file(folder.path() / "deepep_normal.csv",
             "gpu,software,nodes,hidden_size,num_tokens,topk,num_experts,dispatch_sms,"
             "dispatch_transmit_us,combine_sms,combine_transmit_us\n"
             "H100,sglang 0.5,2,7168,64,8,256,20,47,24,97\n"
             "H100,sglang 0.5,2,7168,64,2,8,20,47,24,97\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 2u);
  EXPECT_EQ(set.collectives[0].group.ranks, 16);
  EXPECT_EQ(set.collectives[0].exchange->sm_count, 20);
  EXPECT_EQ(set.collectives[1].kind, CollectiveKind::kExpertCombine);
  EXPECT_EQ(set.collectives[1].exchange->sm_count, 24);
  EXPECT_DOUBLE_EQ(set.collectives[1].measured_s, 97e-6);
  EXPECT_EQ(set.unmatched.size(), 1u) << "8 experts on 16 ranks";
}

TEST(CollectiveLayouts, VidursFoldersNameTheNode) {
  const TemporaryFolder folder;
  const std::string rows =
      "time_stats.all_reduce.median,num_workers,size,collective,devices_per_node\n"
      "0.5,16,2048,all_reduce,8\n";
  for (const char* node : {"a100_dgx", "a40_pairwise_nvlink"}) {
    std::filesystem::create_directories(folder.path() / node);
    write_file(folder.path() / node / "all_reduce.csv", rows);
  }
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 1u);
  EXPECT_EQ(set.collectives[0].cluster, "p4d");
  EXPECT_EQ(set.collectives[0].group, (CommGroup{.ranks = 16, .ranks_per_node = 8}));
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 0.5e-3);
  EXPECT_EQ(set.unmatched.size(), 1u);
}

}  // namespace
}  // namespace tilecast
