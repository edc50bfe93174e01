#include "train/law_fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "laws/constant_table.h"
#include "ops/sizes.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

constexpr const char* kFill = "tensor_matmul.cdna3.fill_cycles";
constexpr const char* kEnergy = "tensor_matmul.cdna3.of_16_bits_j_per_flop";

/// Laws whose constants are those of the bundled ones times factors.
LawConstants moved_laws(double fill_ratio, double energy_ratio) {
  LawConstants laws = bundled_laws();
  ConstantTable table;
  laws.describe(table);
  table.number(kFill) *= fill_ratio;
  table.number(kEnergy) *= energy_ratio;
  return laws;
}

/// Products that take the time of the laws, of one GPU as a file of measurements.
std::string rows_of_law(const std::string& gpu, const LawConstants& laws, size_t count) {
  const Device device = find_device(gpu);
  const Chip chip(device, laws);
  Rng rng(3);
  std::string text = "gpu,op,dtype,m,n,k,latency_s\n";
  for (size_t i = 0; i < count; ++i) {
    const auto size = [&] { return 64 + 64 * static_cast<int64_t>(rng.below(64)); };
    const int64_t m = size(), n = size(), k = size();
    const Kernel kernel =
        kernels_of_sizes("gemm", DType::kBf16, {{"m", m}, {"n", n}, {"k", k}}).front();
    text += fmt::format("{},gemm,bf16,{},{},{},{:.9g}\n", gpu, m, n, k,
                        low_precision_law(kernel, chip, {}).seconds);
  }
  return text;
}

double found(const Json& file, std::string_view name) {
  for (const Json& constant : file.at("constants")) {
    if (constant.at("name") == name) return constant.at("value").get<double>();
  }
  return 0;
}

TEST(LawFit, FindsTheConstantsThatRowsWereMadeWith) {
  const TemporaryFolder folder;
  const LawConstants made = moved_laws(2, 0.6);
  write_file(folder.path() / "a.csv", rows_of_law("MI300X", made, 150));
  write_file(folder.path() / "b.csv", rows_of_law("MI355X", made, 150));
  const TrainResult result =
      train_laws({.data = {folder.path()}, .output = folder.path() / "out", .threads = 1});
  for (const TrainError& error : result.seen) EXPECT_LT(error.mape_percent, 1.5) << error.gpu;
  EXPECT_EQ(result.seen.size(), 2u);
  // Two cards of one law tell each other's times.
  ASSERT_EQ(result.left_out.size(), 2u);
  for (const TrainError& error : result.left_out) EXPECT_LT(error.mape_percent, 5) << error.gpu;
  const Json file = parse_json(read_file(folder.path() / "out" / "laws.json"), "laws.json");
  const double fill = bundled_laws().tensor_matmul.cdna3.fill_cycles;
  const double energy = bundled_laws().tensor_matmul.cdna3.of_16_bits_j_per_flop;
  EXPECT_NEAR(std::log(found(file, kEnergy) / (0.6 * energy)), 0, 0.15);
  EXPECT_GT(found(file, kFill), 1.2 * fill);
}

TEST(LawFit, SaysHowFarEachConstantIsKnown) {
  // Two cards with energies of a FLOP that differ by a factor of 4: one number fits neither.
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv", rows_of_law("MI300X", moved_laws(1, 0.5), 150));
  write_file(folder.path() / "b.csv", rows_of_law("MI355X", moved_laws(1, 2), 150));
  const auto fitted = [&](const char* name) {
    train_laws({.data = {folder.path() / "a.csv", folder.path() / "b.csv"},
                .output = folder.path() / name,
                .threads = 2});
    return read_file(folder.path() / name / "laws.json");
  };
  const std::string first = fitted("first");
  EXPECT_EQ(first, fitted("again"));
  const Json file = parse_json(first, "laws.json");
  for (const Json& constant : file.at("constants")) {
    const bool told = constant.at("devices") == 2;
    EXPECT_EQ(constant.at("log_error").is_null(), !told) << constant.at("name");
    if (constant.at("name") == kEnergy) {
      EXPECT_GT(constant.at("log_error").get<double>(), 0.3);
    }
    // No row is in 4 bits.
    if (constant.at("name") == "tensor_matmul.cdna3.of_4_bits_j_per_flop") {
      EXPECT_EQ(constant.at("devices"), 0);
    }
  }
  EXPECT_EQ(file.at("spreads").size(), 2u);
}

TEST(LawFit, OfNoRowsOfSuchALawIsRefused) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv", "gpu,op,dtype,n,latency_s\nT4,add,fp32,1000000,1e-4\n");
  EXPECT_ERROR(train_laws({.data = {folder.path()}, .output = folder.path() / "out"}), kInput,
               "the data hold no rows of a law that is fitted by a command");
}

TEST(LawFit, AProductIsInOneFit) {
  for (const Device& device : bundled_devices()) {
    if (device.as_gpu() == nullptr) continue;
    for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8}) {
      const Kernel kernel =
          kernels_of_sizes("gemm", dtype, {{"m", 256}, {"n", 256}, {"k", 256}}).front();
      const auto covered = [&](const LawFitDef& fit) {
        return kernel_kind(kernel) == fit.kind && fit.covers(device, kernel);
      };
      EXPECT_LE(std::count_if(law_fits().begin(), law_fits().end(), covered), 1)
          << device.id << ' ' << dtype_name(dtype);
    }
  }
}

TEST(LawFit, AFitNamesConstantsOnceAndThatExist) {
  LawConstants laws = bundled_laws();
  ConstantTable table;
  laws.describe(table);
  std::vector<std::string_view> names;
  for (const LawFitDef& fit : law_fits()) {
    for (const std::string_view name : fit.constants) {
      EXPECT_GT(table.number(name), 0) << name;  // its logarithm is moved
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace tilecast
