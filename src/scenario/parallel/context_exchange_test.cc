// How context-parallel ranks attend to each other's tokens.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "test_support.h"
#include "training_steps.h"

namespace tilecast {
namespace {

/// Llama 3 8B: 32 layers, 32 heads of queries and 8 of keys and values, of 128 elements.
constexpr const char* kModel = "llama-3-8b";
constexpr int64_t kLayers = 32, kHeads = 32, kKvHeads = 8, kHeadDim = 128, kSeq = 8192;

Request of_context(int64_t cp, CpCommType type) {
  Request request = training(1);
  request.seq = kSeq;
  request.execution.dtype = "bf16";
  request.execution.attention = AttentionKind::kFlash;
  request.parallel.cp = cp;
  if (cp > 1) request.parallel.cp_comm_type = type;
  return request;
}

constexpr CpCommType kTypes[] = {CpCommType::kAllGather, CpCommType::kP2p, CpCommType::kAllToAll};

/// Bytes of the operator's exchanges on a rank, larger side, by phase.
std::map<std::string, int64_t> sent_bytes(const Forecast& f, std::string_view op) {
  std::map<std::string, int64_t> bytes;
  for (const KernelForecast& k : f.kernels) {
    if (k.op == op) bytes[std::string(k.phase)] += 2 * k.shape.values[0] * k.count;
  }
  return bytes;
}

TEST(ContextExchange, RanksTogetherHaveTheWorkOfOne) {
  const auto attention_flops = [](const Forecast& f) {
    double flops = 0;
    for (const KernelForecast& k : f.kernels) {
      if (k.shape.type == "attention")
        flops += static_cast<double>(k.flops) * static_cast<double>(k.count);
    }
    return flops;
  };
  const double alone = attention_flops(forecast(of_context(1, CpCommType::kAllGather), kModel));
  for (const CpCommType type : kTypes) {
    for (const int64_t cp : {2, 8}) {
      const double all =
          static_cast<double>(cp) * attention_flops(forecast(of_context(cp, type), kModel));
      EXPECT_NEAR(all / alone, 1, 1e-3) << choice_word(type) << " " << cp;
    }
  }
}

/// In 16 bits. Gathered: the keys and values of all. Around the ring: a rank's own, ranks - 1
/// times, and with their gradients on the way back. Tokens for heads: a rank's own queries, keys,
/// values and results, in both directions.
TEST(ContextExchange, BytesFollowFromTheSizes) {
  for (const int64_t cp : {2, 4, 8}) {
    const int64_t own_kv = 2 * 2 * kLayers * kKvHeads * kHeadDim * kSeq / cp;
    const int64_t own_q = 2 * kLayers * kHeads * kHeadDim * kSeq / cp;
    const auto with = [&](CpCommType type) { return forecast(of_context(cp, type), kModel); };
    const Forecast gathered = with(CpCommType::kAllGather), ring = with(CpCommType::kP2p),
                   heads = with(CpCommType::kAllToAll);
    EXPECT_EQ(sent_bytes(gathered, "context_all_gather")["forward"], cp * own_kv);
    EXPECT_EQ(sent_bytes(ring, "context_ring")["forward"], (cp - 1) * own_kv);
    EXPECT_EQ(sent_bytes(ring, "context_ring_backward")["backward"], 2 * (cp - 1) * own_kv);
    auto exchanged = sent_bytes(heads, "sequence_all_to_all");
    EXPECT_EQ(exchanged["forward"], own_kv + 2 * own_q);
    EXPECT_EQ(exchanged["backward"], own_kv + 2 * own_q);
    for (const Forecast* f : {&ring, &heads})
      EXPECT_EQ(sent_bytes(*f, "context_all_gather").size(), 0U);
  }
}

/// Attention to a block takes longer than sending the next one, so the ring costs less than the
/// gather, and holds one block in place of all.
TEST(ContextExchange, ARingHidesItsExchangesAndHoldsOneBlock) {
  Request request = of_context(8, CpCommType::kAllGather);
  request.seq = 65536;
  const Forecast gathered = forecast(request, "llama-3.1-8b");
  request.parallel.cp_comm_type = CpCommType::kP2p;
  const Forecast ring = forecast(request, "llama-3.1-8b");
  EXPECT_LT(ring.parallel->exposed_communication_s,
            0.5 * gathered.parallel->exposed_communication_s);
  // All keys and values of the other seven ranks, of each layer.
  const int64_t others = 2 * 2 * kLayers * kKvHeads * kHeadDim * 65536 / 8 * 7;
  EXPECT_GT(gathered.memory.activations_bytes - ring.memory.activations_bytes, 9 * others / 10);
}

TEST(ContextExchange, HeadsAreDividedByBothKindsOfRanks) {
  Request request = of_context(4, CpCommType::kAllToAll);
  request.execution.tp = 2;
  EXPECT_GT(forecast(request, kModel).latency_s.value, 0);
  request.execution.tp = 4;  // 16 ranks share 8 heads of keys and values
  request.parallel.cluster = "dgx-a100";
  EXPECT_ERROR(forecast(request, kModel), kInput,
               "`cp` 4 × `tp` 4 does not divide the 8 heads of keys and values");
  Request alone = of_context(1, CpCommType::kAllGather);
  alone.parallel.cp_comm_type = CpCommType::kP2p;
  EXPECT_ERROR(forecast(alone, kModel), kInput, "`cp-comm-type` p2p has no effect with `cp` 1");
}

}  // namespace
}  // namespace tilecast
