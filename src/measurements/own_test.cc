#include <gtest/gtest.h>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

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

TEST(OwnLayout, LoadsUnderPowerAndTracesAreListedOnly) {
  const TemporaryFolder folder;
  write_file(folder.path() / "power.csv",
             "gpu,stage,name,op,dtype,m,n,k,load,latency_s,energy_power_w,status\n"
             "H100,power,idle,idle,,,,,sustained,,74,ok\n"
             "H100,power,product,gemm,bf16,8192,8192,8192,sustained,1.56e-3,683,ok\n");
  write_file(
      folder.path() / "traces.csv",
      "gpu,stage,model,mode,dtype,latency_s,trace_bytes\nH100,traces,m,decode,bf16,1e-3,9\n");
  const MeasurementSet set = read_measurements(folder.path());
  EXPECT_TRUE(set.kernels.empty());
  EXPECT_TRUE(set.models.empty());
  ASSERT_EQ(set.unmatched.size(), 2u);
  EXPECT_NE(set.unmatched[0].find("(2 rows)"), std::string::npos);
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

}  // namespace
}  // namespace tilecast
