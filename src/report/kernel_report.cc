// linear fp32 [4096x5120x1280] on nvidia-a100-sxm4-80gb, pytorch's kernels
//
//   time          3.02 ms       80 % interval 2.88 ms to 3.23 ms
//   work          53.7 GFLOP    17.8 TFLOP/s
//   traffic       131 MB        43.5 GB/s
//   bound         compute       91 % of what the data sheet allows: 2.75 ms
//   law           3.10 ms       by work, data sheet and software; compute and memory overlap
//     compute     3.08 ms       blocks on 86 % of the multiprocessors, on average over the waves
//     ...

#include <fmt/format.h>

#include <cmath>

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

namespace {

/// The law and its terms, and what measurements taught.
void add_law(Lines& lines, const KernelExplanation& why) {
  if (!why.law_s) return;
  const double sum = *why.start_s + *why.compute_s + *why.memory_s;
  const bool adds_up = std::abs(sum - *why.law_s) < 0.005 * *why.law_s;
  lines.add("law", format_seconds(*why.law_s),
            fmt::format("by work, data sheet and software; {}",
                        adds_up ? "the sum of its parts" : "compute and memory overlap"));
  lines.add("  start", format_seconds(*why.start_s), "launches, begin and end");
  lines.add(
      "  compute", format_seconds(*why.compute_s),
      *why.busy_ratio < 0.995
          ? fmt::format("blocks on {:.0f} % of the multiprocessors, on average over the waves",
                        100 * *why.busy_ratio)
          : "");
  if (*why.power_s > 0.005 * *why.law_s)
    lines.add("  power", format_seconds(*why.power_s), "of the law: the power limit of the board");
  lines.add("  memory", format_seconds(*why.memory_s), "from DRAM and L2");
  const std::string rows = why.measured == "device" ? "its rows hold this software and precision"
                           : why.measured == "class"
                               ? "rows of this software and precision are from others of its class"
                           : why.measured == "other devices"
                               ? "rows of this software and precision are from other architectures"
                               : "no rows of this software and precision";
  lines.add("learned", fmt::format("x {:.2f}", *why.learned_factor),
            "forecast over law, by measurements of other shapes");
  lines.add("nearest",
            why.similarity ? fmt::format("{:.0f} % alike", 100 * *why.similarity) : "none",
            why.nearest_gpu.empty()
                ? rows
                : fmt::format("{}: {}{}", why.nearest_gpu, rows,
                              why.outside.empty() ? ", and sizes around these"
                                                  : "; outside their range: " + why.outside));
}

void add_lines(Lines& lines, const KernelForecast& k, const KernelExplanation& why) {
  lines.add("time", format_seconds(k.latency_s),
            fmt::format("80 % interval {}{}", span_text(k.latency_s),
                        k.extrapolated ? "; extrapolated" : ""));
  lines.add("work", format_si(static_cast<double>(k.flops), "FLOP"),
            format_si(why.flops_per_s, "FLOP/s"));
  lines.add("traffic", format_si(static_cast<double>(k.bytes), "B"),
            format_si(why.bytes_per_s, "B/s") + " of memory traffic");
  // "latency" is also what neither rate of the data sheet explains, however long it takes.
  const bool unexplained =
      k.limit == "latency" && why.start_s && *why.start_s < 0.5 * k.latency_s.value;
  lines.add("bound", std::string(k.limit),
            fmt::format("{:.0f} % of what the data sheet allows{}{}", 100 * k.utilization_ratio,
                        why.roofline_s > 0 ? ": " + format_seconds(why.roofline_s) : "",
                        unexplained ? "; its rates explain little of the time, see the law" : ""),
            limit_color(k.limit));
  add_law(lines, why);
  lines.add("predictor", std::string(k.predictor), "");
}

}  // namespace

std::string kernel_table(const KernelAnswer& answer, const TableStyle& style) {
  std::string out;
  const KernelQuestion& asked = answer.asked;
  for (size_t i = 0; i < answer.kernels.size(); ++i) {
    const KernelForecast& k = answer.kernels[i];
    const KernelExplanation& why = answer.explanations[i];
    if (!out.empty()) out += "\n";
    const std::string clock =
        why.clock_hz ? fmt::format(" at {:.0f} MHz", *why.clock_hz / 1e6) : "";
    out += title_lines(fmt::format("{} {} {} on {}{}, {}'s kernels{}", k.op, k.dtype,
                                   sizes_text(k.shape), asked.gpu, clock, asked.software,
                                   asked.clocks == "boost" ? "" : clock_text(asked.clocks)),
                       style) +
           "\n";
    Lines lines;
    add_lines(lines, k, why);
    for (const GivenSize& list : asked.lists)
      lines.add(list.name, "", std::get<std::string>(list.value));
    out += lines.text(style);
  }
  return out;
}

}  // namespace tilecast
