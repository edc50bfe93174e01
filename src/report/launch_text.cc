// The commands of plans: a line for the software, then the command, whose lines end with a blank
// and a backslash where it goes on.

#include <fmt/format.h>

#include "base/text.h"
#include "report/plan_text.h"
#include "report/text_table.h"

namespace tilecast {
namespace {

/// A command in pieces that no line may end within: a flag with its value, or a word.
std::vector<std::string> pieces_of(const std::string& command) {
  std::vector<std::string> pieces;
  for (const std::string& word : split(command, ' ')) {
    const bool is_value = !pieces.empty() && pieces.back().starts_with('-') &&
                          !word.starts_with('-') && pieces.back().find(' ') == std::string::npos;
    if (is_value)
      pieces.back() += " " + word;
    else
      pieces.push_back(word);
  }
  return pieces;
}

/// Lines that a backslash joins to one command.
std::string shell_lines(const std::string& command, size_t width) {
  constexpr size_t kMargin = 2, kMore = 2;
  const std::string end = " \\";
  std::string out, line(kMargin, ' ');
  bool begun = false;
  for (const std::string& piece : pieces_of(command)) {
    if (begun && display_width(line) + 1 + display_width(piece) + end.size() > width) {
      out += line + end + "\n";
      line.assign(kMargin + kMore, ' ');
      begun = false;
    }
    line += (begun ? " " : "") + piece;
    begun = true;
  }
  return out + line + "\n";
}

}  // namespace

std::string launch_text(const std::vector<LaunchLine>& lines, const TableStyle& style) {
  std::string out;
  for (const LaunchLine& line : lines) {
    out +=
        "\n" +
        wrapped(line.software +
                    (line.without.empty() ? ":" : fmt::format("; no flag sets {}:", line.without)),
                style) +
        shell_lines(line.command, static_cast<size_t>(style.width));
  }
  return out;
}

}  // namespace tilecast
