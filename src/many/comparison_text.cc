// Table, JSON and CSV of the same request on several GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/csv.h"
#include "base/text.h"
#include "report/kernel_text.h"
#include "report/price_text.h"
#include "report/serving_text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "scenario/extrapolated.h"
#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// Times that depend on how long the load lasts are not compared.
bool is_comparable(const ComparedGpu& row) { return row.has_time() && row.keeps_up; }

struct ComparisonColumn {
  std::string header;
  bool right = true;
  std::function<std::string(const ComparedGpu&)> cell;
};

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : "-";
}

std::string ratio_text(const ComparedGpu& row, const ComparedGpu& first) {
  if (!is_comparable(row) || !is_comparable(first)) return "-";
  return fmt::format("{}{:.2f}", row.overlaps_row_above.value_or(false) ? "~" : "",
                     *row.totals.latency_s / *first.totals.latency_s);
}

/// "-6 +11 %".
std::string interval_text(const ComparedGpu& row) {
  if (!is_comparable(row)) return "-";
  const double time = *row.totals.latency_s;
  const auto percent = [&](double bound) { return 100 * (bound / time - 1); };
  return fmt::format("{:.0f} +{:.0f} %", std::min(percent(row.totals.latency_s->low), -0.0),
                     std::max(percent(row.totals.latency_s->high), 0.0));
}

/// GiB needed and usable: "15.9/79.0"; "?74.1/79.0" if that is tight, "!52.1/31.6" if it is too
/// much.
std::string memory_text(const ComparedGpu& row) {
  constexpr double kGiB = 1 << 30;
  const auto gib = [](int64_t bytes) { return format_count(static_cast<double>(bytes) / kGiB); };
  return fmt::format("{}{}/{}",
                     !row.fits()           ? "!"
                     : row.memory_is_tight ? "?"
                                           : "",
                     gib(*row.totals.peak_bytes), gib(row.usable_bytes));
}

/// Whether the GPUs run the model in different dtypes.
bool dtypes_differ(const GpuComparison& c) {
  return std::any_of(c.gpus.begin(), c.gpus.end(), [&](const ComparedGpu& row) {
    return !row.totals.error && row.totals.dtype != c.gpus.front().totals.dtype;
  });
}

/// Whether a row has a total of that kind.
bool has_total(const GpuComparison& c, std::optional<double> ForecastTotals::* total) {
  return std::any_of(c.gpus.begin(), c.gpus.end(),
                     [&](const ComparedGpu& row) { return (row.totals.*total).has_value(); });
}

bool has_goodput(const GpuComparison& c) {
  return std::any_of(c.gpus.begin(), c.gpus.end(),
                     [](const ComparedGpu& row) { return row.goodput_requests_per_s; });
}

/// By what the rows are sorted: "those that fit first, then the fastest".
std::string order_text(const GpuComparison& c) {
  const auto differs = [&](auto&& is) {
    const auto holds = [&](const ComparedGpu& row) { return !row.totals.error && is(row); };
    const auto fails = [&](const ComparedGpu& row) { return !row.totals.error && !is(row); };
    return std::any_of(c.gpus.begin(), c.gpus.end(), holds) &&
           std::any_of(c.gpus.begin(), c.gpus.end(), fails);
  };
  std::vector<std::string> order;
  if (differs([](const ComparedGpu& row) { return row.fits(); })) order.push_back("those that fit");
  if (differs([](const ComparedGpu& row) { return row.keeps_up; }))
    order.push_back("those that keep up");
  order.push_back(has_goodput(c)      ? "the most goodput"
                  : !c.prices.empty() ? "the cheapest"
                                      : "the fastest");
  order.front() += " first";
  return join(order, ", then ");
}

/// Watts and energy, and what they cost where prices were given.
void add_power_columns(std::vector<ComparisonColumn>& columns, const GpuComparison& c) {
  using Total = std::optional<double> ForecastTotals::*;
  const auto add = [&](const std::string& header, Total total, const char* format) {
    columns.push_back({header, true, [total, format](const ComparedGpu& r) {
                         const std::optional<double>& value = r.totals.*total;
                         return value ? fmt::format(fmt::runtime(format), *value)
                                      : std::string("-");
                       }});
  };
  if (!has_total(c, &ForecastTotals::power_w)) return;
  add("W", &ForecastTotals::power_w, "{:.0f}");
  if (has_total(c, &ForecastTotals::energy_per_token_j))
    add("J/tok", &ForecastTotals::energy_per_token_j, "{:.3g}");
  else
    add("J", &ForecastTotals::energy_j, "{:.3g}");
  const std::string sign = currency_sign(c.prices);
  if (has_total(c, &ForecastTotals::cost_per_million_tokens))
    add(sign + "/Mtok", &ForecastTotals::cost_per_million_tokens, "{:.3g}");
  else if (has_total(c, &ForecastTotals::cost))
    add(sign, &ForecastTotals::cost, "{:.3g}");
}

std::vector<ComparisonColumn> columns_of(const GpuComparison& c, const ComparedGpu& first) {
  using Row = const ComparedGpu&;
  std::vector<ComparisonColumn> columns = {
      {"GPU", false, [](Row r) { return without_vendor(r.gpu); }}};
  if (c.request.kind != RequestKind::kPass) {
    columns.push_back({"TTFT", true, [](Row r) { return seconds_text(r.totals.ttft_s); }});
    columns.push_back({"TPOT", true, [](Row r) {
                         return seconds_text(r.totals.tpot_s) + (r.keeps_up ? "" : "^");
                       }});
    columns.push_back({"tok/s", true, [](Row r) {
                         return r.totals.tokens_per_s ? format_count(*r.totals.tokens_per_s) : "-";
                       }});
  } else {
    columns.push_back({"latency", true, [](Row r) { return seconds_text(r.totals.latency_s); }});
  }
  if (has_goodput(c))
    columns.push_back({"good/s", true, [](Row r) {
                         return r.goodput_requests_per_s ? format_count(*r.goodput_requests_per_s)
                                                         : "-";
                       }});
  columns.push_back({"80 %", true, interval_text});
  columns.push_back({"ratio", true, [&first](Row r) {
                       return ratio_text(r, first) + (is_extrapolated(r.warnings) ? "*" : " ");
                     }});
  add_power_columns(columns, c);
  if (dtypes_differ(c)) columns.push_back({"dtype", false, [](Row r) { return *r.totals.dtype; }});
  columns.push_back({"GiB", true, memory_text});
  return columns;
}

std::string request_text(const GpuComparison& c) {
  const Request& r = c.request;
  std::string text;
  if (r.kind == RequestKind::kPass) {
    text = fmt::format("{}, batch {}", choice_name(r.mode), format_integer(r.batch));
    if (!c.input.empty()) text += ", " + c.input;
  } else {
    text = fmt::format("prompt {}, output {}", format_integer(r.prompt), format_integer(r.output));
    text += r.kind == RequestKind::kServe ? ", server under load"
                                          : ", batch " + format_integer(r.batch);
  }
  if (!c.gpus.front().totals.error && !dtypes_differ(c))
    text += ", " + *c.gpus.front().totals.dtype;
  return text + clock_text(r.execution.clocks);
}

/// The GPUs of each warning that no mark of the table stands for.
std::vector<std::pair<std::string, std::vector<std::string>>> other_warnings(
    const GpuComparison& c) {
  const auto is_marked = [](WarningCode code) {
    return says_extrapolated(code) || code == WarningCode::kDoesNotFit ||
           code == WarningCode::kOverloaded;
  };
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const ComparedGpu& row : c.gpus) {
    for (const Warning& warning : row.warnings) {
      if (is_marked(warning.code)) continue;
      const std::string text = warning_text(warning);
      auto same =
          std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.first == text; });
      if (same == all.end()) same = all.insert(all.end(), {text, {}});
      same->second.push_back(without_vendor(row.gpu));
    }
  }
  return all;
}

/// Explanations of columns and marks, warnings, and why there is no forecast for some GPUs.
std::string comparison_notes(const GpuComparison& c, const TableStyle& style) {
  std::string out;
  const auto note = [&](const std::string& text) { out += wrapped(text, style); };
  const auto any = [&](auto&& is) {
    return std::any_of(c.gpus.begin(), c.gpus.end(),
                       [&](const ComparedGpu& row) { return !row.totals.error && is(row); });
  };
  const bool server = c.request.kind == RequestKind::kServe;
  const char* time = c.request.kind == RequestKind::kPass ? "of the latency"
                     : server                             ? "of the mean time of a request"
                                                          : "of the time for all tokens";
  note(
      fmt::format("80 %: interval {}; ratio: that time over the first row's; GiB: needed on one "
                  "GPU, and what a program can use there",
                  time));
  if (has_total(c, &ForecastTotals::power_w))
    note(std::string("W: mean power of one GPU's board; J: energy of all of them") +
         (has_total(c, &ForecastTotals::cost)
              ? fmt::format("; {}: cost, as far as prices were given", currency_sign(c.prices))
              : "") +
         "; narrow tables leave columns out");
  if (server) note("TTFT, TPOT: 99th percentiles of the steady part");
  if (has_goodput(c)) note("good/s: requests a second that meet the limits on TTFT and TPOT");
  if (any([](const ComparedGpu& row) { return row.overlaps_row_above.value_or(false); }))
    note(
        "~ the interval overlaps that of the row above: which of these two GPUs is faster is not "
        "certain");
  if (any([](const ComparedGpu& row) { return row.has_time() && !row.keeps_up; }))
    note("^ does not keep up with the load: its times grow with the length of the run");
  if (any([](const ComparedGpu& row) { return is_extrapolated(row.warnings); }))
    note("* part of the time is extrapolated: the forecast of one GPU (--gpu) says which");
  if (any([](const ComparedGpu& row) { return row.memory_is_tight; }))
    note(
        "? hardly fits: less than a tenth of what is needed is free, which the caching allocator "
        "may be unable to use: the forecast of one GPU (--gpu) says more");
  if (any([](const ComparedGpu& row) { return !row.fits(); }))
    note("! does not fit: the forecast of one GPU (--gpu) says what would");
  for (const auto& [text, gpus] : other_warnings(c)) note(join(gpus, ", ") + ": " + text);
  out += price_lines(c.prices, style);
  for (const ComparedGpu& row : c.gpus)
    if (row.totals.error) note(fmt::format("{}: no forecast: {}", row.gpu, *row.totals.error));
  return out;
}

}  // namespace

std::string comparison_table(const GpuComparison& c, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{}: {}{}; {} GPU{}, {}", c.model, request_text(c),
                  c.gpus_each > 1 ? fmt::format(", {} of each", format_integer(c.gpus_each)) : "",
                  c.gpus.size(), c.gpus.size() == 1 ? "" : "s", order_text(c)),
      style);
  if (!c.assumptions.empty()) out += assumes_lines(c.assumptions, style);
  const std::vector<ComparisonColumn> columns = columns_of(c, c.gpus.front());
  TextTable table;
  for (const ComparisonColumn& column : columns) {
    table.header.push_back(column.header);
    table.right.push_back(column.right);
  }
  std::vector<bool> fit;
  for (const ComparedGpu& row : c.gpus) {
    if (row.totals.error) continue;
    std::vector<std::string> cells;
    for (const ComparisonColumn& column : columns) cells.push_back(column.cell(row));
    table.rows.push_back(std::move(cells));
    fit.push_back(row.fits());
  }
  table.fit = {Fit::kFront};
  // What the rows are ranked by stays.
  std::vector<std::string_view> may_go = {"W", "J/tok", "J"};
  if (c.prices.empty()) may_go.insert(may_go.end(), {"$/Mtok", "$"});
  table = in_one_line(std::move(table), style, 0, may_go);
  const size_t memory = table.header.size() - 1;
  table.color = [&](size_t row, size_t column) {
    return column == memory && !fit[row] ? Color::kRed : Color::kNone;
  };
  if (!table.rows.empty()) out += "\n" + format_text_table(table, style) + "\n";
  return out + comparison_notes(c, style);
}

}  // namespace tilecast
