#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/text.h"

namespace tilecast {
namespace {

constexpr size_t kColumnGap = 2;  ///< spaces between columns
constexpr size_t kHanging = 4;    ///< additional indent of the further lines of a row
/// Minimum width of a table; narrower terminals wrap lines themselves.
constexpr size_t kMinWidth = 40;

size_t table_width(const TableStyle& style) {
  return std::max(kMinWidth, static_cast<size_t>(std::max(0, style.width)));
}

using Row = std::vector<std::string>;

Fit fit_of(const TextTable& table, size_t column) {
  return column < table.fit.size() ? table.fit[column] : Fit::kWhole;
}

/// Minimum width of a column. The values are guesses of what is still readable.
size_t least_width(const TextTable& table, size_t column, size_t natural) {
  constexpr size_t kName = 14, kText = 24;
  const Fit fit = fit_of(table, column);
  if (fit == Fit::kWhole) return natural;
  if (column < table.min_widths.size() && table.min_widths[column] > 0)
    return std::min(natural, table.min_widths[column]);
  return std::min(natural, fit == Fit::kFront ? kName : kText);
}

size_t longest_word(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : split(text, ' ')) longest = std::max(longest, display_width(word));
  return longest;
}

/// The width of each column, and the line of the row that it is on.
struct Layout {
  std::vector<size_t> widths;
  std::vector<size_t> lines;
};

size_t total(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), size_t{0}) +
         kColumnGap * (widths.empty() ? 0 : widths.size() - 1);
}

/// Shrinks the column that exceeds its minimum most, until the table fits or all columns have their
/// minimum.
void narrow(const TextTable& table, const std::vector<size_t>& natural, size_t room,
            std::vector<size_t>& widths) {
  const auto beyond = [&](size_t c) { return widths[c] - least_width(table, c, natural[c]); };
  while (total(widths) > room) {
    size_t most = 0;
    for (size_t c = 1; c < widths.size(); ++c) most = beyond(c) > beyond(most) ? c : most;
    if (beyond(most) == 0) return;
    --widths[most];
  }
}

/// Shortens the text of a cell to a width. Cells that wrap are handled elsewhere.
std::string shortened(Fit fit, const std::string& text, size_t width) {
  return fit == Fit::kFront ? shorten_front(text, width) : shorten_end(text, width);
}

/// Names that are cut at a dot often do not fill their column; gives the unused width to other
/// columns.
void share_spare(const TextTable& table, const std::vector<size_t>& natural, size_t room,
                 std::vector<size_t>& widths) {
  for (size_t c = 0; c < widths.size(); ++c) {
    const Fit fit = fit_of(table, c);
    if (fit != Fit::kFront && fit != Fit::kEnd) continue;
    size_t longest = c < table.header.size() ? longest_word(table.header[c]) : 0;
    for (const Row& row : table.rows) {
      if (c < row.size())
        longest = std::max(longest, display_width(shortened(fit, row[c], widths[c])));
    }
    widths[c] = std::min(widths[c], longest);
  }
  // Names that were cut gain nothing from a little more: they come last.
  for (const bool names : {false, true}) {
    for (size_t c = 0; c < widths.size(); ++c) {
      const Fit fit = fit_of(table, c);
      if (fit != Fit::kWhole && (fit == Fit::kFront) == names)
        widths[c] += std::min(natural[c] - widths[c], room - total(widths));
    }
  }
}

/// Moves columns that do not fit to further lines, and distributes the width of each line over its
/// columns.
void fold(const std::vector<size_t>& natural, size_t room, Layout& layout) {
  std::vector<size_t> used = {0};
  const auto room_of = [&](size_t line) { return room - (line > 0 ? kHanging : 0); };
  for (size_t c = 0; c < natural.size(); ++c) {
    size_t& width = layout.widths[c];
    if (used.back() > 0 && used.back() + kColumnGap + width > room_of(used.size() - 1))
      used.push_back(0);
    layout.lines[c] = used.size() - 1;
    width = std::min(width, room_of(layout.lines[c]));
    used.back() += (used.back() > 0 ? kColumnGap : 0) + width;
  }
  for (size_t c = 0; c < natural.size(); ++c) {
    const size_t line = layout.lines[c];
    const size_t spare = room_of(line) - std::min(room_of(line), used[line]);
    const size_t more = std::min(spare, natural[c] - std::min(natural[c], layout.widths[c]));
    layout.widths[c] += more;
    used[line] += more;
  }
}

Layout lay_out(const TextTable& table, size_t room) {
  size_t columns = table.header.size();
  for (const Row& row : table.rows) columns = std::max(columns, row.size());
  std::vector<size_t> cells(columns, 0), natural(columns, 0);
  for (const Row& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) cells[c] = std::max(cells[c], display_width(row[c]));
  }
  natural = cells;
  for (size_t c = 0; c < table.header.size(); ++c)
    natural[c] = std::max(natural[c], display_width(table.header[c]));
  Layout layout{natural, std::vector<size_t>(columns, 0)};
  if (total(natural) <= room) return layout;
  // First, wrap headers of several words.
  for (size_t c = 0; c < table.header.size(); ++c)
    natural[c] = std::max(cells[c], longest_word(table.header[c]));
  layout.widths = natural;
  narrow(table, natural, room, layout.widths);
  if (total(layout.widths) > room)
    fold(natural, room, layout);
  else
    share_spare(table, natural, room, layout.widths);
  return layout;
}

/// One row of the table: header or cells.
class RowWriter {
 public:
  RowWriter(const TextTable& table, const Layout& layout, const TableStyle& style, size_t indent)
      : table_(table), layout_(layout), style_(style), indent_(indent) {}

  std::string header() const {
    std::vector<Row> cells;
    for (size_t c = 0; c < table_.header.size(); ++c)
      cells.push_back(wrap_text(table_.header[c], layout_.widths[c]));
    return lines(cells, true, [](size_t) { return Color::kBold; });
  }

  std::string row(size_t r) const {
    std::vector<Row> cells;
    for (size_t c = 0; c < table_.rows[r].size(); ++c) cells.push_back(cell(r, c));
    return lines(cells, false,
                 [&](size_t c) { return table_.color ? table_.color(r, c) : Color::kNone; });
  }

 private:
  Row cell(size_t r, size_t c) const {
    const std::string& text = table_.rows[r][c];
    const size_t width = layout_.widths[c];
    const Fit fit = fit_of(table_, c);
    return fit == Fit::kWrap ? wrap_text(text, width) : Row{shortened(fit, text, width)};
  }

  template <typename ColorOf>
  std::string lines(const std::vector<Row>& cells, bool bottom, const ColorOf& color_of) const {
    std::string out;
    for (size_t first = 0; first < cells.size();) {
      size_t end = first;
      size_t height = 0;
      for (; end < cells.size() && layout_.lines[end] == layout_.lines[first]; ++end)
        height = std::max(height, cells[end].size());
      const bool empty = std::all_of(cells.begin() + static_cast<std::ptrdiff_t>(first),
                                     cells.begin() + static_cast<std::ptrdiff_t>(end),
                                     [](const Row& c) { return c.size() == 1 && c[0].empty(); });
      // The first line of a row is always written, further lines only if they are not empty.
      if (!empty || layout_.lines[first] == 0) {
        for (size_t h = 0; h < height; ++h)
          out += line(cells, {first, end}, {h, height}, bottom, color_of);
      }
      first = end;
    }
    return out;
  }

  /// Line number `at.first` of `at.second` lines, for the columns [`columns.first`,
  /// `columns.second`).
  template <typename ColorOf>
  std::string line(const std::vector<Row>& cells, std::pair<size_t, size_t> columns,
                   std::pair<size_t, size_t> at, bool bottom, const ColorOf& color_of) const {
    std::string text;
    size_t blanks = indent_ + (layout_.lines[columns.first] > 0 ? kHanging : 0);
    for (size_t c = columns.first; c < columns.second; ++c) {
      if (c > columns.first) blanks += kColumnGap;
      const Row& cell = cells[c];
      const size_t above = bottom ? at.second - cell.size() : 0;
      const std::string part =
          at.first >= above && at.first - above < cell.size() ? cell[at.first - above] : "";
      const size_t rest = layout_.widths[c] - std::min(layout_.widths[c], display_width(part));
      const bool right = c < table_.right.size() && table_.right[c];
      if (right) blanks += rest;
      if (!part.empty()) {
        text += std::string(blanks, ' ') + paint(part, color_of(c), style_);
        blanks = 0;
      }
      if (!right) blanks += rest;
    }
    return text + "\n";
  }

  const TextTable& table_;
  const Layout& layout_;
  const TableStyle& style_;
  size_t indent_;
};

}  // namespace

std::string paint(const std::string& text, Color color, const TableStyle& style) {
  if (!style.color || color == Color::kNone) return text;
  // SGR codes of ECMA-48.
  static constexpr const char* kCodes[] = {"0", "1", "31", "33", "32", "36", "35"};
  return std::string("\x1b[") + kCodes[static_cast<size_t>(color)] + "m" + text + "\x1b[0m";
}

std::string title_lines(const std::string& text, const TableStyle& style) {
  std::string out;
  for (const std::string& line : wrap_text(text, table_width(style)))
    out += paint(line, Color::kBold, style) + "\n";
  return out;
}

std::string assumes_lines(const std::vector<std::string>& assumptions, const TableStyle& style) {
  std::string out;
  for (const std::string& line :
       wrap_text("assumes: " + join(assumptions, "; "), table_width(style)))
    out += line + "\n";
  return out;
}

Color limit_color(std::string_view limit) {
  if (limit == "compute") return Color::kGreen;
  if (limit == "memory") return Color::kCyan;
  if (limit == "latency") return Color::kYellow;
  if (limit == "network") return Color::kMagenta;
  return Color::kNone;
}

Color note_color(std::string_view note) {
  return note.starts_with("DOES NOT FIT") ? Color::kRed : Color::kNone;
}

std::string format_text_table(const TextTable& table, const TableStyle& style, size_t indent) {
  const Layout layout = lay_out(table, table_width(style) - indent);
  const RowWriter writer(table, layout, style, indent);
  std::string out;
  if (!table.header.empty()) out += writer.header();
  for (size_t r = 0; r < table.rows.size(); ++r) out += writer.row(r);
  return out;
}

TextTable in_one_line(TextTable table, const TableStyle& style, size_t indent,
                      const std::vector<std::string_view>& least_important) {
  const auto folds = [&] {
    const std::vector<size_t> lines = lay_out(table, table_width(style) - indent).lines;
    return !lines.empty() && lines.back() > 0;
  };
  for (const std::string_view name : least_important) {
    const auto found = std::find(table.header.begin(), table.header.end(), name);
    if (found == table.header.end()) continue;
    if (!folds()) break;
    const auto column = found - table.header.begin();
    const auto leave_out = [&](auto& list) {
      if (column < std::ssize(list)) list.erase(list.begin() + column);
    };
    leave_out(table.header);
    leave_out(table.right);
    leave_out(table.fit);
    leave_out(table.min_widths);
    for (Row& row : table.rows) leave_out(row);
  }
  return table;
}

std::string Lines::text(const TableStyle& style, bool right) const {
  TextTable table = table_;
  if (right) table.right = {false, true, false};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWrap};
  table.color = [&](size_t row, size_t column) {
    return column == 1   ? colors_[row]
           : column == 2 ? note_color(table.rows[row][column])
                         : Color::kNone;
  };
  return format_text_table(table, style, 2);
}

std::string counted(int64_t count, const std::string& one, const std::string& more) {
  const std::string word = count == 1 ? one : more.empty() ? one + "s" : more;
  return fmt::format("{} {}", format_integer(count), word);
}

std::string unmatched_lines(const std::vector<std::string>& unmatched, const TableStyle& style) {
  if (unmatched.empty()) return "";
  std::string out =
      fmt::format("Not evaluated ({})\n\n", format_integer(static_cast<int64_t>(unmatched.size())));
  for (const std::string& item : unmatched) {
    std::string indent = "  ";
    for (const std::string& line : wrap_text(item, static_cast<size_t>(style.width) - 4)) {
      out += indent + line + "\n";
      indent = "    ";
    }
  }
  return out;
}

}  // namespace tilecast
