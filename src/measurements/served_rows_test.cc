#include "measurements/served_rows.h"

#include <gtest/gtest.h>

#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kServedLoopHeader =
    "gpu,gpus,model,software,version,dtype,tp,dp,ep,clients,requests,prompt_min,prompt_max,"
    "output_min,output_max,ttft_mean_s,tpot_mean_s,ttft_median_s,tpot_median_s,ttft_use,"
    "output_tokens_per_s_per_gpu,drafts,disaggregated\n";
constexpr const char* kServedFullHeader =
    "gpu,gpus,model,software,dtype,tp,dp,ep,max_num_seqs,output_mean,itl_median_s,"
    "output_tokens_per_s,host_bound\n";

std::vector<ServedRow> served_rows_of(const char* header, const std::string& rows) {
  return read_served_rows(parse_csv(header + rows, "s.csv"));
}

std::string served_message_of(const char* header, const std::string& rows) {
  try {
    served_rows_of(header, rows);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "";
}

TEST(ServedRows, ClosedLoopsHaveMeansOrMedians) {
  const auto rows = served_rows_of(
      kServedLoopHeader,
      "H100,2,gpt2,vllm,0.9,bf16,2,1,1,8,80,100,120,50,50,0.2,0.01,0.1,0.02,yes,90,none,0\n"
      "H100,2,gpt2,vllm,,bf16,2,1,1,8,,100,,,50,,,0.1,0.02,polled,,none,0\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].line, 2u);
  EXPECT_EQ(rows[0].clients, 8);
  EXPECT_EQ(rows[0].prompt->low, 100);
  EXPECT_EQ(rows[0].prompt->high, 120);
  EXPECT_FALSE(rows[0].medians);
  EXPECT_FALSE(rows[0].steady);
  EXPECT_DOUBLE_EQ(*rows[0].tpot_s, 0.01);
  EXPECT_DOUBLE_EQ(*rows[0].output_tokens_per_s_per_gpu, 90);
  EXPECT_EQ(rows[0].cells.at("requests"), "80");
  EXPECT_EQ(rows[0].left_out, "");
  EXPECT_TRUE(rows[1].medians);
  EXPECT_DOUBLE_EQ(*rows[1].ttft_s, 0.1);
  EXPECT_DOUBLE_EQ(*rows[1].tpot_s, 0.02);
  EXPECT_EQ(rows[1].ttft_use, "polled");
  EXPECT_EQ(rows[1].prompt->high, 100);
  EXPECT_EQ(rows[1].output->low, 50);
  EXPECT_FALSE(rows[1].output_tokens_per_s_per_gpu);
  EXPECT_FALSE(rows[1].cells.contains("requests"));
}

TEST(ServedRows, WhatIsNoSingleServerIsLeftOut) {
  const auto rows =
      served_rows_of(kServedLoopHeader,
                     "H100,2,gpt2,vllm,,bf16,2,1,1,8,80,100,120,50,50,0.2,0.01,,,,,mtp,0\n"
                     "H100,6,gpt2,vllm,,bf16,2,1,1,8,80,100,120,50,50,0.2,0.01,,,,,none,1\n");
  EXPECT_NE(rows[0].left_out.find("drafts"), std::string::npos);
  EXPECT_NE(rows[1].left_out.find("servers of their own"), std::string::npos);
}

TEST(ServedRows, ServersKeptFullHaveTheirSequencesAsClients) {
  const auto rows = served_rows_of(kServedFullHeader,
                                   "H100,2,gpt2,vllm,bf16,2,1,1,32,86.6,0.01,640,0\n"
                                   "H100,2,gpt2,vllm,bf16,2,1,1,32,86.6,0.01,640,1\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].clients, 32);
  EXPECT_EQ(rows[0].output->low, 43);
  EXPECT_EQ(rows[0].output->high, 130);
  EXPECT_FALSE(rows[0].prompt);
  EXPECT_TRUE(rows[0].medians);
  EXPECT_TRUE(rows[0].steady);
  EXPECT_DOUBLE_EQ(*rows[0].itl_s, 0.01);
  EXPECT_FALSE(rows[0].tpot_s);
  EXPECT_DOUBLE_EQ(*rows[0].output_tokens_per_s_per_gpu, 320);
  EXPECT_NE(rows[1].left_out, "");
}

TEST(ServedRows, MessagesNameLineAndColumn) {
  const auto loop = [](const std::string& row) {
    return served_message_of(kServedLoopHeader, row);
  };
  EXPECT_EQ(loop("H100,2,gpt2,vllm,,bf16,2,1,1,0,,100,,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: clients: expected a number above 0 and at most 1e+09, found '0'");
  EXPECT_EQ(loop("H100,2,gpt2,vllm,,bf16,2,1,1,,,100,,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: clients: expected a whole number of at least 1, found nothing");
  EXPECT_EQ(loop("H100,2,gpt2,vllm,,bf16,2,1,1,1.5,,100,,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: clients: expected a whole number, found '1.5'");
  EXPECT_EQ(loop("H100,4,gpt2,vllm,,bf16,2,1,1,8,,100,,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: gpus: expected tp x dp = 2, found 4");
  EXPECT_EQ(loop("H100,2,gpt2,vllm,,bf16,2,1,1,8,,200,100,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: prompt_min: 200 is above prompt_max, which is 100");
  EXPECT_EQ(loop("H100,2,gpt2,vllm,,bf16,2,1,1,8,,100,,50,,,,,,,,,\n"),
            "s.csv: line 2: tpot_mean_s: expected a measurement in one of the columns, found none");
  EXPECT_EQ(loop("H100,2,,vllm,,bf16,2,1,1,8,,100,,50,,0.2,0.01,,,,,,\n"),
            "s.csv: line 2: model: expected a name, found nothing");
  EXPECT_NE(loop("H100,2,gpt2,vllm,,bf16,2,1,1,8,,100,,50,,fast,0.01,,,,,,\n").find("line 2"),
            std::string::npos);
}

TEST(ServedRows, TablesAreKnownByTheirColumns) {
  EXPECT_TRUE(is_served_table(parse_csv(kServedLoopHeader, "s.csv")));
  EXPECT_TRUE(is_served_table(parse_csv(kServedFullHeader, "s.csv")));
  EXPECT_FALSE(is_served_table(parse_csv("gpu,op,dtype,latency_s\n", "s.csv")));
}

// Eight clients, each of which gets 50 tokens in 0.2 s and 49 steps of 10 ms.
TEST(ServedRows, AClosedLoopImpliesItsThroughput) {
  EXPECT_DOUBLE_EQ(closed_loop_tokens_per_s(8, 50, 0.2, 0.01), 8 * 50 / 0.69);
}

}  // namespace
}  // namespace tilecast
