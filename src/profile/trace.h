#pragma once

// What a trace of PyTorch's profiler (Kineto), an export of Nsight Systems or an execution trace
// (Chakra) holds, in columns as small as 1 GB of JSON asks for: names and arguments are stored
// once. Times are nanoseconds of the trace's own clock.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilecast {

/// No profile takes 100 days: sums of times cannot overflow.
constexpr int64_t kLongestTraceNs = int64_t{100} * 24 * 3600 * 1'000'000'000;

/// Texts by number; each is stored once.
class KnownTexts {
 public:
  int32_t add(std::string_view text);
  const std::string& operator[](int32_t id) const { return *by_id_[static_cast<size_t>(id)]; }
  size_t size() const { return by_id_.size(); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> by_id_;
  int64_t bytes_ = 0;
};

/// An operator with its arguments: what record_shapes adds, as JSON.
struct OperatorCall {
  std::string name;     ///< "aten::mm"
  std::string dims;     ///< [[4096, 896], [896, 151936]]
  std::string types;    ///< ["c10::BFloat16", "c10::BFloat16"]
  std::string strides;  ///< [[896, 1], [1, 896]]; "": not in the trace
  std::string values;   ///< ["", ""]: numbers and lists beside tensors
};

/// An operator that the host ran.
struct HostOperator {
  int64_t start_ns = 0, duration_ns = 0;
  int64_t external_id = -1;
  int32_t call = 0;  ///< of ProfilerTrace::calls
  int32_t thread = 0;

  int64_t end_ns() const { return start_ns + duration_ns; }
};

/// A call of CUDA's or HIP's runtime or driver.
struct RuntimeCall {
  int64_t start_ns = 0, duration_ns = 0;
  int64_t correlation = -1;
  int64_t external_id = -1;
  int32_t name = 0;
  int32_t thread = 0;

  int64_t end_ns() const { return start_ns + duration_ns; }
};

enum class DeviceWork : uint8_t { kKernel, kCopy, kFill };

/// What the kernel of a collective states of it.
struct TracedCollective {
  std::string name;   ///< "allreduce", "_allgather_base"
  std::string dtype;  ///< "BFloat16"
  int64_t in_elements = 0, out_elements = 0;
  int64_t group_size = 0;
  std::vector<int64_t> ranks;  ///< of the group; empty: not stated

  bool operator==(const TracedCollective&) const = default;
};

/// A kernel, copy or fill that a GPU ran.
struct DeviceEvent {
  int64_t start_ns = 0, duration_ns = 0;
  int64_t correlation = -1;
  int64_t external_id = -1;
  int64_t bytes = 0;  ///< of a copy or fill
  int32_t name = 0;
  int32_t stream = 0;
  int32_t device = 0;
  std::array<int32_t, 3> grid{}, block{};
  int32_t registers = 0;
  DeviceWork work = DeviceWork::kKernel;
  bool in_graph = false;
  int32_t collective = -1;  ///< of ProfilerTrace::collectives; -1: none, or not stated

  // Filled in by `assign_operators`.
  int32_t op = -1;      ///< of ProfilerTrace::operators: the innermost that launched it; -1: none
  int32_t call = -1;    ///< its call; also where kernels around it tell it
  int32_t launch = -1;  ///< of ProfilerTrace::runtime; -1: before the trace began

  int64_t end_ns() const { return start_ns + duration_ns; }
};

/// Most bytes of one GPU's memory, as PyTorch's allocator counts them.
struct TracedMemory {
  int64_t allocated_bytes = 0, reserved_bytes = 0;
};

/// Memory that was taken, or with bytes below 0 given back.
struct MemoryEvent {
  int64_t start_ns = 0;
  int64_t bytes = 0, address = 0;
  int64_t allocated_bytes = 0, reserved_bytes = 0;  ///< of the device, after it
  int32_t device = 0;                               ///< -1: the host
  int32_t thread = 0;                               ///< as HostOperator::thread
};

/// ProfilerStep#5 of the host.
struct ProfilerStep {
  std::string name;
  int64_t start_ns = 0, duration_ns = 0;

  int64_t end_ns() const { return start_ns + duration_ns; }
};

/// An entry of deviceProperties.
struct TracedDevice {
  int64_t id = 0;
  std::string name;
  int64_t memory_bytes = 0, sm_count = 0;
};

enum class TraceFormat : uint8_t { kKineto, kNsight, kChakra };

struct ProfilerTrace {
  TraceFormat format = TraceFormat::kKineto;
  KnownTexts names;
  std::vector<OperatorCall> calls;
  std::vector<HostOperator> operators;  ///< by start
  std::vector<RuntimeCall> runtime;     ///< by start
  std::vector<DeviceEvent> events;      ///< by start
  std::vector<ProfilerStep> steps;
  std::vector<MemoryEvent> memory_events;  ///< by start
  std::vector<TracedDevice> devices;
  std::vector<TracedCollective> collectives;  ///< distinct ones
  TracedMemory memory;
  int64_t world_size = 0;   ///< ranks of the job; 0: not stated
  int64_t event_count = 0;  ///< of the file, also those that are not kept
  int64_t odd_events = 0;   ///< without a time, or with one that makes no sense
  bool cut_off = false;     ///< the file ends before its list of events does
  bool is_amd = false;      ///< written with ROCm
  bool has_shapes = false;  ///< some operator states the sizes of its inputs
  /// Dtypes are those that the names of the operators' kernels tell: the file states none.
  bool typed_by_kernels = false;
};

/// Reads a trace: JSON of Kineto or Chakra, plain or packed by gzip, event by event, or an SQLite
/// file of Nsight Systems, row by row; its content tells which. A file that ends too early gives
/// what was read (`cut_off`). Throws Error{kInput} for what is no trace, Error{kNotFound},
/// Error{kIo}, Error{kUnsupported} for more events than kTraceEvents, or for a format that this
/// build has no library for.
ProfilerTrace read_profiler_trace(const std::filesystem::path& path);
/// The same from the content of such a file.
ProfilerTrace parse_profiler_trace(std::string_view content, const std::string& name);

/// Fills in operators and launches of the events: by External id, by the time of the launch, or by
/// the kernels around.
void assign_operators(ProfilerTrace& trace);

}  // namespace tilecast
