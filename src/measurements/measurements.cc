#include "measurements/measurements.h"

#include <fmt/format.h>
#ifdef TILECAST_XZ
#include <lzma.h>
#endif

#include <algorithm>
#include <regex>

#include "base/file.h"
#include "base/text.h"
#include "measurements/call_drift.h"
#include "measurements/layouts.h"
#include "measurements/xz.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;

// The layouts, one file each.
extern const LayoutDef kNeusightLayout;
extern const LayoutDef kAiconfiguratorLayout;
extern const LayoutDef kVidurLayout;
extern const LayoutDef kRocmLayout;
extern const LayoutDef kPipeWeaveLayout;
extern const LayoutDef kAiterProductsLayout;
extern const LayoutDef kAiterExpertsLayout;
extern const LayoutDef kServedLayersLayout;
extern const LayoutDef kNcclLayout;
extern const LayoutDef kServingAllReduceLayout;
extern const LayoutDef kDeepEpLayout;
extern const LayoutDef kDeepEpLowLatencyLayout;
extern const LayoutDef kPipeWeaveCollectivesLayout;
extern const LayoutDef kVidurNetworkLayout;
extern const LayoutDef kOwnKernelLayout;
extern const LayoutDef kOwnModelLayout;
/// Families of the measurement kit that hold facts which are not forecast: listed with the reason.
extern const LayoutDef kOwnDeviceLayout;
extern const LayoutDef kOwnModelKernelsLayout;
extern const LayoutDef kOwnPairsLayout;
extern const LayoutDef kOwnPowerLayout;
extern const LayoutDef kOwnTraceLayout;
extern const LayoutDef kFsdpRunsLayout;
extern const LayoutDef kMegatronRunsLayout;
extern const LayoutDef kMegatronPeaksLayout;
extern const LayoutDef kDiffusionLayout;

namespace {

/// Limit for files, also once they are unpacked; no public data set is close to it.
constexpr uint64_t kLargestFile = uint64_t{1} << 31;

#ifdef TILECAST_XZ
/// Memory of a decoder; `xz -9` writes files that need 65 MiB.
constexpr uint64_t kMostDecoderBytes = uint64_t{256} << 20;
/// Tables of measurements become up to 38 times as large (Megatron-LM's golden values). One that
/// becomes thousands of times as large was made to fill memory.
constexpr uint64_t kAnySize = uint64_t{16} << 20, kMostGrowth = 200;

/// All streams of the file: `cat a.xz b.xz` is a file, too.
std::string unpack_xz(const std::string& packed, const std::string& where) {
  const uint64_t most = std::min(kLargestFile, kAnySize + kMostGrowth * packed.size());
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMostDecoderBytes, LZMA_CONCATENATED) != LZMA_OK)
    throw Error(ErrorKind::kIo, where + ": no memory to unpack it");
  std::string out;
  std::vector<uint8_t> buffer(1 << 20);
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
    out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    if (out.size() > most) break;
  }
  lzma_end(&stream);
  if (out.size() > most)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: unpacks to more than {}, expected at most {} from {}; unpack it "
                            "with xz --decompress and look at it",
                            where, format_bytes(static_cast<int64_t>(most)),
                            format_bytes(static_cast<int64_t>(most)),
                            format_bytes(static_cast<int64_t>(packed.size()))));
  if (status == LZMA_MEMLIMIT_ERROR)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: needs more than {} to unpack; pack it with xz -9 or less", where,
                            format_bytes(static_cast<int64_t>(kMostDecoderBytes))));
  if (status != LZMA_STREAM_END)
    throw Error(ErrorKind::kInput,
                where +
                    ": not a whole .xz file: it ends early, is damaged, or has other bytes at "
                    "its end; test it with xz --test");
  return out;
}
#else
std::string unpack_xz(const std::string& /*packed*/, const std::string& where) {
  throw Error(
      ErrorKind::kUnsupported,
      where + ": this build was made without liblzma; unpack the file with xz --decompress");
}
#endif

/// In the order in which they are tried.
const LayoutDef* const kLayouts[] = {&kFsdpRunsLayout,         &kMegatronRunsLayout,
                                     &kMegatronPeaksLayout,    &kDiffusionLayout,
                                     &kNeusightLayout,         &kNcclLayout,
                                     &kServingAllReduceLayout, &kDeepEpLayout,
                                     &kDeepEpLowLatencyLayout, &kPipeWeaveCollectivesLayout,
                                     &kVidurNetworkLayout,     &kOwnPowerLayout,
                                     &kOwnTraceLayout,         &kAiterProductsLayout,
                                     &kAiterExpertsLayout,     &kServedLayersLayout,
                                     &kOwnKernelLayout,        &kOwnModelLayout,
                                     &kAiconfiguratorLayout,   &kVidurLayout,
                                     &kOwnModelKernelsLayout,  &kOwnPairsLayout,
                                     &kOwnDeviceLayout,        &kRocmLayout,
                                     &kPipeWeaveLayout};

void read_csv(const fs::path& path, Collector& collector) {
  const std::string text = read_measurement_text(path);
  // Files with operators in the folders of whole-model labels are graphs with times, not
  // measurements of kernels.
  if (text.substr(0, text.find('\n')).find("fw_latency") != std::string::npos) return;
  const CsvTable table = parse_csv(text, printable(path.string()));
  collector.start_source(path.string());
  for (size_t i = 0; i < table.empty_rows; ++i) collector.skip(table.where, "the row is empty");
  for (const LayoutDef* layout : kLayouts) {
    const bool all = std::all_of(layout->columns.begin(), layout->columns.end(),
                                 [&](std::string_view c) { return table.column(c).has_value(); });
    if (all) return layout->read(table, collector);
  }
  collector.skip(path.string(), "the columns are of no known layout");
}

void read_one(const fs::path& path, Collector& collector) {
  const std::string name = path.filename().string();
  if (name.ends_with(".csv") || name.ends_with(".csv.xz")) return read_csv(path, collector);
  if (name.ends_with(".json")) return read_neusight_label(path, collector);
}

/// The name of the row's group in tables of errors.
std::string label_of(std::string_view op, const Kernel& kernel, const RowFacts& facts) {
  if (!facts.label.empty()) return facts.label + facts.label_note;
  // Attention of encoders is counted separately from the prefill of decoders.
  const bool encoder = op == "attention" && !kernel.as<Attention>()->causal;
  return std::string(op) + (encoder ? " (encoder)" : "") + facts.label_note;
}

Kernel kernel_of(const CsvRow& row, std::string_view op, DType dtype, const SizeList& sizes) {
  try {
    return kernels_of_sizes(op, dtype, sizes).front();
  } catch (const Error& error) {
    throw Error(error.kind(), row.table.place(row.index) + ": " + error.what());
  }
}

}  // namespace

std::string read_measurement_text(const fs::path& path) {
  std::string content = read_file(path, kLargestFile);
  return path.extension() == ".xz" ? unpack_xz(content, printable(path.string())) : content;
}

void Collector::start_source(const std::string& path) {
  source_ = set_.sources.size();
  set_.sources.push_back(path);
}

void Collector::add_collective(const CsvTable& table, CollectiveMeasurement measurement) {
  if (!(measurement.measured_s > 0)) return skip(table.where, "a measured time is not above 0");
  measurement.source = source_;
  set_.collectives.push_back(std::move(measurement));
}

void Collector::add_model(ModelMeasurement measurement) {
  measurement.model = printable(measurement.model);
  measurement.option = shown_name(measurement.option);
  set_.models.push_back(std::move(measurement));
}

void Collector::skip(const std::string& what, const std::string& why) {
  const std::string line = printable(what + ": " + why);
  const auto [skipped, first] = skipped_.try_emplace(line, Skipped{set_.unmatched.size(), 0});
  if (first) set_.unmatched.push_back(line);
  const size_t rows = ++skipped->second.rows;
  if (rows > 1) set_.unmatched[skipped->second.index] = fmt::format("{} ({} rows)", line, rows);
}

void Collector::add_kernel(const CsvRow& row, std::string_view op, DType dtype,
                           const SizeList& sizes, RowFacts facts) {
  const bool untimed = facts.seconds == 0 && keeps_untimed();
  if (!untimed && !(facts.seconds > 0))
    return skip(row.table.where, "a measured time is not above 0");
  const Kernel kernel = kernel_of(row, op, dtype, sizes);
  const Conditions conditions{.software = facts.software,
                              .caches = facts.caches,
                              .clock_hz = facts.clock_hz,
                              .half_sums = facts.half_sums,
                              .scalar_rows = facts.scalar_rows};
  set_.kernels.push_back({.gpu = std::move(facts.gpu),
                          .op = label_of(op, kernel, facts),
                          .kernel = kernel,
                          .conditions = conditions,
                          .measured_s = facts.seconds,
                          .protocol = facts.protocol,
                          .tile = facts.tile,
                          .algorithm = std::move(facts.algorithm),
                          .source = source_,
                          .line = row.table.lines[row.index]});
}

std::optional<Tile> tile_in_name(std::string_view kernel_name) {
  static const std::regex kTile(
      R"((?:sgemm_|gemm_f32f32_f32f32_f32_|gemm_|tilesize|_MT|nvjet_[a-z]+_)(\d{1,3})x(\d{1,3}))");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_search(kernel_name.begin(), kernel_name.end(), match, kTile)) return std::nullopt;
  const Tile tile{std::stoi(match[1]), std::stoi(match[2])};
  if (tile.m < 4 || tile.n < 4) return std::nullopt;
  return tile;
}

MeasurementSet read_measurements(const fs::path& path, Untimed untimed) {
  std::error_code code;
  if (!fs::exists(path, code))
    throw Error(ErrorKind::kNotFound, printable(path.string()) + ": no such file or folder");
  MeasurementSet set;
  Collector collector(set, untimed);
  if (!fs::is_directory(path, code)) {
    read_one(path, collector);
    remove_call_drift(set);
    return set;
  }
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot read the folder: {}", printable(error.path1().string()),
                            error.code().message()));
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) read_one(file, collector);
  remove_call_drift(set);
  return set;
}

bool reads_xz() {
#ifdef TILECAST_XZ
  return true;
#else
  return false;
#endif
}

}  // namespace tilecast
