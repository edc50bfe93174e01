#include "tilecast/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "laws/constants.h"
#include "profile/json_cursor.h"
#include "profile/operators.h"
#include "profile/replay.h"
#include "profile/timeline.h"
#include "profile/trace.h"
#include "profile/traced_gpu.h"
#include "profiler_trace.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

const TraceConstants& laws() { return bundled_laws().trace; }

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

TEST(ProfilerTrace, TheMostMemoryOfAGpu) {
  const auto memory = [](int64_t allocated, int type) {
    return R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1,
 "tid": 1, "ts": 5, "args": {"Total Reserved": 4096, "Total Allocated": )" +
           std::to_string(allocated) + R"(, "Bytes": 512, "Addr": 7, "Device Id": 0,
 "Device Type": )" +
           std::to_string(type) + "}}";
  };
  const ProfilerTrace trace =
      parse_profiler_trace(h100_trace(memory(1024, 1) + "," + memory(3072, 1) + "," +
                                      memory(2048, 6) + "," + memory(1 << 30, 0)),
                           "t.json");
  EXPECT_EQ(trace.memory.allocated_bytes, 3072) << "the host's memory is another one";
  EXPECT_EQ(trace.memory.reserved_bytes, 4096);
}

TEST(Replay, TimesOfEventsAndCalls) {
  const ProfilerTrace trace = parse_profiler_trace(two_products(), "t.json");
  const ReplayedTrace same = replayed(trace, durations_of(trace, 1), 1, laws());
  EXPECT_EQ(same.begin_ns, (std::vector<int64_t>{120'000, 152'000}));
  EXPECT_EQ(same.end_ns, (std::vector<int64_t>{150'000, 182'000}));
  EXPECT_EQ(same.call_begin_ns, (std::vector<int64_t>{110'000, 128'000}));
  EXPECT_EQ(same.call_end_ns, (std::vector<int64_t>{115'000, 132'000}));
  EXPECT_EQ(same.start_ns, 110'000);
  EXPECT_EQ(same.span_ns, 72'000);
}

}  // namespace
}  // namespace tilecast
