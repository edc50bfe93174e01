#include <gtest/gtest.h>

#include <map>

#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/registry.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(EveryDevice, RunsItsLanesAtItsClock) {
  for (const Device& d : bundled_devices()) {
    // Two FLOPs a lane and clock; files keep four digits of the rate.
    const double formula =
        2.0 * static_cast<double>(d.sm_count * d.lanes_per_sm) * d.boost_clock_hz;
    EXPECT_NEAR(d.vector_peak(DType::kFp32), formula, 0.005 * formula) << d.id;
    EXPECT_GT(d.memory_bytes, int64_t{1} << 30) << d.id;
    EXPECT_GE(d.matmul_peak(DType::kFp32), d.vector_peak(DType::kFp32)) << d.id;
    EXPECT_TRUE(d.warnings.empty()) << d.id;
    EXPECT_FALSE(d.links.empty()) << d.id;
  }
}

TEST(EveryDevice, HasItsIdAsFileNameAndAliasesOfItsOwn) {
  std::map<std::string, std::string> owners;
  for (const EmbeddedFile& file : embedded_files("devices/")) {
    const Device d = parse_device(file.content, std::string(file.path));
    EXPECT_EQ("devices/" + d.id + ".json", file.path);
    std::vector<std::string> names = d.aliases;
    names.push_back(d.id);
    for (const std::string& name : names) {
      const auto [it, fresh] = owners.emplace(normalized_name(name), d.id);
      EXPECT_TRUE(fresh || it->second == d.id) << name << ": " << it->second << " and " << d.id;
    }
  }
}

struct Published {
  const char* gpu;
  DType dtype;
  double flops_per_s;  ///< data sheet, dense
};

TEST(DataSheets, GiveTheMatrixRates) {
  const Published rows[] = {
      {"V100-SXM2", DType::kFp16, 125e12}, {"A100", DType::kBf16, 312e12},
      {"A100", DType::kTf32, 156e12},      {"H100", DType::kBf16, 989.4e12},
      {"H100", DType::kFp8, 1978.9e12},    {"L40S", DType::kFp8, 733e12},
      {"MI100", DType::kFp32, 46.1e12},    {"MI300X", DType::kBf16, 1307.4e12},
      {"B200", DType::kBf16, 2250e12},     {"T4", DType::kFp16, 65e12},
  };
  for (const Published& row : rows)
    EXPECT_NEAR(find_device(row.gpu).matmul_peak(row.dtype), row.flops_per_s,
                0.005 * row.flops_per_s)
        << row.gpu;
}

TEST(Lookup, TakesWhatPyTorchAndNvidiaSmiPrint) {
  EXPECT_EQ(find_device("NVIDIA A100 80GB PCIe").id, "nvidia-a100-pcie-80gb");
  EXPECT_EQ(find_device("NVIDIA A100-PCIE-40GB").id, "nvidia-a100-pcie-40gb");
  EXPECT_EQ(find_device("Tesla V100-PCIE-32GB").id, "nvidia-v100-pcie-32gb");
  EXPECT_EQ(find_device("NVIDIA H100 80GB HBM3").id, "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(find_device("AMD Instinct MI250").id, "amd-mi250");
  EXPECT_EQ(find_device("h100").id, "nvidia-h100-sxm5-80gb");
  EXPECT_ERROR(find_device("H1000"), kNotFound, "unknown GPU 'H1000'; did you mean");
}

Json sample() { return Json::parse(embedded_files("devices/nvidia-t4").front().content); }

TEST(DeviceFile, OptionalFieldsAreReplacedWithAWarning) {
  Json json = sample();
  json.erase("l2_bytes");
  json.erase("links");
  const Device d = parse_device(json.dump(), "mine.json");
  ASSERT_EQ(d.warnings.size(), 1u);
  EXPECT_EQ(d.warnings[0], "mine.json: 'l2_bytes' is missing; taking 32 MiB");
}

TEST(DeviceFile, WrongUnitsFieldsAndSourcesAreRefused) {
  Json json = sample();
  json["memory_bytes_per_s"]["unit"] = "GB/s";
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput,
               "mine.json: memory_bytes_per_s: 'unit': expected \"B/s\", found \"GB/s\"");
  json = sample();
  json["sm_cout"] = 3;
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput,
               "'sm_cout': unknown field; did you mean 'sm_count'");
  json = sample();
  json["sm_count"].erase("source");
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput, "'source': is missing");
  json = sample();
  json["sm_count"]["value"] = -1;
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput, "expected a number above 0");
  json = sample();
  json.erase("sm_count");
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput, "'sm_count': is missing");
}

TEST(DeviceFile, AFileOfTheUsersOwnWorksLikeABundledOne) {
  const TemporaryFolder folder;
  Json json = sample();
  json["id"] = "my-gpu";
  write_file(folder.path() / "mine.json", json.dump());
  EXPECT_EQ(find_device((folder.path() / "mine.json").string()).id, "my-gpu");
}

}  // namespace
}  // namespace tilecast
