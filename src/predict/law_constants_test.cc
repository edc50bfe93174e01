// Constants are data: each of them counts in some law, and replacing one changes forecasts.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/rng.h"
#include "collectives/collective.h"
#include "devices/registry.h"
#include "laws/constant_table.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/kernel_kinds.h"
#include "predict/predictor.h"
#include "random_kernels.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Variants that random sizes do not draw: heads that many query heads share, latent attention,
/// backward, wide heads, depthwise convolutions, groups of channels stored by pixel.
std::vector<Kernel> variants_of(const Kernel& kernel) {
  std::vector<Kernel> variants;
  if (const Attention* attention = kernel.as<Attention>()) {
    const auto add = [&](const auto& change) {
      variants.push_back(kernel);
      change(std::get<Attention>(variants.back().shape));
    };
    add([](Attention& a) { a.latent = true; });
    add([](Attention& a) { a.head_dim = a.v_head_dim = 512; });
    for (const int64_t group : {12, 24, 64})
      add([&](Attention& a) { a.heads = group * a.kv_heads; });
    if (!attention->is_decode()) add([](Attention& a) { a.backward = true; });
  }
  if (kernel.is<Convolution>()) {
    for (const int64_t window : {3, 5, 7}) {
      variants.push_back(kernel);
      auto& c = std::get<Convolution>(variants.back().shape);
      c.groups = c.in_channels = c.out_channels = 64;
      c.window_height = c.window_width = window;
    }
    for (const auto& [groups, channels] : {std::pair{9, 24}, {9, 48}, {8, 48}}) {
      variants.push_back(kernel);
      auto& c = std::get<Convolution>(variants.back().shape);
      c.groups = groups;
      c.in_channels = c.out_channels = groups * channels;
      c.channels_last = 1;
    }
  }
  return variants;
}

/// Kernels of all operators that draw sizes, and of linear attention and serving software.
std::vector<Kernel> draw_kernels(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<Kernel> kernels;
  const auto add = [&](std::string_view op, DType dtype, const SizeList& sizes) {
    for (const Kernel& kernel : kernels_of_sizes(op, dtype, sizes)) kernels.push_back(kernel);
  };
  constexpr DType kDtypes[] = {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8};
  while (kernels.size() < count) {
    for (const OpDef& op : op_table()) {
      if (!op.random_sizes) continue;
      SizeList sizes = draw_sizes(op, rng);
      if (op.random_sizes->fit != nullptr) op.random_sizes->fit(sizes);
      add(op.name, kDtypes[rng.below(std::size(kDtypes))], sizes);
    }
    for (const char* op : {"rms_norm", "gated_activation", "rotary"})
      add(op, DType::kBf16, {{"rows", rng.log_uniform(14)}, {"columns", 2 * rng.log_uniform(14)}});
    add("linear_scan", DType::kBf16,
        {{"batch", rng.log_uniform(7)},
         {"tokens", rng.log_uniform(13)},
         {"heads", 16},
         {"head_dim", 128},
         {"cached", 1}});
    add("linear", DType::kFp32,
        {{"m", rng.log_uniform(12)},
         {"n", rng.log_uniform(12)},
         {"k", 30000 + rng.log_uniform(16)}});
    add("linear", DType::kBf16, {{"m", 4096}, {"n", 2 * rng.log_uniform(12) + 1}, {"k", 4096}});
    for (const QuantScheme scheme : {QuantScheme::kFp4, QuantScheme::kFp8Block})
      add("quantized_linear", DType::kBf16,
          {{"m", rng.log_uniform(13)},
           {"n", 128 * rng.log_uniform(7)},
           {"k", 128 * rng.log_uniform(7)},
           {"scheme", scheme}});
    add("linear", DType::kFp8, {{"m", 16}, {"n", 64}, {"k", 32768 + 16 * rng.log_uniform(12)}});
  }
  // Batch norms of images stored by pixel: in training a row for each channel, else one.
  for (const int64_t channels : {1, 256}) {
    const int64_t elements = 1 << 22, bytes = 2 * elements * channels;
    kernels.push_back({.shape = Stream{.rows = channels, .elements = elements},
                       .op = require_op("batch_norm"),
                       .dtype = DType::kFp16,
                       .read_bytes = bytes,
                       .write_bytes = bytes});
  }
  const size_t drawn = kernels.size();
  for (size_t i = 0; i < drawn; ++i) {
    for (Kernel& variant : variants_of(kernels[i])) kernels.push_back(std::move(variant));
  }
  return kernels;
}

/// One with other constants than the bundled ones, in which a number may be moved.
struct Moved {
  LawConstants laws = bundled_laws();
  ConstantTable table;
  Moved() { laws.describe(table); }
};

double law_of(const Kernel& kernel, const Device& device, const Conditions& conditions,
              const LawConstants& laws) {
  return kernel_kind_def(kernel_kind(kernel)).law(kernel, Chip(device, laws), conditions).seconds;
}

TEST(LawConstants, EachNumberOfALawOfKernelsMovesSomeTime) {
  struct Case {
    const Kernel* kernel;
    const Device* device;
    Conditions conditions;
    double seconds;
  };
  const std::vector<Kernel> kernels = draw_kernels(6000, 3);
  std::vector<Device> devices;
  for (const char* gpu : {"P4", "P100", "V100", "T4", "A100", "L4", "4090", "L40S", "H100", "B200",
                          "MI60", "MI100", "MI300X", "MI355X"})
    devices.push_back(find_device(gpu));
  devices.push_back(find_device("H100"));
  std::get<Gpu>(devices.back().chip).process_nm.reset();
  std::vector<Case> cases;
  Rng rng(5);
  for (const Kernel& kernel : kernels) {
    if (!find_kernel_kind(kernel)) continue;
    for (const Device& device : devices) {
      if (!has_unit_for(kernel, device)) continue;
      const Conditions conditions = {
          .software = static_cast<Software>(rng.below(all_software().size())),
          .caches = static_cast<Caches>(rng.below(3)),
          .moe_backend = rng.below(2) == 0 ? MoeBackend::kAuto : MoeBackend::kMarlin};
      cases.push_back(
          {&kernel, &device, conditions, law_of(kernel, device, conditions, bundled_laws())});
    }
  }
  Moved moved;
  for (const Constant& constant : moved.table.constants()) {
    auto* const* number = std::get_if<double*>(&constant.target);
    // A strided convolution gathers.
    if (constant.name == "convolution.plain.strided_ratio") continue;
    const bool elsewhere =
        constant.name.starts_with("intervals.") || constant.name.starts_with("collectives.") ||
        constant.name.starts_with("expert_exchange.") ||
        constant.name.starts_with("embedding_bag.") || constant.name.starts_with("sharing.") ||
        constant.name.starts_with("class_roofline.") || constant.name.starts_with("power.") ||
        constant.name.starts_with("host.") || constant.name.starts_with("trace.");
    if (number == nullptr || elsewhere) continue;
    const double before = **number;
    bool counts = false;
    for (const double value : {before == 0 ? 100 : 1.4 * before, 0.4 * before}) {
      **number = value;
      counts = counts || std::any_of(cases.begin(), cases.end(), [&](const Case& c) {
                 return law_of(*c.kernel, *c.device, c.conditions, moved.laws) != c.seconds;
               });
    }
    EXPECT_TRUE(counts) << constant.name;
    **number = before;
  }
}

TEST(LawConstants, OfTheWeightsAreThoseOfAForecast) {
  const Kernel kernel =
      kernels_of_sizes("add", DType::kFp32, {{"rows", 64}, {"columns", 64}}).front();
  const Device device = find_device("H100");
  const auto seconds = [&](const Weights& weights) {
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, device, {}, {&time, 1});
    return time.seconds;
  };
  Weights weights = embedded_weights();
  const double before = seconds(weights);
  weights.laws.stream.start_s *= 2;
  EXPECT_GT(seconds(weights), 1.5 * before);
}

TEST(LawConstants, OfAFolderComeWithItsWeights) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tilecast_law_constants_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "laws");
  std::ofstream(folder / kWeightsFile) << serialize_weights(embedded_weights());
  EXPECT_EQ(load_weights(folder).laws, bundled_laws());
  std::ofstream(folder / "laws" / "stream.json") << "{}";
  EXPECT_THROW((void)load_weights(folder), Error);
  std::filesystem::remove_all(folder);
}

TEST(LawConstants, EachNumberOfCollectivesMovesSomeTime) {
  const Cluster cluster = find_cluster("DGX-H100"), two = with_nodes(cluster, 2);
  const auto times = [&](const LawConstants& laws) {
    std::vector<double> all;
    for (const Cluster& on : {cluster, two}) {
      for (const int64_t ranks : {2, 4, 8, 16}) {
        if (ranks > on.gpus_per_node * on.nodes) continue;
        for (const int64_t per_node : {int64_t{1}, ranks / 2, ranks}) {
          if (per_node > on.gpus_per_node || ranks / per_node > on.nodes) continue;
          const CommGroup group = {.ranks = ranks, .ranks_per_node = per_node};
          const CollectiveOptions options = {.laws = &laws};
          for (const int64_t bytes : {int64_t{1} << 10, int64_t{1} << 28}) {
            for (const CollectiveKind kind :
                 {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll,
                  CollectiveKind::kSendRecv}) {
              if (kind == CollectiveKind::kSendRecv && ranks > 2) continue;
              const CollectiveTime time =
                  collective_time(kind, bytes, DType::kBf16, group, on, options);
              all.insert(all.end(), {time.seconds, time.high_s});
            }
          }
          for (const CollectiveKind kind :
               {CollectiveKind::kExpertDispatch, CollectiveKind::kExpertCombine}) {
            for (const bool low_latency : {false, true}) {
              for (const int64_t tokens : {1, 4096}) {
                const ExpertExchange exchange = {.tokens = tokens,
                                                 .hidden_dim = 7168,
                                                 .top_k = 8,
                                                 .num_experts = 256,
                                                 .low_latency = low_latency};
                all.push_back(expert_exchange_time(kind, exchange, group, on, options).seconds);
              }
            }
          }
        }
      }
    }
    return all;
  };
  const std::vector<double> before = times(bundled_laws());
  Moved moved;
  for (const Constant& constant : moved.table.constants()) {
    auto* const* number = std::get_if<double*>(&constant.target);
    if (number == nullptr || !(constant.name.starts_with("collectives.") ||
                               constant.name.starts_with("expert_exchange.")))
      continue;
    const double value = **number;
    **number = 1.3 * value;
    EXPECT_NE(times(moved.laws), before) << constant.name;
    **number = value;
  }
}

}  // namespace
}  // namespace tilecast
