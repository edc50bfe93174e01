#include "devices/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "devices/derived.h"
#include "devices/ranges.h"
#include "devices/sourced.h"
#include "devices/vendor.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Rates by dtype name. Rates of dtypes that Tilecast does not know are checked and ignored.
std::array<double, kDTypeCount> rates(const JsonObject& parent, const std::string& key) {
  static const std::vector<std::string> kOthers = {"fp64", "fp6"};
  std::array<double, kDTypeCount> result{};
  const JsonObject table = parent.object(key);
  for (const auto& item : table.json().items()) {
    const std::optional<DType> dtype = find_dtype(item.key());
    if (!dtype && std::find(kOthers.begin(), kOthers.end(), item.key()) == kOthers.end())
      table.fail(item.key(),
                 "unknown dtype; known: " + join(dtype_names(), ", ") + ", " + join(kOthers, ", "));
    const double value = sourced_number(table, item.key(), "FLOP/s", "flops_per_s");
    if (dtype) result[static_cast<size_t>(*dtype)] = value;
  }
  return result;
}

std::vector<Link> read_links(const JsonObject& parent) {
  std::vector<Link> links;
  const Json& list = parent.json()["links"];
  if (!list.is_array()) parent.fail("links", "expected a list");
  for (const Json& item : list) {
    const JsonObject entry(item, parent.where() + ": links");
    entry.reject_unknown({"kind", "bytes_per_s", "gpus"});
    links.push_back(
        {.kind = name_under(entry, "kind"),
         .bytes_per_s = sourced_number(entry, "bytes_per_s", "B/s", "link_bytes_per_s")});
    if (entry.has("gpus")) links.back().gpus = sourced_integer(entry, "gpus", "1");
  }
  return links;
}

/// Fields of all devices, and fields of GPUs only.
constexpr auto kDeviceFields =
    std::to_array<const char*>({"schema_version", "kind", "id", "name", "vendor", "aliases",
                                "notes", "memory_bytes", "memory_bytes_per_s", "links"});
constexpr auto kGpuFields = std::to_array<const char*>({"sm_count",
                                                        "lanes_per_sm",
                                                        "base_clock_hz",
                                                        "boost_clock_hz",
                                                        "l2_bytes",
                                                        "last_level_cache_bytes",
                                                        "on_chip_bytes_per_sm",
                                                        "register_bytes_per_sm",
                                                        "threads_per_sm",
                                                        "board_power_w",
                                                        "process_nm",
                                                        "vector_flops_per_s",
                                                        "matrix_flops_per_s",
                                                        "architecture",
                                                        "matrix_instruction",
                                                        "memory_type",
                                                        "inline_ecc",
                                                        "exp_per_clock_per_sm",
                                                        "schedulers_per_sm",
                                                        "issue_per_clock",
                                                        "slices"});

/// Optional fields of a GPU: read from the file, or replaced by another value, which `missing`
/// notes.
class OptionalFields {
 public:
  OptionalFields(const JsonObject& file, std::vector<std::string>& missing)
      : file_(file), missing_(missing) {}

  int64_t whole_or(const std::string& key, const std::string& unit, int64_t fallback,
                   const std::string& what) {
    return present(key, what) ? sourced_integer(file_, key, unit) : fallback;
  }
  double quantity_or(const std::string& key, const std::string& unit, double fallback,
                     const std::string& what) {
    return present(key, what) ? sourced_number(file_, key, unit) : fallback;
  }
  template <typename Choice>
  Choice word_or(const std::string& key, Choice fallback) {
    return present(key, std::string(choice_word(fallback))) ? sourced_word<Choice>(file_, key)
                                                            : fallback;
  }

 private:
  bool present(const std::string& key, const std::string& what) {
    if (file_.has(key)) return true;
    missing_.push_back(fmt::format("{} {}", key, what));
    return false;
  }

  const JsonObject& file_;
  std::vector<std::string>& missing_;
};

Gpu read_gpu(const JsonObject& file, std::vector<std::string>& missing) {
  Gpu gpu;
  gpu.sm_count = sourced_integer(file, "sm_count", "1");
  gpu.boost_clock_hz = sourced_number(file, "boost_clock_hz", "Hz");
  gpu.vector_flops_per_s = rates(file, "vector_flops_per_s");
  const double fp32 = gpu.vector_peak(DType::kFp32);
  if (fp32 == 0) file.fail("vector_flops_per_s", "the fp32 rate is missing");
  if (file.has("matrix_flops_per_s")) gpu.matrix_flops_per_s = rates(file, "matrix_flops_per_s");

  // The defaults are taken from current data-center GPUs (NVIDIA H100 whitepaper).
  OptionalFields optional(file, missing);
  gpu.lanes_per_sm = optional.whole_or("lanes_per_sm", "1", 128, "128 lanes");
  gpu.l2_bytes = optional.whole_or("l2_bytes", "B", 32 << 20, "32 MiB");
  gpu.on_chip_bytes_per_sm = optional.whole_or("on_chip_bytes_per_sm", "B", 128 << 10, "128 KiB");
  gpu.register_bytes_per_sm = optional.whole_or("register_bytes_per_sm", "B", 256 << 10, "256 KiB");
  gpu.threads_per_sm = optional.whole_or("threads_per_sm", "1", 2048, "2048 threads");
  // 15 pJ per FLOP: between V100 (18) and A100 PCIe (13).
  gpu.states_board_power = file.has("board_power_w");
  gpu.board_power_w = optional.quantity_or("board_power_w", "W", 15e-12 * fp32, "15 pJ per FLOP");
  if (file.has("base_clock_hz")) gpu.base_clock_hz = sourced_number(file, "base_clock_hz", "Hz");
  if (file.has("process_nm")) gpu.process_nm = sourced_number(file, "process_nm", "nm");
  if (file.has("last_level_cache_bytes"))
    gpu.last_level_cache_bytes = sourced_integer(file, "last_level_cache_bytes", "B");
  return gpu;
}

/// The fields that are derived from the others where the file leaves them out, each also from those
/// before it.
void read_architecture(const JsonObject& file, Device& device, std::vector<std::string>& missing) {
  Gpu& gpu = std::get<Gpu>(device.chip);
  OptionalFields optional(file, missing);
  gpu.architecture = optional.word_or("architecture", derived_architecture(device));
  gpu.matrix_instruction =
      optional.word_or("matrix_instruction", derived_matrix_instruction(device));
  gpu.memory_type = optional.word_or("memory_type", derived_memory_type(device));
  // NVIDIA's data-center cards have it switched on; other memory has no such mode, or bits for it.
  if (file.has("inline_ecc") ||
      (device.vendor == "nvidia" && gpu.memory_type == MemoryType::kGddr6))
    gpu.inline_ecc = optional.word_or("inline_ecc", InlineEcc::kOn);
  const double exps = derived_exp_per_clock_per_sm(gpu);
  gpu.exp_per_clock_per_sm =
      optional.quantity_or("exp_per_clock_per_sm", "1", exps, fmt::format("{:g}", exps));
  const int64_t schedulers = derived_schedulers_per_sm(gpu);
  gpu.schedulers_per_sm =
      optional.whole_or("schedulers_per_sm", "1", schedulers, fmt::format("{}", schedulers));
  const double issue = derived_issue_per_clock(gpu);
  gpu.issue_per_clock =
      optional.quantity_or("issue_per_clock", "1", issue, fmt::format("{:g}", issue));
}

/// Of a GPU with MIG; it has fewer of compute.

std::vector<Slice> read_slices(const JsonObject& file, const Gpu& gpu) {
  const JsonObject table = file.object("slices");
  table.reject_unknown({"source", "profiles"});
  check_source(table);
  const Json& list = table.json()["profiles"];
  if (!list.is_array()) table.fail("profiles", "expected a list");
  std::vector<Slice> slices;
  for (const Json& item : list) {
    const JsonObject entry(item, table.where() + ": profiles");
    entry.reject_unknown({"name", "sm_count", "memory_bytes", "memory_eighths", "instances"});
    constexpr int64_t kMostBytes = int64_t{1} << 50;
    slices.push_back({.name = name_under(entry, "name"),
                      .sm_count = entry.integer({"sm_count"}, 1, gpu.sm_count),
                      .memory_bytes = entry.integer({"memory_bytes"}, 1, kMostBytes),
                      .memory_eighths = entry.integer({"memory_eighths"}, 1, kMemorySlices),
                      .instances = entry.integer({"instances"}, 1, kMemorySlices)});
  }
  return slices;
}

void scale_rates(Gpu& gpu, double factor) {
  for (double& rate : gpu.vector_flops_per_s) rate *= factor;
  for (double& rate : gpu.matrix_flops_per_s) rate *= factor;
}

/// Whether the file describes a GPU, which is the default.
bool is_gpu_file(const JsonObject& file) {
  if (!file.has("kind")) return true;
  const std::string kind = file.string("kind");
  if (kind != "gpu" && kind != "accelerator")
    file.fail("kind",
              fmt::format("expected \"gpu\" or \"accelerator\", found \"{}\"", shown_name(kind)));
  return kind == "gpu";
}

}  // namespace

void Device::refuse() const {
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{} is an accelerator: times are forecast for GPUs only; 'tilecast gpus' "
                          "lists the known GPUs",
                          id));
}

Device at_clock(const Device& device, double hz) {
  Device result = device;
  Gpu gpu = device.gpu();
  const double ratio = hz / gpu.boost_clock_hz;
  gpu.boost_clock_hz = hz;
  gpu.clock_share *= ratio;
  scale_rates(gpu, ratio);
  result.chip = gpu;
  return result;
}

Device with_sms(const Device& device, int64_t sm_count) {
  Device result = device;
  Gpu gpu = device.gpu();
  scale_rates(gpu, static_cast<double>(sm_count) / static_cast<double>(gpu.sm_count));
  gpu.sm_count = sm_count;
  result.chip = gpu;
  return result;
}

const Slice& largest_slice(const Device& device) {
  if (device.slices.empty()) slice_of(device, "MIG");  // throws: it has none
  return *std::max_element(device.slices.begin(), device.slices.end(),
                           [](const Slice& a, const Slice& b) { return a.sm_count < b.sm_count; });
}

Device slice_of(const Device& device, std::string_view profile) {
  std::vector<std::string> known;
  const Slice* found = nullptr;
  for (const Slice& slice : device.slices) {
    known.push_back(slice.name);
    if (normalized_name(slice.name) == normalized_name(profile)) found = &slice;
  }
  if (found == nullptr)
    throw Error(
        ErrorKind::kNotFound,
        known.empty()
            ? fmt::format("{} cannot be divided into slices, as '{}' asks for", device.id,
                          shown_name(profile))
            : fmt::format("{} has no slice '{}'{}; it has {}", device.id, shown_name(profile),
                          did_you_mean(std::string(profile), known), join(known, ", ")));
  Device result = device;
  result.id = device.id + ":" + found->name;
  result.name = device.name + ", slice " + found->name;
  result.aliases.clear();
  result.slices.clear();
  result.is_slice = true;
  std::erase_if(result.links, [](const Link& link) { return link.kind != "pcie"; });
  const double memory = static_cast<double>(found->memory_eighths) / kMemorySlices;
  result.memory_bytes = found->memory_bytes;
  result.memory_bytes_per_s *= memory;
  Gpu gpu = device.gpu();
  gpu.l2_bytes = static_cast<int64_t>(static_cast<double>(gpu.l2_bytes) * memory);
  result.chip = gpu;
  return with_sms(result, found->sm_count);
}

Device parse_device(std::string_view json_text, const std::string& where) {
  const Json json = parse_json(json_text, where);
  const JsonObject file(json, where);
  const bool is_gpu = is_gpu_file(file);
  std::vector<std::string> known(kDeviceFields.begin(), kDeviceFields.end());
  if (is_gpu) known.insert(known.end(), kGpuFields.begin(), kGpuFields.end());
  file.reject_unknown(known);
  file.integer({"schema_version"}, 1, 1);
  Device device;
  device.id = name_under(file, "id");
  device.name = name_under(file, "name");
  device.vendor = name_under(file, "vendor");
  if (file.has("aliases")) device.aliases = file.strings("aliases");
  for (const std::string& alias : device.aliases) check_name(file, "aliases", alias);
  device.memory_bytes = sourced_integer(file, "memory_bytes", "B");
  device.memory_bytes_per_s = sourced_number(file, "memory_bytes_per_s", "B/s");
  if (is_gpu) {
    std::vector<std::string> missing;
    device.chip = read_gpu(file, missing);
    read_architecture(file, device, missing);
    if (file.has("slices")) device.slices = read_slices(file, device.gpu());
    // The laws that read what is missing are those of GPUs.
    if (!missing.empty() && !is_systolic(device.gpu().architecture))
      device.warnings.push_back(fmt::format("{}: fields that are missing, with the values used: {}",
                                            where, join(missing, ", ")));
    if (is_systolic(device.gpu().architecture))
      device.warnings.push_back(
          fmt::format("{}: no law describes the kernels of this chip: their times are the roofline "
                      "at the shares of the data sheet that GPUs of data centers reach",
                      device.name));
  } else {
    device.chip = Accelerator{};
  }
  if (file.has("links")) device.links = read_links(file);
  for (std::string& warning : contradictions(device, where))
    device.warnings.push_back(std::move(warning));
  return device;
}

}  // namespace tilecast
