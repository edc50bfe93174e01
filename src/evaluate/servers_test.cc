#include "evaluate/servers.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "evaluate/errors.h"
#include "evaluate/server_settings.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

constexpr const char* kServerHeader =
    "gpu,gpus,model,software,version,dtype,cache_dtype,tp,dp,ep,clients,requests,prompt_min,"
    "prompt_max,output_min,output_max,ttft_mean_s,tpot_mean_s,ttft_use,"
    "output_tokens_per_s_per_gpu\n";
constexpr const char* kServerRow =
    "H100,1,owner--llama-3.2-1b,vllm,,bf16,,1,1,1,4,16,100,120,20,20,0.05,0.004,yes,\n";

std::string server_settings_error(const std::string& content) {
  try {
    ServerSettings::read(content);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

ServedRow made_up_server_row() {
  return read_served_rows(parse_csv(std::string(kServerHeader) + kServerRow, "s.csv"))[0];
}

std::string option_text_of(const std::vector<GivenOption>& options, const std::string& name) {
  for (const GivenOption& option : options)
    if (option.name == name) return option.text;
  return "(none)";
}

ServerPoint measured_point(const std::string& software, const std::string& gpu, double measured) {
  return {.software = software,
          .model = "m",
          .gpu = gpu,
          .dtype = "bf16",
          .tpot_measured_s = measured,
          .ttft_measured_s = measured,
          .tpot_s = Interval{1, 0.8, 1.2},
          .ttft_s = Interval{1, 0.9, 1.1}};
}

const ServerErrors* errors_of_group(const std::vector<ServerErrors>& errors,
                                    const std::string& metric, const std::string& software,
                                    const std::string& model, const std::string& gpu) {
  for (const ServerErrors& e : errors)
    if (e.metric == metric && e.software == software && e.model == model && e.gpu == gpu) return &e;
  return nullptr;
}

TEST(ServerErrors, GroupsAreOfAllOfSoftwareOfGpuAndOfEachKind) {
  std::vector<ServerPoint> points = {measured_point("vllm", "a", 0.8),
                                     measured_point("vllm", "b", 1.25),
                                     measured_point("sglang", "b", 1)};
  points[1].ttft_use = "held back";
  const std::vector<ServerErrors> errors = server_errors(points);
  // Two figures of: all, two of software, two GPUs, three kinds; one TTFT does not count.
  EXPECT_EQ(errors.size(), 2u * 8 - 1);
  const ServerErrors* all = errors_of_group(errors, "tpot", "", "", "");
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->count, 3);
  EXPECT_NEAR(all->mape_percent, (25 + 20 + 0) / 3.0, 1e-9);
  EXPECT_NEAR(all->median_percent, 20, 1e-9);
  EXPECT_NEAR(all->bias_ratio, 1, 1e-9);
  EXPECT_NEAR(all->coverage_percent, 200 / 3.0, 1e-9) << "1.25 is above the interval";
  EXPECT_EQ(errors_of_group(errors, "ttft", "", "", "")->count, 2);
  EXPECT_EQ(errors_of_group(errors, "tpot", "vllm", "", "")->count, 2);
  EXPECT_EQ(errors_of_group(errors, "tpot", "", "", "b")->count, 2);
  EXPECT_EQ(errors_of_group(errors, "tpot", "sglang", "m", "b")->count, 1);
  EXPECT_EQ(errors_of_group(errors, "ttft", "vllm", "m", "b"), nullptr);
  EXPECT_EQ(errors_of_group(errors, "tokens_per_s_per_gpu", "", "", ""), nullptr);
}

TEST(ServerErrors, RanksAreComparedByPairs) {
  const auto sample = [](double measured, double forecast) {
    return ErrorSample{measured, forecast, forecast, forecast};
  };
  EXPECT_EQ(*kendall_tau({sample(1, 10), sample(2, 20), sample(3, 30)}), 1);
  EXPECT_EQ(*kendall_tau({sample(1, 30), sample(2, 20), sample(3, 10)}), -1);
  // Of three pairs two are alike.
  EXPECT_NEAR(*kendall_tau({sample(1, 10), sample(2, 30), sample(3, 20)}), 1.0 / 3, 1e-12);
  EXPECT_FALSE(kendall_tau({sample(1, 10), sample(1, 20)}));
  EXPECT_FALSE(kendall_tau({sample(1, 10)}));
}

TEST(ServerErrors, PowerAndEnergyOfATokenAreThoseOfTheRun) {
  const std::string path = ::testing::TempDir() + "/watts.csv";
  write_file(path,
             "gpu,gpus,model,software,version,dtype,tp,dp,ep,max_num_seqs,output_mean,itl_median_s,"
             "output_tokens_per_s,power_w\n"
             "H100,1,llama-3.2-1b,vllm,0.11.1,bf16,1,1,1,32,100,0.004,6000,400\n");
  const ServerEvaluation e = evaluate_servers(
      forecaster(), path, R"({"rules": [{"options": {"prompt": 100}, "source": "a test"}]})");
  ASSERT_EQ(e.points.size(), 1u);
  const ServerPoint& p = e.points.front();
  ASSERT_TRUE(p.power_w && p.energy_per_token_j && p.energy_per_token_at_measured_rate_j);
  EXPECT_EQ(*p.power_measured_w, 400);
  EXPECT_NEAR(*p.energy_per_token_measured_j, 400 / 6000.0, 1e-12);
  EXPECT_NEAR(p.energy_per_token_at_measured_rate_j->value, p.power_w->value / 6000, 1e-9);
  EXPECT_GT(p.power_w->value, 130);
  EXPECT_LT(p.power_w->value, 700);
  for (const char* metric : {"power", "energy_per_token", "energy_per_token_at_measured_rate"})
    EXPECT_NE(errors_of_group(e.errors, metric, "", "", ""), nullptr) << metric;
}

TEST(ServerSettings, LaterRulesWinAndCellsAreFilledIn) {
  const ServerSettings settings = ServerSettings::read(R"({"rules": [
      {"match": {"software": "vllm"}, "options": {"max_num_seqs": "{clients}", "dtype": ""}, "source": "s"},
      {"match": {"software": ["sglang", "vllm"], "tp": "1"}, "options": {"kv-dtype": "fp8"}, "source": "s"},
      {"match": {"software": "trtllm"}, "options": {"max_num_seqs": 7}, "source": "s"},
      {"options": {"gpu_memory_utilization": 0.85}, "source": "s"}]})");
  const std::vector<GivenOption> options = settings.options_of(made_up_server_row());
  EXPECT_EQ(option_text_of(options, "max-num-seqs"), "4");
  EXPECT_EQ(option_text_of(options, "dtype"), "(none)") << "an empty text takes the column's back";
  EXPECT_EQ(option_text_of(options, "kv-dtype"), "fp8");
  EXPECT_EQ(option_text_of(options, "gpu-memory-utilization"), "0.85");
  EXPECT_EQ(option_text_of(options, "concurrency"), "4");
  EXPECT_EQ(option_text_of(options, "prompt"), "100:120");
  EXPECT_EQ(option_text_of(options, "output"), "20");
  EXPECT_EQ(option_text_of(options, "requests"), "16");
  EXPECT_EQ(settings.why_skipped(made_up_server_row()), "");
}

TEST(ServerSettings, VersionsOfImagesAreVersionsOfSoftware) {
  ServedRow row = made_up_server_row();
  row.cells["version"] = "v0.5.9-rocm700-mi30x";
  EXPECT_EQ(option_text_of(ServerSettings{}.options_of(row), "software-version"),
            "0.5.9-rocm700-mi30x");
  row.cells["version"] = "vision-dev";
  EXPECT_EQ(option_text_of(ServerSettings{}.options_of(row), "software-version"), "(none)");
}

TEST(ServerSettings, RulesSkipRows) {
  const ServerSettings settings = ServerSettings::read(
      R"({"rules": [{"match": {"model": "owner--llama-3.2-1b"}, "skip": "why", "source": "s"}]})");
  EXPECT_EQ(settings.why_skipped(made_up_server_row()), "why");
}

TEST(ServerSettings, ModelsAreBundledOnesWithOrWithoutTheirOwner) {
  const ServerSettings settings = ServerSettings::read(R"({"models": {"mine": "gpt2"}})");
  EXPECT_EQ(settings.model_of("mine").name(), "gpt2");
  EXPECT_EQ(settings.model_of("owner--llama-3.2-1b").name(), "llama-3.2-1b");
  EXPECT_EQ(settings.model_of("no-such-owner/llama-3.2-1b").name(), "llama-3.2-1b");
  EXPECT_THROW(settings.model_of("owner--nothing-like-it"), Error);
}

TEST(ServerSettings, MessagesNameTheRule) {
  EXPECT_NE(server_settings_error(
                R"({"rules": [{"match": {"softwre": "vllm"}, "options": {}, "source": "s"}]})")
                .find("rules[0]"),
            std::string::npos);
  EXPECT_NE(server_settings_error(R"({"rules": [{"options": {"max_num_sqs": 1}, "source": "s"}]})")
                .find("did you mean 'max-num-seqs'"),
            std::string::npos);
  EXPECT_NE(server_settings_error(
                R"({"rules": [{"options": {"max_num_seqs": "{client}"}, "source": "s"}]})")
                .find("did you mean 'clients'"),
            std::string::npos);
  EXPECT_NE(
      server_settings_error(R"({"rules": [{"options": {"max_num_seqs": 1}}]})").find("source"),
      std::string::npos);
  EXPECT_NE(
      server_settings_error(R"({"rules": [{"source": "s"}]})").find("either `options` or `skip`"),
      std::string::npos);
  EXPECT_NE(server_settings_error(R"({"rule": []})").find("rule"), std::string::npos);
}

class ServerFiles : public testing::Test {
 protected:
  std::string table(const std::string& rows) const {
    write_file(folder_.path() / "servers.csv", kServerHeader + rows);
    return (folder_.path() / "servers.csv").string();
  }
  const TemporaryFolder folder_;
};

TEST_F(ServerFiles, RowsAreAskedAsUsersAsk) {
  const std::string path = table(std::string(kServerRow) +
                                 "H100,1,nothing-like-it,vllm,,bf16,,1,1,1,4,16,100,120,20,20,0.05,"
                                 "0.004,yes,\n");
  ASSERT_TRUE(is_server_table(path));
  const ServerEvaluation result = evaluate_servers(forecaster(), path);
  ASSERT_EQ(result.points.size(), 1u);
  EXPECT_EQ(result.unmatched.size(), 1u);
  const ServerPoint& point = result.points[0];
  EXPECT_EQ(point.line, 2);
  EXPECT_GT(point.tpot_s->value, 0);
  EXPECT_LT(point.tpot_s->low, point.tpot_s->value);
  EXPECT_GT(point.ttft_s->value, point.tpot_s->value);
  EXPECT_FALSE(point.tokens_per_s_per_gpu) << "not measured";
}

// What closed loops imply is compared with what they imply of the forecast: both errors are then
// those of the two times.
TEST_F(ServerFiles, DerivedThroughputIsComparedWithDerivedThroughput) {
  const std::string row =
      "H100,1,llama-3.2-1b,vllm,,bf16,,1,1,1,4,18,100,100,20,20,0.05,0.004,yes,";
  const double implied = 4 * 20 / (0.05 + 19 * 0.004);
  const ServerEvaluation result =
      evaluate_servers(forecaster(), table(row + std::to_string(implied) + "\n" + row + "600\n"));
  ASSERT_EQ(result.points.size(), 2u);
  const ServerPoint& derived = result.points[0];
  EXPECT_DOUBLE_EQ(derived.tokens_per_s_per_gpu->value,
                   4 * 20 / (derived.ttft_s->value + 19 * derived.tpot_s->value));
  EXPECT_LT(derived.tokens_per_s_per_gpu->low, derived.tokens_per_s_per_gpu->value);
  EXPECT_LT(result.points[1].tokens_per_s_per_gpu->value, derived.tokens_per_s_per_gpu->value)
      << "a counted rate has the end of the run in it";
}

TEST_F(ServerFiles, ATableOfWhichNothingIsKnownIsAnError) {
  const std::string path =
      table("H100,1,nothing-like-it,vllm,,bf16,,1,1,1,4,16,100,120,20,20,0.05,0.004,yes,\n");
  EXPECT_THROW(evaluate_servers(forecaster(), path), Error);
}

}  // namespace
}  // namespace tilecast
