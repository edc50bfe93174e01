#pragma once

#include <string>
#include <vector>

namespace tilecast {

/// A table in plain text: columns as wide as their longest cell, two blanks between them.
struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right;  ///< which columns are right-aligned; missing ones are left-aligned
};

/// Columns of a terminal that UTF-8 text takes, each character one.
size_t display_width(const std::string& text);

/// Cuts the text to `width` columns, with "..." at the end where something is lost.
std::string shorten(const std::string& text, size_t width);

/// Lines of the table, each with `indent` blanks before it. No trailing blanks.
std::string format_text_table(const TextTable& table, size_t indent = 0);

}  // namespace tilecast
