// Reports: `--format html`. The page holds the answer as JSON, and web/ shows it:
//
//   <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-…';
//   …"> <style>…</style> <noscript><pre>the table</pre></noscript> <script type="application/json"
//   id="report">{"answer": …, "command": …}</script> <script type="module">…</script>
//
// Names of models and kernels may hold markup: in the JSON no "<" is left, so none can end the
// script, and web/dom.js makes text nodes of them.

#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "report/page_script.h"

namespace tilecast {
namespace {

std::string replaced(std::string_view text, const std::map<char, std::string_view>& by) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto found = by.find(c);
    if (found == by.end()) {
      out += c;
    } else {
      out += found->second;
    }
  }
  return out;
}

std::string html_text(std::string_view text) {
  return replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

/// Leaves `most` entries of each list, and later ones of a Pareto front, which a chart joins.
/// `left_out`: how many went, by the names of the lists.
void shorten(Json& value, const std::string& name, size_t most,
             std::map<std::string, int64_t>& left_out) {
  if (value.is_object())
    for (auto& [key, inner] : value.items()) shorten(inner, key, most, left_out);
  if (!value.is_array()) return;
  if (value.size() > most) {
    Json kept = Json::array();
    for (size_t i = 0; i < value.size(); ++i) {
      const bool on_front = value[i].is_object() && value[i].value("pareto", false);
      if (i < most || on_front) kept.push_back(std::move(value[i]));
    }
    left_out[name] += static_cast<int64_t>(value.size() - kept.size());
    value = std::move(kept);
  }
  for (Json& inner : value) shorten(inner, name, most, left_out);
}

/// Numbers with six digits: more are not seen.
void round_numbers(Json& value) {
  if (value.is_structured())
    for (Json& inner : value) round_numbers(inner);
  if (value.is_number_float()) value = Json::parse(fmt::format("{:.6g}", value.get<double>()));
}

std::string compact(const Json& json) {
  return replaced(json.dump(-1, ' ', false, Json::error_handler_t::replace), {{'<', "\\u003c"}});
}

/// The answer in at most `room` bytes, if that is possible.
std::string report_data(const ReportText& text, size_t room) {
  Json answer = Json::parse(text.json);
  std::map<std::string, int64_t> left_out;
  const auto data = [&] {
    Json lists = Json::array();
    for (const auto& [list, count] : left_out)
      if (count > 0) lists.push_back({{"list", list}, {"count", count}});
    Json report = {{"version", TILECAST_VERSION}, {"left_out", lists}, {"answer", answer}};
    if (!text.command.empty()) report["command"] = text.command;
    return compact(report);
  };
  constexpr size_t kLongest = 8192, kShortest = 8;
  std::string out = data();
  if (out.size() > room) {
    round_numbers(answer);
    out = data();
  }
  for (size_t most = kLongest; out.size() > room && most >= kShortest; most /= 2) {
    shorten(answer, "entries", most, left_out);
    out = data();
  }
  return out;
}

}  // namespace

std::string report_policy() {
  return fmt::format(
      "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
      report_script_hash(), report_style_hash());
}

std::string report_page(const ReportText& text) {
  const std::string start = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"Tilecast {}\">\n<title>Tilecast</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<noscript><pre>{}</pre></noscript>\n",
      report_policy(), TILECAST_VERSION, report_style(), html_text(text.table));
  const std::string end =
      fmt::format("<script type=\"module\">{}</script>\n</body>\n</html>\n", report_script());
  constexpr std::string_view kData = "<script type=\"application/json\" id=\"report\">";
  constexpr std::string_view kDataEnd = "</script>\n";
  const size_t taken = start.size() + end.size() + kData.size() + kDataEnd.size();
  const size_t room = taken < kReportBytes ? kReportBytes - taken : 0;
  return fmt::format("{}{}{}{}{}", start, kData, report_data(text, room), kDataEnd, end);
}

}  // namespace tilecast
