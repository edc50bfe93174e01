#pragma once

#include <string>

namespace tilecast {

/// What may load and run in a report: its script and its style, by their hashes, and nothing else.
std::string report_policy();

struct ReportText {
  std::string json;     ///< the answer, as `--format json` writes it
  std::string table;    ///< what a reader without scripts sees
  std::string command;  ///< the command line that was asked; "": it was none
};

/// A page in one file that shows the answer without any network, of at most kReportBytes: entries
/// of long lists that have no room are left out, and the page says how many.
std::string report_page(const ReportText& text);

constexpr size_t kReportBytes = 1'000'000;

}  // namespace tilecast
