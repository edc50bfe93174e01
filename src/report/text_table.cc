#include "report/text_table.h"

#include <algorithm>

namespace tilecast {

size_t display_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string shorten(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width <= 3) return text.substr(0, width);
  return text.substr(0, width - 3) + "...";
}

std::string format_text_table(const TextTable& table, size_t indent) {
  std::vector<size_t> widths;
  const auto measure = [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  };
  measure(table.header);
  for (const auto& row : table.rows) measure(row);
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - display_width(row[i]), ' ');
      const bool right = i < table.right.size() && table.right[i];
      text += (i > 0 ? "  " : "") + (right ? blanks + row[i] : row[i] + blanks);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  if (!table.header.empty()) line(table.header);
  for (const auto& row : table.rows) line(row);
  return out;
}

}  // namespace tilecast
