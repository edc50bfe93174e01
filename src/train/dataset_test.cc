#include "train/dataset.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "devices/registry.h"
#include "ops/sizes.h"
#include "test_support.h"
#include "train/kind_table.h"

namespace tilecast {
namespace {

TEST(TrainingData, RowsFasterThanTheirBoundAreLeftOut) {
  const TemporaryFolder folder;
  // 4096 x 4096 weights in BF16 are 33.6 MB: 2 us of an H100's L2, where they fit. 8192 x 8192 are
  // 134 MB, of which at least 84 come from DRAM, in 25 us.
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.001\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.014\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,8192,8192,0.020\n"
             "nvidia-h100-sxm5-80gb,trtllm 1.3.0,fp8,16,4096,4096,0.014\n");
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  ASSERT_EQ(data.rows.size(), 2u);
  EXPECT_EQ(data.rows[0].seconds, 14e-6);
  EXPECT_EQ(data.rows[0].conditions.software, Software::kVllm);
  EXPECT_EQ(data.rows[0].conditions.caches, Caches::kAlternating);
  EXPECT_EQ(data.rows[1].conditions.software, Software::kTensorRtLlm);
  EXPECT_EQ(data.rows[1].weight, 1.0f) << "back to back: no call's jitter";
  EXPECT_EQ(data.report.back(),
            "left out 2 rows that are faster than their bound: a cache was warm, or the work less "
            "than they say");
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
  for (const NetKind kind : {NetKind::kAttention, NetKind::kTensorMatmul}) {
    const KindTable& table = tables[static_cast<size_t>(kind)];
    ASSERT_EQ(table.count(), 2u) << net_name(kind);
    EXPECT_EQ(data.rows[table.index[0]].conditions.caches, Caches::kWarm);
    EXPECT_EQ(data.rows[table.index[1]].conditions.caches, Caches::kCold);
    EXPECT_EQ(data.rows[table.index[0]].seconds, data.rows[table.index[1]].seconds);
    EXPECT_LT(table.law_s[0], table.law_s[1]) << net_name(kind) << " with operands in L2";
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
  add("rms_norm", Software::kVllm);
  add("rms_norm", Software::kPyTorch);
  add("layer_norm", Software::kPyTorch);
  const TrainingData data = prepare_training_data({set}, {});
  ASSERT_EQ(data.rows.size(), 3u);
  EXPECT_EQ(data.groups[data.rows[1].group].op, "layer_norm");
  EXPECT_EQ(data.rows[2].conditions.software, Software::kVllm);
}

}  // namespace
}  // namespace tilecast
