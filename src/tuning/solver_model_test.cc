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

/// How many times fewer products an algorithm has than the definition, at most: F(7x7, 3x3) is the
/// largest tile of MIOpen's Winograd kernels.
double largest_reduction(const Solver& solver, const ConvProblem& p) {
  if (solver.algorithm == "FFT") return static_cast<double>(p.r * p.s) / 2;
  return solver.algorithm == "Winograd" ? (21.0 / 9) * (21.0 / 9) : 1;
}

TEST(SolverModel, NoSolverIsFasterThanItsArithmetic) {
  Rng rng(5);
  const auto size = [&](int bits) { return int64_t{1} << rng.below(static_cast<uint64_t>(bits)); };
  size_t winograd = 0;
  for (const Device& device : bundled_devices()) {
    if (device.vendor != "amd" || device.as_gpu() == nullptr) continue;
    for (int i = 0; i < 300; ++i) {
      ConvProblem p;
      p.pass = static_cast<ConvPass>(rng.below(3));
      p.dtype = rng.below(2) == 0 ? DType::kFp32 : DType::kFp16;
      p.n = size(9), p.c = size(14), p.k = size(14), p.h = 7 * size(6), p.w = p.h;
      p.r = 1 + 2 * static_cast<int64_t>(rng.below(6)), p.s = p.r;
      p.stride_h = p.stride_w = size(2);
      p.pad_h = p.pad_w = p.r / 2;
      complete_problem(p, "random");
      const TunedChip chip = tuned_chip(device, p.dtype);
      for (const SolverTime& time : SolverModel::bundled().rank(p, chip)) {
        const double unit =
            time.solver->on_vector_unit ? chip.vector_dtype_tflops : chip.peak_tflops;
        EXPECT_LE(p.flops() / time.low_s / 1e12,
                  unit * largest_reduction(*time.solver, p) * (1 + 1e-9))
            << time.solver->name << " " << format_problem(p) << " on " << device.id;
        winograd += time.solver->algorithm == "Winograd" ? 1 : 0;
      }
    }
  }
  EXPECT_GT(winograd, 100u);
}

TEST(SolverModel, WinogradsTilesSayHowFewProductsAreEnough) {
  const TunedChip chip = tuned_chip(find_device("gfx906_60"), DType::kFp32);
  const auto share = [&](const char* solver, const char* text) {
    const ConvProblem p = parse_problem(text, "p");
    return SolverTable::bundled().require(solver).least_compute_s(p, chip) * chip.vector_tflops *
           1e12 / p.flops();
  };
  const char* square = "conv n=32 c=256 h=56 w=56 k=64 r=3 s=3 pad=1 dtype=fp32 dir=F";
  EXPECT_NEAR(share("ConvAsm3x3U", square), 1, 1e-12);
  EXPECT_NEAR(share("GemmFwdRest", square), 1, 1e-12);
  EXPECT_NEAR(share("ConvBinWinogradRxSf2x3g1", square), 16.0 / 36, 1e-12);
  EXPECT_NEAR(share("ConvWinograd3x3MultipassWrW<3-6>", square), 64.0 / 324, 1e-12);
  // Along an axis with a window of one nothing can be saved.
  const char* row = "conv n=32 c=256 h=56 w=56 k=64 r=1 s=7 pad_w=3 dtype=fp32 dir=W";
  EXPECT_NEAR(share("ConvWinograd3x3MultipassWrW<1-1-7-2>", row), 8.0 / 14, 1e-12);
  const char* five = "conv n=32 c=256 h=56 w=56 k=64 r=5 s=5 pad=2 dtype=fp32 dir=F";
  EXPECT_NEAR(share("fft", five), 2.0 / 25, 1e-12);
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
  std::string table = std::string(embedded_files("tuning/solvers.json").front().content);
  const size_t at = table.find("\"transform\": [2, 3, 2, 3]");
  ASSERT_NE(at, std::string::npos);
  table.replace(at, 25, "\"transform\": [2, 0, 2, 3]");
  EXPECT_NE(message(table).find("'transform': expected whole numbers from 1 to 100, found"),
            std::string::npos)
      << message(table);
  EXPECT_NE(message(R"({"schema_version": 2, "solvers": []})").find("schema_version"),
            std::string::npos);
  EXPECT_GE(SolverTable::bundled().solvers().size(), 78u);
}

}  // namespace
}  // namespace tilecast::tuning
