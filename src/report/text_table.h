#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/report.h"

namespace tilecast {

/// How a column gives way where the table is wider than the terminal.
enum class Fit {
  kWhole,   ///< not at all: numbers, short words
  kMiddle,  ///< names: "layers.0.…qkv_proj"
  kEnd,     ///< descriptions: "linear [4096x5120x1280]…"
  kWrap,    ///< sentences: on further lines
};

/// Colors of text on a terminal.
enum class Color { kNone, kBold, kRed, kYellow, kGreen, kCyan, kMagenta };

/// A table in plain text: columns as wide as their longest cell, two blanks between them.
struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right;  ///< which columns are right-aligned; missing ones are left-aligned
  std::vector<Fit> fit;     ///< missing: kWhole
  /// What a column that gives way keeps at least; missing or 0: what `Fit` says.
  std::vector<size_t> min_widths;
  /// Color of a cell; empty: none.
  std::function<Color(size_t row, size_t column)> color;
};

/// `text` between the codes of a color where the style has colors.
std::string paint(const std::string& text, Color color, const TableStyle& style);

/// A heading: bold, on as many lines as it needs.
std::string title_lines(const std::string& text, const TableStyle& style);

/// Color of what limits a kernel: "compute", "memory", "latency" or "network".
Color limit_color(std::string_view limit);

/// Color of a note beside a number: red where it says that something does not fit.
Color note_color(std::string_view note);

/// Columns of a terminal that UTF-8 text takes, each character one.
size_t display_width(std::string_view text);

/// Cuts text to `width` columns; "…" stands for what is lost. `shorten_middle` keeps both ends,
/// cut at a dot where one is near; `shorten_end` keeps whole words where that loses little.
std::string shorten_middle(const std::string& text, size_t width);
std::string shorten_end(const std::string& text, size_t width);

/// Lines of at most `width` columns, broken at blanks; a longer word is broken too.
std::vector<std::string> wrap_text(const std::string& text, size_t width);

/// Lines of the table, each with `indent` blanks before it and at most `style.width` columns wide.
/// No trailing blanks. Where columns cannot give way enough, the last ones go on lines of their
/// own below the others.
std::string format_text_table(const TextTable& table, const TableStyle& style, size_t indent = 0);

/// A table of names, values and remarks; remarks that are too long are wrapped.
class Lines {
 public:
  void add(const std::string& name, const std::string& value, const std::string& more) {
    table_.rows.push_back({name, value, more});
  }
  /// `right`: the values end in one column.
  std::string text(const TableStyle& style, bool right = false) const;

 private:
  TextTable table_;
};

}  // namespace tilecast
