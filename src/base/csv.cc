#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/budget.h"
#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// No table of measurements comes near these.
constexpr size_t kLongestCell = 1 << 20;  ///< bytes
constexpr size_t kMostCells = 1 << 14;    ///< of a row
constexpr int64_t kMostGrowth = 8;        ///< of the text in memory, beside kTableBytes

struct Record {
  std::vector<std::string> cells;
  size_t line = 0;  ///< on which it begins
};

/// Splits text into records. Blanks around a cell are no part of it, also around quotes; two quotes
/// inside quotes are one; a cell that holds quotes but does not begin with one keeps them; empty
/// lines are left out. All text is CSV: what follows a closing quote belongs to the cell.
class Splitter {
 public:
  Splitter(char separator, size_t line, const std::string& where)
      : separator_(separator), line_(line), where_(where) {}

  std::vector<Record> split(std::string_view text) {
    BudgetPart part = kTableBytes;
    part.usual += kMostGrowth * static_cast<int64_t>(text.size());
    most_bytes_ = Budget::here().most(part);
    for (size_t i = 0; i < text.size(); ++i) {
      take(text[i]);
      if (cell_.size() > kLongestCell)
        fail(fmt::format("a cell of more than {} bytes", kLongestCell));
      const bool ends_line =
          text[i] == '\n' || (text[i] == '\r' && !text.substr(i + 1).starts_with('\n'));
      if (ends_line) ++line_;
    }
    if (state_ != State::kRowStart) {
      end_cell();
      end_row();
    }
    return std::move(records_);
  }

 private:
  enum class State : uint8_t { kRowStart, kCellStart, kPlain, kQuoted, kAfterQuote };

  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  static bool is_break(char c) { return c == '\r' || c == '\n'; }

  void take(char c) {
    const bool ends = c == separator_ || is_break(c);
    switch (state_) {
      case State::kRowStart:
      case State::kCellStart:
        return start_cell(c);
      case State::kPlain:
      case State::kAfterQuote:
        if (ends) return end(c);
        if (state_ == State::kAfterQuote && !is_blank(c)) {
          // A second quote: one of the two counts, unless blanks stand between them.
          state_ = c == '"' && blanks_ > 0 ? State::kAfterQuote : State::kQuoted;
          if (c == '"' && blanks_ == 0) return;
        }
        blanks_ = is_blank(c) ? blanks_ + 1 : 0;
        cell_ += c;
        return;
      case State::kQuoted:
        cell_ += c;
        blanks_ = 0;
        if (c == '"') state_ = State::kAfterQuote;
        return;
    }
  }

  void start_cell(char c) {
    if (is_blank(c) && c != separator_) return;
    if (is_break(c) && state_ == State::kRowStart) return;
    if (state_ == State::kRowStart) first_line_ = line_;
    if (c == separator_ || is_break(c)) return end(c);
    if (c == '"') {
      state_ = State::kQuoted;
      return;
    }
    state_ = State::kPlain;
    cell_ += c;
  }

  void end(char c) {
    end_cell();
    if (is_break(c)) end_row();
  }

  void end_cell() {
    size_t end = cell_.size();
    if (state_ == State::kPlain) end -= blanks_;
    if (state_ == State::kAfterQuote) end -= blanks_ + 1;  // the closing quote
    record_.push_back(cell_.substr(0, end));
    // As libstdc++ stores it, short texts within the object.
    bytes_ += static_cast<int64_t>(sizeof(std::string) + (end > 15 ? end : 0));
    if (record_.size() > kMostCells) fail(fmt::format("more than {} cells", kMostCells));
    if (bytes_ > most_bytes_)
      fail(
          fmt::format("the table takes more than {} of memory; divide the file, or allow more with "
                      "`max-memory`",
                      format_bytes(most_bytes_)));
    cell_.clear();
    blanks_ = 0;
    state_ = State::kCellStart;
  }

  void end_row() {
    go_on("reading a table");
    constexpr size_t kOfAllocation = 16;  // what glibc stores beside it
    bytes_ += static_cast<int64_t>(sizeof(Record) + kOfAllocation);
    const size_t cells = record_.size();
    records_.push_back({std::move(record_), first_line_});
    record_.clear();
    record_.reserve(cells);  // of the next row, as a rule
    state_ = State::kRowStart;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: line {}: {}", where_, line_, what));
  }

  char separator_;
  size_t line_;
  const std::string& where_;
  int64_t bytes_ = 0, most_bytes_ = 0;  ///< of the records
  State state_ = State::kRowStart;
  size_t first_line_ = 0;
  std::string cell_;
  size_t blanks_ = 0;  ///< at the end of cell_
  std::vector<std::string> record_;
  std::vector<Record> records_;
};

/// `line` is that on which the text begins.
std::vector<Record> records_of(std::string_view text, char separator, size_t line,
                               const std::string& where) {
  return Splitter(separator, line, where).split(text);
}

/// Whether the header line has semicolons, but no comma, outside quotes.
bool has_semicolons(std::string_view text) {
  const size_t start = text.find_first_not_of("\r\n");
  if (start == std::string_view::npos) return false;
  bool quoted = false, semicolon = false;
  for (const char c : text.substr(start)) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' || c == '\r') break;
    if (c == ',') return false;
    semicolon = semicolon || c == ';';
  }
  return semicolon;
}

/// A spreadsheet writes rows that were cleared as separators alone.
bool is_empty(const std::vector<std::string>& record) {
  return std::all_of(record.begin(), record.end(),
                     [](const std::string& cell) { return trim(cell).empty(); });
}

void check_header(const CsvTable& table) {
  std::map<std::string_view, size_t> names;
  for (size_t i = 0; i < table.header.size(); ++i) {
    const auto [first, added] = names.emplace(table.header[i], i);
    if (!added && !table.header[i].empty())
      throw Error(ErrorKind::kInput, fmt::format("{}: columns {} and {} have the same name",
                                                 table.where, first->second + 1, i + 1));
  }
}

}  // namespace

std::optional<size_t> CsvTable::column(std::string_view name) const {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return i;
  }
  return std::nullopt;
}

size_t CsvTable::require_column(std::string_view name) const {
  const std::optional<size_t> found = column(name);
  if (!found)
    throw Error(ErrorKind::kInput, fmt::format("{}: column '{}' is missing; the file has: {}",
                                               where, name, shown_name(join(header, ", "), 400)));
  return *found;
}

std::string CsvTable::place(size_t row) const {
  return fmt::format("{}: line {}", where, lines[row]);
}

std::optional<double> CsvTable::find_number(size_t row, size_t column) const {
  std::string cell(trim(rows[row][column]));
  const size_t comma = cell.find(',');
  if (decimal_comma && comma != std::string::npos && cell.find('.') == std::string::npos)
    cell[comma] = '.';
  const auto value = parse_number<double>(cell);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

double CsvTable::number(size_t row, size_t column) const {
  const std::optional<double> value = find_number(row, column);
  if (!value)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}': expected a number, found '{}'", place(row),
                            shown_name(header[column]), shown_name(rows[row][column])));
  return *value;
}

int64_t CsvTable::integer(size_t row, size_t column) const {
  const double value = number(row, column);
  if (value < 0 || value > 9e15 || value != std::floor(value))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}': expected a whole number ≥ 0, found '{}'", place(row),
                            shown_name(header[column]), shown_name(rows[row][column])));
  return static_cast<int64_t>(value);
}

CsvTable parse_csv(std::string_view text, const std::string& where) {
  CsvTable table;
  table.where = where;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  size_t line = 1;
  for (; !text.empty() && text.front() == '#'; ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    table.comments.emplace_back(trim(text.substr(1, end - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  table.decimal_comma = has_semicolons(text);
  std::vector<Record> records = records_of(text, table.decimal_comma ? ';' : ',', line, where);
  if (records.empty())
    throw Error(ErrorKind::kInput, where + ": expected a CSV file with a header line, found none");
  table.header = std::move(records.front().cells);
  check_header(table);
  for (Record& record : std::span(records).subspan(1)) {
    if (is_empty(record.cells)) {
      ++table.empty_rows;
      continue;
    }
    if (record.cells.size() != table.header.size())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: line {}: expected {} columns, found {}", where, record.line,
                              table.header.size(), record.cells.size()));
    table.rows.push_back(std::move(record.cells));
    table.lines.push_back(record.line);
  }
  return table;
}

std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<Record> records = records_of(line, ',', 1, "");
  return records.empty() ? std::vector<std::string>{} : std::move(records.front().cells);
}

/// Whether a spreadsheet takes the text for a formula.
static bool is_formula(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  const char first = text[start];
  return first == '=' || first == '+' || first == '@' ||
         (first == '-' && !parse_number<double>(text.substr(start)));
}

std::string csv_cell(std::string_view text) {
  const std::string_view before = is_formula(text) ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return fmt::format("{}{}", before, text);
  std::string cell = fmt::format("\"{}", before);
  for (const char c : text) {
    if (c == '"') cell += c;
    cell += c;
  }
  return cell + "\"";
}

}  // namespace tilecast
