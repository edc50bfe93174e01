#include "devices/derived.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/embedded.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/registry.h"
#include "devices/vendor.h"

namespace tilecast {
namespace {

Json t4() { return Json::parse(embedded_files("devices/nvidia-t4").front().content); }

/// The fields that are derived from others if they are missing.
constexpr const char* kDerived[] = {"architecture",      "matrix_instruction",
                                    "memory_type",       "exp_per_clock_per_sm",
                                    "schedulers_per_sm", "issue_per_clock"};

/// "hopper wgmma hbm3 16 4 1".
std::string architecture_of(const Device& device) {
  const Gpu& gpu = device.gpu();
  return fmt::format("{} {} {} {:g} {} {:g}", choice_word(gpu.architecture),
                     choice_word(gpu.matrix_instruction), choice_word(gpu.memory_type),
                     gpu.exp_per_clock_per_sm, gpu.schedulers_per_sm, gpu.issue_per_clock);
}

TEST(EveryDevice, GivesTheFieldsOfItsArchitectureAlsoIfTheyAreMissing) {
  for (const EmbeddedFile& file : embedded_files("devices/")) {
    const Json json = Json::parse(file.content);
    const std::string expected = architecture_of(parse_device(file.content, "mine.json"));
    Json without_all = json;
    const bool systolic = is_systolic(parse_device(file.content, "mine.json").gpu().architecture);
    for (const char* key : kDerived) {
      // No law reads the fields that such a chip does not have.
      if (systolic && !json.contains(key)) continue;
      ASSERT_TRUE(json.contains(key)) << file.path << " " << key;
      Json without = json;
      without.erase(key);
      without_all.erase(key);
      const Device d = parse_device(without.dump(), "mine.json");
      EXPECT_EQ(architecture_of(d), expected) << file.path << " without " << key;
      EXPECT_EQ(d.warnings.size(), 1u) << file.path << " without " << key;
    }
    EXPECT_EQ(architecture_of(parse_device(without_all.dump(), "mine.json")), expected)
        << file.path;
  }
}

TEST(EveryDevice, HasTheMatrixInstructionOfItsRates) {
  for (const Device& d : bundled_devices()) {
    const bool rates =
        d.gpu().matrix_peak(DType::kFp16) > 0 || d.gpu().matrix_peak(DType::kBf16) > 0;
    EXPECT_EQ(d.gpu().matrix_instruction != MatrixInstruction::kNone, rates) << d.id;
  }
}

// Products that are not bundled, from data sheets, product pages and whitepapers: name; vendor;
// SMs, GHz, FP32 lanes per SM, nm, threads per SM, KiB on chip per SM, GiB, GB/s; dense FLOP per
// clock and SM of the matrix units; the fields that should be derived.
constexpr const char* kProducts = R"(
K40             | nvidia |  15 0.875 192 28 2048  64  12   288 |  | kepler none gddr5 32 4 2
M40             | nvidia |  24 1.112 128 28 2048 144  24   288 |  | maxwell none gddr5 32 4 2
P40             | nvidia |  30 1.531 128 16 2048 144  24   346 | int8 1024 | pascal none gddr5 32 4 2
GTX 1080 Ti     | nvidia |  28 1.582 128 16 2048 144  11   484 |  | pascal none gddr5x 32 4 2
Titan V         | nvidia |  80 1.455  64 12 2048 128  12   653 | fp16 1024 | volta mma.sync hbm2 16 4 1
RTX 2080 Ti     | nvidia |  68 1.545  64 12 1024  96  11   616 | fp16 512 | turing mma.sync gddr6 16 4 1
GTX 1660 Ti     | nvidia |  24  1.77  64 12 1024  96   6   288 |  | turing none gddr6 16 4 1
RTX 3070        | nvidia |  46 1.725 128  8 1536 128   8   448 | fp16 512 bf16 512 int8 2048 | ampere mma.sync gddr6 16 4 1
RTX 3080        | nvidia |  68  1.71 128  8 1536 128  10   760 | fp16 512 bf16 512 int8 2048 | ampere mma.sync gddr6x 16 4 1
RTX A5000       | nvidia |  64 1.695 128  8 1536 128  24   768 | fp16 1024 bf16 1024 | ampere mma.sync gddr6 16 4 1
Jetson AGX Orin | nvidia |  16   1.3 128  8 1536 192  64 204.8 | fp16 1024 bf16 1024 | ampere mma.sync lpddr5 16 4 1
RTX 4070        | nvidia |  46 2.475 128  4 1536 128  12   504 | fp16 512 bf16 512 fp8 1024 | ada mma.sync gddr6x 16 4 1
RTX 4060        | nvidia |  24  2.46 128  4 1536 128   8   272 | fp16 512 bf16 512 fp8 1024 | ada mma.sync gddr6 16 4 1
L20             | nvidia |  92  2.52 128  4 1536 128  48   864 | fp16 512 bf16 512 fp8 1024 | ada mma.sync gddr6 16 4 1
H800 PCIe       | nvidia | 114 1.755 128  4 2048 256  80  2039 | fp16 3780 bf16 3780 fp8 7560 | hopper wgmma hbm2e 16 4 1
GH200 144GB     | nvidia | 132  1.98 128  4 2048 256 144  4900 | fp16 3786 bf16 3786 fp8 7572 | hopper wgmma hbm3e 16 4 1
RTX 5080        | nvidia |  84 2.617 128  4 1536 128  16   960 | fp16 512 bf16 512 fp8 1024 fp4 4096 | blackwell mma.sync gddr7 16 4 1
GB10            | nvidia |  48   2.5 128  4 1536 128 128   273 | fp16 1024 bf16 1024 fp8 2048 fp4 4096 | blackwell mma.sync lpddr5x 16 4 1
Radeon VII      | amd    |  60  1.75  64  7 2560  80  16  1024 |  | gcn5 none hbm2 16 4 1
RX 6900 XT      | amd    |  80  2.25  64  7 1024  80  16   512 |  | rdna2 none gddr6 16 2 1
RX 7900 XTX     | amd    |  96   2.5 128  5 1024  96  24   960 | fp16 512 bf16 512 | rdna3 wmma gddr6 16 2 1
RX 9070 XT      | amd    |  64  2.97 128  4 1024  96  16   640 | fp16 1024 bf16 1024 fp8 2048 | rdna4 wmma gddr6 16 2 1
MI300A          | AMD    | 228   2.1 128  5 2048  96 128  5300 | fp16 2048 bf16 2048 fp8 4096 fp32 256 | cdna3 mfma hbm3 16 4 1
TPU v5p         | google |   2  1.75 2048  5    1     1  95  2765 | bf16 131072 | systolic array hbm2e 16 4 1
Max 1550        | intel  | 128   1.6 128 10 1024 512 128  3277 | fp16 4096 bf16 4096 | ampere mma.sync hbm2e 16 4 1
)";

/// A file of a product in kProducts without the derived fields.
Json file_of(const std::vector<std::string>& product) {
  Json json = t4();
  for (const char* key : kDerived) json.erase(key);
  json.erase("base_clock_hz");
  json["vendor"] = trim(product[1]);
  std::istringstream numbers(product[2]), matrix(product[3]);
  const std::pair<const char*, double> fields[] = {
      {"sm_count", 1},          {"boost_clock_hz", 1e9},    {"lanes_per_sm", 1},
      {"process_nm", 1},        {"threads_per_sm", 1},      {"on_chip_bytes_per_sm", 1024},
      {"memory_bytes", 0x1p30}, {"memory_bytes_per_s", 1e9}};
  for (const auto& [key, unit] : fields) {
    double value = 0;
    EXPECT_TRUE(numbers >> value) << product[0];
    json[key]["value"] = value * unit;
  }
  const auto value = [&](const char* key) { return json[key]["value"].get<double>(); };
  const double clocks = value("sm_count") * value("boost_clock_hz");
  const auto rate = [&](double flop_per_clock) {
    return Json{{"value", flop_per_clock * clocks}, {"unit", "FLOP/s"}, {"source", "made up"}};
  };
  json["vector_flops_per_s"] = {{"fp32", rate(2 * value("lanes_per_sm"))}};
  json["matrix_flops_per_s"] = Json::object();
  std::string dtype;
  for (double flop = 0; matrix >> dtype >> flop;) json["matrix_flops_per_s"][dtype] = rate(flop);
  return json;
}

TEST(DeviceFile, FieldsOfTheArchitectureAreDerivedForOtherProducts) {
  for (const std::string& line : split(trim(kProducts), '\n')) {
    const std::vector<std::string> product = split(line, '|');
    ASSERT_EQ(product.size(), 5u) << line;
    const Device device = parse_device(file_of(product).dump(), "mine.json");
    EXPECT_EQ(architecture_of(device), trim(product[4])) << line;
  }
}

TEST(DeviceFile, ADerivedFieldIsAWarningAndFollowsTheGivenOnes) {
  Json json = t4();
  for (const char* key : kDerived) json.erase(key);
  EXPECT_EQ(parse_device(json.dump(), "mine.json").warnings,
            (std::vector<std::string>{
                "mine.json: fields that are missing, with the values used: architecture turing, "
                "matrix_instruction mma.sync, memory_type gddr6, exp_per_clock_per_sm 16, "
                "schedulers_per_sm 4, issue_per_clock 1"}));
  json["architecture"] = {{"value", "volta"}, {"source", "made up"}};
  EXPECT_EQ(architecture_of(parse_device(json.dump(), "mine.json")), "volta mma.sync hbm2 16 4 1");
}

TEST(MemoryTypes, AreHbmByName) {
  constexpr auto kWords = choice_words(MemoryType{});
  for (size_t i = 0; i < kWords.size(); ++i)
    EXPECT_EQ(is_hbm(static_cast<MemoryType>(i)), kWords[i].starts_with("hbm")) << kWords[i];
}

}  // namespace
}  // namespace tilecast
