#include <gtest/gtest.h>

#include "request/load.h"
#include "test_support.h"

namespace tilecast {
namespace {

std::vector<TraceRequest> parsed(std::string_view text) { return parse_trace(text, "t"); }

TEST(Trace, ReadsMooncakesLines) {
  const auto trace = parsed(
      "{\"timestamp\": 1500, \"input_length\": 600, \"output_length\": 52, \"hash_ids\": [46, "
      "47]}\n"
      "\n"
      "{\"timestamp\": 0, \"input_length\": 512.0, \"output_length\": 1, \"hash_ids\": [46], "
      "\"x\": "
      "1}\n");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].arrival_s, 0);  // sorted
  EXPECT_EQ(trace[0].prompt, 512);
  EXPECT_EQ(trace[1].arrival_s, 1.5);
  EXPECT_EQ(trace[1].output, 52);
  EXPECT_EQ(trace[1].hash_ids, (std::vector<int64_t>{46, 47}));
  EXPECT_FALSE(trace[1].session);
}

TEST(Trace, AdaptersAreNumberedByName) {
  const auto trace = parsed(
      "arrival_s,prompt,output,adapter\n"
      "0,50,5,sql\n"
      "1,50,5,\n"
      "2,50,5,7\n"
      "3,50,5,sql\n");
  ASSERT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[0].adapter, 0);
  EXPECT_FALSE(trace[1].adapter);
  EXPECT_EQ(trace[2].adapter, 1);
  EXPECT_EQ(trace[3].adapter, 0);
  EXPECT_ERROR(parsed("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                      "\"adapter\": []}"),
               kInput, "t:1: 'adapter': expected a word or a whole number");
}

TEST(Trace, TurnsWithoutArrivalFollowTheAnswer) {
  const auto trace = parsed(
      "arrival_s,session,turn,prompt,output,think_s,hash_ids\n"
      "2,a,1,100,10,,\n"
      "0,b,1,50,5,,7 8\n"
      ",a,2,200,20,1.5,\n"
      "9,a,4,300,30,,\n");
  ASSERT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[0].session, 1);
  EXPECT_EQ(trace[0].hash_ids, (std::vector<int64_t>{7, 8}));
  EXPECT_FALSE(trace[1].follows);
  EXPECT_TRUE(trace[2].follows);
  EXPECT_EQ(trace[2].arrival_s, 2);
  EXPECT_EQ(trace[2].think_s, 1.5);
  EXPECT_FALSE(trace[3].follows);
  EXPECT_EQ(trace[3].arrival_s, 9);
  const auto json = parsed(
      "{\"timestamp\": 0, \"session_id\": 3, \"input_length\": 10, \"output_length\": 1}\n"
      "{\"session_id\": 3, \"delay\": 250, \"input_length\": 20, \"output_length\": 1}\n");
  EXPECT_TRUE(json[1].follows);
  EXPECT_EQ(json[1].think_s, 0.25);
}

TEST(Trace, ErrorsSayWhereWhatWasExpectedAndFound) {
  EXPECT_ERROR(parsed("arrival_s,prompt,output,session\n,1,1,a\n"), kInput,
               "t:2: 'arrival_s': expected seconds, 0 or more, found nothing");
  EXPECT_ERROR(parsed("arrival_s,prompt,output,hash_ids\n0,1,1,3 x\n"), kInput,
               "t:2: 'hash_ids': expected whole numbers of 0 or more, found '3 x'");
  EXPECT_ERROR(parsed("arrival_s,prompt,output,think_s\n0,1,1,3\n"), kInput,
               "t:2: 'session': expected a name, since the row states a time to think, found "
               "nothing");
  EXPECT_ERROR(parsed("arrival_s,prompt,output,session,turn\n0,1,1,a,2\n,1,1,a,2\n"), kInput,
               "t:3: 'turn': expected a whole number, 3 or more, in the order of the session, "
               "found '2'");
  EXPECT_ERROR(parsed("arrival_s,prompt,output,session\n5,1,1,a\n4,1,1,a\n"), kInput,
               "t:3: 'arrival_s': expected seconds, 5 or more, when the turn before arrives, found "
               "'4'");
  const std::string good = "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n";
  EXPECT_ERROR(parsed(good + "{\"timestamp\": 0, \"input_length\": 0, \"output_length\": 1}"),
               kInput,
               "t:2: 'input_length': expected a whole number of tokens, 1 or more, found 0");
  EXPECT_ERROR(parsed(good + "{\"timestamp\": 0, \"input_length\": 1}"), kInput,
               "t:2: 'output' is missing");
  EXPECT_ERROR(parsed(good + "\n{\"timestamp\": }"), kInput, "t:3:15: not JSON");
  EXPECT_ERROR(parsed("{\"secret"), kInput, "t:1: expected a JSON object with arrival_s");
}

}  // namespace
}  // namespace tilecast
