#include "command/question.h"

#include <gtest/gtest.h>

#include <set>

#include "command/views.h"

namespace tilecast {
namespace {

TEST(Questions, EachOptionWritesToItsQuestion) {
  for (const Question& question : questions()) {
    for (const CommandOption& option : question.index().options()) {
      EXPECT_NE(option.set, nullptr) << question.name << " " << option.names;
      EXPECT_FALSE(option.help.empty()) << question.name << " " << option.names;
    }
  }
}

TEST(Questions, KeywordsOfAQuestionDiffer) {
  for (const Question& question : questions()) {
    std::set<std::string> keywords;
    for (const CommandOption& option : question.index().options())
      EXPECT_TRUE(keywords.insert(option.keyword()).second)
          << question.name << " " << option.keyword();
  }
}

TEST(Questions, TheLastAnswerNeedsNoKeyword) {
  for (const Question& question : questions()) {
    ASSERT_FALSE(question.answers.empty()) << question.name;
    EXPECT_EQ(question.answers.back().keyword, "") << question.name;
    for (const AnswerType& answer : question.answers) {
      const std::string keyword(answer.keyword);
      EXPECT_TRUE(keyword.empty() || question.index().find_keyword(keyword) != nullptr)
          << question.name << " " << keyword;
    }
  }
}

TEST(Questions, NumbersOutsideOfTheirRangeAreRefused) {
  for (const Question& question : questions()) {
    for (const CommandOption& option : question.index().options()) {
      if (option.type != ValueType::kWhole || option.repeated) continue;
      Given given;
      for (const CommandOption& other : question.index().options()) {
        if (other.required)
          given[other.key()].texts = {other.choices.empty() ? "1" : other.choices.front()};
      }
      given[option.key()].texts = {"99999999999999999999"};
      EXPECT_THROW(question.ask(given, {}), Error) << question.name << " " << option.names;
    }
  }
}

TEST(Questions, WhatIsMissingIsNamed) {
  try {
    question("collective").ask({}, {});
    FAIL();
  } catch (const MissingOption& missing) {
    EXPECT_EQ(missing.options(), "KIND");
  }
}

std::string error_of(const Question& asked, const Given& given) {
  try {
    asked.ask(given, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Questions, AllHaveLimitsOfMemoryAndTime) {
  for (const Question& one : questions()) {
    EXPECT_NE(one.index().find("max-memory"), nullptr) << one.name;
    EXPECT_NE(one.index().find("max-seconds"), nullptr) << one.name;
  }
  Given given = {{"MODEL", {.texts = {"llama-3-8b"}, .model = {}, .gpus = {}}},
                 {"gpu", {.texts = {"H100"}, .model = {}, .gpus = {}}},
                 {"max-memory", {.texts = {"8GB"}, .model = {}, .gpus = {}}},
                 {"max-seconds", {.texts = {"600"}, .model = {}, .gpus = {}}}};
  const Question& forecast = question("forecast");
  EXPECT_EQ(error_of(forecast, given), "");
  for (const char* text : {"", "x", "-1", "0", "8 GB", "1e3B", "8XB"}) {
    given["max-memory"].texts = {text};
    EXPECT_EQ(
        error_of(forecast, given),
        "`max-memory`: expected a size like 512MiB or 4GB, found '" + std::string(text) + "'");
  }
  given["max-memory"].texts = {"512MiB"};
  for (const char* text : {"", "x", "-1", "0", "inf", "nan", "1s"}) {
    given["max-seconds"].texts = {text};
    EXPECT_EQ(error_of(forecast, given),
              "`max-seconds`: expected a number above 0, found '" + std::string(text) + "'");
  }
  given["max-seconds"].texts = {"1e-9"};
  EXPECT_EQ(error_of(forecast, given).find("stopped after 1e-09 s, the limit, while "), 0u);
}

TEST(Questions, AnswersHaveViewsByName) {
  const Given given = {{"KIND", {.texts = {"all_reduce"}, .model = {}, .gpus = {}}},
                       {"cluster", {.texts = {"dgx-h100"}, .model = {}, .gpus = {}}},
                       {"ranks", {.texts = {"8"}, .model = {}, .gpus = {}}},
                       {"bytes", {.texts = {"1024"}, .model = {}, .gpus = {}}}};
  const Reply reply = question("collective").ask(given, {});
  EXPECT_TRUE(view(reply.answer, "json"));
  EXPECT_TRUE(view(reply.answer, "table"));
  EXPECT_FALSE(view(reply.answer, "svg"));
}

}  // namespace
}  // namespace tilecast
