#include "devices/registry.h"
#include "importers/model.h"
#include "ops/op_def.h"
#include "software/software.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

std::vector<std::pair<std::string, double>> rates(const std::array<double, kDTypeCount>& peaks) {
  std::vector<std::pair<std::string, double>> result;
  for (size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i] > 0) result.emplace_back(dtype_name(static_cast<DType>(i)), peaks[i]);
  }
  return result;
}

std::vector<std::string> choices_of(const SizeDef& size) {
  if (!size.choices.empty()) return {size.choices.begin(), size.choices.end()};
  if (size.type == AttributeType::kScheme) return scheme_names();
  return size.type == AttributeType::kDType ? dtype_names() : std::vector<std::string>{};
}

std::vector<SizeEntry> size_entries(const OpDef& op) {
  std::vector<SizeEntry> entries;
  for (const SizeDef& size : op.sizes)
    entries.push_back({.name = std::string(size.name),
                       .description = std::string(size.doc),
                       .other_names = {size.other_names.begin(), size.other_names.end()},
                       .default_value = size.default_value ? format_value(*size.default_value)
                                                           : std::string(size.default_rule),
                       .choices = choices_of(size),
                       .min = size.min,
                       .max = size.max,
                       .is_switch = size.is_switch(),
                       .is_list = size.type == AttributeType::kIntegers});
  return entries;
}

}  // namespace

std::vector<GpuEntry> gpu_catalog() {
  std::vector<GpuEntry> entries;
  for (const Device& d : bundled_devices()) {
    const Gpu* gpu = d.as_gpu();
    if (gpu == nullptr) continue;
    entries.push_back({.id = d.id,
                       .name = d.name,
                       .vendor = d.vendor,
                       .aliases = d.aliases,
                       .memory_bytes = d.memory_bytes,
                       .memory_bytes_per_s = d.memory_bytes_per_s,
                       .sm_count = gpu->sm_count,
                       .boost_clock_hz = gpu->boost_clock_hz,
                       .l2_bytes = gpu->l2_bytes,
                       .power_w = gpu->board_power_w,
                       .architecture = std::string(choice_word(gpu->architecture)),
                       .memory_type = std::string(choice_word(gpu->memory_type)),
                       .vector_flops_per_s = rates(gpu->vector_flops_per_s),
                       .matrix_flops_per_s = rates(gpu->matrix_flops_per_s),
                       .slices = {}});
    for (const Slice& slice : d.slices) entries.back().slices.push_back(slice.name);
  }
  return entries;
}

std::vector<ModelEntry> model_catalog() {
  std::vector<ModelEntry> entries;
  for (const std::string& name : bundled_models()) {
    const Model model = load_model(name);
    entries.push_back({.name = name,
                       .family = model.family,
                       .parameters = model.build({.batch = 1, .seq = 1}).parameter_count(),
                       .positions = model.max_positions,
                       .note = model.note});
  }
  return entries;
}

std::vector<OpEntry> op_catalog() {
  std::vector<OpEntry> entries;
  for (const OpDef& op : op_table())
    entries.push_back({std::string(op.name), std::string(op.aten), std::string(op.onnx),
                       std::string(op.doc), size_entries(op)});
  return entries;
}

std::vector<std::string> kernel_dtypes() { return computed_dtype_names(); }

std::vector<std::string> kernel_software() { return software_names(); }

}  // namespace tilecast
