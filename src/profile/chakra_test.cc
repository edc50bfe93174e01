#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "profile/formats.h"
#include "profile/operators.h"
#include "profile/trace.h"
#include "profile/trace_builder.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

std::string chakra_node(int id, int parent, const std::string& name, const std::string& rest) {
  return R"({"id": )" + std::to_string(id) + R"(, "name": ")" + name + R"(", "ctrl_deps": )" +
         std::to_string(parent) + ", " + rest + "}";
}

/// As torch.profiler.ExecutionTraceObserver writes it: a node when its operator ends.
std::string chakra_trace(const std::string& nodes) {
  return R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026-11-27", "start_ts": 5,
 "nodes": [)" +
         nodes + R"(], "finish_ts": 9})";
}

const std::string kNoInputs = R"("inputs": {"values": [], "shapes": [], "types": []})";
const std::string kProduct =
    R"j("inputs": {"values": [[6,7,0,8192,2,"cuda:0"],[8,9,0,8,2,"cuda:0"]],
 "shapes": [[4096, 1024], [1024, 2048]], "types": ["Tensor(c10::BFloat16)", "Tensor(c10::BFloat16)"],
 "strides": [[1024, 1], [1, 1024]]}, "attrs": [{"name": "tid", "type": "uint64", "value": 1}])j";
const std::string kSum =
    R"j("inputs": {"values": [[6,7,0,8192,4,"cpu"],[-1],true,"<None>"],
 "shapes": [[4096, 2048],[[]],[],[]], "types": ["Tensor(float)", "GenericList[Int]", "Bool", "None"],
 "strides": [[2048, 1],[[]],[],[]]})j";

std::string two_operators() {
  return chakra_trace(
      chakra_node(2, 1, "[pytorch|profiler|execution_trace|thread]", kNoInputs) + "," +
      chakra_node(4, 3, "aten::mm", kProduct) + "," + chakra_node(5, 3, "aten::view", kNoInputs) +
      "," + chakra_node(3, 2, "aten::matmul", kProduct) + "," +
      chakra_node(6, 2, "aten::sum", kSum) + "," + chakra_node(7, 2, "mylib::thing", kNoInputs) +
      "," + chakra_node(1, 1, "[pytorch|profiler|execution_trace|process]", kNoInputs));
}

TEST(ChakraTrace, OperatorsAreNestedAsTheyWereCalled) {
  const ProfilerTrace trace = parse_profiler_trace(two_operators(), "et.json");
  EXPECT_EQ(trace.format, TraceFormat::kChakra);
  EXPECT_FALSE(trace.cut_off);
  EXPECT_TRUE(trace.has_shapes);
  ASSERT_EQ(trace.operators.size(), 5u);
  const RecordedOperators recorded = recorded_operators(trace);
  ASSERT_EQ(recorded.groups.size(), 2u);  // matmul called mm: it counts once
  EXPECT_EQ(recorded.unknown, (std::map<std::string, int64_t>{{"mylib::thing", 1}}));
  int64_t flops = 0;
  for (const OperatorGroup& group : recorded.groups) {
    EXPECT_EQ(group.calls, 1);
    flops += group.work.kernels.front().flops;
  }
  EXPECT_EQ(flops, int64_t{2} * 4096 * 1024 * 2048 + int64_t{4096} * 2048);
}

TEST(ChakraTrace, ArgumentsAreThoseOfRecordShapes) {
  const ProfilerTrace trace = parse_profiler_trace(two_operators(), "et.json");
  for (const OperatorCall& call : trace.calls) {
    if (call.name != "aten::sum") continue;
    EXPECT_EQ(call.dims, "[[4096,2048],[],[],[]]");
    EXPECT_EQ(call.types, R"(["float","ScalarList","Scalar",""])");
    EXPECT_EQ(call.values, R"(["","[-1]","True",""])");
    return;
  }
  FAIL() << "no aten::sum";
}

TEST(ChakraTrace, LinkedKernelsAreMeasured) {
  const ProfilerTrace trace = parse_profiler_trace(
      chakra_trace(chakra_node(3, 2, "aten::mm", R"("ts": 100, "inclusive_dur": 30, )" + kProduct) +
                   "," +
                   chakra_node(4, 3, "gemm",
                               R"("cat": "kernel", "ph": "X", "ts": 120, "inclusive_dur": 40,
 "exclusive_dur": 40, "stream": 7)")),
      "et.json");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].duration_ns, 40'000);
  EXPECT_EQ(trace.events[0].op, 0);
  EXPECT_EQ(trace.events[0].stream, 7);
}

TEST(ChakraTrace, NodesInACircleEnd) {
  const ProfilerTrace trace =
      parse_profiler_trace(chakra_trace(chakra_node(3, 4, "aten::mm", kProduct) + "," +
                                        chakra_node(4, 3, "aten::mm", kProduct) + "," +
                                        chakra_node(5, 5, "aten::mm", kProduct)),
                           "et.json");
  EXPECT_EQ(trace.operators.size(), 3u);
}

TEST(ChakraTrace, ACutFileGivesItsNodes) {
  const std::string whole = two_operators();
  const ProfilerTrace trace =
      parse_profiler_trace(whole.substr(0, whole.find("mylib") - 20), "et.json");
  EXPECT_TRUE(trace.cut_off);
  EXPECT_EQ(trace.operators.size(), 4u);
}

TEST(ChakraTrace, BadNodesAreCounted) {
  const ProfilerTrace trace = parse_profiler_trace(
      chakra_trace(chakra_node(3, 2, "aten::mm", kProduct) + R"(, {"id": 4, "name": nul}, 5, )" +
                   R"({"name": "without an id"}, )" + chakra_node(6, 2, "aten::mm", kProduct)),
      "et.json");
  EXPECT_FALSE(trace.cut_off);
  EXPECT_EQ(trace.operators.size(), 2u);
  EXPECT_EQ(trace.odd_events, 3);
}

TEST(ChakraTrace, LimitsNameFileAndNode) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps freed memory, which counts as the process's";
#endif
  const std::string node = chakra_node(3, 2, std::string(140'000, 'x'), kProduct);
  ChakraNodes nodes("et.json");
  TraceBuilder builder("et.json");
  const LimitScope limits({.memory_bytes = 1 << 20});  // a quarter of it for names
  nodes.add(node, builder);
  try {
    nodes.add(node, builder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_TRUE(std::string(error.what()).starts_with("et.json: node 2")) << error.what();
  }
}

TEST(ChakraTrace, ForecastsItsOperators) {
  const auto path = std::filesystem::temp_directory_path() / "tilecast_chakra_test.json";
  std::ofstream(path) << two_operators();
  EXPECT_TRUE(is_profiler_trace(path.string()));
  const Forecaster forecaster;
  const TraceReport bare = report_trace(forecaster, {.path = path.string()});
  const TraceReport report = report_trace(
      forecaster,
      {.path = path.string(), .traced = load_gpu_ref("H100"), .gpu = load_gpu_ref("B200")});
  std::filesystem::remove(path);
  EXPECT_EQ(bare.operators.size(), 2u);
  EXPECT_FALSE(bare.should_take);
  ASSERT_TRUE(report.should_take);
  ASSERT_TRUE(report.carried);
  EXPECT_LT(report.carried->kernels_s, *report.should_take);
  EXPECT_EQ(report.operators[0].name, "aten::mm");
  EXPECT_NEAR(report.operators[0].share + report.operators[1].share, 1, 1e-9);
  ASSERT_EQ(report.warnings.size(), 2u);
  EXPECT_EQ(
      report.warnings[0],
      "nothing was measured on a GPU: times are forecasts of the operators, without the host's");
  EXPECT_EQ(report.warnings[1],
            "calls of operators that are not known are left out, 1 in all: mylib::thing");
}

}  // namespace
}  // namespace tilecast
