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
  const std::vector<std::string> all = {"pytorch", "vllm",      "sglang", "trtllm",
                                        "rocblas", "pipeweave", "aiter",  "megatron"};
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
        "trtllm, rocblas, pipeweave, aiter, megatron");
  }
}

TEST(Software, AFileThatIsBasedOnAnotherStatesWhatDiffers) {
  const std::vector<SoftwareDef> table = table_with(kNewVersion);
  const auto found = std::find_if(table.begin(), table.end(),
                                  [](const SoftwareDef& def) { return def.name == "vllm-next"; });
  ASSERT_NE(found, table.end());
  const SoftwareDef& made = *found;
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
  const std::vector<SoftwareDef> read = read_software(files);
  ASSERT_GE(read.size(), files.size());
  for (size_t i = 0; i < read.size(); ++i)
    EXPECT_EQ(software_def(static_cast<Software>(i)), read[i]);
}

constexpr const char* kWithEarlier = R"({"schema_version": 1, "name": "ours", "title": "Ours",
  "position": 90, "stand_in": 90, "based_on": "vllm", "versions": [], "earlier": [
  {"before": "0.14", "costs": {"step_overhead_s": {"value": 1, "unit": "s", "source": "a test"},
                               "host_launch_s": {"value": 2, "unit": "s", "source": "a test"}}},
  {"before": "0.9.2", "costs": {"step_overhead_s": {"value": 3, "unit": "s", "source": "a test"}},
   "traits": {"compiles_gates": {"value": false, "source": "a test"}},
   "server": {"captured_tokens": {"value": 7, "unit": "1", "source": "a test"}}}]})";

TEST(Software, AnEarlierVersionStatesWhatDiffersFromTheNext) {
  std::vector<SoftwareDef> table = table_with(kWithEarlier);
  std::erase_if(table, [](const SoftwareDef& def) { return def.name != "ours"; });
  ASSERT_EQ(table.size(), 3);
  EXPECT_EQ(table[0].before, "");
  SoftwareDef expected = table[0];
  expected.before = "0.14";
  expected.costs.step_overhead_s = 1;
  expected.costs.host_launch_s = 2;
  EXPECT_EQ(table[2], expected);
  expected.before = "0.9.2";
  expected.costs.step_overhead_s = 3;
  expected.traits.compiles_gates = false;
  expected.server.captured_tokens = 7;
  EXPECT_EQ(table[1], expected);
}

TEST(Software, EarlierVersionsAreListedFromTheLatestOn) {
  std::string text = kWithEarlier;
  text.replace(text.find("0.9.2"), 5, "0.14.0");
  EXPECT_NE(message_of(text).find("expected an earlier version than that of the entry above"),
            std::string::npos);
}

TEST(Software, WordsThatAreNoVersionAreRefused) {
  const Software vllm = software_of("vllm");
  for (const char* version :
       {"0.12", "0.12.0", "1.0.0rc3", "0.5.1.post1", "0.13.0+cu128", "0.6-dev"})
    EXPECT_NO_THROW((void)software_version(vllm, version, "")) << version;
  for (const char* version :
       {"v0.12", "0,12", "0..1", ".12", "0.", "0.13 foo", "0.12 <b>", "-1", "0.12\n"})
    EXPECT_THROW((void)software_version(vllm, version, ""), Error) << version;
}

TEST(Software, AVersionIsTheFirstThatIsEarlyEnough) {
  const Software vllm = software_of("vllm");
  const auto before = [&](const char* version) {
    return software_def(software_version(vllm, version, "`software-version`")).before;
  };
  EXPECT_EQ(before(""), "");
  EXPECT_EQ(before("99"), "");
  const std::string first = before("0.0.1");
  ASSERT_NE(first, "");
  const Software early = software_version(vllm, "0.0.1rc2", "`software-version`");
  EXPECT_EQ(software_def(early).before, first);
  EXPECT_EQ(newest_version(early), vllm);
  EXPECT_EQ(software_name(early), "vllm");
  EXPECT_EQ(software_version(early, "99", "`software-version`"), vllm);
  EXPECT_NE(before(first.c_str()), first) << "the version itself is no earlier one";
  try {
    (void)software_version(vllm, "newest", "`software-version`");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "`software-version`: expected a version as in 0.12.0, found 'newest'");
  }
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
  EXPECT_NE(
      message_of(
          std::string(kWithEarlier).replace(std::string(kWithEarlier).find("0.14"), 4, "next"))
          .find("expected a version as in 0.12"),
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
