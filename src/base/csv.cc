#include "base/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <span>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Record {
  std::vector<std::string> cells;
  size_t line = 0;  ///< on which it begins
};

struct Collector {
  std::vector<Record> records;
  Record current;
};

void on_field(void* data, size_t length, void* collector) {
  auto* state = static_cast<Collector*>(collector);
  state->current.cells.emplace_back(static_cast<const char*>(data), length);
}

void on_record(int, void* collector) {
  auto* state = static_cast<Collector*>(collector);
  const size_t line = state->current.line;
  state->records.push_back(std::move(state->current));
  state->current = {{}, line};
}

/// Up to the first line break, with it.
std::string_view first_line(std::string_view text) {
  const size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos) return text;
  return text.substr(0, end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
}

/// `line` is that on which the text begins.
std::vector<Record> records_of(std::string_view text, char separator, size_t line,
                               const std::string& where) {
  csv_parser parser{};
  if (csv_init(&parser, 0) != 0) throw Error(ErrorKind::kInternal, "cannot start the CSV parser");
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, csv_free);
  csv_set_delim(&parser, static_cast<unsigned char>(separator));
  Collector collector;
  const auto check = [&](bool good) {
    if (!good)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: not CSV: {}", where, csv_strerror(csv_error(&parser))));
  };
  // Line by line: a record does not say where it stood. One in quotes goes over several lines.
  bool quoted = false;
  for (; !text.empty(); ++line) {
    const std::string_view part = first_line(text);
    if (!quoted) collector.current.line = line;
    if (std::count(part.begin(), part.end(), '"') % 2 != 0) quoted = !quoted;
    check(csv_parse(&parser, part.data(), part.size(), on_field, on_record, &collector) ==
          part.size());
    text.remove_prefix(part.size());
  }
  check(csv_fini(&parser, on_field, on_record, &collector) == 0);
  return std::move(collector.records);
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
  std::vector<std::string> names = table.header;
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end() && !twice->empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: two columns are named '{}'", table.where, shown_name(*twice)));
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

double CsvTable::number(size_t row, size_t column) const {
  std::string cell(trim(rows[row][column]));
  const size_t comma = cell.find(',');
  if (decimal_comma && comma != std::string::npos && cell.find('.') == std::string::npos)
    cell[comma] = '.';
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}': expected a number, found '{}'", place(row),
                            shown_name(header[column]), shown_name(rows[row][column])));
  return value;
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

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += c;
    cell += c;
  }
  return cell + "\"";
}

}  // namespace tilecast
