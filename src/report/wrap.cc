// Fits text into columns of a terminal: shortens names and wraps lines.

#include <algorithm>
#include <iterator>

#include "base/ascii.h"
#include "base/text.h"
#include "report/text_table.h"

namespace tilecast {
namespace {

constexpr const char* kEllipsis = "…";

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The first `count` characters of UTF-8 text.
std::string first_characters(const std::string& text, size_t count) {
  size_t end = 0;
  while (end < text.size() && count > 0) {
    ++end;
    while (end < text.size() && continues(text[end])) ++end;
    --count;
  }
  return text.substr(0, end);
}

std::string last_characters(const std::string& text, size_t count) {
  size_t start = text.size();
  while (start > 0 && count > 0) {
    --start;
    while (start > 0 && continues(text[start])) --start;
    --count;
  }
  return text.substr(start);
}

/// Where a name may be cut: behind the part that repeats and each dot after it, or, in names
/// without dots between parts (ids), behind each hyphen.
std::vector<size_t> cuts_of(std::string_view name) {
  const size_t repeated = repeated_prefix(name);
  const bool is_id = repeated == 0 && name.find('-') != std::string_view::npos;
  std::vector<size_t> cuts;
  if (repeated > 0) cuts.push_back(repeated);
  for (size_t at = name.find(is_id ? '-' : '.', repeated); at != std::string_view::npos;
       at = name.find(is_id ? '-' : '.', at + 1))
    cuts.push_back(at + 1);
  return cuts;
}

/// The mark before a name, with its blank: "bwd " of "bwd h.0.attn"; "": none.
std::string mark_of(const std::string& text) {
  const size_t blank = text.find(' ');
  if (blank == std::string::npos || text.substr(0, blank).find_first_of(".+") != std::string::npos)
    return "";
  return text.substr(0, blank + 1);
}

bool is_number(std::string_view word) {
  if (word.empty() || !is_digit(word.back())) return false;
  return word.find_first_not_of("0123456789.,+-~<>=()") == std::string_view::npos;
}

/// Whether a word is a unit that belongs to the number before it, whatever punctuation follows.
bool is_unit(std::string_view word) {
  static constexpr std::string_view kUnits[] = {
      "%",  "s",    "ms",     "us",    "ns",  "h",   "min", "days", "hours",
      "B",  "FLOP", "MAC",    "bytes", "Hz",  "MHz", "GHz", "W",    "J",
      "Wh", "kWh",  "tokens", "nm",    "KiB", "MiB", "GiB", "TiB",  "PiB"};
  word = word.substr(0, word.find_last_not_of(".,;:)") + 1);
  word = word.substr(0, word.find('/'));
  const auto is_listed = [](std::string_view unit) {
    return std::find(std::begin(kUnits), std::end(kUnits), unit) != std::end(kUnits);
  };
  constexpr std::string_view kPrefixes = "kMGTPE";
  const bool prefixed = word.size() > 1 && kPrefixes.find(word.front()) != std::string_view::npos;
  return is_listed(word) || (prefixed && is_listed(word.substr(1))) ||
         (word.size() == 1 && kPrefixes.find(word.front()) != std::string_view::npos);
}

/// Words that no line may end between are one: "3.17 ms".
std::vector<std::string> words_of(const std::string& text, size_t width) {
  std::vector<std::string> words;
  bool after_number = false;
  for (std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const bool joins = after_number && is_unit(word) &&
                       display_width(words.back()) + 1 + display_width(word) <= width;
    after_number = is_number(word);
    if (joins)
      words.back() += " " + word;
    else
      words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

size_t repeated_prefix(std::string_view name) {
  for (size_t start = 0; start < name.size();) {
    const size_t dot = name.find('.', start);
    if (dot == std::string_view::npos) return 0;
    const std::string_view part = name.substr(start, dot - start);
    start = dot + 1;
    const bool number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (number && start > part.size() + 1) return start;  // no version: "3.1"
  }
  return 0;
}

std::string shorten_front(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width < 4) return first_characters(text, width);
  const std::string mark = mark_of(text), name = text.substr(mark.size());
  const std::vector<size_t> cuts = cuts_of(name);
  for (const size_t cut : cuts) {
    std::string shorter = mark + kEllipsis + name.substr(cut);
    if (cut < name.size() && display_width(shorter) <= width) return shorter;
  }
  // The last part does not fit beside the mark: the mark goes, then the front of the part.
  std::string last = kEllipsis + name.substr(cuts.empty() ? 0 : cuts.back());
  if (display_width(last) <= width) return last;
  return kEllipsis + last_characters(name, width - 1);
}

std::string shorten_end(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width < 2) return first_characters(text, width);
  std::string head = first_characters(text, width - 1);
  // If the cut is between words, the last word is complete.
  const bool inside = text[head.size()] != ' ';
  const size_t stop = head.rfind(' ');
  if (inside && stop != std::string::npos && 3 * stop >= 2 * head.size()) head.resize(stop);
  head.resize(head.find_last_not_of(" ,") + 1);
  return head + kEllipsis;
}

std::vector<std::string> wrap_text(const std::string& text, size_t width) {
  width = std::max<size_t>(1, width);
  std::vector<std::string> lines;
  std::string line;
  for (std::string& word : words_of(text, width)) {
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    for (; display_width(word) > width; word = word.substr(lines.back().size()))
      lines.push_back(first_characters(word, width));
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string wrapped(const std::string& text, const TableStyle& style) {
  std::string out;
  for (const std::string& line : wrap_text(text, static_cast<size_t>(style.width)))
    out += line + "\n";
  return out;
}

}  // namespace tilecast
