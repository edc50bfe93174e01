#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/json.h"
#include "profiler_trace.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

/// A file that is removed with this.
struct TraceFile {
  std::string path;
  TraceFile(const std::string& name, const std::string& text)
      : path((std::filesystem::temp_directory_path() / name).string()) {
    std::ofstream(path) << text;
  }
  ~TraceFile() { std::filesystem::remove(path); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
};

TEST(TraceReport, OperatorsBesideWhatTheyShouldTake) {
  const TraceFile file("tilecast_profile_test_report.json", two_products());
  const Forecaster forecaster;
  const TraceReport report = report_trace(forecaster, {.path = file.path});
  EXPECT_EQ(report.gpu, "nvidia-h100-sxm5-80gb");
  ASSERT_EQ(report.operators.size(), 1u);
  const TracedOperator& op = report.operators[0];
  EXPECT_EQ(op.name, "aten::mm");
  EXPECT_EQ(op.calls, 2);
  EXPECT_NEAR(op.measured_s, 30e-6, 1e-12);
  ASSERT_TRUE(op.forecast);
  EXPECT_EQ(op.slow, op.measured_s > op.forecast->high);
  EXPECT_NEAR(report.forecast_share, 1, 1e-9);
  EXPECT_FALSE(report.carried);
}

/// A cast of 64 KiB that takes as long.
TracedOperator cast_of(double us) {
  const TraceFile file(
      "tilecast_profile_test_cast.json",
      h100_trace(op_event("aten::copy_", 1, 1, 5, R"("Input Dims": [[64, 256], [64, 256], []],
 "Input type": ["float", "c10::BFloat16", "Scalar"], "Concrete Inputs": ["", "", "False"])") +
                 "," + kernel_event("unrolled_elementwise_kernel", 1, 1, 10, us)));
  return report_trace(Forecaster(), {.path = file.path}).operators.at(0);
}

TEST(TraceReport, StartsOfKernelsMayVary) {
  const TracedOperator usual = cast_of(2), late = cast_of(4.3), slow = cast_of(12);
  EXPECT_EQ(usual.limit, "latency");
  EXPECT_GT(late.measured_s, late.forecast->high);
  EXPECT_FALSE(late.slow);
  EXPECT_TRUE(slow.slow);
}

TEST(TraceReport, MemoryThatNoDeviceHasIsLeftOut) {
  std::string text = two_products();
  for (const int address : {1, 2, 3})  // 512 TiB each
    text.insert(text.rfind(']'), R"(, {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 105,
 "args": {"Total Reserved": 0, "Total Allocated": 562949953421312, "Bytes": 562949953421312,
 "Device Id": 0, "Device Type": 1, "Addr": )" +
                                     std::to_string(address) + "}}");
  const TraceFile file("tilecast_profile_test_memory.json", text);
  const TraceReport report = report_trace(Forecaster(), {.path = file.path});
  EXPECT_EQ(report.operators.size(), 1u);
  EXPECT_FALSE(report.memory);
  EXPECT_TRUE(std::any_of(
      report.warnings.begin(), report.warnings.end(),
      [](const std::string& one) { return one.starts_with("events of memory were left out"); }));
}

TEST(TraceReport, OnTheSameGpuItTakesWhatWasMeasured) {
  const TraceFile file("tilecast_profile_test_same.json", two_products());
  const Forecaster forecaster;
  const TraceReport report =
      report_trace(forecaster, {.path = file.path, .gpu = load_gpu_ref("H100")});
  ASSERT_TRUE(report.carried);
  EXPECT_NEAR(report.carried->kernels_s, 60e-6, 1e-12);
  EXPECT_NEAR(report.carried->span_s, 72e-6, 1e-9);
  EXPECT_LT(report.carried->kernels_s.low, report.carried->kernels_s);
  EXPECT_GT(report.carried->kernels_s.high, report.carried->kernels_s);
}

TEST(TraceReport, KernelsOfNoTimeCanBeCarried) {
  std::string text = two_products();
  for (size_t at = 0;
       (at = text.find("\"dur\": 30.000000, \"args\": {\"External id\"", at)) != std::string::npos;)
    text.replace(at, 16, "\"dur\": 0");
  const TraceFile file("tilecast_profile_test_zero.json", text);
  const Forecaster forecaster;
  const TraceReport report =
      report_trace(forecaster, {.path = file.path, .gpu = load_gpu_ref("H100")});
  ASSERT_TRUE(report.carried);
  EXPECT_EQ(report.kernels_s, 0);
  EXPECT_NEAR(report.carried->span_s, 42e-6, 1e-9) << "the second one begins 42 us after 110";
}

TEST(TraceReport, ATraceOfCpusIsForecast) {
  const TraceFile file(
      "tilecast_profile_test_cpu.json",
      R"({"traceEvents": [)" + op_event("aten::mm", 1, 100, 30, kProductArguments) + "]}");
  const Forecaster forecaster;
  const TraceReport report = report_trace(forecaster, {.path = file.path});
  ASSERT_EQ(report.warnings.size(), 2u);
  EXPECT_NE(report.warnings[0].find("nothing was measured on a GPU"), std::string::npos);
  EXPECT_NE(report.warnings[0].find("ProfilerActivity.CUDA"), std::string::npos);
  EXPECT_NE(report.warnings[1].find("names no GPU"), std::string::npos);
  const TraceReport there =
      report_trace(forecaster, {.path = file.path, .gpu = load_gpu_ref("H100")});
  ASSERT_TRUE(there.carried);
  EXPECT_GT(there.carried->kernels_s, 0);
}

TEST(TraceReport, ATraceWithoutKnownWorkSaysSo) {
  const TraceFile file(
      "tilecast_profile_test_none.json",
      R"({"traceEvents": [)" + op_event("mylib::thing", 1, 100, 30, kProductArguments) + "]}");
  const Forecaster forecaster;
  const TraceReport report = report_trace(forecaster, {.path = file.path});
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("no work of a GPU"), std::string::npos);
  EXPECT_THROW(report_trace(forecaster, {.path = file.path, .gpu = load_gpu_ref("H100")}), Error);
}

TEST(TraceReport, TwoTracesAreMatchedByTheirWork) {
  const TraceFile a("tilecast_profile_test_a.json", two_products());
  std::string slower = two_products();
  const size_t at = slower.rfind("\"dur\": 30.000000");
  slower.replace(at, 16, "\"dur\": 50.000000");
  const TraceFile b("tilecast_profile_test_b.json", slower);
  const Forecaster forecaster;
  const TraceReport report = compare_traces(forecaster, a.path, b.path);
  ASSERT_TRUE(report.operators[0].carried);
  EXPECT_NEAR(*report.operators[0].carried, 40e-6, 1e-12);
  EXPECT_EQ(report.carried->unknown_share, 0);
}

TEST(TraceTimeline, HasBothTimelinesFromTheSameStart) {
  const TraceFile file("tilecast_profile_test_timeline.json", two_products());
  const Forecaster forecaster;
  const GpuRef gpu = load_gpu_ref("H100");
  const Json events =
      parse_json(timeline_of_trace(forecaster, {.path = file.path, .gpu = gpu}).json,
                 "timeline")["traceEvents"];
  std::map<int64_t, double> ends;
  std::map<int64_t, int> slices;
  for (const Json& event : events) {
    if (event["ph"] != "X") continue;
    const int64_t process = event["pid"];
    ends[process] = std::max(ends[process], event["ts"].get<double>() + event["dur"].get<double>());
    ++slices[process];
    if (event["name"] == "gemm_kernel") {
      EXPECT_EQ(event["args"]["operator"], "aten::mm");
    }
  }
  EXPECT_EQ(slices, (std::map<int64_t, int>{{1, 4}, {2, 4}}));
  EXPECT_NEAR(ends[1], 72, 1e-9);
  EXPECT_NEAR(ends[2], 72, 1e-3) << "on its own GPU";
  EXPECT_EQ(
      parse_json(timeline_of_trace(forecaster, {.path = file.path}).json, "timeline")["traceEvents"]
              .size() *
          2,
      events.size());
}

TEST(TraceReport, TwiceTheBatchTakesTwiceTheForecast) {
  const TraceFile file("tilecast_profile_test_batch.json", two_products());
  const Forecaster forecaster;
  const TraceReport report = report_trace(forecaster, {.path = file.path, .batch_factor = 4});
  ASSERT_TRUE(report.carried);
  EXPECT_EQ(report.carried->gpu, "nvidia-h100-sxm5-80gb") << "its own";
  EXPECT_EQ(report.carried->traced_batch, 4096);
  EXPECT_EQ(report.carried->batch, 16384);
  EXPECT_EQ(report.carried->kept_share, 0);
  EXPECT_GT(report.carried->kernels_s, 2.5 * 60e-6);
  EXPECT_LT(report.carried->kernels_s, 4.2 * 60e-6);
}

TEST(TraceReport, WhatTheOtherTraceLacksIsSaid) {
  const std::string whole = two_products();
  const TraceFile a("tilecast_profile_test_whole.json", whole);
  const TraceFile cut("tilecast_profile_test_cut.json", whole.substr(0, whole.rfind("152.")));
  const TraceFile cpu(
      "tilecast_profile_test_host.json",
      R"({"traceEvents": [)" + op_event("aten::mm", 1, 100, 30, kProductArguments) + "]}");
  const Forecaster forecaster;
  const auto tells = [&](const TraceReport& report) {
    return std::any_of(report.warnings.begin(), report.warnings.end(), [&](const auto& warning) {
      return warning.starts_with(cut.path) && warning.find("ends before") != std::string::npos;
    });
  };
  const GpuRef gpu = load_gpu_ref("H100");
  EXPECT_TRUE(tells(compare_traces(forecaster, a.path, cut.path)));
  EXPECT_TRUE(
      tells(report_trace(forecaster, {.path = a.path, .gpu = gpu, .host_trace = cut.path})));
  EXPECT_THROW(compare_traces(forecaster, a.path, cpu.path), Error);
  EXPECT_THROW(report_trace(forecaster, {.path = a.path, .gpu = gpu, .host_trace = cpu.path}),
               Error);
  const TraceReport given = compare_traces(forecaster, a.path, a.path, load_gpu_ref("MI300X"));
  EXPECT_EQ(given.gpu, "amd-mi300x") << "the GPU of the first trace";
  EXPECT_EQ(given.carried->gpu, "nvidia-h100-sxm5-80gb");
}

}  // namespace
}  // namespace tilecast
