#include "tuning/solver_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>

#include "base/embedded.h"
#include "base/rng.h"
#include "base/weights_container.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

std::string_view weights() { return embedded_files("weights/solvers.weights").front().content; }

// The weights carry what training computed for a few problems.
TEST(SolverModel, ComputesWhatTrainingComputed) {
  const auto container = read_container(weights(), "w", Checksum::kVerify);
  const Json& samples = container.header.at("samples");
  ASSERT_GE(samples.size(), 10u);
  for (const Json& sample : samples) {
    const ConvProblem problem = parse_problem(sample.at("key").get<std::string>(), "sample");
    const Device device = find_device(sample.at("chip").get<std::string>());
    const TunedChip chip = tuned_chip(device, problem.dtype);
    const Features features = features_of(problem, chip);
    for (size_t i = 0; i < kFeatures; ++i)
      EXPECT_NEAR(features.x[i], sample.at("features")[i].get<double>(), 2e-4)
          << container.header.at("features")[i] << " of " << miopen_key(problem);
    for (const SolverTime& time : SolverModel::bundled().rank(problem, chip)) {
      const double expected = sample.at("microseconds")[time.solver->head].get<double>();
      EXPECT_NEAR(std::log(time.seconds * 1e6 / expected), 0, 2e-3) << time.solver->name;
    }
  }
}

TEST(SolverModel, RanksByTimeAndDoubt) {
  const Device device = find_device("gfx90a_104");
  const ConvProblem problem =
      parse_problem("conv n=32 c=256 h=56 w=56 k=64 r=3 s=3 pad=1 dtype=fp16 dir=F", "p");
  const auto times = SolverModel::bundled().rank(problem, tuned_chip(device, problem.dtype));
  ASSERT_GT(times.size(), 3u);
  EXPECT_LT(times.front().seconds, times.back().seconds);
  for (const SolverTime& time : times) {
    EXPECT_TRUE(time.low_s <= time.seconds && time.seconds <= time.high_s);
    EXPECT_TRUE(time.solver->takes(problem, tuned_chip(device, problem.dtype)));
  }
}

// Winograd and direct kernels do not use the matrix unit: a faster one changes the others only.
TEST(SolverModel, TimesFollowTheUnitOfTheSolver) {
  const ConvProblem problem =
      parse_problem("conv n=128 c=256 h=56 w=56 k=256 r=3 s=3 pad=1 dtype=fp16 dir=F", "p");
  const TunedChip chip = tuned_chip(find_device("gfx942_304"), problem.dtype);
  TunedChip faster = chip;
  faster.peak_tflops *= 2;
  std::map<std::string, double> before;
  for (const SolverTime& time : SolverModel::bundled().rank(problem, chip))
    before[time.solver->name] = time.seconds;
  size_t vector = 0, matrix = 0;
  for (const SolverTime& time : SolverModel::bundled().rank(problem, faster)) {
    const double ratio = time.seconds / before.at(time.solver->name);
    (time.solver->on_vector_unit ? vector : matrix) += 1;
    if (time.solver->on_vector_unit)
      EXPECT_EQ(ratio, 1) << time.solver->name;
    else
      EXPECT_LT(ratio, 0.6) << time.solver->name;
  }
  EXPECT_GT(vector, 2u);
  EXPECT_GT(matrix, 2u);
}

TEST(SolverModel, DamagedWeightsAreRefused) {
  const auto parse = [](std::string text) {
    SolverModel::parse(text, "w", Checksum::kVerify, SolverTable::bundled());
  };
  EXPECT_NO_THROW(parse(std::string(weights())));
  EXPECT_THROW(parse(""), Error);
  EXPECT_THROW(parse(std::string(weights().substr(0, weights().size() / 2))), Error);
  std::string changed(weights());
  changed[changed.size() - 5] ^= 1;
  EXPECT_THROW(parse(changed), Error);
}

TEST(SolverTable, EntriesAreChecked) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      SolverTable::parse(text, "t.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(R"({"schema_version": 1, "solvers": [{"name": "A", "algorithm": "Magic"}]})")
                .find("'Magic' is none of GEMM"),
            std::string::npos);
  EXPECT_NE(message(R"({"schema_version": 2, "solvers": []})").find("schema_version"),
            std::string::npos);
  EXPECT_GE(SolverTable::bundled().solvers().size(), 78u);
}

}  // namespace
}  // namespace tilecast::tuning
