// The output of 'tilecast gpus', 'models' and 'ops'.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

using Rates = std::vector<std::pair<std::string, double>>;

/// Peak TFLOP/s of the faster unit that multiplies matrices of this dtype; "-": not supported.
std::string tera(const GpuEntry& gpu, const std::string& dtype) {
  double best = 0;
  for (const Rates* rates : {&gpu.vector_flops_per_s, &gpu.matrix_flops_per_s}) {
    for (const auto& [name, rate] : *rates) {
      if (name == dtype) best = std::max(best, rate);
    }
  }
  return best > 0 ? format_count(best / 1e12) : "-";
}

/// One operator with the sizes of its kernel.
std::string op_text(const OpEntry& op, const TableStyle& style) {
  Lines lines;
  lines.add(op.name, "", op.description);
  if (!op.pytorch.empty()) lines.add("  PyTorch", op.pytorch, "");
  if (!op.onnx.empty()) lines.add("  ONNX", op.onnx, "");
  for (const SizeEntry& size : op.sizes) {
    const std::string value = size.default_value.empty() ? "required" : size.default_value;
    lines.add(
        "  " + size.name, value,
        size.description + (size.choices.empty() ? "" : " (" + join(size.choices, ", ") + ")"));
  }
  return lines.text(style);
}

}  // namespace

std::string gpus_table(const std::vector<GpuEntry>& gpus, const TableStyle& style) {
  TextTable table;
  table.header = {"id", "GiB", "TB/s", "SMs", "fp32", "bf16", "W", "aliases"};
  table.right = {false, true, true, true, true, true, true, false};
  table.fit = std::vector<Fit>(table.header.size(), Fit::kWhole);
  table.fit.back() = Fit::kEnd;
  table.min_widths = std::vector<size_t>(table.header.size(), 0);
  table.min_widths.back() = 18;  // room for at least one alias
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  for (const GpuEntry& g : gpus)
    table.rows.push_back({g.id, fmt::format("{:.0f}", static_cast<double>(g.memory_bytes) / kGiB),
                          fmt::format("{:.2f}", g.memory_bytes_per_s / 1e12),
                          std::to_string(g.sm_count), tera(g, "fp32"), tera(g, "bf16"),
                          format_integer(static_cast<int64_t>(g.power_w)), join(g.aliases, ", ")});
  return format_text_table(table, style) + "\n" +
         wrapped(
             "GiB of memory, TB/s to it; fp32 and bf16: peak TFLOP/s of matrix products, without "
             "sparsity; W of the board. --format json has all aliases and dtypes.",
             style);
}

std::string models_table(const std::vector<ModelEntry>& models, const TableStyle& style) {
  const bool notes = std::any_of(models.begin(), models.end(),
                                 [](const ModelEntry& m) { return !m.note.empty(); });
  TextTable table;
  table.header = {"name", "family", "parameters", "positions"};
  table.right = {false, false, true, true, false};
  table.fit = {Fit::kWhole, Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kWrap};
  if (notes) table.header.push_back("note");
  for (const ModelEntry& m : models) {
    table.rows.push_back({m.name, m.family, format_si(static_cast<double>(m.parameters), ""),
                          m.positions ? format_integer(*m.positions) : "-"});
    if (notes) table.rows.back().push_back(m.note);
  }
  return format_text_table(table, style);
}

std::string ops_table(const std::vector<OpEntry>& ops, const TableStyle& style) {
  if (ops.size() == 1) return op_text(ops.front(), style);
  TextTable table;
  table.header = {"operator", "PyTorch", "ONNX", "what it does"};
  table.fit = {Fit::kWhole, Fit::kFront, Fit::kFront, Fit::kWrap};
  for (const OpEntry& op : ops)
    table.rows.push_back({op.name, op.pytorch.empty() ? "-" : op.pytorch,
                          op.onnx.empty() ? "-" : op.onnx, op.description});
  return format_text_table(table, style);
}

}  // namespace tilecast
