#include "tuning/conv_problem.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tuning/database.h"
#include "tuning/layer_fold.h"

namespace tilecast::tuning {
namespace {

ConvProblem parsed(const std::string& text) { return parse_problem(text, "p"); }

ConvProblem random_problem(Rng& rng) {
  const auto up_to = [&](uint64_t most) { return 1 + static_cast<int64_t>(rng.below(most)); };
  ConvProblem p;
  p.pass = static_cast<ConvPass>(rng.below(3));
  p.dtype = std::vector{DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8}[rng.below(4)];
  p.channels_last = rng.below(2) == 0;
  p.n = up_to(512);
  p.group = up_to(4);
  p.c = p.group * up_to(300);
  p.k = p.group * up_to(300);
  p.h = 20 + up_to(200);
  p.w = 20 + up_to(200);
  p.r = up_to(5);
  p.s = up_to(5);
  p.pad_h = up_to(3) - 1;
  p.pad_w = up_to(3) - 1;
  p.stride_h = up_to(2);
  p.stride_w = up_to(2);
  p.dil_h = up_to(3);
  p.dil_w = up_to(3);
  complete_problem(p, "random");
  return p;
}

TEST(ConvProblem, ReadsTheShortForm) {
  const ConvProblem p =
      parsed("conv n=32 c=256 h=56 w=56 k=64 r=3 s=3 pad=1 stride=2 dtype=fp16 dir=B");
  EXPECT_EQ(p.pass, ConvPass::kInputGradient);
  EXPECT_EQ(p.dtype, DType::kFp16);
  EXPECT_EQ(p.oh, 28);
  EXPECT_EQ(p.pad_w, 1);
  EXPECT_EQ(p.flops(), 2.0 * 32 * 28 * 28 * 64 * 256 * 9);
}

TEST(ConvProblem, KeysNameTheGradientOfYFirst) {
  EXPECT_EQ(miopen_key(parsed("conv n=8 c=16 h=10 w=12 k=32 r=1 s=1 dir=F")),
            "16-10-12-1x1-32-10-12-8-0x0-1x1-1x1-0-NCHW-FP32-F");
  EXPECT_EQ(miopen_key(parsed("conv n=8 c=16 h=10 w=12 k=32 r=1 s=1 stride=2 group=2 dir=W")),
            "32-5-6-1x1-16-10-12-8-0x0-2x2-1x1-0-NCHW-FP32-W_g2");
}

TEST(ConvProblem, BothFormsKeepEverything) {
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const ConvProblem p = random_problem(rng);
    EXPECT_EQ(parsed(format_problem(p)), p) << format_problem(p);
    EXPECT_EQ(parsed(miopen_key(p)), p) << miopen_key(p);
  }
}

TEST(ConvProblem, ErrorsNameTheField) {
  EXPECT_EQ(message_of([] { parsed("conv n=8 c=16"); }).substr(0, 15), "p: h is missing");
  EXPECT_NE(message_of([] { parsed("conv n=0 c=1 h=1 w=1 k=1 r=1 s=1"); }).find("n is '0'"),
            std::string::npos);
  EXPECT_NE(message_of([] { parsed("conv x1=3"); }).find("unknown field 'x1'"), std::string::npos);
  EXPECT_NE(message_of([] {
              parsed("conv n=1 c=3 h=9 w=9 k=4 r=1 s=1 group=2");
            }).find("group=2 does not divide c=3"),
            std::string::npos);
  EXPECT_NE(message_of([] { parsed("conv n=1 c=3 h=2 w=9 k=4 r=3 s=1"); }).find("larger than h=2"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              parsed("16-10-12-1x1-32-10-11-8-0x0-1x1-1x1-0-NCHW-FP32-F");
            }).find("the output is 10x11"),
            std::string::npos);
}

TEST(ConvProblem, DamagedTextNeverCrashes) {
  Rng rng(2);
  for (int i = 0; i < 20000; ++i) {
    const ConvProblem p = random_problem(rng);
    std::string text = rng.below(2) == 0 ? format_problem(p) : miopen_key(p);
    for (uint64_t j = 0; j <= rng.below(3); ++j)
      text[rng.below(text.size())] = "0123456789-x=_ gNFa\xff"[rng.below(20)];
    try {
      parsed(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
}

TEST(DriverLine, EachAskedPassIsAProblem) {
  const std::string line =
      "MIOPEN_X=1 ./bin/MIOpenDriver convfp16 -n 32 -c 256 -H 56 -W 56 -k 64 -y 1 -x 1 -p 0 -q 0 "
      "-u 2 -v 2 -l 1 -j 1 -m conv -g 1 -F 5 -t 1 -V 0";
  const auto problems = parse_driver_line(line, "log");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0],
            parsed("conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 stride=2 dtype=fp16 dir=F"));
  EXPECT_EQ(problems[1].pass, ConvPass::kWeightGradient);
  EXPECT_EQ(parse_driver_line("MIOpenDriver conv -F 0", "log").size(), 3u);
  EXPECT_TRUE(parse_driver_line("MIOpenDriver pool -n 4", "log").empty());
  EXPECT_NE(
      message_of([] { parse_driver_line("MIOpenDriver conv -n x", "log"); }).find("log: -n is 'x'"),
      std::string::npos);
  EXPECT_NE(message_of([] { parse_driver_log("nothing here", "log"); }).find("no command line"),
            std::string::npos);
  EXPECT_EQ(parse_driver_log(line + "\n" + line + "\n", "log").size(), 2u) << "each once";
}

// As lines of MIOpen's own databases are.
TEST(Database, LinesSurviveARoundTrip) {
  const std::string find =
      "64-56-56-1x1-64-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F=ConvAsm1x1U:0.5123,0,"
      "miopenConvolutionFwdAlgoDirect;GemmFwd1x1_0_1:0.61,0,miopenConvolutionFwdAlgoGEMM\n";
  EXPECT_EQ(format_find_database(parse_find_database(find, "f")), find);
  const std::string perf =
      "64-56-56-1x1-64-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F=ConvAsm1x1U:1,16,4,64,1,4,1,4;"
      "ConvOclDirectFwd1x1:1,64,1,1,1,0,16,64,0\n";
  EXPECT_EQ(format_perf_database(parse_perf_database(perf, "p")), perf);
}

TEST(Database, BrokenLinesAreNamed) {
  const auto message = [](const std::string& text) {
    return message_of([&] { parse_find_database(text, "u.txt"); });
  };
  EXPECT_EQ(message("\nabc\n").substr(0, 14), "u.txt: line 2:");
  EXPECT_NE(message("k=S:1,2").find("has 2 values"), std::string::npos);
  EXPECT_NE(message("k=S:a,2,A").find("'a' is no number"), std::string::npos);
  EXPECT_NE(message("k=S:nan,2,A").find("no number"), std::string::npos);
  EXPECT_NE(message("k=S").find("no SOLVER:VALUES"), std::string::npos);
  EXPECT_NE(message("=S:1,2,A").find("key is empty"), std::string::npos);
}

TEST(LayerFold, BatchAndSizeOfTheImageDoNotCount) {
  ConvProblem a = parsed("conv n=8 c=16 h=10 w=12 k=32 r=1 s=1 dir=F");
  ConvProblem b = parsed("conv n=64 c=16 h=100 w=12 k=32 r=1 s=1 dtype=fp16 dir=W");
  EXPECT_EQ(layer_fold(a, 1, 10), layer_fold(b, 1, 10));
  std::vector<int> counts(10);
  for (a.c = 1; a.c <= 1000; ++a.c) ++counts[static_cast<size_t>(layer_fold(a, 1, 10))];
  for (const int count : counts) EXPECT_NEAR(count, 100, 40);
}

}  // namespace
}  // namespace tilecast::tuning
