#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/text.h"
#include "profile/formats.h"
#include "profile/operators.h"
#include "profiler_trace.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/profile.h"
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif

namespace tilecast {
namespace {

TEST(NvtxRange, OfAnOperatorHasItsSizes) {
  const NvtxRange range = nvtx_range(
      "aten::mm, seq = 3, op_id = 7, sizes = [[8, 4], [4, 2]], input_op_ids = [(5,0), (6,0)]");
  EXPECT_TRUE(range.is_operator);
  EXPECT_EQ(range.name, "aten::mm");
  EXPECT_EQ(range.sizes, "[[8, 4], [4, 2]]");
}

TEST(NvtxRange, OfTheProgramIsNoOperator) {
  EXPECT_FALSE(nvtx_range("load data").is_operator);
  EXPECT_FALSE(nvtx_range("load data").is_step);
  EXPECT_FALSE(nvtx_range("stepping").is_step);
  EXPECT_TRUE(nvtx_range("Step 12").is_step);
  EXPECT_TRUE(nvtx_range("iteration12").is_step);
  EXPECT_TRUE(nvtx_range("aten::relu_").is_operator);
}

#if __has_include(<sqlite3.h>)

/// The file that SQL makes.
std::string sqlite_of(const std::string& sql) {
  sqlite3* file = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &file), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(file, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error == nullptr ? "" : error);
  sqlite3_int64 size = 0;
  unsigned char* image = sqlite3_serialize(file, "main", &size, 0);
  std::string content(reinterpret_cast<const char*>(image), static_cast<size_t>(size));
  sqlite3_free(image);
  sqlite3_close(file);
  return content;
}

/// By NVIDIA's published schema, with columns that the reader does not want.
constexpr const char* kTables = R"(PRAGMA page_size=512;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT,
 totalMemory INTEGER, smCount INTEGER, cuDevice INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
 deviceId INTEGER NOT NULL, contextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
 globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER,
 gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
 registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,
 graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
 deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
 bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
 eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
 returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
 text TEXT, globalTid INTEGER, textId INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H100 80GB HBM3', '', 85018279936, 132, 0);
INSERT INTO StringIds VALUES (1, 'nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN'), (2, 'Kernel2'),
 (3, 'cudaLaunchKernel_v7000'), (4, 'cudaMemcpyAsync_v3020'), (5, 'step 1');
)";

/// Two products of a step, a copy, and a kernel of another process with the same correlation.
/// Global ids hold hardware, virtual machine and process above the thread's 24 bits: those of the
/// other process, on hardware 255, are negative.
std::string two_products_of_nsight() {
  return sqlite_of(std::string(kTables) + R"(
INSERT INTO NVTX_EVENTS VALUES (90000, 170000, 59, NULL, 0x0101000001000001, 5),
 (100000, 130000, 59, 'aten::mm, seq = 0, op_id = 1, sizes = [[4096, 1024], [1024, 2048]]', 0x0101000001000001,
  NULL), (101000, NULL, 34, 'mark', 0x0101000001000001, NULL),
 (125000, 135000, 59, 'aten::mm, op_id = 2, sizes = [[4096, 1024], [1024, 2048]]', 0x0101000001000001, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (110000, 115000, 1, 0x0101000001000001, 11, 3, 0),
 (128000, 132000, 1, 0x0101000001000001, 12, 3, 0), (140000, 142000, 1, 0x0101000001000001, 13, 4, 0),
 (143000, 144000, 1, 0xFF01000002000001, 12, 3, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
 (120000, 150000, 0, 1, 7, 11, 0x0101000001000000, 1, 2, 8, 2, 1, 128, 1, 1, 32, 0, 0, NULL),
 (152000, 182000, 0, 1, 7, 12, 0x0101000001000000, 1, 2, 8, 2, 1, 128, 1, 1, 32, 0, 0, NULL),
 (200000, 201000, 0, 1, 7, 12, 0xFF01000002000000, 2, 2, 1, 1, 1, 32, 1, 1, 32, 0, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (190000, 191000, 0, 7, 13, 0x0101000001000000, 4096, 1);
)");
}

TEST(NsightTrace, HasOperatorsLaunchesAndKernels) {
  const ProfilerTrace trace = parse_profiler_trace(two_products_of_nsight(), "t.sqlite");
  EXPECT_EQ(trace.format, TraceFormat::kNsight);
  EXPECT_FALSE(trace.cut_off);
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.devices[0].sm_count, 132);
  ASSERT_EQ(trace.events.size(), 4u);
  EXPECT_EQ(trace.events[0].start_ns, 120'000);
  EXPECT_EQ(trace.events[0].duration_ns, 30'000);
  EXPECT_EQ(trace.events[0].grid, (std::array<int32_t, 3>{8, 2, 1}));
  EXPECT_EQ(trace.names[trace.events[0].name], "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN");
  EXPECT_EQ(trace.names[trace.runtime[0].name], "cudaLaunchKernel");
  EXPECT_EQ(trace.names[trace.events[2].name], "Memcpy HtoD");
  EXPECT_EQ(trace.events[2].bytes, 4096);
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].name, "step 1");
  // Of the other process: its own launch, no operator.
  EXPECT_EQ(trace.events[3].launch, 3);
  EXPECT_EQ(trace.events[3].op, -1);
}

TEST(NsightTrace, DtypesAreThoseOfTheKernelsNames) {
  const ProfilerTrace trace = parse_profiler_trace(two_products_of_nsight(), "t.sqlite");
  EXPECT_TRUE(trace.typed_by_kernels);
  const std::vector<OperatorGroup> groups = operator_groups(trace);
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups[0].calls, 2);
  EXPECT_EQ(groups[0].kind, TracedKind::kForecast);
  ASSERT_EQ(groups[0].work.kernels.size(), 1u);
  EXPECT_EQ(groups[0].work.kernels[0].dtype, DType::kBf16);
  EXPECT_EQ(groups[0].work.kernels[0].flops, int64_t{2} * 4096 * 1024 * 2048);
}

TEST(NsightTrace, DtypesThatNoArgumentNamesAreNotGuessed) {
  for (const std::string kernel :
       {"cutlass_80_tensorop_d884gemm_64x64_16x4_tn_align1", "void gemv2T_kernel<int, double>",
        "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", "nvjet_qqtst_128x128_128x6_2x1_v_bz_TNT"}) {
    std::string content = kTables;
    const std::string known = "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN";
    content.replace(content.find(known), known.size(), kernel);
    const ProfilerTrace trace = parse_profiler_trace(sqlite_of(content + R"(
INSERT INTO NVTX_EVENTS VALUES (100, 130, 59, 'aten::mm, sizes = [[64, 64], [64, 64]]', 1, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (110, 115, 1, 1, 11, 3, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
 (120, 150, 0, 1, 7, 11, 0, 1, 2, 8, 2, 1, 128, 1, 1, 32, 0, 0, NULL);)"),
                                                     "t.sqlite");
    ASSERT_EQ(trace.events.size(), 1u);
    EXPECT_GE(trace.events[0].call, 0);
    EXPECT_FALSE(trace.typed_by_kernels) << kernel;
  }
}

TEST(NsightTrace, ConvolutionsWithoutTheirStridesAreNotGuessed) {
  OperatorCall call{"aten::convolution", "[[8, 64, 56, 56], [64, 64, 3, 3]]",
                    R"(["float", "float"])", "", ""};
  EXPECT_FALSE(work_of(call));
  call.values = R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])";
  EXPECT_TRUE(work_of(call));
}

TEST(NsightTrace, ReportSaysWhatTheFormatLeavesOpen) {
  const auto path = std::filesystem::temp_directory_path() / "tilecast_nsight_test.sqlite";
  std::ofstream(path, std::ios::binary) << two_products_of_nsight();
  EXPECT_TRUE(is_profiler_trace(path.string()));
  const Forecaster forecaster;
  const TraceReport report =
      report_trace(forecaster, {.path = path.string(), .gpu = load_gpu_ref("B200")});
  std::filesystem::remove(path);
  EXPECT_EQ(report.gpu, "nvidia-h100-sxm5-80gb");
  ASSERT_TRUE(report.carried);
  EXPECT_GT(report.carried->kernels_s, 0);
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings[0].find("not tried on a real file"), std::string::npos);
  EXPECT_NE(report.assumptions[0].find("states no dtypes"), std::string::npos);
}

void expect_error(const std::string& content, const std::string& text) {
  try {
    parse_profiler_trace(content, "t.sqlite");
    FAIL() << "no error for " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(NsightTrace, OtherFilesAreRefused) {
  expect_error(sqlite_of("CREATE TABLE t (a); INSERT INTO t VALUES (1)"),
               "without the tables of Nsight Systems");
  expect_error("SQLite format 3", "damaged SQLite file");
  expect_error(two_products_of_nsight().substr(0, 100), "damaged SQLite file");
  // Views may hold anything: they are no tables.
  expect_error(sqlite_of("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start"),
               "without the tables of Nsight Systems");
}

TEST(NsightTrace, DamagedPagesGiveWhatIsBeforeThem) {
  const std::string content = two_products_of_nsight();
  const auto damaged = [&](const std::string& text) {
    std::string changed = content;
    const size_t at = changed.find(text);
    EXPECT_NE(at, std::string::npos);
    constexpr size_t kPage = 512;
    const auto page = changed.begin() + static_cast<std::ptrdiff_t>(at / kPage * kPage);
    std::fill(page, page + kPage, '\x77');
    return parse_profiler_trace(changed, "t.sqlite");
  };
  // The page of the ranges: what was read before is kept.
  const ProfilerTrace ranges = damaged("aten::mm, seq = 0");
  EXPECT_TRUE(ranges.cut_off);
  EXPECT_EQ(ranges.events.size(), 4u);
  EXPECT_EQ(ranges.runtime.size(), 4u);
  EXPECT_TRUE(ranges.operators.empty());
  // That of the names: times are kept.
  const ProfilerTrace names = damaged("nvjet_tst_192x192");
  EXPECT_TRUE(names.cut_off);
  EXPECT_EQ(names.events.size(), 4u);
  expect_error(content.substr(0, content.size() - 1024), "damaged SQLite file");
}

TEST(NsightTrace, ComputedColumnsDoNotRun) {
  // abs() of the least number fails where it is computed, and so does a blob beyond the limit.
  const ProfilerTrace trace = parse_profiler_trace(
      sqlite_of(R"(CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,
 least INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0x8000000000000000),
 (3, 4, 0x8000000000000000);
ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN nameId AS (abs(least));
ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN correlationId
 AS (length(replace(hex(zeroblob(40000000)), '0', 'ab')));
ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN other AS (abs(least));
CREATE INDEX byend ON CUPTI_ACTIVITY_KIND_RUNTIME (end, start);)"),
      "t.sqlite");
  EXPECT_FALSE(trace.cut_off);
  ASSERT_EQ(trace.runtime.size(), 2u);
  EXPECT_EQ(trace.runtime[0].correlation, -1);
}

TEST(NsightTrace, ColumnsOfAnyContentAreTaken) {
  const ProfilerTrace trace = parse_profiler_trace(
      sqlite_of(R"(CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName, gridX);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 'x', x'00'), ('a', NULL, 3, 2.5),
 (9223372036854775807, -1, -9223372036854775808, 1), (NULL, 2, 1, 1), (-5, 5, 1, 1);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT);
INSERT INTO NVTX_EVENTS VALUES (0, 9, 'aten::mm, sizes = [[[[[['), (1, 3, ', sizes = ]]');)"),
      "t.sqlite");
  EXPECT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.odd_events, 4);
}

TEST(NsightTrace, RowsBeyondTheLimitEndTheFile) {
  const ProfilerTrace trace = parse_profiler_trace(
      sqlite_of(
          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, nameId);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 1), (1, 2, zeroblob(20000000)),"
          "(5, 6, 1)"),
      "t.sqlite");
  EXPECT_TRUE(trace.cut_off);
  EXPECT_EQ(trace.runtime.size(), 1u);
}

#endif

TEST(NsightTrace, AReportIsNotAnExport) {
  try {
    read_profiler_trace("profile.nsys-rep");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nsys export --type sqlite"), std::string::npos);
  }
}

}  // namespace
}  // namespace tilecast
