#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/view.h"

namespace tilecast {

/// How a column is shortened if the table is wider than the terminal.
enum class Fit {
  kWhole,  ///< never: numbers, short words
  kFront,  ///< at the front, for names: "…self_attn.qkv_proj"
  kEnd,    ///< at the end, for descriptions: "linear [4096x5120x1280]…"
  kWrap,   ///< wrapped to several lines, for sentences
};

/// Colors of text on a terminal.
enum class Color { kNone, kBold, kRed, kYellow, kGreen, kCyan, kMagenta };

/// A table in plain text: columns are as wide as their longest cell, with two spaces between them.
struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right;  ///< which columns are right-aligned; missing ones are left-aligned
  std::vector<Fit> fit;     ///< missing: kWhole
  /// Minimum widths of columns that are shortened; missing or 0: the default of `Fit`.
  std::vector<size_t> min_widths;
  /// Color of a cell; empty: none.
  std::function<Color(size_t row, size_t column)> color;
};

/// `text` in a color, if the style has colors.
std::string paint(const std::string& text, Color color, const TableStyle& style);

/// A heading in bold, wrapped to as many lines as needed.
std::string title_lines(const std::string& text, const TableStyle& style);

/// "assumes: bf16 (torch_dtype); attention flash; ...", wrapped to as many lines as needed.
std::string assumes_lines(const std::vector<std::string>& assumptions, const TableStyle& style);

/// Color of what limits a kernel: "compute", "memory", "latency" or "network".
Color limit_color(std::string_view limit);

/// Color of a note next to a number: red if something does not fit.
Color note_color(std::string_view note);

/// Width of UTF-8 text on a terminal; each character counts as one column.
size_t display_width(std::string_view text);

/// Shortens text to `width` columns; "…" replaces the removed part. `shorten_front` removes the
/// part of a name that repeats first ("layers.0."), then further parts; a mark before the name
/// ("bwd ") stays. `shorten_end` prefers to cut between words.
std::string shorten_front(const std::string& text, size_t width);
std::string shorten_end(const std::string& text, size_t width);

/// The length of the part of a name that repeats, up to the first number among its parts: that of
/// "layers.0." in "layers.0.mlp.down_proj"; 0: none.
size_t repeated_prefix(std::string_view name);

/// Wraps text to lines of at most `width` columns, at spaces if possible; a number and its unit
/// stay together.
std::vector<std::string> wrap_text(const std::string& text, size_t width);

/// A paragraph, wrapped to the style's width, with a line break at its end.
std::string wrapped(const std::string& text, const TableStyle& style);

/// "1 node", "2 nodes"; `more`: the word for several, if it has no s.
std::string counted(int64_t count, const std::string& one, const std::string& more = "");

/// What could not be evaluated, each item wrapped; "": nothing.
std::string unmatched_lines(const std::vector<std::string>& unmatched, const TableStyle& style);

/// The table as text: lines with an indent of `indent` spaces, at most `style.width` columns wide,
/// without trailing spaces. If columns cannot be shortened enough, the last columns move to
/// separate lines below the others.
std::string format_text_table(const TextTable& table, const TableStyle& style, size_t indent = 0);

/// The table without the first of these columns, as many as it takes for rows of one line. Names
/// that it does not have are left out.
TextTable in_one_line(TextTable table, const TableStyle& style, size_t indent,
                      const std::vector<std::string_view>& least_important);

/// A table of names, values and remarks; long remarks are wrapped.
class Lines {
 public:
  void add(const std::string& name, const std::string& value, const std::string& more,
           Color value_color = Color::kNone) {
    table_.rows.push_back({name, value, more});
    colors_.push_back(value_color);
  }
  /// `right`: the values are right-aligned.
  std::string text(const TableStyle& style, bool right = false) const;

 private:
  TextTable table_;
  std::vector<Color> colors_;  ///< of the values
};

}  // namespace tilecast
