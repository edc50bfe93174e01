// conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F on amd-mi50
//
//   solver       time     80 % interval       listed  ranked
//   ConvAsm1x1U  0.61 ms  0.52 ms to 0.73 ms    97 %  0.62 ms
//
//   parameters of                     probability
//   ConvAsm1x1U    1,16,4,64,1,4,1,4       10.9 %
//
//   fallback (order assumed)  GemmFwd1x1_0_1 1.10 ms, 1.80 times as long (80 % interval 1.5 to 2.1)

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string gain_text(const TuneForecast& f) {
  if (f.fallback.name.empty())
    return "none: MIOpen has no solver for it without a database or a search";
  const std::string time =
      fmt::format("{} {}", f.fallback.name, format_seconds(f.fallback.latency_s));
  if (f.gain_ratio == 1) return time + ", the same";
  return fmt::format("{}, {:.2f} times as long (80 % interval {:.2f} to {:.2f})", time,
                     f.gain_ratio.value, f.gain_ratio.low, f.gain_ratio.high);
}

TextTable solver_table(const TuneForecast& f) {
  TextTable table{.header = {"solver", "time", "80 % interval", "listed", "ranked"},
                  .right = {false, true, false, true, true},
                  .fit = {Fit::kFront}};
  for (const SolverForecast& s : f.solvers)
    table.rows.push_back({s.name, format_seconds(s.latency_s), span_text(s.latency_s),
                          fmt::format("{:.0f} %", 100 * s.listed_probability),
                          format_seconds(s.ranked_s)});
  return table;
}

/// All sets of the best solver, or of the only one; of the others the best set.
TextTable parameters_table(const TuneForecast& f) {
  TextTable table{.header = {"parameters of", "", "probability"},
                  .right = {false, false, true},
                  .fit = {Fit::kFront, Fit::kWrap}};
  for (const SolverForecast& s : f.solvers) {
    const size_t sets = &s == &f.solvers.front() ? s.parameters.size() : 1;
    for (size_t i = 0; i < std::min(sets, s.parameters.size()); ++i)
      table.rows.push_back(
          {i == 0 ? s.name : "", s.parameters[i].text,
           fmt::format("{:.1f} %", 100 * std::exp(s.parameters[i].log_probability))});
  }
  return table;
}

}  // namespace

std::string tune_table(const std::vector<TuneForecast>& forecasts, const TableStyle& style) {
  std::string out;
  for (const TuneForecast& f : forecasts) {
    if (!out.empty()) out += "\n";
    const std::string name = f.name.empty() ? "" : f.name + ": ";
    out += title_lines(fmt::format("{}{} on {}", name, f.problem, f.gpu), style) + "\n";
    out += format_text_table(solver_table(f), style, 2) + "\n";
    if (const TextTable table = parameters_table(f); !table.rows.empty())
      out += format_text_table(table, style, 2) + "\n";
    TextTable fallback;
    fallback.rows = {{"fallback (order assumed)", gain_text(f)}};
    fallback.fit = {Fit::kWhole, Fit::kWrap};
    out += format_text_table(fallback, style, 2);
  }
  out += "\n";
  out += wrapped(
      "Sorted by 'ranked': the time, longer for solvers that a search is less likely to list among "
      "the fastest ('listed').",
      style);
  return out;
}

}  // namespace tilecast
