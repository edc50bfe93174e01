#include "measurements/measurements.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "measured_rows.h"
#include "measurements/xz.h"
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

/// Two streams of a few rows, as `xz` writes them.
const std::string kFirstStream{
    "\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x0c\x00\x00\x00"
    "\x8f\x98\x41\x9c\x01\x00\x2e\x67\x70\x75\x2c\x6f\x70\x2c\x64\x74\x79\x70\x65\x2c"
    "\x6e\x2c\x6c\x61\x74\x65\x6e\x63\x79\x5f\x73\x0a\x54\x34\x2c\x61\x64\x64\x2c\x66"
    "\x70\x33\x32\x2c\x31\x30\x30\x30\x2c\x31\x65\x2d\x35\x0a\x00\x00\x77\x52\x11\x38"
    "\x00\x01\x43\x2f\xb4\x94\x03\x50\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a",
    100};
const std::string kSecondStream{
    "\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x0c\x00\x00\x00"
    "\x8f\x98\x41\x9c\x01\x00\x15\x54\x34\x2c\x61\x64\x64\x2c\x66\x70\x33\x32\x2c\x32"
    "\x30\x30\x30\x2c\x32\x65\x2d\x35\x0a\x00\x00\x00\x08\x6d\xc0\x8e\x00\x01\x2a\x16"
    "\x52\xcc\x39\xbb\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a",
    76};

TEST(Xz, StreamsOneAfterTheOtherAreAllRead) {
  if (!reads_xz()) GTEST_SKIP() << "built without liblzma";
  const TemporaryFolder folder;
  const auto path = folder.path() / "rows.csv.xz";
  write_file(path, kFirstStream + kSecondStream);
  EXPECT_EQ(read_measurement_text(path),
            "gpu,op,dtype,n,latency_s\nT4,add,fp32,1000,1e-5\nT4,add,fp32,2000,2e-5\n");
  // Padding is a multiple of four bytes.
  write_file(path, kFirstStream + std::string(8, '\0') + kSecondStream + std::string(4, '\0'));
  EXPECT_EQ(read_measurements(path).kernels.size(), 2u);
}

TEST(Xz, WhatIsDamagedAnywhereIsAnError) {
  if (!reads_xz()) GTEST_SKIP() << "built without liblzma";
  const TemporaryFolder folder;
  const auto path = folder.path() / "rows.csv.xz";
  const std::string both = kFirstStream + kSecondStream;
  const std::string message = "not a whole .xz file: it ends early, is damaged, or has other bytes";
  for (const std::string_view after : {"x", "rows.csv.xz",
                                       "\xfd"
                                       "7zXZ"}) {
    write_file(path, both + std::string(after));
    EXPECT_ERROR(read_measurement_text(path), kInput, message);
  }
  write_file(path, both + std::string(3, '\0'));
  EXPECT_ERROR(read_measurement_text(path), kInput, message);
  for (size_t size = 1; size < both.size(); ++size) {
    if (size == kFirstStream.size()) continue;
    // Up to three bytes of a second stream's start, too.
    write_file(path, both.substr(0, size));
    EXPECT_ERROR(read_measurement_text(path), kInput, message);
  }
  for (size_t at = 0; at < both.size(); ++at) {
    std::string damaged = both;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    write_file(path, damaged);
    EXPECT_ERROR(read_measurement_text(path), kInput, message);
  }
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
  EXPECT_EQ(clocked.conditions,
            (Conditions{
                .software = software_of("rocblas"), .caches = Caches::kWarm, .clock_hz = 1087e6}));
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
  EXPECT_EQ(set.kernels[0].conditions, (Conditions{.software = software_of("pipeweave")}));
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
    EXPECT_EQ(m.conditions.software, software_of("vllm"));
    EXPECT_EQ(m.protocol, Protocol::kBackToBack);
    EXPECT_DOUBLE_EQ(m.measured_s, seconds);
  };
  const Rows norm{128, 8192, Rows::Function::kNorm};
  expect_row(4, "rms_norm", norm, 6e-6);
  expect_row(5, "rms_norm", norm, 7e-6);
  // Two ranks divide the FFN and the heads: 32 of the queries, 4 of the keys.
  expect_row(6, "gated_activation", Stream{128, 14336}, 12e-6);
  expect_row(7, "rotary", Stream{128, (32 + 4) * 128}, 5e-6);
  // PyTorch's kernels; the file says too little about them, so only the products are read.
  for (size_t i = 8; i < 12; ++i) EXPECT_TRUE(set.kernels[i].kernel.is<Gemm>());
  EXPECT_TRUE(set.unmatched.empty());
}

}  // namespace
}  // namespace tilecast
