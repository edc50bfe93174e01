#include "train/dataset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/law.h"
#include "test_support.h"
#include "train/kind_table.h"

namespace tilecast {
namespace {

TEST(TrainingData, RowsFasterThanTheirBoundAreLeftOut) {
  const TemporaryFolder folder;
  // 4096 x 4096 weights in BF16 are 33.6 MB: 2 us of an H100's L2, where they fit. 8192 x 8192 are
  // 134 MB, at least 84 of them from DRAM, in 25 us.
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.001\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.014\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,8192,8192,0.020\n"
             "nvidia-h100-sxm5-80gb,trtllm 1.3.0,fp8,16,4096,4096,0.014\n");
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  ASSERT_EQ(data.rows.size(), 2u);
  EXPECT_EQ(data.rows[0].seconds, 14e-6);
  EXPECT_EQ(data.rows[0].conditions.software, software_of("vllm"));
  EXPECT_EQ(data.rows[0].conditions.caches, Caches::kAlternating);
  EXPECT_EQ(data.rows[1].conditions.software, software_of("trtllm"));
  EXPECT_EQ(data.rows[1].weight, 1.0f) << "back to back: no call's jitter";
  EXPECT_EQ(data.report.back(),
            "left out 2 rows that are faster than their bound: a cache was warm, or the work less "
            "than they say");
}

TEST(TrainingData, SeriesThatSayMoreBytesThanWereReadAreLeftOut) {
  // Caches of 0.3 to 2.4 GB on A100 (2.04 TB/s): with shared key heads at 1.5 times the bandwidth
  // above 1 GB, at 0.9 of it below; without, always at 0.8.
  const TemporaryFolder folder;
  std::string rows =
      "gpu,software,dtype,kv_dtype,batch,kv_len,num_heads,num_kv_heads,head_dim,window_size,"
      "latency_ms\n";
  for (int batch = 1; batch <= 30; ++batch) {
    for (const int heads : {8, 32}) {
      const double bytes = 2.0 * 2 * batch * 19532 * 8 * 128;
      const double share = heads == 8 ? 0.8 : bytes > 1e9 ? 1.5 : 0.9;
      rows +=
          fmt::format("nvidia-a100-sxm4-80gb,trtllm 1,bfloat16,bfloat16,{},19531,{},8,128,0,{}\n",
                      batch, heads, 1e3 * bytes / (share * 2.039e12));
    }
  }
  write_file(folder.path() / "decode.csv", rows);
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  EXPECT_EQ(data.rows.size(), 30u);
  for (const TrainingRow& row : data.rows) EXPECT_EQ(row.kernel.as<Attention>()->heads, 8);
  EXPECT_NE(data.report.back().find("12 further rows of attention"), std::string::npos)
      << data.report.back();
}

TEST(TrainingData, EveryRowMeetsTheLawUnderItsOwnConditions) {
  const TemporaryFolder folder;
  write_file(folder.path() / "attention.csv",
             "gpu,op,dtype,batch,heads,kv_heads,queries,keys,head_size,causal,l2,latency_s\n"
             "H100,attention,bf16,1,32,8,512,512,128,1,warm,9e-5\n"
             "H100,attention,bf16,1,32,8,512,512,128,1,cold,9e-5\n");
  write_file(folder.path() / "products.csv",
             "gpu,op,dtype,m,n,k,l2,latency_s\n"
             "H100,gemm,bf16,512,512,512,warm,1e-5\nH100,gemm,bf16,512,512,512,cold,1e-5\n");
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  ASSERT_EQ(data.rows.size(), 4u);
  Weights weights;
  const auto tables = make_tables(data, weights, 1);
  for (const KernelKind kind : {KernelKind::kAttention, KernelKind::kTensorMatmul}) {
    const KindTable& table = tables[static_cast<size_t>(kind)];
    ASSERT_EQ(table.count(), 2u) << kernel_kind_name(kind);
    EXPECT_EQ(data.rows[table.index[0]].conditions.caches, Caches::kWarm);
    EXPECT_EQ(data.rows[table.index[1]].conditions.caches, Caches::kCold);
    EXPECT_EQ(data.rows[table.index[0]].seconds, data.rows[table.index[1]].seconds);
    EXPECT_LT(table.law_s[0], table.law_s[1]) << kernel_kind_name(kind) << " with operands in L2";
    EXPECT_GT(table.log_ratio[0], table.log_ratio[1]);
  }
  EXPECT_TRUE(data.report.empty());
}

TEST(TrainingData, RowsAreBoundByTheClockThatWasInForce) {
  MeasurementSet set{.sources = {"a"}, .kernels = {}, .models = {}, .unmatched = {}};
  const Device device = find_device("H100");
  const double clock_hz = device.gpu().boost_clock_hz / 2;
  const Kernel kernel =
      kernels_of_sizes("gemm", DType::kBf16, {{"m", 8192}, {"n", 8192}, {"k", 8192}}).front();
  const double least_s =
      static_cast<double>(kernel.flops) / device.matmul_peak(DType::kBf16);  // at the boost clock
  for (const double share : {1.5, 2.5}) {
    set.kernels.push_back({.gpu = "H100",
                           .op = "gemm",
                           .kernel = kernel,
                           .conditions = {.clock_hz = clock_hz},
                           .measured_s = share * least_s,
                           .protocol = Protocol::kBackToBack});
  }
  const TrainingData data = prepare_training_data({set}, {});
  ASSERT_EQ(data.rows.size(), 1u) << "the first is faster than half the clock allows";
  EXPECT_DOUBLE_EQ(data.rows[0].seconds, 2.5 * least_s);
  EXPECT_EQ(data.devices[data.rows[0].device].gpu().boost_clock_hz, device.gpu().boost_clock_hz);
  EXPECT_EQ(data.running(data.rows[0]).gpu().boost_clock_hz, clock_hz);
}

TEST(TrainingData, FilesOfACardInTwoStatesAreMovedToTheirMean) {
  // The second file has all shapes 1.1 or 1.02 times as slow.
  const auto rows_of = [](double slower, Protocol protocol) {
    MeasurementSet set{.sources = {"a", "b"}, .kernels = {}, .models = {}, .unmatched = {}};
    const Device device = find_device("V100");
    for (const size_t source : {0, 1}) {
      for (int64_t k = 512; k <= 65536; k *= 2) {
        for (const int64_t m : {4096, 4608}) {
          const Kernel kernel =
              kernels_of_sizes("linear", DType::kFp32, {{"m", m}, {"n", 4096}, {"k", k}}).front();
          const double law_s =
              single_precision_law(kernel, Chip(device, bundled_laws()), {}).seconds;
          set.kernels.push_back({.gpu = "V100",
                                 .op = "linear",
                                 .kernel = kernel,
                                 .measured_s = (source == 0 ? 1 : slower) * law_s,
                                 .protocol = protocol,
                                 .source = source});
        }
      }
    }
    TrainingData data = prepare_training_data({set}, {});
    return data.rows.back().seconds / set.kernels.back().measured_s;
  };
  EXPECT_NEAR(rows_of(1.1, Protocol::kSingleCall), 1 / std::sqrt(1.1), 0.01);
  EXPECT_NEAR(rows_of(1.02, Protocol::kSingleCall), 1, 0.01);
  EXPECT_NEAR(rows_of(1.1, Protocol::kBackToBack), 1, 0.01) << "other software, not another state";
}

TEST(TrainingData, WhatCameLateToTheDataStandsLast) {
  // A row's number decides by a draw whether it is held out.
  MeasurementSet set{.sources = {"a"}, .kernels = {}, .models = {}, .unmatched = {}};
  const auto add = [&](const char* op, Software software) {
    set.kernels.push_back(
        {.gpu = "H100",
         .op = op,
         .kernel = kernels_of_sizes(op, DType::kFp16, {{"rows", 512}, {"columns", 4096}}).front(),
         .conditions = {.software = software},
         .measured_s = 7e-6,
         .protocol = Protocol::kBackToBack});
  };
  add("rms_norm", software_of("vllm"));
  add("rms_norm", software_of("pytorch"));
  add("layer_norm", software_of("pytorch"));
  const TrainingData data = prepare_training_data({set}, {});
  ASSERT_EQ(data.rows.size(), 3u);
  EXPECT_EQ(data.groups[data.rows[1].group].op, "layer_norm");
  EXPECT_EQ(data.rows[2].conditions.software, software_of("vllm"));
}

}  // namespace
}  // namespace tilecast
