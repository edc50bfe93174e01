#include <gtest/gtest.h>

#include <map>

#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/ranges.h"
#include "devices/registry.h"
#include "devices/vendor.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(EveryDevice, RunsItsLanesAtItsClock) {
  for (const Device& d : bundled_devices()) {
    // Two FLOPs a lane and clock; files keep four digits of the rate.
    const double formula =
        2.0 * static_cast<double>(d.gpu().sm_count * d.gpu().lanes_per_sm) * d.gpu().boost_clock_hz;
    EXPECT_NEAR(d.gpu().vector_peak(DType::kFp32), formula, 0.005 * formula) << d.id;
    EXPECT_GT(d.memory_bytes, int64_t{1} << 30) << d.id;
    EXPECT_GE(d.matmul_peak(DType::kFp32), d.gpu().vector_peak(DType::kFp32)) << d.id;
    EXPECT_EQ(d.warnings.size(), is_systolic(d.gpu().architecture) ? 1u : 0u) << d.id;
    EXPECT_FALSE(d.links.empty()) << d.id;
  }
}

TEST(EveryDevice, IsOfAnArchitectureOfItsVendor) {
  for (const Device& d : bundled_devices())
    EXPECT_EQ(is_amd(d.gpu().architecture), d.vendor == "amd") << d.id;
}

TEST(EveryDevice, HasItsIdAsFileNameAndAliasesOfItsOwn) {
  std::map<std::string, std::string> owners;
  for (const EmbeddedFile& file : embedded_files("devices/")) {
    const Device d = parse_device(file.content, std::string(file.path));
    EXPECT_EQ("devices/" + d.id + ".json", file.path);
    std::vector<std::string> names = d.aliases;
    names.push_back(d.id);
    names.push_back(d.id.substr(d.vendor.size() + 1));
    for (const std::string& name : names) {
      EXPECT_EQ(find_device(name).id, d.id) << name;
      const auto [it, fresh] = owners.emplace(normalized_name(name), d.id);
      EXPECT_TRUE(fresh || it->second == d.id) << name << ": " << it->second << " and " << d.id;
    }
  }
}

// A source that names a data sheet must be where the number is; a guess is marked in the source.
TEST(EveryDevice, MarksAGuessWhereTheNumberStands) {
  for (const EmbeddedFile& file : embedded_files("devices/")) {
    const Json json = Json::parse(file.content);
    EXPECT_EQ(json.value("notes", "").find("guess"), std::string::npos) << file.path;
  }
  for (const char* gpu : {"b200-sxm-180gb", "b300-sxm", "gb200", "gb300"}) {
    const std::string path = std::string("devices/nvidia-") + gpu + ".json";
    const Json json = Json::parse(embedded_files(path).front().content);
    for (const char* field : {"sm_count", "boost_clock_hz"})
      EXPECT_TRUE(json.at(field).at("source").get<std::string>().starts_with("guess: "))
          << gpu << " " << field;
  }
}

TEST(InlineEcc, IsOnWithNvidiasGddr6UnlessTheFileSaysOtherwise) {
  const auto ecc = [](const Json& json) { return parse_device(json.dump(), "mine.json"); };
  Json t4 = Json::parse(embedded_files("devices/nvidia-t4").front().content);
  EXPECT_EQ(ecc(t4).gpu().inline_ecc, InlineEcc::kOn);
  t4["inline_ecc"]["value"] = "off";
  EXPECT_EQ(ecc(t4).gpu().inline_ecc, InlineEcc::kOff);
  t4["inline_ecc"]["value"] = "yes";
  EXPECT_ERROR(ecc(t4), kInput, "expected one of off, on; found \"yes\"");
  t4.erase("inline_ecc");
  EXPECT_EQ(ecc(t4).gpu().inline_ecc, InlineEcc::kOn);
  ASSERT_EQ(ecc(t4).warnings.size(), 1u);
  EXPECT_NE(ecc(t4).warnings[0].find("missing, with the values used: inline_ecc on"),
            std::string::npos);
  EXPECT_EQ(find_device("H100").gpu().inline_ecc, InlineEcc::kOff);
  EXPECT_EQ(find_device("RX 6800 XT").gpu().inline_ecc, InlineEcc::kOff);
}

TEST(AtClock, RatesAndL2ScaleMemoryAndPowerStay) {
  const Device boost = find_device("MI100");
  const Device slow = at_clock(boost, boost.gpu().boost_clock_hz / 2);
  EXPECT_EQ(slow.gpu().boost_clock_hz, boost.gpu().boost_clock_hz / 2);
  EXPECT_EQ(slow.matmul_peak(DType::kFp16), boost.matmul_peak(DType::kFp16) / 2);
  EXPECT_EQ(slow.gpu().vector_peak(DType::kFp32), boost.gpu().vector_peak(DType::kFp32) / 2);
  EXPECT_EQ(slow.gpu().l2_bytes_per_s(), boost.gpu().l2_bytes_per_s() / 2);
  EXPECT_EQ(slow.memory_bytes_per_s, boost.memory_bytes_per_s);
  EXPECT_EQ(slow.gpu().board_power_w, boost.gpu().board_power_w);
  EXPECT_EQ(slow.id, boost.id);
}

TEST(Slices, AreDevicesWithTheirShareOfEverything) {
  const Device card = find_device("A100-40GB"), slice = find_device("a100-40gb:2G.10GB");
  EXPECT_EQ(slice.id, "nvidia-a100-sxm4-40gb:2g.10gb");
  EXPECT_EQ(slice.gpu().sm_count, 28);
  EXPECT_DOUBLE_EQ(slice.matmul_peak(DType::kFp16), card.matmul_peak(DType::kFp16) * 28 / 108);
  EXPECT_DOUBLE_EQ(slice.memory_bytes_per_s, card.memory_bytes_per_s / 4);
  EXPECT_EQ(slice.gpu().l2_bytes, card.gpu().l2_bytes / 4);
  EXPECT_EQ(slice.gpu().boost_clock_hz, card.gpu().boost_clock_hz);
  ASSERT_EQ(slice.links.size(), 1u);
  EXPECT_EQ(slice.links[0].kind, "pcie");
  EXPECT_ERROR(find_device("A100-40GB:5g.20gb"), kNotFound,
               "nvidia-a100-sxm4-40gb has no slice '5g.20gb'");
  EXPECT_ERROR(find_device("T4:1g.5gb"), kNotFound, "nvidia-t4 cannot be divided into slices");
  EXPECT_ERROR(find_device("A100-40GB:2g.10gb:1g.5gb"), kNotFound, "cannot be divided");
  EXPECT_ERROR(find_device("X100:1g.5gb"), kNotFound, "unknown GPU 'X100'");
}

TEST(Slices, AddUpToAtMostTheCard) {
  int64_t profiles = 0;
  for (const Device& card : bundled_devices()) {
    for (const Slice& slice : card.slices) {
      ++profiles;
      EXPECT_LE(slice.instances * slice.sm_count, card.gpu().sm_count) << card.id << slice.name;
      EXPECT_LE(slice.instances * slice.memory_bytes, card.memory_bytes) << card.id << slice.name;
      EXPECT_LE(slice.instances * slice.memory_eighths, 8) << card.id << slice.name;
    }
  }
  EXPECT_GE(profiles, 24);  // six each of A100, H100, H200 and B200
}

TEST(Slices, OfAFile) {
  const TemporaryFolder folder;
  Json json = Json::parse(embedded_files("devices/nvidia-a100-sxm4-40gb").front().content);
  json["id"] = "mine";
  write_file(folder.path() / "mine.json", json.dump());
  const std::string path = (folder.path() / "mine.json").string();
  EXPECT_EQ(find_device(path + ":1g.5gb").id, "mine:1g.5gb");
  json["slices"]["profiles"][0]["sm_count"] = 109;
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput, "from 1 to 108");
  json["slices"].erase("source");
  EXPECT_ERROR(parse_device(json.dump(), "mine.json"), kInput, "source");
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
  EXPECT_EQ(find_device("NVIDIA H800").id, "nvidia-h800-sxm5-80gb");
  EXPECT_EQ(find_device("Tesla K80").id, "nvidia-k80");
  EXPECT_EQ(find_device("amd-mi250-gcd").id, "amd-mi250x");  // 110 CUs; MI250 has 104
  EXPECT_EQ(find_device("amd-navi21-72cu").id, "amd-rx-6800-xt");
  EXPECT_EQ(find_device("h100").id, "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(find_device("A100-SXM4-80GB").id, "nvidia-a100-sxm4-80gb");
  EXPECT_EQ(find_device("H100-SXM5-80GB").id, "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(find_device("A100 80GB PCIe").id, "nvidia-a100-pcie-80gb");
  EXPECT_EQ(find_device("A10G").id, "nvidia-a10g");
  EXPECT_EQ(find_device("V100-32GB").id, "nvidia-v100-sxm2-32gb");
  EXPECT_ERROR(find_device("H1000"), kNotFound, "unknown GPU 'H1000'; did you mean");
}

TEST(Lookup, AShortNameIsTheSxmFormWhereThereIsOne) {
  int found = 0;
  for (const Device& device : bundled_devices()) {
    const size_t form = device.id.find("-sxm");
    if (form == std::string::npos) continue;
    const size_t model = device.id.find('-') + 1;  // after the vendor
    const std::string name = device.id.substr(model, form - model);
    EXPECT_NE(find_device(name).id.find(name + "-sxm"), std::string::npos) << name;
    ++found;
  }
  EXPECT_GT(found, 5);
  EXPECT_EQ(find_device("Tesla V100").id, "nvidia-v100-sxm2-32gb");
  EXPECT_EQ(find_device("P100").id, "nvidia-p100-sxm2-16gb");
}

Json sample() { return Json::parse(embedded_files("devices/nvidia-t4").front().content); }

TEST(DeviceFile, OptionalFieldsAreReplacedWithAWarning) {
  Json json = sample();
  json.erase("l2_bytes");
  json.erase("links");
  const Device d = parse_device(json.dump(), "mine.json");
  ASSERT_EQ(d.warnings.size(), 1u);
  EXPECT_EQ(d.warnings[0],
            "mine.json: fields that are missing, with the values used: l2_bytes 32 MiB");
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

std::string parse_error(const Json& json) {
  try {
    parse_device(json.dump(), "mine.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DeviceFile, ImpossibleNumbersNameTheUnitThatWasProbablyMeant) {
  const auto with = [](const std::string& key, double value) {
    Json json = sample();
    json[key]["value"] = value;
    return parse_error(json);
  };
  EXPECT_EQ(with("memory_bytes_per_s", 3350),
            "mine.json: memory_bytes_per_s: 'value': 3350 B/s is not possible: expected 1e+09 to "
            "1e+17 B/s; did you mean 3350 GB/s = 3.35e+12 B/s?");
  EXPECT_EQ(with("boost_clock_hz", 1.98),
            "mine.json: boost_clock_hz: 'value': 1.98 Hz is not possible: expected 1e+07 to 1e+10 "
            "Hz; did you mean 1.98 GHz = 1980000000 Hz?");
  EXPECT_NE(with("boost_clock_hz", 1980).find("1980 MHz = 1980000000 Hz"), std::string::npos);
  EXPECT_NE(with("memory_bytes", 80).find("80 GiB = 8.589934592e+10 B"), std::string::npos);
  EXPECT_NE(with("l2_bytes", 50).find("50 MiB = 52428800 B"), std::string::npos);
  EXPECT_NE(with("process_nm", 5e-9).find("5e-09 m = 5 nm"), std::string::npos);
  EXPECT_NE(with("board_power_w", 7e7).find("7e+07 uW = 70 W"), std::string::npos);
  EXPECT_EQ(with("sm_count", 1e9),
            "mine.json: sm_count: 'value': 1e+09 is not possible: expected 1 to 1e+07");
  Json json = sample();
  json["vector_flops_per_s"]["fp32"]["value"] = 8.1;
  EXPECT_NE(parse_error(json).find("8.1 TFLOP/s = 8.1e+12 FLOP/s"), std::string::npos);
  json = sample();
  json["links"][0]["bytes_per_s"]["value"] = 32;
  EXPECT_NE(parse_error(json).find("32 GB/s = 3.2e+10 B/s"), std::string::npos);
}

TEST(EveryDevice, LiesWithinTheRangesWithRoom) {
  for (const QuantityRange& range : quantity_ranges()) {
    EXPECT_LT(range.min, range.typical) << range.key;
    EXPECT_GT(range.max, range.typical) << range.key;
    EXPECT_FALSE(range.source.empty()) << range.key;
  }
  // Ten times the largest and a tenth of the smallest bundled number stay possible.
  for (const Device& d : bundled_devices()) {
    for (const double factor : {0.1, 10.0}) {
      EXPECT_EQ(implausible("memory_bytes_per_s", factor * d.memory_bytes_per_s), "") << d.id;
      EXPECT_EQ(implausible("flops_per_s", factor * d.gpu().vector_peak(DType::kFp32)), "") << d.id;
      // No chip has less than a core.
      const double cores = std::max(1.0, factor * static_cast<double>(d.gpu().sm_count));
      EXPECT_EQ(implausible("sm_count", cores), "") << d.id;
      EXPECT_EQ(implausible("board_power_w", factor * d.gpu().board_power_w), "") << d.id;
    }
  }
}

TEST(DeviceFile, NumbersThatContradictEachOtherAreAWarning) {
  Json json = sample();
  json["boost_clock_hz"]["value"] = 1.59e8;
  const Device d = parse_device(json.dump(), "mine.json");
  ASSERT_EQ(d.warnings.size(), 2u);
  EXPECT_EQ(d.warnings[0],
            "mine.json: vector_flops_per_s of fp32 is 8.14 TFLOP/s, but 40 SMs of 64 lanes at 159 "
            "MHz give 814 GFLOP/s: one of these numbers is probably wrong");
  EXPECT_EQ(d.warnings[1], "mine.json: base_clock_hz, 585 MHz, is above boost_clock_hz, 159 MHz");
}

TEST(DeviceFile, WordsAreOfAClosedListAndHaveASource) {
  Json json = sample();
  json["memory_type"]["value"] = "hbm9";
  EXPECT_EQ(parse_error(json),
            "mine.json: memory_type: 'value': expected one of gddr5, gddr5x, gddr6, gddr6x, gddr7, "
            "hbm2, hbm2e, hbm3, hbm3e, hbm4, lpddr4x, lpddr5, lpddr5x; found \"hbm9\"");
  json = sample();
  json["matrix_instruction"]["value"] = "MMA";
  EXPECT_EQ(parse_error(json),
            "mine.json: matrix_instruction: 'value': expected one of none, mma.sync, wgmma, "
            "tcgen05, mfma, wmma, array; found \"MMA\"");
  json = sample();
  json["architecture"].erase("source");
  EXPECT_EQ(parse_error(json), "mine.json: architecture: 'source': is missing");
  json["architecture"]["source"] = "";
  EXPECT_EQ(parse_error(json),
            "mine.json: architecture: 'source': is empty; state where the value comes from");
  json = sample();
  json["architecture"]["unit"] = "1";
  EXPECT_NE(parse_error(json).find("'unit': unknown field"), std::string::npos);
  json = sample();
  json["issue_per_clock"]["value"] = 100;
  EXPECT_NE(parse_error(json).find("100 is not possible: expected 0.1 to 64"), std::string::npos);
}

TEST(DeviceFile, NamesArePrintable) {
  Json json = sample();
  json["name"] = "T4\x1b[31m";
  EXPECT_EQ(parse_error(json),
            "mine.json: 'name': expected a name of 1 to 80 printable characters, found "
            "'T4\\x1b[31m'");
  json = sample();
  json["aliases"] = {std::string(81, 'a')};
  EXPECT_NE(parse_error(json).find("'aliases': expected a name"), std::string::npos);
}

TEST(DeviceFile, SaysWhetherItIsOfAGpuAndIsOneIfItDoesNot) {
  Json json = sample();
  EXPECT_NE(parse_device(json.dump(), "mine.json").as_gpu(), nullptr);
  json.erase("kind");
  EXPECT_EQ(parse_device(json.dump(), "mine.json").gpu().sm_count, 40);
  json["kind"] = "fpga";
  EXPECT_EQ(parse_error(json),
            "mine.json: 'kind': expected \"gpu\" or \"accelerator\", found \"fpga\"");
}

TEST(DeviceFile, AnAcceleratorHasMemoryAndLinksAndNoGpusNumbers) {
  Json json = sample();
  json["kind"] = "accelerator";
  EXPECT_NE(parse_error(json).find("unknown field"), std::string::npos) << parse_error(json);
  Json own;
  for (const char* key : {"schema_version", "kind", "id", "name", "vendor", "memory_bytes",
                          "memory_bytes_per_s", "links"})
    own[key] = json[key];
  own["id"] = "my-accelerator";
  const Device device = parse_device(own.dump(), "mine.json");
  EXPECT_EQ(device.as_gpu(), nullptr);
  EXPECT_FALSE(device.links.empty());
  EXPECT_TRUE(device.warnings.empty());
  EXPECT_ERROR(device.gpu(), kUnsupported,
               "my-accelerator is an accelerator: times are forecast for GPUs only");
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
