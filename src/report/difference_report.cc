// Two forecasts side by side:
//
// llama-3-8b: H100 and H200
//
//                  H100     H200  H200 / H100
//   latency     5.13 ms  3.93 ms         0.77
//
//   kernel      what it takes
//   mlp.up_proj ...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr const char* kNone = "-";

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : kNone;
}

/// "+1.20 ms", "-3.00 us".
std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + format_seconds(std::abs(seconds));
}

std::string signed_bytes(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + format_bytes(std::abs(bytes));
}

/// The headers of both: their names, or A and B where these are alike or long.
std::pair<std::string, std::string> headers(const Comparison& c) {
  constexpr size_t kLongest = 14;
  const bool shown = c.a.name != c.b.name && display_width(c.a.name) <= kLongest &&
                     display_width(c.b.name) <= kLongest;
  return shown ? std::pair(c.a.name, c.b.name) : std::pair(std::string("A"), std::string("B"));
}

std::string totals_table(const Comparison& c, const TableStyle& style) {
  const auto [a, b] = headers(c);
  TextTable table{.header = {"", a, b, "ratio"}, .right = {false, true, true, true}};
  const auto ratio = [](double x, double y) {
    return x > 0 ? fmt::format("{:.2f}", y / x) : std::string(kNone);
  };
  const auto add_seconds = [&](const char* name, std::optional<double> x, std::optional<double> y) {
    if (!x && !y) return;
    table.rows.push_back(
        {name, seconds_text(x), seconds_text(y), x && y ? ratio(*x, *y) : std::string(kNone)});
  };
  add_seconds("latency", c.a.latency_s, c.b.latency_s);
  table.rows.push_back({"  80 % interval", span_text(c.a.latency_s), span_text(c.b.latency_s),
                        c.overlaps() ? "~" : ""});
  add_seconds("time to first token", c.a.ttft_s, c.b.ttft_s);
  add_seconds("time per output token", c.a.tpot_s, c.b.tpot_s);
  const auto count = [](const std::optional<double>& x) {
    return x ? format_count(*x) : std::string(kNone);
  };
  if (c.a.tokens_per_s || c.b.tokens_per_s)
    table.rows.push_back({"tokens/s", count(c.a.tokens_per_s), count(c.b.tokens_per_s),
                          c.a.tokens_per_s && c.b.tokens_per_s
                              ? ratio(*c.a.tokens_per_s, *c.b.tokens_per_s)
                              : std::string(kNone)});
  const auto memory = [](const ComparedForecast& f) {
    return format_bytes(f.peak_bytes) + (f.fits ? "" : " !");
  };
  table.rows.push_back(
      {"memory", memory(c.a), memory(c.b),
       ratio(static_cast<double>(c.a.peak_bytes), static_cast<double>(c.b.peak_bytes))});
  std::string out = format_text_table(table, style, 2);
  if (c.overlaps()) out += "  ~ the intervals overlap: which is faster is not certain\n";
  if (!c.a.fits || !c.b.fits) out += "  ! does not fit\n";
  return out;
}

std::string kernels_table(const Comparison& c, const TableStyle& style) {
  const auto [a, b] = headers(c);
  TextTable table{.header = {"kernel", "operator", a, b, "change"},
                  .right = {false, false, true, true, true},
                  .fit = {Fit::kFront, Fit::kEnd}};
  for (size_t i = 0; i < c.kernels.size() && i < style.rows; ++i) {
    const KernelDifference& k = c.kernels[i];
    const std::string mark = k.phase == "forward"    ? ""
                             : k.phase == "backward" ? "bwd "
                                                     : k.phase + " ";
    table.rows.push_back({mark + k.name, k.op, seconds_text(k.a_s), seconds_text(k.b_s),
                          signed_seconds(k.difference_s())});
  }
  std::string out = format_text_table(table, style);
  double rest = 0;
  for (size_t i = style.rows; i < c.kernels.size(); ++i) rest += c.kernels[i].difference_s();
  if (c.kernels.size() > style.rows)
    out += fmt::format("{} more: {}\n", c.kernels.size() - style.rows, signed_seconds(rest));
  return out;
}

std::string parts_table(const Comparison& c, const TableStyle& style) {
  const auto [a, b] = headers(c);
  TextTable table{.header = {"memory", a, b, "change"}, .right = {false, true, true, true}};
  for (const MemoryDifference& part : c.memory)
    table.rows.push_back(
        {part.name, format_bytes(part.a_bytes), format_bytes(part.b_bytes),
         part.a_bytes == part.b_bytes ? "" : signed_bytes(part.b_bytes - part.a_bytes)});
  return format_text_table(table, style);
}

}  // namespace

std::string difference_table(const Comparison& c, const TableStyle& style) {
  const auto side = [](const ComparedForecast& f) {
    return fmt::format("{} on {}, {}", f.model, without_vendor(f.gpu), f.dtype);
  };
  const auto [a, b] = headers(c);
  std::string out = title_lines(fmt::format("{}: {}", a, side(c.a)), style) +
                    title_lines(fmt::format("{}: {}", b, side(c.b)), style) + "\n" +
                    totals_table(c, style) + "\n";
  if (!c.options.empty()) {
    TextTable table{.header = {"option", a, b}, .fit = {Fit::kWhole, Fit::kWrap, Fit::kWrap}};
    for (const OptionDifference& o : c.options)
      table.rows.push_back({o.option, o.a.empty() ? kNone : o.a, o.b.empty() ? kNone : o.b});
    out += format_text_table(table, style) + "\n";
  }
  return out + kernels_table(c, style) + "\n" + parts_table(c, style);
}

}  // namespace tilecast
