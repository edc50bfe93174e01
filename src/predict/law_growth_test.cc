// True of all laws: more work never takes less time, a better data sheet never takes more.

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/kernel_kinds.h"

namespace tilecast {
namespace {

double law_of(const Kernel& kernel, const Device& device, const Conditions& conditions) {
  return kernel_kind_def(kernel_kind(kernel))
      .law(kernel, Chip(device, bundled_laws()), conditions)
      .seconds;
}

/// Rounding of a sum of doubles.
constexpr double kRounding = 1e-9;

/// A kernel, what it was made from, and the same with one size at twice.
struct Growth {
  Kernel small, large;
  std::string what;
};

/// Linear attention, whose operators draw no sizes of their own.
std::vector<Growth> draw_linear_attention(size_t count, Rng& rng) {
  const auto size = [&](int bits) { return rng.log_uniform(bits); };
  std::vector<Growth> growths;
  for (size_t i = 0; i < count; ++i) {
    const bool scan = i % 2 == 0;
    const char* op = scan ? "linear_scan" : "causal_conv1d";
    // A single token, every fourth time, has a kernel of its own: its batch or heads grow.
    const bool step = scan && i % 4 == 0;
    SizeList sizes = {{"batch", size(7)}, {"tokens", step ? 1 : 2 * size(13)}};
    if (scan) {
      sizes.push_back({"heads", size(6)});
      sizes.push_back({"head_dim", 128});
      sizes.push_back({"cached", 1});
    } else {
      sizes.push_back({"channels", size(14)});
    }
    SizeList grown = sizes;
    const std::string_view dimension =
        sizes[step ? 2 * rng.below(2) : rng.below(scan ? 3 : 2)].name;
    integer_in(grown, dimension) *= 2;
    growths.push_back({kernels_of_sizes(op, DType::kBf16, sizes).front(),
                       kernels_of_sizes(op, DType::kBf16, grown).front(),
                       std::string(op) + " " + std::string(dimension)});
  }
  return growths;
}

/// Kernels of serving software with a block for each row.
std::vector<Growth> draw_block_rows(size_t count, Rng& rng) {
  constexpr const char* kOps[] = {"rms_norm", "add_rms_norm", "gated_activation", "rotary"};
  std::vector<Growth> growths;
  for (size_t i = 0; i < count; ++i) {
    const char* op = kOps[i % 4];
    const SizeList sizes = {{"rows", rng.log_uniform(14)}, {"columns", 2 * rng.log_uniform(14)}};
    SizeList grown = sizes;
    const std::string_view dimension = sizes[i / 4 % 2].name;
    integer_in(grown, dimension) *= 2;
    growths.push_back({kernels_of_sizes(op, DType::kBf16, sizes).front(),
                       kernels_of_sizes(op, DType::kBf16, grown).front(),
                       std::string(op) + " " + std::string(dimension)});
  }
  return growths;
}

/// Prompts that continue a cache, with a sliding window of about its length: the cache grows from
/// shorter to longer than the window.
std::vector<Growth> draw_windows(size_t count, Rng& rng) {
  std::vector<Growth> growths;
  for (size_t i = 0; i < count; ++i) {
    const int64_t queries = 2 + rng.log_uniform(10), keys = queries + 512 + rng.log_uniform(13);
    const int64_t more = keys / 8 + rng.log_uniform(12), head = 64 << rng.below(3);
    const auto window = static_cast<int64_t>(static_cast<double>(keys) * (0.75 + rng.uniform()));
    SizeList sizes = {{"batch", rng.log_uniform(3)},
                      {"queries", queries},
                      {"keys", keys},
                      {"head_dim", head},
                      {"heads", 16},
                      {"kv_heads", 8},
                      {"causal", 1},
                      {"window", window}};
    SizeList grown = sizes;
    integer_in(grown, "keys") += more;
    growths.push_back({kernels_of_sizes("attention", DType::kBf16, sizes).front(),
                       kernels_of_sizes("attention", DType::kBf16, grown).front(),
                       "attention keys beside a window"});
  }
  return growths;
}

/// Rows that are better aligned can make a larger product faster.
bool better_aligned(const Kernel& small, const Kernel& large) {
  return small.is_product() && gemm_of(large).row_alignment > gemm_of(small).row_alignment;
}

/// Random kernels of all operators with a law that the device has units for, and one of their sizes
/// that means more work at twice.
std::vector<Growth> draw_growths(const Device& device, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<const OpDef*> ops;
  for (const OpDef& op : op_table()) {
    if (op.random_sizes) ops.push_back(&op);
  }
  const std::vector<DType> dtypes = {DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8};
  std::vector<Growth> growths = draw_linear_attention(count / 10, rng);
  for (Growth& growth : draw_block_rows(count / 10, rng)) growths.push_back(std::move(growth));
  for (Growth& growth : draw_windows(count / 10, rng)) growths.push_back(std::move(growth));
  while (growths.size() < count) {
    const OpDef& op = *ops[rng.below(ops.size())];
    const DType dtype = dtypes[rng.below(dtypes.size())];
    const SizeDef& dimension = op.sizes[rng.below(op.sizes.size())];
    if (!dimension.grows) continue;
    const SizeList sizes = draw_sizes(op, rng);
    SizeList grown = sizes;
    integer_in(grown, dimension.name) *= 2;
    if (op.random_sizes->fit != nullptr) op.random_sizes->fit(grown);
    const Kernel small = kernels_of_sizes(op.name, dtype, sizes).front();
    const Kernel large = kernels_of_sizes(op.name, dtype, grown).front();
    if (!find_kernel_kind(small) || !find_kernel_kind(large) || !has_unit_for(small, device))
      continue;
    // Another kind has another law: decode and prefill.
    if (kernel_kind(small) != kernel_kind(large)) continue;
    if (better_aligned(small, large)) continue;
    growths.push_back({small, large, std::string(op.name) + " " + std::string(dimension.name)});
  }
  return growths;
}

constexpr const char* kDevices[] = {"P4",   "P100", "V100", "T4",   "A100",  "A10",
                                    "L40S", "H100", "B200", "MI50", "MI210", "MI300X"};

TEST(Laws, GrowWithWork) {
  std::map<KernelKind, size_t> drawn;
  std::map<std::string, size_t> grows;  // pairs whose time really grows, by operator and size
  for (const char* gpu : kDevices) {
    const Device device = find_device(gpu);
    for (const Growth& g : draw_growths(device, 2000, 1)) {
      for (const Caches caches : {Caches::kCold, Caches::kWarm}) {
        for (const Software software : {software_of("vllm"), software_of("trtllm")}) {
          const Conditions conditions = {.software = software, .caches = caches};
          const double small = law_of(g.small, device, conditions);
          const double large = law_of(g.large, device, conditions);
          EXPECT_GE(large, small * (1 - kRounding))
              << gpu << ", " << g.what << ": " << small << " s, " << g.small.flops << " FLOPs, "
              << g.small.bytes() << " bytes";
          grows[g.what] += large > 1.5 * small;
        }
      }
      drawn[kernel_kind(g.small)] += 1;
    }
  }
  EXPECT_EQ(drawn.size(), kKernelKindCount);
  for (const char* what :
       {"linear m", "linear n", "linear k", "matmul batch", "attention batch",
        "cached_attention keys", "experts tokens", "softmax rows", "add rows", "linear_scan tokens",
        "causal_conv1d tokens", "add_rms_norm columns", "rotary rows", "conv2d batch",
        "conv2d in_channels", "conv2d_weight_backward out_channels"})
    EXPECT_GT(grows[what], 0u) << what;
}

TEST(Laws, GrowWithEachSizeOfAProduct) {
  // Sizes near tiles and splits, which random sizes seldom meet.
  constexpr int64_t kSizes[] = {1, 16, 60, 64, 100, 500, 512, 1000, 4096, 16384};
  size_t grown = 0;
  for (const char* gpu : kDevices) {
    const Device device = find_device(gpu);
    for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp8}) {
      for (size_t i = 0; i < 1000; ++i) {
        const SizeList sizes = {
            {"m", kSizes[i % 10]}, {"n", kSizes[i / 10 % 10]}, {"k", kSizes[i / 100]}};
        const Kernel small = kernels_of_sizes("linear", dtype, sizes).front();
        if (!has_unit_for(small, device)) continue;
        const double before = law_of(small, device, {});
        for (const char* size : {"m", "n", "k"}) {
          SizeList larger = sizes;
          integer_in(larger, size) *= 2;
          const Kernel large = kernels_of_sizes("linear", dtype, larger).front();
          if (better_aligned(small, large)) continue;
          const double after = law_of(large, device, {});
          EXPECT_GE(after, before * (1 - kRounding))
              << gpu << " " << dtype_name(dtype) << " " << kSizes[i % 10] << " x "
              << kSizes[i / 10 % 10] << " x " << kSizes[i / 100] << ", twice " << size;
          grown += after > 1.5 * before;
        }
      }
    }
  }
  EXPECT_GT(grown, 10000u);
}

/// A number of the data sheet at twice, with all others per clock and SM as they are.
struct Improvement {
  std::string_view name;
  void (*apply)(Device& device, Gpu& gpu);
};

void scale_rates(Gpu& gpu, double factor) {
  for (double& rate : gpu.vector_flops_per_s) rate *= factor;
  for (double& rate : gpu.matrix_flops_per_s) rate *= factor;
}

constexpr Improvement kImprovements[] = {
    {"bandwidth", [](Device& device, Gpu&) { device.memory_bytes_per_s *= 1.25; }},
    {"L2", [](Device&, Gpu& gpu) { gpu.l2_bytes += gpu.l2_bytes / 4; }},
    {"power", [](Device&, Gpu& gpu) { gpu.board_power_w *= 1.25; }},
    {"clock",
     [](Device&, Gpu& gpu) {
       gpu.boost_clock_hz *= 1.25;
       scale_rates(gpu, 1.25);
     }},
    {"SMs",
     [](Device&, Gpu& gpu) {
       const int64_t more = gpu.sm_count + gpu.sm_count / 4;
       scale_rates(gpu, static_cast<double>(more) / static_cast<double>(gpu.sm_count));
       gpu.sm_count = more;
     }},
    {"rates per clock and SM", [](Device&, Gpu& gpu) { scale_rates(gpu, 1.25); }},
    {"exponentials", [](Device&, Gpu& gpu) { gpu.exp_per_clock_per_sm *= 1.25; }}};

TEST(Laws, FallWithABetterDataSheet) {
  std::map<std::string_view, std::map<KernelKind, size_t>> falls;
  for (const char* gpu : kDevices) {
    const Device device = find_device(gpu);
    const std::vector<Growth> kernels = draw_growths(device, 1000, 2);
    for (const Improvement& improvement : kImprovements) {
      Device better = device;
      improvement.apply(better, std::get<Gpu>(better.chip));
      for (const Growth& g : kernels) {
        for (const Caches caches : {Caches::kCold, Caches::kWarm}) {
          const double before = law_of(g.small, device, {.caches = caches});
          const double after = law_of(g.small, better, {.caches = caches});
          EXPECT_LE(after, before * (1 + kRounding))
              << gpu << " with more " << improvement.name << ", " << g.what << ": " << g.small.flops
              << " FLOPs, " << g.small.bytes() << " bytes";
          falls[improvement.name][kernel_kind(g.small)] += after < 0.99 * before;
        }
      }
    }
  }
  // Each number shortens the kernels that it concerns.
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const auto kind = static_cast<KernelKind>(n);
    EXPECT_GT(falls["bandwidth"][kind], 0u) << kernel_kind_name(kind);
  }
  for (const KernelKind kind :
       {KernelKind::kMatmul, KernelKind::kTensorMatmul, KernelKind::kAttention,
        KernelKind::kDecodeAttention, KernelKind::kExperts, KernelKind::kConvolution}) {
    EXPECT_GT(falls["clock"][kind], 0u) << kernel_kind_name(kind);
    EXPECT_GT(falls["SMs"][kind], 0u) << kernel_kind_name(kind);
  }
  EXPECT_GT(falls["power"][KernelKind::kMatmul], 0u);
  EXPECT_GT(falls["rates per clock and SM"][KernelKind::kTensorMatmul], 0u);
}

}  // namespace
}  // namespace tilecast
