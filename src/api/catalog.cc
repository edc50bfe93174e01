#include <fmt/format.h>

#include "base/text.h"
#include "devices/registry.h"
#include "importers/model.h"
#include "ops/op_def.h"
#include "tilecast/forecast.h"

namespace tilecast {

Catalog gpu_catalog() {
  Catalog catalog{{"id", "memory", "bandwidth", "SMs", "fp32", "bf16 matrix", "power", "aliases"},
                  {}};
  for (const Device& d : bundled_devices()) {
    const double bf16 = d.matrix_peak(DType::kBf16);
    catalog.entries.push_back(
        {d.id,
         {format_bytes(d.memory_bytes), format_si(d.memory_bytes_per_s, "B/s"),
          std::to_string(d.sm_count), format_si(d.matmul_peak(DType::kFp32), "FLOP/s"),
          bf16 > 0 ? format_si(bf16, "FLOP/s") : "-", fmt::format("{:.0f} W", d.board_power_w),
          join(d.aliases, ", ")}});
  }
  return catalog;
}

Catalog model_catalog() {
  Catalog catalog{{"name", "family", "parameters", "positions", "note"}, {}};
  for (const std::string& name : bundled_models()) {
    const Model model = load_model(name);
    const Graph graph = model.build({.batch = 1, .seq = 1});
    catalog.entries.push_back(
        {name,
         {model.family, format_si(static_cast<double>(graph.parameter_count()), ""),
          model.max_positions ? std::to_string(*model.max_positions) : "-", model.note}});
  }
  return catalog;
}

Catalog op_catalog() {
  Catalog catalog{{"operator", "PyTorch", "ONNX", "what it does"}, {}};
  for (const OpDef& op : op_table())
    catalog.entries.push_back({std::string(op.name),
                               {std::string(op.aten), op.onnx.empty() ? "-" : std::string(op.onnx),
                                std::string(op.doc)}});
  return catalog;
}

}  // namespace tilecast
