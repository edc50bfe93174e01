// The output of 'tilecast doctor', and of 'tilecast gpus', 'clusters' and 'models' with one name.

#include <fmt/format.h>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string megahertz(const std::optional<double>& hz) {
  return hz ? fmt::format("{:.0f} MHz", *hz / 1e6) : "not stated";
}

void add_card(const Installation::Card& card, Lines& lines) {
  lines.add("GPU", card.name,
            card.device.empty() ? "no device file has this name: 'tilecast gpus' lists them, "
                                  "docs/guide/add_a_gpu.md adds one"
                                : card.device + ", driver " + card.driver);
  lines.add("  clock", megahertz(card.clock_hz), "now; at most " + megahertz(card.max_clock_hz));
  for (const std::string& difference : card.differences) lines.add("", "differs", difference);
}

}  // namespace

std::string data_file_table(const DataFile& file, const TableStyle& style) {
  TextTable table;
  table.header = {"field", "value", "source"};
  table.fit = {Fit::kWhole, Fit::kWrap, Fit::kWrap};
  bool sources = false;
  for (const DataFile::Field& field : file.values) {
    table.rows.push_back({field.name, field.value, field.source});
    sources = sources || !field.source.empty();
  }
  if (!sources) {
    table.header.pop_back();
    table.fit = {Fit::kWhole, Fit::kWrap};
    for (std::vector<std::string>& row : table.rows) row.pop_back();
  }
  return format_text_table(table, style);
}

std::string installation_table(const Installation& installation, const TableStyle& style) {
  Lines lines;
  lines.add("Tilecast", installation.version, "");
  for (const Installation::WeightsFile& file : installation.weights)
    lines.add("weights", file.name,
              fmt::format("{}, checksum {}{}", format_bytes(file.bytes), file.checksum,
                          file.trained_on.empty() ? "" : ", trained on " + file.trained_on));
  for (const Installation::Card& card : installation.gpus) add_card(card, lines);
  if (installation.gpus.empty())
    lines.add("GPU", "none", "found by nvidia-smi or rocm-smi; forecasts need none");
  lines.add("model cache", fmt::format("{} models", installation.hub_models),
            installation.hub_cache);
  for (const Installation::Part& part : installation.parts)
    lines.add(part.name, part.found ? "found" : "not found", part.use);
  return lines.text(style);
}

}  // namespace tilecast
