// Nsight Systems' export (nsys export --type sqlite), by NVIDIA's published schema: kernels,
// copies, fills and graphs by CUPTI's tables, launches by the runtime's, operators by the NVTX
// ranges that PyTorch's emit_nvtx makes. Not tried on a real file.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/budget.h"
#include "base/fail.h"
#include "profile/formats.h"

namespace tilecast {
namespace {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kFills = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kRanges = "NVTX_EVENTS";

/// CUpti_ActivityMemcpyKind, as Kineto names them.
std::string_view copy_name(int64_t kind) {
  switch (kind) {
    case 1:
      return "Memcpy HtoD";
    case 2:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 9:
      return "Memcpy HtoH";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

/// "cudaLaunchKernel_v7000" without its version.
std::string_view without_version(std::string_view name) {
  const size_t at = name.rfind("_v");
  const bool versioned = at != std::string_view::npos && at + 2 < name.size() &&
                         name.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return versioned ? name.substr(0, at) : name;
}

class NsightReader {
 public:
  NsightReader(const SqliteFile& file, const std::string& name)
      : file_(file), name_(name), builder_(name, 1) {}
  ProfilerTrace read();

 private:
  /// The rows of a table, if the file has it.
  void read_table(const char* table, const std::vector<std::string_view>& columns,
                  const std::function<void(const SqliteRow&)>& work);
  void read_texts();
  void read_devices();
  void read_kernels();
  void read_transfers(const char* table, bool copies);
  void read_graphs();
  void read_calls();
  void read_ranges();

  std::string_view text_of(int64_t id) const {
    const auto found = texts_.find(id);
    return found == texts_.end() ? std::string_view() : std::string_view(found->second);
  }
  /// A number of the event, as text that lives as long as the event.
  std::string_view shown(size_t place, int64_t value) {
    numbers_[place] = std::to_string(value);
    return numbers_[place];
  }
  /// Correlation ids count for each process; the upper half of a global id tells the process.
  std::string_view correlation(int64_t id, int64_t global_id) {
    constexpr int kThreadBits = 24, kIdBits = 32;
    if (id < 0) return {};
    const auto [process, added] =
        processes_.emplace(global_id >> kThreadBits, static_cast<int64_t>(processes_.size()));
    return shown(2, (process->second << kIdBits) | (id & UINT32_MAX));
  }
  /// An event with its times; the first two columns of every table are "start" and "end".
  RawEvent timed(const SqliteRow& row, std::string_view category);

  const SqliteFile& file_;
  const std::string& name_;
  TraceBuilder builder_;
  std::unordered_map<int64_t, std::string> texts_;
  std::unordered_map<int64_t, int64_t> processes_;
  std::array<std::string, 12> numbers_;
  int64_t text_bytes_ = 0;
  bool cut_off_ = false;
};

void NsightReader::read_table(const char* table, const std::vector<std::string_view>& columns,
                              const std::function<void(const SqliteRow&)>& work) {
  if (!file_.has_table(table)) return;
  if (!file_.for_each_row(table, columns, work)) cut_off_ = true;
}

RawEvent NsightReader::timed(const SqliteRow& row, std::string_view category) {
  RawEvent event;
  event.phase = "X";
  event.category = category;
  const int64_t start = row.number(0, -1), end = row.number(1, -1);
  event.time = shown(0, start);
  event.duration = start < 0 || end < start ? "-1" : shown(1, end - start);
  return event;
}

void NsightReader::read_texts() {
  read_table("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
    const std::string_view text = row.text(1);
    constexpr int64_t kEntryBytes = 64;
    text_bytes_ += static_cast<int64_t>(text.size()) + kEntryBytes;
    Budget::here().allow(kTraceNames, text_bytes_, name_);
    texts_.emplace(row.number(0, -1), text);
  });
}

void NsightReader::read_devices() {
  read_table(
      "TARGET_INFO_GPU", {"id", "cuDevice", "name", "totalMemory", "smCount"},
      [&](const SqliteRow& row) {
        constexpr size_t kMostName = 256, kMostDevices = 4096;
        if (builder_.trace().devices.size() >= kMostDevices) return;
        const int64_t id = row.number(1, -1) >= 0 ? row.number(1, -1) : row.number(0, 0);
        builder_.trace().devices.push_back({id, std::string(row.text(2).substr(0, kMostName)),
                                            std::max<int64_t>(0, row.number(3, 0)),
                                            std::max<int64_t>(0, row.number(4, 0))});
      });
}

void NsightReader::read_kernels() {
  read_table(kKernels,
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName",
              "shortName", "registersPerThread", "graphNodeId", "gridX", "gridY", "gridZ", "blockX",
              "blockY", "blockZ"},
             [&](const SqliteRow& row) {
               RawEvent event = timed(row, "kernel");
               event.device = shown(3, row.number(2, 0));
               event.stream = shown(4, row.number(3, 0));
               event.correlation = correlation(row.number(4, -1), row.number(5, 0));
               event.name = text_of(row.number(6, -1));
               if (event.name.empty()) event.name = text_of(row.number(7, -1));
               event.registers = shown(5, row.number(8, 0));
               event.graph_node = shown(6, row.number(9, 0));
               numbers_[7] = fmt::format("[{}, {}, {}]", row.number(10, 0), row.number(11, 0),
                                         row.number(12, 0));
               numbers_[8] = fmt::format("[{}, {}, {}]", row.number(13, 0), row.number(14, 0),
                                         row.number(15, 0));
               event.grid = numbers_[7];
               event.block = numbers_[8];
               builder_.add(event);
             });
}

void NsightReader::read_transfers(const char* table, bool copies) {
  read_table(table,
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes",
              "copyKind", "graphNodeId"},
             [&](const SqliteRow& row) {
               RawEvent event = timed(row, copies ? "gpu_memcpy" : "gpu_memset");
               event.device = shown(3, row.number(2, 0));
               event.stream = shown(4, row.number(3, 0));
               event.correlation = correlation(row.number(4, -1), row.number(5, 0));
               event.bytes = shown(5, row.number(6, 0));
               event.graph_node = shown(6, row.number(8, 0));
               event.name = copies ? copy_name(row.number(7, 0)) : "Memset";
               builder_.add(event);
             });
}

/// Graphs that were traced as wholes (--cuda-graph-trace=graph, the default).
void NsightReader::read_graphs() {
  read_table(kGraphs,
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId"},
             [&](const SqliteRow& row) {
               RawEvent event = timed(row, "kernel");
               event.device = shown(3, row.number(2, 0));
               event.stream = shown(4, row.number(3, 0));
               event.correlation = correlation(row.number(4, -1), row.number(5, 0));
               numbers_[5] = fmt::format("CUDA graph {}", row.number(6, 0));
               event.name = numbers_[5];
               event.graph_node = "1";
               builder_.add(event);
             });
}

void NsightReader::read_calls() {
  read_table(kCalls, {"start", "end", "nameId", "correlationId", "globalTid"},
             [&](const SqliteRow& row) {
               RawEvent event = timed(row, "cuda_runtime");
               event.name = without_version(text_of(row.number(2, -1)));
               event.correlation = correlation(row.number(3, -1), row.number(4, 0));
               event.thread = shown(3, row.number(4, 0));
               builder_.add(event);
             });
}

void NsightReader::read_ranges() {
  read_table(kRanges, {"start", "end", "text", "textId", "globalTid"}, [&](const SqliteRow& row) {
    const std::string_view text = row.has(2) ? row.text(2) : text_of(row.number(3, -1));
    const NvtxRange range = nvtx_range(text);
    if ((!range.is_operator && !range.is_step) || !row.has(1)) return;
    RawEvent event = timed(row, range.is_operator ? "cpu_op" : "step");
    event.name = range.name;
    event.dims = range.sizes;
    event.thread = shown(3, row.number(4, 0));
    builder_.add(event);
  });
}

ProfilerTrace NsightReader::read() {
  constexpr const char* kTables[] = {kKernels, kCopies, kFills, kGraphs, kCalls, kRanges};
  if (std::none_of(std::begin(kTables), std::end(kTables),
                   [&](const char* table) { return file_.has_table(table); }))
    fail_input(name_,
               "an SQLite file without the tables of Nsight Systems: make one by "
               "`nsys export --type sqlite`");
  read_texts();
  read_devices();
  read_kernels();
  read_transfers(kCopies, true);
  read_transfers(kFills, false);
  read_graphs();
  read_calls();
  read_ranges();
  ProfilerTrace trace = builder_.finish();
  trace.format = TraceFormat::kNsight;
  trace.cut_off = cut_off_;
  return trace;
}

}  // namespace

NvtxRange nvtx_range(std::string_view text) {
  NvtxRange range;
  size_t end = text.size();
  for (const std::string_view mark : {", seq = ", ", op_id = ", ", sizes = "})
    if (const size_t at = text.find(mark); at < end) end = at;
  range.name = text.substr(0, end);
  // Names of operators and of autograd's functions; other ranges are the program's own.
  range.is_operator = end < text.size() || (range.name.find("::") != std::string_view::npos &&
                                            range.name.find(' ') == std::string_view::npos);
  constexpr std::string_view kSizes = ", sizes = ";
  if (const size_t at = text.find(kSizes); at != std::string_view::npos) {
    range.sizes = text.substr(at + kSizes.size());
    const size_t more = range.sizes.find(", input_op_ids = ");
    range.sizes = range.sizes.substr(0, more);
  }
  std::string lower(range.name.substr(0, std::min<size_t>(range.name.size(), 16)));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  range.is_step = !range.is_operator &&
                  (lower.starts_with("step") || lower.starts_with("iter") ||
                   lower.starts_with("profilerstep")) &&
                  range.name.find_first_of("0123456789") != std::string_view::npos;
  return range;
}

ProfilerTrace read_nsight_trace(const SqliteFile& file, const std::string& name) {
  return NsightReader(file, name).read();
}

}  // namespace tilecast
