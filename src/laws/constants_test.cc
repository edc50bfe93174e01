#include "laws/constants.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "laws/constant_table.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::filesystem::path file_of(const std::string& law) {
  return std::filesystem::path(TILECAST_LAWS) / (law + ".json");
}

std::set<std::string> law_names() {
  std::set<std::string> names;
  LawConstants laws{};
  ConstantTable table;
  laws.describe(table);
  for (const Constant& constant : table.constants())
    names.insert(constant.name.substr(0, constant.name.find('.')));
  return names;
}

/// The message with which a changed file of a law is refused; "" if it is read.
std::string refusal(const std::string& law, const std::function<void(Json&)>& change) {
  Json json = parse_json(read_file(file_of(law)), law);
  change(json);
  LawConstants laws{};
  ConstantTable table;
  laws.describe(table);
  try {
    table.read(law, json.dump(), law + ".json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LawConstants, EachFileHoldsTheConstantsOfItsLawAsTheBuildStoresThem) {
  LawConstants read{};
  ConstantTable table;
  read.describe(table);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TILECAST_LAWS))
    files.insert(entry.path().stem().string());
  EXPECT_EQ(files, law_names());
  // Throws where a member of a struct is not in the file, or has no source.
  for (const std::string& law : files) table.read(law, read_file(file_of(law)), law);
  EXPECT_EQ(read, bundled_laws());
}

TEST(LawConstants, NamesAreDistinct) {
  LawConstants laws{};
  ConstantTable table;
  laws.describe(table);
  std::set<std::string> names;
  for (const Constant& constant : table.constants())
    EXPECT_TRUE(names.insert(constant.name).second) << constant.name;
}

TEST(LawConstants, ANumberIsFoundByItsName) {
  LawConstants laws = bundled_laws();
  ConstantTable table;
  laws.describe(table);
  table.number("decode_attention.bulk_intake.sm_bytes_per_cycle") *= 2;
  EXPECT_EQ(laws.decode_attention.bulk_intake.sm_bytes_per_cycle,
            2 * bundled_laws().decode_attention.bulk_intake.sm_bytes_per_cycle);
  try {
    table.number("decode_attention.dram_rato");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "'decode_attention.dram_rato' is no number of a law; did you mean "
                 "'decode_attention.dram_ratio', 'decode_attention.l2_fit_ratio', "
                 "'decode_attention.triton_parts'?");
  }
}

TEST(LawConstants, AFileWithAnErrorIsRefused) {
  EXPECT_EQ(refusal("scan", [](Json&) {}), "");
  const auto constants = [](Json& file) -> Json& { return file["constants"]; };
  EXPECT_EQ(refusal("scan", [&](Json& file) { constants(file)["chunk_cycles"]["unit"] = "us"; }),
            "scan.json: constants: chunk_cycles: 'unit': expected \"cycle\", found \"us\"");
  EXPECT_EQ(refusal("scan", [&](Json& file) { constants(file).erase("chunk_cycles"); }),
            "scan.json: 'constants': 'chunk_cycles' is missing");
  EXPECT_EQ(refusal("scan", [&](Json& file) { constants(file)["speed"] = {{"value", 1}}; }),
            "scan.json: constants: 'speed': is unknown");
  EXPECT_EQ(refusal("scan", [&](Json& file) { file.erase("source"); }).find("scan.json"), 0u);
  EXPECT_NE(refusal("scan", [&](Json& file) { file["source"] = "somewhere"; })
                .find("expected how it was found (measured, "),
            std::string::npos);
  EXPECT_NE(refusal("scan", [&](Json& file) { constants(file)["chunk_cycles"].erase("what"); }),
            "");
  EXPECT_NE(refusal("scan", [&](Json& file) { constants(file)["chunk_cycles"]["value"] = "4"; }),
            "");
  EXPECT_NE(
      refusal("collectives", [&](Json& file) { constants(file)["switch_ranks"]["value"] = 4.5; }),
      "")
      << "a count";
  EXPECT_NE(
      refusal("matmul", [&](Json& file) { constants(file)["tiles"]["value"] = Json::array(); }),
      "");
  EXPECT_NE(refusal("matmul", [&](Json& file) { constants(file)["tiles"]["value"] = {{1, 2, 3}}; }),
            "");
}

TEST(LawConstants, FilesOfAFolderReplaceTheBundledOnes) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tilecast_laws_test";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(load_laws(folder), bundled_laws()) << "no folder";
  std::filesystem::create_directories(folder);
  Json json = parse_json(read_file(file_of("stream")), "stream");
  json["constants"]["start_s"]["value"] = 3e-6;
  std::ofstream(folder / "stream.json") << json.dump();
  LawConstants expected = bundled_laws();
  expected.stream.start_s = 3e-6;
  EXPECT_EQ(load_laws(folder), expected);
  std::ofstream(folder / "strem.json") << json.dump();
  EXPECT_THROW((void)load_laws(folder), Error) << "no law has this name";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tilecast
