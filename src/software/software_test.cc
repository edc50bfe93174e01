#include "software/software.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/embedded.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The files of data/software and one more.
std::vector<SoftwareDef> table_with(const std::string& text) {
  std::vector<SoftwareFile> files;
  for (const EmbeddedFile& file : embedded_files("software/"))
    files.push_back({std::string(file.path), file.content});
  files.push_back({"new.json", text});
  return read_software(files);
}

std::string message_of(const std::string& text) {
  try {
    (void)table_with(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kNewVersion = R"({"schema_version": 1, "name": "vllm-next",
  "title": "vLLM next", "position": 90, "stand_in": 90, "based_on": "vllm", "versions": [],
  "traits": {"windowed_decode_ratio": {"value": 1, "unit": "1", "source": "a test"}}})";

TEST(Software, FirstIsPyTorchAndTheFirstServerIsVllm) {
  EXPECT_EQ(software_name(Software{}), "pytorch");
  EXPECT_EQ(software_name(default_server()), "vllm");
  EXPECT_EQ(software_of("pytorch"), Software{});
}

TEST(Software, NamesAreThoseThatWeightsAndOptionsKnow) {
  const std::vector<std::string> all = {"pytorch", "vllm",    "sglang",
                                        "trtllm",  "rocblas", "pipeweave"};
  ASSERT_GE(software_names().size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(software_names()[i], all[i]);
  const std::vector<std::string> models = model_software_names(), servers = server_software_names();
  EXPECT_EQ(std::count(models.begin(), models.end(), "rocblas"), 0);
  EXPECT_EQ(std::count(servers.begin(), servers.end(), "pytorch"), 0);
  EXPECT_EQ(std::count(servers.begin(), servers.end(), "sglang"), 1);
}

TEST(Software, UnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(find_software("vlm"), std::nullopt);
  try {
    (void)parse_software("vlm", "`software`");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "`software`: unknown value 'vlm'; did you mean 'vllm'?; known: pytorch, vllm, sglang, "
        "trtllm, rocblas, pipeweave");
  }
}

TEST(Software, AFileThatIsBasedOnAnotherStatesWhatDiffers) {
  const std::vector<SoftwareDef> table = table_with(kNewVersion);
  const SoftwareDef& made = table.back();
  SoftwareDef expected = software_def(software_of("vllm"));
  EXPECT_EQ(expected.traits.windowed_decode_ratio, 1.5);
  expected.traits.windowed_decode_ratio = 1;
  expected.name = "vllm-next";
  expected.title = "vLLM next";
  expected.position = expected.stand_in = 90;
  expected.versions.clear();
  EXPECT_EQ(made, expected);
}

TEST(Software, TheBuildStoredWhatTheFilesSay) {
  std::vector<SoftwareFile> files;
  for (const EmbeddedFile& file : embedded_files("software/"))
    files.push_back({std::string(file.path), file.content});
  EXPECT_EQ(files.size(), all_software().size());
  EXPECT_EQ(read_software(files), all_software());
}

TEST(Software, FilesWithUnknownKeysUnitsOrPlacesAreRefused) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kNewVersion;
    return message_of(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_NE(changed("windowed_decode_ratio", "windowed_ratio").find("windowed_ratio"),
            std::string::npos);
  EXPECT_NE(changed("\"unit\": \"1\"", "\"unit\": \"s\"").find("expected \"1\", found \"s\""),
            std::string::npos);
  EXPECT_NE(changed("a test", "").find("state where the value comes from"), std::string::npos);
  EXPECT_NE(changed("\"position\": 90", "\"position\": 1").find("same position"),
            std::string::npos);
  EXPECT_NE(changed("\"based_on\": \"vllm\"", "\"based_on\": \"llm\"").find("no other software"),
            std::string::npos);
  EXPECT_NE(changed("\"based_on\": \"vllm\"", "\"based_on\": \"vllm-next\"").find("no other"),
            std::string::npos);
  EXPECT_NE(changed("\"based_on\"", "\"cache_rule\": \"\", \"based_on\"").find("a server has"),
            std::string::npos);
  EXPECT_NE(
      changed(
          "\"traits\"",
          "\"launch\": {\"command\": {\"value\": \"serve\", \"source\": \"a test\"}}, \"traits\"")
          .find("launch.command: is a server's, and names {model}"),
      std::string::npos);
}

}  // namespace
}  // namespace tilecast
