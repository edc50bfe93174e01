#include "moved.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"

namespace tilecast {
namespace {

/// A line: "MODEL DEVICE KIND WORK TIMES WORD… NAME=NUMBER… [LOW HIGH]", or "… refused: MESSAGE".
struct Line {
  std::string kind;
  bool refused = false;
  std::map<std::string, double> numbers;
};

/// By "MODEL DEVICE KIND".
std::map<std::string, Line> by_name(const std::vector<std::string>& lines) {
  constexpr size_t kNameWords = 3;
  std::map<std::string, Line> result;
  for (const std::string& text : lines) {
    const std::vector<std::string> words = split(text, ' ');
    if (words.size() <= kNameWords) continue;  // the machine's mathematics
    Line line = {.kind = words[2], .refused = words[kNameWords] == "refused:"};
    for (size_t i = kNameWords; i < words.size() && !line.refused; ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) continue;
      line.numbers[words[i].substr(0, equals)] = std::stod(words[i].substr(equals + 1));
    }
    result[words[0] + " " + words[1] + " " + words[2]] = std::move(line);
  }
  return result;
}

struct Change {
  double ratio = 1;
  std::string line;
};

/// Changes of one number in the lines of one kind.
struct Moved {
  size_t lines = 0;
  std::vector<Change> changes;
};

std::string percent(double ratio) { return fmt::format("{:+.3g} %", 100 * (ratio - 1)); }

std::string row(const std::string& kind, const std::string& number, Moved& moved) {
  std::sort(moved.changes.begin(), moved.changes.end(),
            [](const Change& a, const Change& b) { return a.ratio < b.ratio; });
  const auto size = [](const Change& c) { return std::abs(std::log(std::max(c.ratio, 1e-30))); };
  const auto most =
      std::max_element(moved.changes.begin(), moved.changes.end(),
                       [&](const Change& a, const Change& b) { return size(a) < size(b); });
  const double median = moved.changes[moved.changes.size() / 2].ratio;
  return fmt::format("{:<10} {:<8} {} of {} moved, median {}, most {} ({})\n", kind, number,
                     moved.changes.size(), moved.lines, percent(median), percent(most->ratio),
                     most->line);
}

}  // namespace

std::string moved_report(const std::vector<std::string>& expected,
                         const std::vector<std::string>& found) {
  const std::map<std::string, Line> was = by_name(expected), is = by_name(found);
  std::map<std::pair<std::string, std::string>, Moved> all;
  size_t fresh = 0, gone = 0, refusals = 0;
  for (const auto& [name, line] : was) gone += is.contains(name) ? 0 : 1;
  for (const auto& [name, line] : is) {
    const auto old = was.find(name);
    if (old == was.end()) {
      ++fresh;
      continue;
    }
    refusals += line.refused != old->second.refused ? 1 : 0;
    for (const auto& [number, value] : line.numbers) {
      const auto before = old->second.numbers.find(number);
      if (before == old->second.numbers.end()) continue;
      Moved& moved = all[{line.kind, number}];
      ++moved.lines;
      if (value != before->second && before->second != 0)
        moved.changes.push_back({value / before->second, name});
    }
  }
  std::string text;
  for (auto& [key, moved] : all) {
    if (!moved.changes.empty()) text += row(key.first, key.second, moved);
  }
  if (text.empty()) text = "no number of a headline moved\n";
  if (fresh + gone + refusals > 0)
    text +=
        fmt::format("lines: {} new, {} gone, {} refused in one of both\n", fresh, gone, refusals);
  return text;
}

}  // namespace tilecast
