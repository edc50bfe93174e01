#include "tilecast/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "laws/constants.h"
#include "profile/json_cursor.h"
#include "profile/operators.h"
#include "profile/replay.h"
#include "profile/timeline.h"
#include "profile/trace.h"
#include "profile/traced_gpu.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

const TraceConstants& laws() { return bundled_laws().trace; }

/// A trace of an H100 with these events.
std::string h100_trace(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3",
 "totalGlobalMem": 85018279936, "numSms": 132}], "record_shapes": 1, "traceEvents": [)" +
         events + R"(], "traceName": "t.json"})";
}

std::string op_event(const std::string& name, int id, double ts, double dur,
                     const std::string& arguments) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" +
         std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
         R"(, "args": {"External id": )" + std::to_string(id) + ", " + arguments + "}}";
}

std::string call_event(const std::string& name, int correlation, double ts, double dur) {
  return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
         R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(ts) + R"(, "dur": )" +
         std::to_string(dur) + R"(, "args": {"correlation": )" + std::to_string(correlation) + "}}";
}

std::string kernel_event(const std::string& name, int id, int correlation, double ts, double dur,
                         int stream = 7) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
         std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
         R"(, "args": {"External id": )" + std::to_string(id) + R"(, "device": 0, "stream": )" +
         std::to_string(stream) + R"(, "correlation": )" + std::to_string(correlation) +
         R"(, "registers per thread": 32, "grid": [8, 2, 1], "block": [128, 1, 1]}})";
}

constexpr const char* kProductArguments =
    R"("Input Dims": [[4096, 1024], [1024, 2048]], "Input type": ["c10::BFloat16",
 "c10::BFloat16"], "Input Strides": [[1024, 1], [1, 1024]], "Concrete Inputs": ["", ""])";

/// Two products: the first 90 us late by the host, the second launched in time.
std::string two_products() {
  return h100_trace(op_event("aten::mm", 1, 100, 30, kProductArguments) + ",\n" +
                    call_event("cudaLaunchKernel", 11, 110, 5) + "," +
                    kernel_event("gemm_kernel", 1, 11, 120, 30) + "," +
                    op_event("aten::mm", 2, 125, 10, kProductArguments) + "," +
                    call_event("cudaLaunchKernel", 12, 128, 4) + "," +
                    kernel_event("gemm_kernel", 2, 12, 152, 30));
}

TEST(JsonCursor, ReadsWhatIsAskedForAndSkipsTheRest) {
  JsonCursor cursor(R"({"a": {"b": [1, "]}\""]}, "name": "x\"y", "n": 1.5e3})");
  cursor.expect('{');
  std::string_view key;
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(cursor.value(), R"({"b": [1, "]}\""]})");
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(unescaped(cursor.string()), "x\"y");
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(scaled_number(cursor.value(), 1000, -1), 1'500'000);
  EXPECT_FALSE(cursor.next_key(key));
}

TEST(JsonCursor, NumbersKeepNanosecondsOfTimesSince1970) {
  EXPECT_EQ(scaled_number("1751410836123456.789", 1000, -1), 1'751'410'836'123'456'789);
  EXPECT_EQ(scaled_number("\"12.5\"", 1000, -1), 12'500);
  EXPECT_EQ(scaled_number("-3.5", 1000, -1), -1);
  EXPECT_EQ(scaled_number("1e300", 1000, -7), -7);
  EXPECT_EQ(scaled_number("nonsense", 1000, -7), -7);
}

TEST(ProfilerTrace, EventsWithTheirOperatorsAndLaunches) {
  const ProfilerTrace trace = parse_profiler_trace(two_products(), "t.json");
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.event_count, 6);
  EXPECT_TRUE(trace.has_shapes);
  EXPECT_FALSE(trace.cut_off);
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].sm_count, 132);
  const DeviceEvent& second = trace.events[1];
  EXPECT_EQ(second.start_ns, 152'000);
  EXPECT_EQ(second.duration_ns, 30'000);
  EXPECT_EQ(second.grid[1], 2);
  EXPECT_EQ(second.registers, 32);
  EXPECT_EQ(second.op, 1);
  EXPECT_EQ(second.launch, 1);
  EXPECT_EQ(trace.calls.size(), 1u) << "equal arguments are stored once";
  EXPECT_EQ(trace.calls[static_cast<size_t>(second.call)].name, "aten::mm");
}

TEST(ProfilerTrace, AFileThatEndsEarlyGivesWhatWasRead) {
  const std::string whole = two_products();
  const size_t in_last_event = whole.rfind("152.");
  const ProfilerTrace trace = parse_profiler_trace(whole.substr(0, in_last_event), "t.json");
  EXPECT_TRUE(trace.cut_off);
  EXPECT_EQ(trace.events.size(), 1u);
}

TEST(ProfilerTrace, WhatIsNoTraceIsRefused) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_profiler_trace(text, "t.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(""), "t.json: the file is empty: expected a trace of torch.profiler");
  EXPECT_NE(message("gpu,op\n").find("expected a trace of torch.profiler"), std::string::npos);
  EXPECT_NE(message(R"({"model_type": "gpt2"})").find("no trace of torch.profiler"),
            std::string::npos);
  EXPECT_NE(message(R"({"deviceProperties": [)").find("ends before its list of events"),
            std::string::npos);
  EXPECT_NE(message(R"({"traceEvents": [{"ph" "X"}]})").find("no valid JSON after 0 events"),
            std::string::npos);
}

TEST(ProfilerTrace, EventsWithoutAValidTimeAreCounted) {
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": "x", "dur": 1, "args": {}})"),
      "t.json");
  EXPECT_EQ(trace.odd_events, 1);
  EXPECT_TRUE(trace.events.empty());
}

TEST(ProfilerTrace, EventsFarFromTheFirstOneAreCounted) {
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(kernel_event("a", -1, -1, 10, 30) + "," + kernel_event("a", -1, -1, 4e15, 30)),
      "t.json");
  EXPECT_EQ(trace.odd_events, 1);
  EXPECT_EQ(trace.events.size(), 1u);
}

TEST(ProfilerTrace, NamesOfDevicesAreShort) {
  std::string name;
  for (int i = 0; i < 100'000; ++i) name += "a ";
  const ProfilerTrace trace = parse_profiler_trace(
      R"({"deviceProperties": [{"id": 0, "name": ")" + name + R"("}], "traceEvents": []})",
      "t.json");
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].name.size(), 256u);
}

TEST(TracedGpu, AShorterNameCountsWhereTheSizesAgree) {
  const auto id = [](const char* name, int64_t gib, int64_t sms) {
    const auto device = known_device({0, name, gib << 30, sms}, laws());
    return device ? device->id : "";
  };
  EXPECT_EQ(id("NVIDIA GeForce RTX 3080", 10, 68), "nvidia-rtx-3080");
  EXPECT_EQ(id("NVIDIA GeForce RTX 3080 custom", 10, 68), "nvidia-rtx-3080");
  EXPECT_NE(id("NVIDIA GeForce RTX 3080 Ti", 12, 80), "nvidia-rtx-3080");
  EXPECT_NE(id("NVIDIA GeForce RTX 4090 Laptop GPU", 16, 76), "nvidia-rtx-4090");
  EXPECT_EQ(id("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5, 14), "");
  EXPECT_EQ(id("AMD Instinct MI300X VF", 192, 304), "amd-mi300x");
}

TEST(ProfilerTrace, KernelsOfAnEarlierStepHaveTheCallsOfTheSameKernels) {
  // No External id and no launch: the kernel before and the one after tell the call.
  const ProfilerTrace trace =
      parse_profiler_trace(h100_trace(kernel_event("gemm_kernel", -1, -1, 10, 30) + "," +
                                      op_event("aten::mm", 1, 100, 30, kProductArguments) + "," +
                                      kernel_event("gemm_kernel", 1, 11, 120, 30)),
                           "t.json");
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].op, -1);
  EXPECT_EQ(trace.events[0].call, trace.events[1].call);
}

TEST(Timeline, TheHostLaunchesLateOrTheGpuIsBetweenKernels) {
  const ProfilerTrace trace = parse_profiler_trace(two_products(), "t.json");
  const TraceSpan span = span_of(trace);
  EXPECT_EQ(span.ns(), 72'000) << "from the first launch at 110 us to 182 us";
  const TracedBusy busy = busy_time(trace, span);
  EXPECT_EQ(busy.busy_ns, 60'000);
  ASSERT_EQ(busy.idle.size(), 2u);
  EXPECT_EQ(busy.idle[0].why, "host");
  EXPECT_NEAR(busy.idle[0].seconds, 10e-6, 1e-12);
  EXPECT_EQ(busy.idle[1].why, "between kernels");
  EXPECT_NEAR(busy.idle[1].seconds, 2e-6, 1e-12);
}

TEST(Timeline, AHostThatWaitedForTheGpuIsSynchronization) {
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(call_event("cudaLaunchKernel", 1, 0, 5) + "," + kernel_event("a", -1, 1, 10, 50) +
                 "," + call_event("cudaStreamSynchronize", 2, 6, 60) + "," +
                 call_event("cudaLaunchKernel", 3, 70, 5) + "," + kernel_event("b", -1, 3, 80, 20)),
      "t.json");
  const TracedBusy busy = busy_time(trace, span_of(trace));
  ASSERT_EQ(busy.idle.size(), 2u);
  EXPECT_EQ(busy.idle[0].why, "synchronization");
  EXPECT_NEAR(busy.idle[0].seconds, 20e-6, 1e-12);
}

TEST(Timeline, StepsHaveTheWorkThatTheyLaunched) {
  const auto mark = [](const char* name, int ts) {
    return R"({"ph": "X", "cat": "user_annotation", "name": ")" + std::string(name) +
           R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(ts) + R"(, "dur": 40, "args": {}})";
  };
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(
          mark("ProfilerStep#1", 100) + "," + mark("ProfilerStep#2", 150) + "," +
          call_event("cudaLaunchKernel", 1, 110, 5) + "," + kernel_event("a", -1, 1, 160, 20) +
          "," + call_event("cudaLaunchKernel", 2, 160, 5) + "," +
          kernel_event("b", -1, 2, 180, 30) + "," + call_event("cudaLaunchKernel", 3, 195, 5) +
          "," + kernel_event("c", -1, 3, 210, 10)),
      "t.json");
  const std::vector<TracedStep> steps = step_times(trace);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NEAR(steps[0].busy_s, 20e-6, 1e-12) << "launched before the second step began";
  EXPECT_NEAR(steps[1].busy_s, 30e-6, 1e-12) << "the last was launched after both";
}

std::vector<int64_t> durations_of(const ProfilerTrace& trace, double factor) {
  std::vector<int64_t> durations;
  for (const DeviceEvent& event : trace.events)
    durations.push_back(std::llround(static_cast<double>(event.duration_ns) * factor));
  return durations;
}

TEST(Replay, UnchangedTimesGiveTheSpanOfTheTrace) {
  const ProfilerTrace trace = parse_profiler_trace(two_products(), "t.json");
  EXPECT_EQ(replayed_span_ns(trace, durations_of(trace, 1), 1, laws()), 72'000);
}

TEST(Replay, FasterKernelsWaitForTheHost) {
  const ProfilerTrace trace = parse_profiler_trace(two_products(), "t.json");
  // The second kernel, 18 us after the first launch and as late as the first one after its own,
  // takes 3 us.
  EXPECT_EQ(replayed_span_ns(trace, durations_of(trace, 0.1), 1, laws()), 31'000);
  const int64_t at_once = replayed_span_ns(trace, durations_of(trace, 0.1),
                                           std::numeric_limits<double>::infinity(), laws());
  EXPECT_EQ(at_once, 10'000 + 2 * 3'000 + 2'000);
}

TEST(Replay, AHostThatWaitsGoesOnWhenTheGpuIsDone) {
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(call_event("cudaLaunchKernel", 1, 0, 5) + "," + kernel_event("a", -1, 1, 10, 50) +
                 "," + call_event("cudaStreamSynchronize", 2, 6, 60) + "," +
                 call_event("cudaLaunchKernel", 3, 70, 5) + "," + kernel_event("b", -1, 3, 80, 20)),
      "t.json");
  EXPECT_EQ(replayed_span_ns(trace, durations_of(trace, 1), 1, laws()), 100'000);
  // Kernels of half the time: 25 us and 10 us less.
  EXPECT_EQ(replayed_span_ns(trace, durations_of(trace, 0.5), 1, laws()), 65'000);
}

TEST(Replay, TimesOfASlowHostHaveAnEnd) {
  constexpr double kDaysUs = 99 * 24 * 3600 * 1e6;
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(call_event("cudaLaunchKernel", 1, kDaysUs, 5) + "," +
                 call_event("cudaLaunchKernel", 2, 0, 5) + "," +
                 call_event("cudaLaunchKernel", 3, 2 * kDaysUs, 5) + "," +
                 kernel_event("a", -1, 1, kDaysUs, 5) + "," + kernel_event("a", -1, 2, 5, 5) + "," +
                 kernel_event("a", -1, 3, 2 * kDaysUs, 5)),
      "t.json");
  ASSERT_EQ(trace.events.size(), 3u);
  const std::vector<int64_t> longest(3, kLongestTraceNs);
  const int64_t span = replayed_span_ns(trace, longest, 1e-3, laws());
  EXPECT_GT(span, replayed_span_ns(trace, longest, 1, laws()));
}

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

TEST(TraceReport, ATraceWithoutGpuWorkSaysSo) {
  const TraceFile file(
      "tilecast_profile_test_cpu.json",
      R"({"traceEvents": [)" + op_event("aten::mm", 1, 100, 30, kProductArguments) + "]}");
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
