#include "accelerator/mapper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "accelerator/tiling.h"
#include "base/rng.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// A tile of any sizes under any order; nullopt if it does not fit.
std::optional<MappedLayer> sampled_mapping(Rng& rng, const Design& design, const Layer& layer) {
  const Layer run = as_run(layer, design.flow);
  Mapping mapping{.order = "nkcpq", .tile = run.sizes};
  mapping.tile[0] = 1;
  for (size_t i = 1; i < 5; ++i) {
    const auto most = static_cast<double>(run.sizes[i]);
    mapping.tile[i] =
        std::clamp<int64_t>(std::llround(std::pow(most, rng.uniform())), 1, run.sizes[i]);
  }
  std::vector<char> order(mapping.order.begin(), mapping.order.end());
  rng.shuffle(order);
  mapping.order.assign(order.begin(), order.end());
  try {
    return run_mapping(design, layer, mapping);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(Mapper, IsFasterThanTheBestOfSixtyRandomMappings) {
  // A layer of BERT, one of ResNet-50 and one of AlexNet, on all accelerators and dataflows.
  const std::vector<Layer> layers = {{.sizes = {1, 768, 768, 512, 1, 1, 1}},
                                     {.sizes = {1, 768, 3072, 512, 1, 1, 1}},
                                     {.sizes = {1, 256, 128, 28, 28, 3, 3}},
                                     {.sizes = {1, 64, 3, 55, 55, 11, 11}, .stride = 4}};
  double log_sum = 0, worst = 0;
  int cases = 0;
  for (const char* id : {"gemmini", "systolic-array", "systolic-array:dataflow=weight_stationary",
                         "systolic-array:dataflow=input_stationary", "ultratrail", "plasticine"}) {
    const Design design = open_accelerator(id);
    for (size_t l = 0; l < layers.size(); ++l) {
      Rng rng(17 + l);
      const MappedLayer chosen = map_layer(design, layers[l]);
      double best = 0;
      for (int drawn = 0, tries = 0; drawn < 60 && tries < 3000; ++tries) {
        const auto other = sampled_mapping(rng, design, layers[l]);
        if (!other) continue;
        ++drawn;
        if (best == 0 || other->time.cycles < best) best = other->time.cycles;
      }
      if (best == 0) continue;  // no random tile fits
      const double ratio = chosen.time.cycles / best;
      EXPECT_LE(ratio, 1.0) << id << ", layer " << l << ": "
                            << mapping_text(chosen.mapping, chosen.layer);
      log_sum += std::log(ratio);
      worst = std::max(worst, ratio);
      ++cases;
    }
  }
  EXPECT_GE(cases, 20);
  EXPECT_LE(std::exp(log_sum / cases), 0.75);
  RecordProperty("worst_percent", static_cast<int>(100 * worst));
}

TEST(Mapper, ChoosesForLayersOfAllKinds) {
  const Design design = open_accelerator("gemmini");
  for (const LayerKind kind :
       {LayerKind::kProduct, LayerKind::kDepthwise, LayerKind::kPooling, LayerKind::kElementwise}) {
    Layer layer{.kind = kind, .sizes = {1, 64, 1, 56, 56, 3, 3}, .stride = 2};
    if (kind == LayerKind::kElementwise) layer = {.kind = kind, .sizes = {1, 64, 1, 3136, 1, 1, 1}};
    const MappedLayer mapped = map_layer(design, layer);
    EXPECT_GT(mapped.time.cycles, 0) << layer_kind_name(kind);
    EXPECT_EQ(run_mapping(design, layer, mapped.mapping).time.cycles, mapped.time.cycles)
        << layer_kind_name(kind);
  }
}

// --- Poolings.

TEST(Pooling, TakesARowOfTheWindowACycle) {
  // Gemmini reads a row of DIM channels a cycle: 3 x 3 rows for each of 28 x 28 outputs, for 4
  // blocks of 16 channels. A tile is loaded, 57 x 57 x 64 bytes at 16 a cycle, before it is pooled.
  const Design design = open_accelerator("gemmini");
  const Layer layer{.kind = LayerKind::kPooling, .sizes = {1, 64, 1, 28, 28, 3, 3}, .stride = 2};
  const double reading = 28.0 * 28 * 9 * 4;
  const double cycles = map_layer(design, layer).time.cycles;
  EXPECT_GE(cycles, reading);
  const double moving = (57.0 * 57 + 28 * 28) * 64 / 16;
  EXPECT_LE(cycles, 1.1 * (reading + moving));
}

TEST(Pooling, AppliedByAStoreMovesWhatIsLeft) {
  // 2 x 2 windows side by side: a quarter of the outputs leaves the chip.
  const Design design = open_accelerator("gemmini");
  const Layer whole{.sizes = {1, 16, 16, 16, 16, 1, 1}};
  Layer pooled = whole;
  pooled.pool_elements = 4;
  pooled.pool_stride = 2;
  const auto stored = [&](const Layer& layer) {
    const Mapping mapping{.order = "", .tile = layer.sizes};
    const LoopNest nest = tile_layer(design.machine, design.flow, layer, mapping);
    const NestTime time = evaluate_nest(design.machine, nest);
    return time.activity.memory_bytes[static_cast<size_t>(design.machine.find_memory("l2"))];
  };
  // 256 bytes of weights and 4,096 of inputs are loaded, 4,096 or 1,024 of outputs stored.
  EXPECT_EQ(stored(whole), 256 + 4096 + 4096);
  EXPECT_EQ(stored(pooled), 256 + 4096 + 1024);
}

// --- Bytes on the chip.

TEST(OnChipBytes, AreThoseOfAllOperands) {
  // 32 x 32 x 32 on an array of 16 x 16: the scratchpad is written with 1,024 inputs and 1,024
  // weights, inputs are read once for each of two blocks of columns, weights once. The accumulator
  // takes 4 bytes of each of 1,024 sums for both halves of the sum, and is read for the store.
  const Design design = open_accelerator("gemmini");
  const Layer layer{.sizes = {1, 32, 32, 32, 1, 1, 1}};
  const LoopNest nest =
      tile_layer(design.machine, design.flow, layer, {.order = "", .tile = layer.sizes});
  const Activity activity = evaluate_nest(design.machine, nest).activity;
  const auto bytes = [&](const char* memory) {
    return activity.memory_bytes[static_cast<size_t>(design.machine.find_memory(memory))];
  };
  EXPECT_EQ(bytes("scratchpad"), 1024 + 1024 + 2 * 1024 + 1024);
  EXPECT_EQ(bytes("accumulator"), 2 * 4 * 1024 + 4 * 1024);
}

TEST(OnChipBytes, OfAnOutputStationaryArrayAreWrittenOnce) {
  // 32 x 32 x 32 on 16 x 16 rows and columns: inputs and weights are read once for each of two
  // blocks of the other, sums leave the array when they are complete and are read for the store.
  const Design design = open_accelerator("systolic-array");
  const Layer layer{.sizes = {1, 32, 32, 32, 1, 1, 1}};
  const LoopNest nest =
      tile_layer(design.machine, design.flow, layer, {.order = "", .tile = layer.sizes});
  const Activity activity = evaluate_nest(design.machine, nest).activity;
  const auto buffer = static_cast<size_t>(design.machine.find_memory("buffer"));
  EXPECT_EQ(activity.memory_bytes[buffer], 2 * 1024 + 2 * 2 * 1024 + 2 * 4 * 1024);
}

TEST(Mapper, ChoosesMappingsThatCoverAndFit) {
  for (const std::string& id : bundled_accelerators()) {
    const Design design = open_accelerator(id);
    const MappedLayer mapped = map_layer(design, {.sizes = {1, 48, 40, 30, 20, 3, 3}});
    EXPECT_NO_THROW(run_mapping(design, {.sizes = {1, 48, 40, 30, 20, 3, 3}}, mapped.mapping));
  }
}

TEST(Mapping, WhoseIncompleteSumsDoNotFitIsAnError) {
  // 512 x 768 sums of 4 bytes in an accumulator of 65,536 bytes; Gemmini loads no partial sums.
  const Layer layer{.sizes = {1, 768, 3072, 512, 1, 1, 1}};
  const Mapping mapping{.order = "ck", .tile = {1, 16, 384, 512, 1, 1, 1}};
  EXPECT_EQ(
      message_of([&] { run_mapping(open_accelerator("gemmini"), layer, mapping, {}, "m"); }),
      "m: a loop over outputs runs inside a loop over sums (order 'ck'), so that 1572864 bytes "
      "of incomplete sums wait in 'accumulator', 1507328 more than its 65536; put c, r and s "
      "last in the order");
  EXPECT_NO_THROW(run_mapping(open_accelerator("gemmini"), layer,
                              {.order = "kc", .tile = {1, 16, 384, 512, 1, 1, 1}}));
}

TEST(Mapping, ThatDoesNotCoverOrFitIsAnError) {
  const Layer layer{.sizes = {1, 64, 64, 32, 32, 3, 3}};
  EXPECT_EQ(
      message_of([&] { parse_mapping("order=k tile=k16,c16", layer, "mapping"); }),
      "mapping: the mapping does not cover the layer: 16 of 64 c are computed; add 'c' to the "
      "order 'k'");
  EXPECT_EQ(message_of([&] { parse_mapping("order=k tile=k65", layer, "mapping"); }),
            "mapping: the tile has k65; expected a size from 1 to 64, that of the layer");
  const Design design = open_accelerator("gemmini:ACCUMULATOR=65536");
  const std::string message =
      message_of([&] { run_mapping(design, layer, {.order = "", .tile = layer.sizes}); });
  EXPECT_EQ(
      message,
      "mapping: the tiles do not fit into 'accumulator': output 262144 bytes; 262144 bytes in "
      "all, 196608 more than its 65536; make the tile smaller");
}

}  // namespace
}  // namespace tilecast::accelerator
