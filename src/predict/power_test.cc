#include "predict/power.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/embedded.h"
#include "devices/registry.h"
#include "laws/constant_table.h"
#include "laws/constants.h"
#include "predict/learned.h"
#include "random_kernels.h"

namespace tilecast {
namespace {

const PowerConstants& power_constants() { return bundled_laws().power; }

/// A product on 16-bit units that takes so long at the highest clock.
Kernel square_product(int64_t side, DType dtype = DType::kBf16) {
  Kernel kernel{.shape = Gemm{.m = side, .n = side, .k = side}, .dtype = dtype};
  kernel.flops = 2 * side * side * side;
  kernel.read_bytes = 4 * side * side;
  kernel.write_bytes = 2 * side * side;
  return kernel;
}

/// One query of each sequence against a cache in 16 bits.
Kernel decode_attention(int64_t batch, int64_t keys, int64_t heads, int64_t kv_heads) {
  constexpr int64_t kHeadDim = 128;
  Kernel kernel{.shape = Attention{.batch = batch,
                                   .queries = 1,
                                   .keys = keys,
                                   .head_dim = kHeadDim,
                                   .v_head_dim = kHeadDim,
                                   .heads = heads,
                                   .kv_heads = kv_heads},
                .dtype = DType::kBf16};
  kernel.flops = 4 * batch * keys * heads * kHeadDim;
  kernel.read_bytes = 4 * batch * keys * kv_heads * kHeadDim;
  return kernel;
}

struct HeldLoad {
  double seconds, watts, clock_share;
};

/// One kernel, repeated.
HeldLoad held_load(const BoardPower& board, const Kernel& kernel, double burst_s) {
  std::vector<KernelTime> times(1);
  times[0].seconds = times[0].low_s = times[0].high_s = burst_s;
  const std::vector<Kernel> kernels = {kernel};
  const std::vector<double> counts = {1};
  add_energies(board, kernels, {}, 1, times);
  hold_power(board, {kernels, counts}, times);
  PowerSum sum;
  sum.add(board, times[0].energy, times[0].seconds, 1);
  return {times[0].seconds, sum.energy_j / times[0].seconds, times[0].energy.clock_share};
}

TEST(BoardPowerLaw, LoadsOfTheMeasuredH100AreHeldAsMeasured) {
  const Device& h100 = find_device("nvidia-h100-sxm5-80gb");
  const BoardPower board(h100, power_constants());
  // data/measurements/nvidia-h100-sxm5-80gb/stages/power.csv.xz: times of the burst and of the load
  // that is held, its power and clock.
  EXPECT_NEAR(board.idle_w(1), 126.2, 6);
  EXPECT_NEAR(board.idle_w(345e6 / 1.98e9), 74.2, 6);
  const HeldLoad bf16 = held_load(board, square_product(8192), 1.380e-3);
  EXPECT_NEAR(bf16.seconds, 1.561e-3, 0.05 * 1.561e-3);
  EXPECT_NEAR(bf16.watts, 682.9, 7);
  EXPECT_NEAR(bf16.clock_share, 1354 / 1980.0, 0.07);
  Kernel copy{.shape = Stream{.elements = 536870912}};
  copy.read_bytes = copy.write_bytes = 2147483648;
  const HeldLoad copied = held_load(board, copy, 1.7609e-3);
  EXPECT_EQ(copied.clock_share, 1);
  EXPECT_EQ(copied.seconds, 1.7609e-3);
  EXPECT_NEAR(copied.watts, 492.1, 25);
}

TEST(BoardPowerLaw, DecodeAttentionMultipliesTilesThatAreNearlyEmpty) {
  // The same files as above: 64 sequences of 8,192 keys, 4 query heads on a key head.
  const Device of_h100 = find_device("nvidia-h100-sxm5-80gb");
  const Device of_h200 = find_device("nvidia-h200-sxm-141gb");
  const BoardPower h100(of_h100, power_constants()), h200(of_h200, power_constants());
  const Kernel kernel = decode_attention(64, 8192, 32, 8);
  EXPECT_NEAR(held_load(h100, kernel, 694.6e-6).watts, 610, 12);
  EXPECT_NEAR(held_load(h200, kernel, 470.8e-6).watts, 688, 14);
  // With all rows of a tile filled, a query's work takes less energy than with one in 64.
  const auto joules = [&](int64_t heads) {
    const Kernel one = decode_attention(64, 8192, heads, heads == 1 ? 1 : heads / 64);
    return h100.energy_of(one).switched_j / static_cast<double>(one.flops);
  };
  EXPECT_GT(joules(1), 10 * joules(64));
}

TEST(BoardPowerLaw, ExpertsOfASlowKernelDrawMore) {
  const Device device = find_device("H100");
  const BoardPower board(device, power_constants());
  Kernel experts{.shape = Experts{.tokens = 64, .num_experts = 128, .top_k = 8},
                 .dtype = DType::kBf16,
                 .scheme = QuantScheme::kFp8Block};
  experts.flops = int64_t{1} << 32;
  experts.read_bytes = int64_t{1} << 28;
  // data/software/vllm.json: twice the measured time before 0.14.
  const auto joules = [&](const char* version) {
    const Software software = software_version(parse_software("vllm", "test"), version, "test");
    std::vector<KernelTime> times(1);
    times[0].seconds = 3e-4;
    const std::vector<Kernel> kernels = {experts};
    add_energies(board, kernels, {.software = software}, 1, times);
    return times[0].energy.switched_j;
  };
  const double work_j = board.energy_of(experts).switched_j;
  EXPECT_EQ(joules("0.24.0"), work_j);
  EXPECT_NEAR(joules("0.11.1"), work_j + 3e-4 * board.converting_w(), 1e-9);
  experts.scheme = QuantScheme::kFp8;
  EXPECT_EQ(joules("0.11.1"), board.energy_of(experts).switched_j);
}

TEST(BoardPowerLaw, ALowerLimitIsNeverFasterNorDrawsMore) {
  for (const char* id :
       {"nvidia-h100-sxm5-80gb", "nvidia-l4", "nvidia-a100-pcie-40gb", "amd-mi300x"}) {
    const Device& device = find_device(id);
    const double most = device.gpu().board_power_w;
    const double burst_s = 1.1 * static_cast<double>(square_product(4096).flops) /
                           device.gpu().matrix_peak(DType::kBf16);
    HeldLoad before{0, 2 * most, 1};
    for (double limit = most; limit > 0.2 * most; limit *= 0.9) {
      const BoardPower board(device, power_constants(), limit);
      const HeldLoad load = held_load(board, square_product(4096), burst_s);
      EXPECT_GE(load.seconds, before.seconds * (1 - 1e-12)) << id << " at " << limit;
      EXPECT_LE(load.watts, before.watts * (1 + 1e-6)) << id << " at " << limit;
      EXPECT_LE(load.watts, limit) << id;
      EXPECT_LE(load.clock_share, before.clock_share) << id;
      EXPECT_GE(load.clock_share, board.lowest_clock_share()) << id;
      before = load;
    }
    EXPECT_GT(before.seconds, burst_s) << id;
  }
}

TEST(BoardPowerLaw, AClockThatACapLowersSlowsProductsInFp32) {
  const Device& h100 = find_device("nvidia-h100-sxm5-80gb");
  const Kernel product = square_product(4096, DType::kFp32);
  const double burst_s =
      1.1 * static_cast<double>(product.flops) / h100.gpu().matmul_peak(DType::kFp32);
  for (const double cap_w : {500.0, 400.0, 300.0}) {
    const BoardPower board(h100, power_constants(), cap_w);
    const HeldLoad load = held_load(board, product, burst_s);
    EXPECT_LT(load.clock_share, 0.85) << cap_w;
    EXPECT_GE(load.seconds, static_cast<double>(product.flops) /
                                (load.clock_share * h100.gpu().matmul_peak(DType::kFp32)))
        << cap_w;
  }
}

TEST(BoardPowerLaw, EnergyOfAKernelGrowsWithItsWork) {
  for (const Device& device : bundled_devices()) {
    const std::optional<BoardPower> board = board_power(device, power_constants());
    if (!board) continue;
    for (Kernel kernel : random_kernels(300, 7)) {
      const KernelEnergy before = board->energy_of(kernel);
      EXPECT_GE(before.switched_j, 0);
      kernel.flops *= 2;
      kernel.read_bytes += 1024;
      const KernelEnergy after = board->energy_of(kernel);
      EXPECT_GE(after.switched_j, before.switched_j) << device.id;
      EXPECT_GT(after.memory_j, before.memory_j) << device.id;
    }
    EXPECT_LT(board->idle_w(0.5), board->idle_w(1)) << device.id;
    EXPECT_GT(board->idle_w(board->lowest_clock_share()), 0) << device.id;
  }
}

/// All numbers that the law gives, in one sum.
double sum_of_law(const PowerConstants& constants, const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const char* gpu : {"T4", "P100", "H100", "H200", "B200"}) {
    const Device device = find_device(gpu);
    const BoardPower board(device, constants);
    sum += board.idle_w(0.7) + board.busy_w(0.7) + board.held_w() + board.least_limit_w();
    sum += board.converting_w() + board.warm_w();
    for (const Kernel& kernel : kernels) {
      const KernelEnergy energy = board.energy_of(kernel);
      sum += board.voltage_squared(0.7) * energy.switched_j + energy.memory_j;
      sum += board.units_s(kernel);
    }
  }
  return sum;
}

TEST(BoardPowerLaw, EachConstantCounts) {
  std::vector<Kernel> kernels = random_kernels(500, 3);
  kernels.push_back(square_product(512, DType::kFp16));
  kernels.push_back(square_product(512, DType::kTf32));
  kernels.push_back(square_product(512, DType::kFp32));
  for (const QuantScheme scheme : {QuantScheme::kFp8, QuantScheme::kFp4}) {
    kernels.push_back(square_product(512));
    kernels.back().scheme = scheme;
  }
  Kernel attention{.shape = Attention{.queries = 512, .keys = 512}, .dtype = DType::kBf16};
  attention.flops = int64_t{1} << 30;
  kernels.push_back(attention);
  kernels.push_back(decode_attention(64, 8192, 32, 8));
  PowerConstants constants = power_constants();
  ConstantTable table;
  constants.describe(table);
  const double before = sum_of_law(constants, kernels);
  for (const Constant& constant : table.constants()) {
    if (constant.name.ends_with("_log")) continue;  // of intervals, src/scenario/power.cc
    double& number = *std::get<double*>(constant.target);
    const double kept = number;
    number = 2 * kept;
    EXPECT_NE(sum_of_law(constants, kernels), before) << constant.name;
    number = kept;
  }
}

TEST(BoardPowerLaw, WaitsLowerThePowerSoTheClockStays) {
  const Device& h100 = find_device("nvidia-h100-sxm5-80gb");
  const BoardPower board(h100, power_constants());
  const std::vector<Kernel> kernels = {square_product(8192)};
  const std::vector<double> counts = {1};
  std::vector<KernelTime> times(1);
  times[0].seconds = times[0].low_s = times[0].high_s = 1.38e-3;
  add_energies(board, kernels, {}, 1, times);
  hold_power(board, {kernels, counts, 3e-3}, times);
  EXPECT_EQ(times[0].seconds, 1.38e-3);  // half_busy of the same file: 1,980 MHz
  EXPECT_EQ(times[0].energy.clock_share, 1);
}

TEST(BoardPowerLaw, PartsOfAGpuAndUnknownBoardsHaveNone) {
  const Device& h100 = find_device("nvidia-h100-sxm5-80gb");
  EXPECT_TRUE(board_power(h100, power_constants()));
  EXPECT_FALSE(board_power(slice_of(h100, "1g.10gb"), power_constants()));
  Device unknown = h100;
  std::get<Gpu>(unknown.chip).states_board_power = false;
  EXPECT_FALSE(board_power(unknown, power_constants()));
}

}  // namespace
}  // namespace tilecast
