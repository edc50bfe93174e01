// linear fp32 [4096x5120x1280] on nvidia-a100-sxm4-80gb
//
//   time       3.23 ms     80 % interval 2.75 ms to 4.75 ms
//   work       53.7 GFLOP  131 MB of memory traffic
//   bound      compute     85 % of what the data sheet allows
//   waves      24          tiles of 128x64
//   predictor  matmul

#include <fmt/format.h>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {

std::vector<std::string> kernel_warnings(const std::vector<KernelForecast>& kernels) {
  std::vector<std::string> warnings;
  for (const KernelForecast& k : kernels) {
    if (!k.extrapolated) continue;
    if (k.extrapolated_feature == "model")
      warnings.push_back(fmt::format(
          "the weights have no model for {} {}: its time is the roofline of the data sheet", k.op,
          k.dtype));
    else if (k.extrapolated_feature == "law")
      warnings.push_back(
          fmt::format("{} {} {} is extrapolated: the library's kernel was not measured, its time "
                      "is that of a formula",
                      k.op, k.dtype, sizes_text(k.shape)));
    else if (k.extrapolated_feature == "operator")
      warnings.push_back(
          fmt::format("{} {} {} is extrapolated: no kernel of this operator was measured, its time "
                      "is that of the model of other operators",
                      k.op, k.dtype, sizes_text(k.shape)));
    else if (k.extrapolated_feature == "links")
      warnings.push_back(
          fmt::format("{} {} {} is extrapolated: no collective was measured on links "
                      "of this kind, or on as many ranks",
                      k.op, k.dtype, sizes_text(k.shape)));
    else if (k.extrapolated_feature == "architecture" || k.extrapolated_feature == "vendor")
      warnings.push_back(fmt::format("{} {} {} is extrapolated: no GPU of this {} was measured",
                                     k.op, k.dtype, sizes_text(k.shape), k.extrapolated_feature));
    else
      warnings.push_back(
          fmt::format("{} {} {} is extrapolated: its {} is outside the training range", k.op,
                      k.dtype, sizes_text(k.shape), k.extrapolated_feature));
  }
  return warnings;
}

std::string kernel_table(const std::vector<KernelForecast>& kernels, const KernelQuestion& question,
                         const TableStyle& style) {
  std::string out;
  for (const KernelForecast& k : kernels) {
    if (!out.empty()) out += "\n";
    out += title_lines(
        fmt::format("{} {} {} on {}, {}'s kernels{}", k.op, k.dtype, sizes_text(k.shape),
                    question.gpu, question.software, clock_text(question.clocks)),
        style);
    TextTable table;
    table.rows = {
        {"time", format_seconds(k.latency_s),
         fmt::format("80 % interval {} to {}", format_seconds(k.low_s), format_seconds(k.high_s))},
        {"work", format_si(static_cast<double>(k.flops), "FLOP"),
         format_si(static_cast<double>(k.bytes), "B") + " of memory traffic"},
        {"bound", std::string(k.limit),
         fmt::format("{:.0f} % of what the data sheet allows", 100 * k.utilization_ratio)},
        {"waves", format_integer(static_cast<int64_t>(k.waves)),
         k.tile ? fmt::format("tiles of {}x{}", k.tile->first, k.tile->second) : ""},
        {"predictor", std::string(k.predictor), k.extrapolated ? "extrapolated" : ""}};
    for (const GivenSize& list : question.lists)
      table.rows.push_back({list.name, "", std::get<std::string>(list.value)});
    table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWrap};
    table.color = [&](size_t row, size_t column) {
      if (row == 2 && column == 1) return limit_color(k.limit);
      return row == 4 && column == 2 ? Color::kYellow : Color::kNone;
    };
    out += "\n";
    out += format_text_table(table, style, 2);
  }
  return out;
}

}  // namespace tilecast
