#include "tuning/gemm_problem.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/embedded.h"
#include "base/rng.h"
#include "base/weights_container.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_gemm(text, "p");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Gemm, TextIsReadAndWritten) {
  const GemmProblem p =
      parse_gemm("gemm m=4096 n=512 k=1024 trans_a=t dtype=FP16 acc=fp32 out=fp32 batch=2", "p");
  EXPECT_EQ(
      p, (GemmProblem{4096, 512, 1024, 2, true, false, DType::kFp16, DType::kFp32, DType::kFp32}));
  EXPECT_EQ(format_gemm(p), "gemm m=4096 n=512 k=1024 batch=2 trans_a=T dtype=fp16 out=fp32");
  for (const char* text : {"gemm m=1 n=2 k=3 dtype=fp32", "gemm m=1 n=2 k=3 trans_b=T dtype=int8",
                           "gemm m=1 n=2 k=3 dtype=fp16 acc=fp16"})
    EXPECT_EQ(format_gemm(parse_gemm(text, "p")), text);
}

TEST(Gemm, MistakesAreNamed) {
  EXPECT_EQ(error_of("gemm m=1 n=2"),
            "p: k is missing; a product has m, n, k, batch, trans_a, trans_b, dtype, acc, out");
  EXPECT_EQ(error_of("gemm m=0 n=2 k=3"),
            "p: m is '0'; expected a whole number from 1 to 16777216");
  EXPECT_EQ(error_of("gemm m=1 n=2 k=3 trans_a=yes"),
            "p: trans_a is 'yes'; expected N (as stored) or T (transposed)");
  EXPECT_EQ(error_of("gemm m=1 n=2 k=3 dtype=int8 acc=fp32"),
            "p: acc is 'fp32'; of int8 products it is int32");
  EXPECT_EQ(error_of("linear m=1"),
            "p: 'linear m=1' is no product; expected gemm m=4096 n=512 k=1024 dtype=fp16");
  EXPECT_NE(error_of("gemm m=1 m=2 n=2 k=3").find("m is given twice"), std::string::npos);
  EXPECT_NE(error_of("gemm m=1 n=2 k=3 q=1").find("unknown field 'q'"), std::string::npos);
  EXPECT_NE(error_of("gemm m=16777216 n=16777216 k=1").find("elements; at most"),
            std::string::npos);
}

// The weights carry what training computed for a few products.
TEST(Tensile, ComputesWhatTrainingComputed) {
  const auto content = embedded_files("weights/tensile.weights").front().content;
  const auto container = read_container(content, "w", Checksum::kVerify);
  const Json& samples = container.header.at("samples");
  ASSERT_GE(samples.size(), 6u);
  const Translator& translator = Translator::tensile();
  const auto values = translator.values();
  for (const Json& sample : samples) {
    const GemmProblem problem = parse_gemm(sample.at("problem").get<std::string>(), "sample");
    const TunedChip chip =
        tuned_chip(find_device(sample.at("chip").get<std::string>()), problem.dtype);
    const SourceText text = source_text(problem, chip);
    ASSERT_EQ(text.features.size(), sample.at("features").size());
    for (size_t i = 0; i < text.features.size(); ++i)
      EXPECT_NEAR(text.features[i], sample.at("features")[i].get<double>(), 2e-4) << i;
    const auto source = translator.read(text, chip, 0);
    Translator::Prefix prefix = translator.start();
    double log_probability = 0;
    size_t last = values.size();
    for (const Json& token : sample.at("tokens")) {
      const std::vector<float> next = translator.next(source, prefix, last);
      last = static_cast<size_t>(std::find(values.begin(), values.end(), token.get<int64_t>()) -
                                 values.begin());
      ASSERT_LT(last, next.size());
      log_probability += static_cast<double>(next[last]);
    }
    EXPECT_NEAR(log_probability, sample.at("log_probability").get<double>(), 2e-3)
        << format_gemm(problem);
  }
}

TEST(Tensile, EveryKernelIsLegalOnEveryChip) {
  Rng rng(5);
  const RuleFile& rules = *find_rules("Tensile");
  for (const char* name : {"MI100", "MI250X", "RX 6800 XT", "MI60", "MI300X"}) {
    const Device device = find_device(name);
    for (int i = 0; i < 40; ++i) {
      GemmProblem p;
      for (int64_t GemmProblem::* size : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::k})
        p.*size = 1 + static_cast<int64_t>(rng.below(uint64_t{1} << (1 + rng.below(14))));
      p.dtype = std::array{DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8}[rng.below(4)];
      const TunedChip chip = tuned_chip(device, p.dtype);
      const BoundRules bound(rules, sizes_of(p, chip));
      const TensileAnswer answer = search_tensile(p, chip, 8);
      ASSERT_FALSE(answer.kernels.empty());
      double sum = 0, before = 1;
      for (const TensileKernel& k : answer.kernels) {
        EXPECT_TRUE(bound.accepts(std::vector<int64_t>{k.tile_m, k.tile_n, k.depth_u, k.split,
                                                       k.mi_m, k.mi_n, k.mi_k, k.mi_blocks}));
        EXPECT_EQ(k.mi_m != 0 && !chip.matrix_unit, false) << name;
        EXPECT_LE(k.probability, before + 1e-9);
        before = k.probability;
        sum += k.probability;
      }
      EXPECT_LE(sum, 1 + 1e-6);
      for (const TensileParameter& part : answer.parts) {
        double of_part = 0;
        for (const auto& [value, probability] : part.values) of_part += probability;
        EXPECT_NEAR(of_part, sum, 1e-9) << part.name;
      }
    }
  }
}

}  // namespace
}  // namespace tilecast::tuning
