#include "tuning/rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "devices/registry.h"
#include "tilecast/error.h"
#include "tuning/beam.h"
#include "tuning/rule_parser.h"

namespace tilecast::tuning {
namespace {

constexpr std::string_view kSmall =
    "solver Small\n"
    "ranges stated\n"
    "takes r == 1 and s == 1  # as any\n"
    "let e = 4 / bytes\n"
    "token a 1..4\n"
    "require a % e == 0\n"
    "let twice = 2 * a\n"
    "token b 2 4 8\n"
    "require b > a and b != twice\n"
    "token d 1 2 4\n"
    "require a * b * d == 16 or a * b * d == 64\n";

std::string rules_error(const std::string& text) {
  try {
    RuleFile::parse(text, "x.rules");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with_line(const std::string& line) { return std::string(kSmall) + line + "\n"; }

Sizes sizes_of_dtype(const std::string& dtype) {
  return sizes_of(parse_problem("conv n=8 c=64 h=14 w=14 k=64 r=1 s=1 dtype=" + dtype, "p"));
}

TEST(Rules, AcceptWhatMeetsThemAll) {
  const RuleFile file = RuleFile::parse(kSmall, "x.rules");
  const BoundRules fp32(file, sizes_of_dtype("fp32")), fp16(file, sizes_of_dtype("fp16"));
  const auto accepts = [](const BoundRules& rules, std::vector<int64_t> tokens) {
    return rules.accepts(tokens);
  };
  EXPECT_TRUE(accepts(fp32, {1, 4, 4}));
  EXPECT_FALSE(accepts(fp16, {1, 4, 4})) << "a % e";
  EXPECT_TRUE(accepts(fp16, {2, 8, 1}));
  EXPECT_FALSE(accepts(fp32, {2, 4, 2})) << "b is twice a";
  EXPECT_FALSE(accepts(fp32, {1, 4}));
  EXPECT_FALSE(accepts(fp32, {1, 4, 3})) << "no value of d";
  EXPECT_EQ(fp32.broken_rule(std::vector<int64_t>{2, 4, 2}), "b > a and b != twice");
  EXPECT_FALSE(file.takes(sizes_of(parse_problem("conv n=1 c=1 h=9 w=9 k=1 r=3 s=3", "p"))));
}

TEST(Rules, LookAheadFindsWhetherAPrefixCanBeCompleted) {
  const RuleFile file = RuleFile::parse(kSmall, "x.rules");
  const BoundRules rules(file, sizes_of_dtype("fp32"));
  const std::vector<int64_t> values = {1, 2, 3, 4, 8};
  EXPECT_EQ(rules.complete({1}, values), (std::vector<int64_t>{1, 4, 4}));
  EXPECT_EQ(rules.complete({3}, values), std::nullopt) << "no multiple of 3 is 16 or 64";
  EXPECT_EQ(rules.complete({1}, std::vector<int64_t>{1, 8}), std::nullopt) << "4 is not offered";
}

TEST(Rules, MistakesAreFoundWhenTheFileIsRead) {
  EXPECT_EQ(rules_error(with_line("require q == 1")),
            "x.rules: line 12: 'q == 1': unknown name 'q'");
  EXPECT_EQ(rules_error(with_line("require a > b")),
            "x.rules: line 9: 'require b > a and b != twice' cannot be met: no set of parameters "
            "of any of 75 usual convolutions does");
  EXPECT_NE(rules_error(with_line("takes n < 0")).find("line 3: 'takes' holds for none"),
            std::string::npos);
  EXPECT_NE(rules_error(with_line("token b 1")).find("line 12: 'b' is there already"),
            std::string::npos);
  EXPECT_NE(rules_error(with_line("token z 5..2")).find("'5..2' is no range"), std::string::npos);
  EXPECT_NE(rules_error(with_line("require n == 1")).find("names no token"), std::string::npos);
  EXPECT_NE(rules_error(with_line("takes a == 1")).find("use 'require' for tokens"),
            std::string::npos);
  EXPECT_NE(rules_error(with_line("let a = 1")).find("is there already"), std::string::npos);
  EXPECT_NE(rules_error(with_line("hello")).find("'hello' begins no line"), std::string::npos);
  EXPECT_NE(rules_error("token a 1\n").find("names no solver"), std::string::npos);
}

TEST(Rules, DamagedFilesNeverCrash) {
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text(kSmall);
    for (uint64_t j = 0; j <= rng.below(4); ++j)
      text[rng.below(text.size())] = "abde 0189.=<>*%()\n#\xff"[rng.below(20)];
    try {
      RuleFile::parse(text, "x.rules");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << text;
    }
  }
}

TEST(BundledRules, AreOfSolversThatTheTranslatorKnows) {
  EXPECT_GE(bundled_rules().size(), 12u);
  for (const RuleFile* rules : bundled_rules()) {
    const bool product = rules->solver() == "Tensile";
    const Translator& translator = product ? Translator::tensile() : Translator::bundled();
    EXPECT_TRUE(translator.solver(rules->solver())) << rules->solver();
    EXPECT_LE(rules->tokens().size(), translator.most_tokens());
    EXPECT_EQ(find_rules(rules->solver()), rules);
  }
}

TEST(BundledRules, PixelsOfDirectConvolutionsAreAMultipleOfTheirTile) {
  const RuleFile& rules = *find_rules("ConvOclDirectFwd1x1");
  const auto accepts = [&](const std::string& sizes, int64_t tile) {
    const BoundRules bound(
        rules, sizes_of(parse_problem("conv n=8 c=24 k=40 r=1 s=1 dtype=fp32 " + sizes, "p")));
    return bound.accepts(std::vector<int64_t>{1, 64, 1, 1, 0, tile, 8, 4, 0});
  };
  for (const int64_t tile : {1, 2, 4}) {
    EXPECT_TRUE(accepts("h=14 w=14", tile)) << "196 pixels";
    EXPECT_EQ(accepts("h=7 w=7", tile), tile == 1) << "49 pixels";
    EXPECT_EQ(accepts("h=27 w=27 stride=2", tile), tile <= 2) << "rows of 14 pixels";
    EXPECT_EQ(accepts("h=13 w=13 stride=2", tile), tile == 1) << "rows of 7 pixels";
  }
}

TEST(Beam, EveryAnswerIsLegalAndNoBeamDies) {
  const Device device = find_device("gfx906_60");
  Rng rng(4);
  int searches = 0;
  for (int i = 0; i < 300; ++i) {
    ConvProblem p;
    p.pass = static_cast<ConvPass>(rng.below(3));
    p.dtype = rng.below(2) == 0 ? DType::kFp32 : DType::kFp16;
    p.n = 1 + static_cast<int64_t>(rng.below(100));
    p.c = 1 + static_cast<int64_t>(rng.below(600));
    p.k = 1 + static_cast<int64_t>(rng.below(600));
    p.h = p.w = 1 + static_cast<int64_t>(rng.below(80));
    complete_problem(p, "random");
    for (const RuleFile* rules : bundled_rules()) {
      const BoundRules bound(*rules, sizes_of(p));
      const auto sets =
          search_parameters(Translator::bundled(), *rules, p, tuned_chip(device, p.dtype), 4, 4);
      const bool possible = bound.complete({}, Translator::bundled().values()).has_value();
      EXPECT_EQ(!sets.empty(), possible) << rules->solver() << " " << format_problem(p);
      double before = 0;
      for (const LegalSet& set : sets) {
        ++searches;
        EXPECT_TRUE(bound.accepts(set.tokens)) << rules->solver() << " " << format_problem(p);
        EXPECT_LE(set.log_probability, before + 1e-9);
        before = set.log_probability;
      }
    }
  }
  EXPECT_GT(searches, 300);
}

}  // namespace
}  // namespace tilecast::tuning
