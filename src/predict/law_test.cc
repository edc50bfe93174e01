// Laws of other kernels than products against times computed by hand.

#include "predict/law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "law_seconds.h"

namespace tilecast {
namespace {

TEST(StreamLaw, ColdKernelsTakeAllFromDram) {
  // In GPT-2 on H100, 4096 x 3072 in FP32 took 35.0 us: 100.7 MB at 3.35 TB/s are 30.
  const Kernel kernel = kernel_of("tanh", DType::kFp32, {{"rows", 4096}, {"columns", 3072}});
  const Device h100 = find_device("H100");
  const double cold = law_seconds(kernel, h100);
  EXPECT_NEAR(cold, 35.0e-6, 3e-6);
  EXPECT_LT(law_seconds(kernel, h100, {.caches = Caches::kWarm}), 0.85 * cold);
  for (const char* gpu : {"B200", "L40S", "A100", "T4"}) {
    const Device device = find_device(gpu);
    EXPECT_GT(law_seconds(kernel, device),
              static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s)
        << gpu;
  }
}

TEST(RowsLaw, ABlockWalksThroughItsRow) {
  // Measured on H100 with PyTorch, BF16: 96 rows of 14336 elements 27.9 us, though they would
  // stream in 2; 8192 rows of 1280 elements 24.5 us (14 of them memory). The law takes both for
  // slower: its cycles were fitted with some of the bytes in L2.
  const Device h100 = find_device("H100");
  const auto time = [&](int64_t rows, int64_t columns) {
    return law_seconds(
        kernel_of("layer_norm", DType::kBf16, {{"rows", rows}, {"columns", columns}}), h100);
  };
  EXPECT_NEAR(time(96, 14336), 27.9e-6, 5e-6);
  EXPECT_NEAR(time(8192, 1280), 24.5e-6, 6e-6);
}

TEST(BlockRowsLaw, ServingSoftwareHasABlockForEachRow) {
  // Vidur's profiles, FP16.
  struct Measured {
    const char *op, *gpu;
    int64_t rows, columns;
    double seconds;
  };
  const Measured kMeasured[] = {{"rms_norm", "H100", 32, 4096, 4e-6},
                                {"rms_norm", "A100", 32, 8192, 7e-6},
                                {"rms_norm", "A40", 4096, 4096, 177e-6},
                                {"gated_activation", "H100", 8, 11008, 7e-6},
                                {"gated_activation", "A40", 8, 28672, 15e-6},
                                {"gated_activation", "H100", 4096, 11008, 139e-6},
                                {"rotary", "A100", 4096, 8192, 149e-6},
                                {"rotary", "A40", 4096, 9216, 274e-6}};
  for (const Measured& m : kMeasured) {
    const Kernel kernel = kernel_of(m.op, DType::kFp16, {{"rows", m.rows}, {"columns", m.columns}});
    EXPECT_NEAR(law_seconds(kernel, find_device(m.gpu),
                            {.software = software_of("vllm"), .scalar_rows = true}) /
                    m.seconds,
                1, 0.2)
        << m.op << " on " << m.gpu << ", " << m.rows << " x " << m.columns;
  }
}

TEST(BlockRowsLaw, VectorsFindTheirTensorsInL2) {
  // A norm of 1,024 rows reads and writes 33 MB: they fit into the 72 MB of L2 of this card. The
  // inputs and the output of a gate of 2,048 rows, 176 MB, do not.
  const Device rtx_4090 = find_device("RTX 4090");
  const Conditions vllm{.software = software_of("vllm")};
  const auto share_of_dram = [&](const char* op, int64_t rows, int64_t columns, double bytes) {
    const Kernel kernel = kernel_of(op, DType::kBf16, {{"rows", rows}, {"columns", columns}});
    return bytes / law_seconds(kernel, rtx_4090, vllm) / rtx_4090.memory_bytes_per_s;
  };
  // A norm with a residual has two operands and two results, a gate two halves and a result.
  EXPECT_GT(share_of_dram("add_rms_norm", 1024, 4096, 1024 * 4096 * 2.0 * 4), 1.5);
  EXPECT_LT(share_of_dram("gated_activation", 2048, 14336, 2048 * 14336 * 2.0 * 3), 1.15);
  const Kernel norm = kernel_of("add_rms_norm", DType::kBf16, {{"rows", 512}, {"columns", 4096}});
  const Software older = software_version(software_of("vllm"), "0.3.3", "version");
  EXPECT_GT(law_seconds(norm, rtx_4090, {.software = older}),
            2 * law_seconds(norm, rtx_4090, vllm));
}

TEST(BlockRowsLaw, WhatL2CannotHoldGoesToDramOnceReadAndOnceWritten) {
  const Device a40 = find_device("A40");
  const Kernel norm =
      kernel_of("add_rms_norm", DType::kBf16, {{"rows", 1 << 18}, {"columns", 4096}});
  const double seconds = law_seconds(norm, a40, {.software = software_of("vllm")});
  EXPECT_GT(seconds, static_cast<double>(norm.bytes()) / a40.memory_bytes_per_s);
}

TEST(BlockRowsLaw, PyTorchHasItsOwnKernels) {
  const Device h100 = find_device("H100");
  const auto time = [&](const char* op, Software software) {
    return law_seconds(kernel_of(op, DType::kBf16, {{"rows", 32}, {"columns", 4096}}), h100,
                       {.software = software});
  };
  EXPECT_NEAR(time("rms_norm", software_of("pytorch")) / time("layer_norm", software_of("pytorch")),
              1, 1e-3);
  EXPECT_LT(time("rms_norm", software_of("sglang")),
            0.6 * time("rms_norm", software_of("pytorch")));
  EXPECT_EQ(time("layer_norm", software_of("vllm")), time("layer_norm", software_of("pytorch")))
      << "serving software calls PyTorch's";
}

TEST(BlockRowsLaw, ASumBeforeTheNormMovesTwiceTheBytes) {
  const Device a40 = find_device("A40");
  const auto time = [&](const char* op) {
    return law_seconds(kernel_of(op, DType::kBf16, {{"rows", 65536}, {"columns", 4096}}), a40,
                       {.software = software_of("vllm")});
  };
  EXPECT_GT(time("add_rms_norm"), 1.3 * time("rms_norm"));
  EXPECT_LT(time("add_rms_norm"), 2 * time("rms_norm"));
}

TEST(StreamLaw, LargeOnesTakeNineTenthsOfTheBandwidth) {
  // V100 streams 12 GB at 0.9 of 900 GB/s.
  const Device device = find_device("V100-PCIe");
  const Kernel kernel = kernel_of("add", DType::kFp32, {{"n", 1'000'000'000}});
  EXPECT_NEAR(law_seconds(kernel, device) / (12e9 / (0.9 * device.memory_bytes_per_s)), 1, 0.005);
  // GDDR reaches less, 0.79.
  const Device t4 = find_device("T4");
  EXPECT_NEAR(law_seconds(kernel, t4) / (12e9 / (0.79 * t4.memory_bytes_per_s)), 1, 0.005);
  const Kernel empty = kernel_of("add", DType::kFp32, {{"n", 1}});
  EXPECT_NEAR(law_seconds(empty, device), kLatencyFloor, 1e-9);
  // At a quarter of the clock a launch takes twice as long.
  const Device slow = at_clock(device, device.gpu().boost_clock_hz / 4);
  EXPECT_NEAR(law_seconds(empty, slow), 2 * kLatencyFloor, 1e-8);
}

TEST(RowsLaw, RowsBeyondTheRegistersAreReadASecondTime) {
  const Device device = find_device("V100-PCIe");
  const auto seconds = [&](const char* op, int64_t rows, int64_t columns) {
    return law_seconds(kernel_of(op, DType::kFp32, {{"rows", rows}, {"columns", columns}}), device);
  };
  // 512 MB read and 512 MB written once, whatever the length of the rows up to 1024; the SMs'
  // exponentials, 0.45 cycles an element, overlap with it.
  const double once = seconds("softmax", 1 << 17, 1024);
  const double memory_s = 8.0 * (1 << 27) / (0.9 * device.memory_bytes_per_s);
  const double sms_s = 0.45 * (1 << 27) / (80 * 1.38e9);
  EXPECT_NEAR(once / std::pow(std::pow(memory_s, 2.5) + std::pow(sms_s, 2.5), 0.4), 1, 0.02);
  EXPECT_NEAR(seconds("softmax", 1 << 20, 128) / once, 1, 0.03);
  EXPECT_GT(seconds("softmax", 1 << 16, 2048), 1.2 * once);
  EXPECT_GT(seconds("layer_norm", 1 << 17, 1024), 1.2 * once);
}

TEST(PrefillLaw, LongPromptsTakeProductsExponentialsAndOtherWork) {
  // A100-SXM4, head size 128: 512 FLOPs a pair at 2048 per clock and SM, 1.25 times as long; 0.6
  // of an exponential at 16 per clock; 1.4 operations on 64 lanes. With 7 cycles of 312 TFLOP/s at
  // 0.02 pJ for each 400 W, 1.6 % more.
  const Device device = find_device("A100");
  const Kernel kernel = kernel_of("attention", DType::kBf16,
                                  {{"batch", 4},
                                   {"queries", 16384},
                                   {"keys", 16384},
                                   {"head_dim", 128},
                                   {"heads", 32},
                                   {"kv_heads", 8}});
  const double pairs = 4.0 * 32 * 16384 * 16384;
  const double cycles = 1.25 * 512 / 2048 * (1 + 0.02e-12 * 312e12 / 400) + 0.6 / 16 + 1.4 / 64;
  const double compute_s = pairs * cycles / 108 / 1.41e9;
  EXPECT_NEAR(law_seconds(kernel, device) / compute_s, 1, 0.05);
}

TEST(PrefillLaw, ACausalMaskHalvesTheWork) {
  const Device device = find_device("H100");
  const auto seconds = [&](int64_t causal) {
    return law_seconds(kernel_of("attention", DType::kBf16,
                                 {{"batch", 4},
                                  {"queries", 16384},
                                  {"keys", 16384},
                                  {"head_dim", 128},
                                  {"heads", 32},
                                  {"kv_heads", 8},
                                  {"causal", causal}}),
                       device);
  };
  EXPECT_NEAR(seconds(1) / seconds(0), 0.5, 0.03);
}

TEST(PrefillLaw, ChunksAfterAPrefixTakeWholeWavesOfBlocks) {
  // 32 heads on 128 SMs: up to 256 queries in tiles of 64 are one wave of blocks, 512 are two.
  const Device device = find_device("RTX 4090");
  const auto seconds = [&](int64_t queries) {
    const Kernel kernel = kernel_of("attention", DType::kBf16,
                                    {{"batch", 1},
                                     {"queries", queries},
                                     {"keys", 16384 + queries},
                                     {"head_dim", 128},
                                     {"heads", 32},
                                     {"kv_heads", 8},
                                     {"causal", 1}});
    return law_seconds(kernel, device, {.caches = Caches::kWarm});
  };
  EXPECT_NEAR(seconds(256) / seconds(16), 1, 0.05);
  EXPECT_NEAR(seconds(512) / seconds(256), 2, 0.1);
  EXPECT_NEAR(seconds(1024) / seconds(512), 2, 0.2);
}

TEST(PrefillLaw, OnlyFlashAttention2CutsQueriesIntoTilesOf64OnSmallSms) {
  const auto seconds = [](const char* gpu, int64_t queries, Software software) {
    return law_seconds(kernel_of("attention", DType::kBf16,
                                 {{"batch", 1},
                                  {"queries", queries},
                                  {"keys", 16384},
                                  {"head_dim", 128},
                                  {"heads", 32},
                                  {"kv_heads", 32},
                                  {"causal", 1}}),
                       find_device(gpu), {.software = software});
  };
  for (const char* gpu : {"RTX 4090", "RTX 3090", "L40S"}) {
    EXPECT_LT(seconds(gpu, 65, software_of("vllm")), 1.1 * seconds(gpu, 64, software_of("vllm")))
        << gpu;
    EXPECT_GT(seconds(gpu, 65, software_of("trtllm")),
              1.4 * seconds(gpu, 64, software_of("trtllm")))
        << gpu;
  }
  EXPECT_GT(seconds("A100", 65, software_of("vllm")),
            1.4 * seconds("A100", 64, software_of("vllm")));
}

TEST(PrefillLaw, FlashInferPacksTheHeadsOfAKeyHead) {
  // Eight query heads on a key head and 16 queries: one tile of 128 in place of eight of 64.
  const Kernel kernel = kernel_of("attention", DType::kBf16,
                                  {{"batch", 64},
                                   {"queries", 16},
                                   {"keys", 8192},
                                   {"head_dim", 128},
                                   {"heads", 64},
                                   {"kv_heads", 8},
                                   {"causal", 1}});
  const auto seconds = [&](Software software) {
    return law_seconds(kernel, find_device("A100"), {.software = software});
  };
  EXPECT_LT(seconds(software_of("sglang")), 0.5 * seconds(software_of("vllm")));
}

TEST(DecodeLaw, LargeCachesAreReadAtTheMemorysRate) {
  // 64 sequences of 8192 keys, 8 heads of 128 in two bytes, keys and values: 2.15 GB.
  const Device device = find_device("A100");
  const Kernel kernel =
      kernel_of("cached_attention", DType::kBf16,
                {{"batch", 64}, {"keys", 8192}, {"head_dim", 128}, {"heads", 32}, {"kv_heads", 8}});
  const double stream_s = 64.0 * 8192 * 8 * 128 * 2 * 2 / device.memory_bytes_per_s;
  const double law_s = law_seconds(kernel, device);
  EXPECT_GT(law_s, stream_s);
  EXPECT_LT(law_s, 1.4 * stream_s);  // measured: 1.16 (TensorRT-LLM) to 2 (SGLang)
}

TEST(DecodeLaw, AnSmsOwnKeysCountOnce) {
  // 128 sequences of 8192 keys on 8 heads stream at the memory's rate where copies do not limit:
  // beside it the body was once up to 1.59 times as long on B200.
  const Device device = find_device("B200");
  const Kernel kernel = kernel_of(
      "cached_attention", DType::kBf16,
      {{"batch", 128}, {"keys", 8192}, {"head_dim", 128}, {"heads", 32}, {"kv_heads", 8}});
  const double stream_s = 128.0 * 8192 * 8 * 128 * 2 * 2 / device.memory_bytes_per_s;
  EXPECT_LT(law_seconds(kernel, device), 1.2 * stream_s);
}

TEST(DecodeLaw, TensorRtLlmFallsBackWithManyHeadsOnAKeyHead) {
  const auto seconds = [](const char* gpu, int64_t batch, int64_t heads, int64_t keys) {
    return law_seconds(kernel_of("cached_attention", DType::kBf16,
                                 {{"batch", batch},
                                  {"keys", keys},
                                  {"head_dim", 128},
                                  {"heads", heads},
                                  {"kv_heads", 1}}),
                       find_device(gpu), {.software = software_of("trtllm")});
  };
  // Measured: 638 us on H100, 561 on A100, 683 on B200 (128 sequences, 2 key heads: 64 and 64).
  EXPECT_NEAR(seconds("H100", 4, 128, 16384), 638e-6, 0.2 * 638e-6);
  EXPECT_NEAR(seconds("A100", 32, 128, 1024), 561e-6, 0.2 * 561e-6);
  EXPECT_NEAR(seconds("B200", 256, 64, 512), 683e-6, 0.2 * 683e-6);
  EXPECT_LT(seconds("H100", 4, 32, 16384), 50e-6);
}

TEST(ExpertsLaw, FewTokensStreamTheWeightsAndManyAreBoundByFlops) {
  const Device device = find_device("H100");
  const auto layer = [&](int64_t tokens) {
    return kernel_of("experts", DType::kBf16,
                     {{"tokens", tokens},
                      {"ffn_dim", 1536},
                      {"hidden_dim", 4096},
                      {"num_experts", 128},
                      {"top_k", 8}});
  };
  const Kernel few = layer(256);
  const double stream_s = static_cast<double>(few.bytes()) / device.memory_bytes_per_s;
  EXPECT_GT(law_seconds(few, device), stream_s);
  EXPECT_LT(law_seconds(few, device), 2.5 * stream_s);
  // A step of k takes 1.53 times that of the data sheet, at 0.25 pJ for each of 989 TFLOP/s and
  // 700 W another 1.353 times; 5.25 passes over the gathered tokens come on top.
  const Kernel many = layer(65536);
  const double passes_s = 5.25 * 65536 * 8 * 4096 * 2 / (0.87 * device.memory_bytes_per_s);
  const double steps_s =
      1.53 * 1.353 * static_cast<double>(many.flops) / device.matmul_peak(DType::kBf16);
  EXPECT_GT(law_seconds(many, device), steps_s + passes_s);
  EXPECT_LT(law_seconds(many, device), 1.15 * (steps_s + passes_s));
}

/// Rows of vLLM's Marlin experts, aiconfigurator's, with an even load: 384 experts of 2,048.
TEST(ExpertsLaw, MarlinMultipliesByMmaSync) {
  const auto seconds = [](const char* gpu, int64_t tokens, int64_t ffn_dim) {
    Kernel layer = kernel_of("experts", DType::kBf16,
                             {{"tokens", tokens},
                              {"ffn_dim", ffn_dim},
                              {"hidden_dim", 7168},
                              {"num_experts", 384},
                              {"top_k", 8}});
    layer.scheme = QuantScheme::kInt4WeightOnly;
    layer.read_bytes = std::llround(std::get<Experts>(layer.shape).active_experts * 3 * 7168 *
                                    static_cast<double>(ffn_dim) * 0.516);
    return law_seconds(layer, find_device(gpu),
                       {.software = software_of("vllm"), .moe_backend = MoeBackend::kMarlin});
  };
  // Measured on H200: 2.78 ms with 64 tokens, 46.7 with 16,384; on L40S 59.5.
  EXPECT_NEAR(seconds("H200", 64, 2048), 2.78e-3, 0.2 * 2.78e-3);
  EXPECT_NEAR(seconds("H200", 16384, 2048), 46.7e-3, 0.1 * 46.7e-3);
  EXPECT_NEAR(seconds("L40S", 16384, 2048), 59.5e-3, 0.2 * 59.5e-3);
  // Reductions are padded to 128.
  EXPECT_DOUBLE_EQ(seconds("H200", 16384, 360), seconds("H200", 16384, 384));
}

TEST(ChipTest, HelpersAreAsTheyAreDescribed) {
  EXPECT_EQ(ramp(0.3, 0.4, 0.6), 0);
  EXPECT_NEAR(ramp(0.45, 0.4, 0.6), 0.25, 1e-12);
  EXPECT_EQ(ramp(0.7, 0.4, 0.6), 1);
  EXPECT_EQ(waves_of(0.3, 1), 1);
  EXPECT_EQ(waves_of(2.25, 0), 2.25);
  EXPECT_EQ(waves_of(2.25, 1), 3);
  EXPECT_NEAR(waves_of(2.25, 0.5), 2.625, 1e-12);
  Device device = find_device("V100-PCIe");
  std::get<Gpu>(device.chip).boost_clock_hz = 4 * 1.7e9;
  EXPECT_NEAR(launch_latency_s(3, Chip(device, bundled_laws())), 1.5e-6, 1e-15);
}

/// Check bits of inline error correction take a part of the bus.
TEST(Chip, GddrReachesMoreWithoutInlineErrorCorrection) {
  Device card = find_device("RTX 6000 Ada");
  const LawConstants& laws = bundled_laws();
  const double without = Chip(card, laws).dram_bytes_per_s / card.memory_bytes_per_s;
  std::get<Gpu>(card.chip).inline_ecc = InlineEcc::kOn;
  const double with = Chip(card, laws).dram_bytes_per_s / card.memory_bytes_per_s;
  EXPECT_DOUBLE_EQ(with, laws.chip.gddr_dram_share);
  EXPECT_DOUBLE_EQ(with / without, laws.chip.inline_ecc_share);
  Device hbm = find_device("H100");
  const double corrects_beside = Chip(hbm, laws).dram_bytes_per_s;
  std::get<Gpu>(hbm.chip).inline_ecc = InlineEcc::kOn;
  EXPECT_EQ(Chip(hbm, laws).dram_bytes_per_s, corrects_beside);
}

}  // namespace
}  // namespace tilecast
