// find_gfx906.csv: MIOpen's solvers on amd-mi50
//
//   rows             problems  with a choice  slow-down  within 5 %  time error, mean  median  ...
//   all                52,345          5,257      1.026      91.2 %            16.5 %   8.7 %

#include <fmt/format.h>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string percent_text(double value) { return fmt::format("{:.1f} %", value); }

}  // namespace

std::string tune_evaluation_table(const std::vector<TuneEvaluation>& files,
                                  const TableStyle& style) {
  std::string out;
  for (const TuneEvaluation& file : files) {
    if (!out.empty()) out += "\n";
    out +=
        title_lines(fmt::format("{}: MIOpen's solvers on {}{}", file.file, file.gpu,
                                file.extrapolated ? ", whose architecture was not trained on" : ""),
                    style) +
        "\n";
    TextTable table;
    table.header = {"rows",  "problems",   "with a choice", "slow-down",      "within 5 %",
                    "times", "mean error", "median",        "first is listed"};
    table.right = {false, true, true, true, true, true, true, true, true};
    for (const TuneErrors& e : file.errors)
      table.rows.push_back(
          {e.rows, std::to_string(e.problems), std::to_string(e.problems_with_a_choice),
           fmt::format("{:.3f}", e.slow_down_ratio), percent_text(e.within_5_percent),
           std::to_string(e.times), percent_text(e.mape_percent), percent_text(e.median_percent),
           percent_text(e.first_listed_percent)});
    out += format_text_table(table, style, 2);
    if (file.errors.front().unranked_problems > 0)
      out += fmt::format("\n  {} problems have no solver that the program offers for them\n",
                         file.errors.front().unranked_problems);
    if (file.unknown_rows > 0)
      out += fmt::format("\n  {} rows of unknown solvers do not count: {}\n", file.unknown_rows,
                         join(file.unknown_solvers, ", "));
  }
  return out;
}

}  // namespace tilecast
