// Fits text into columns of a terminal: shortens names and wraps lines.

#include <algorithm>

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

/// The longest suffix of `text` that follows a dot and is at most `most` columns wide; "": none.
std::string last_parts(const std::string& text, size_t most) {
  std::string result;
  for (size_t dot = text.rfind('.'); dot != std::string::npos; dot = text.rfind('.', dot - 1)) {
    std::string part = text.substr(dot + 1);
    if (display_width(part) > most) break;
    result = std::move(part);
    if (dot == 0) break;
  }
  return result;
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shorten_middle(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width < 4) return first_characters(text, width);
  const size_t room = width - 1;
  // The last part distinguishes names, so it is kept completely if it fits.
  std::string tail = last_parts(text, 2 * room / 3);
  if (tail.empty()) tail = last_parts(text, room);
  if (display_width(tail) < 3) tail = last_characters(text, room / 2);
  std::string head = first_characters(text, room - display_width(tail));
  // Cut at a dot: "layers.0." instead of "layers.0.se".
  const size_t stop = head.find_last_of(". ");
  if (stop != std::string::npos && 2 * (stop + 1) >= head.size()) head.resize(stop + 1);
  return head + kEllipsis + tail;
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
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    std::string word = text.substr(start, end - start);
    start = end + 1;
    if (word.empty()) continue;
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

}  // namespace tilecast
