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

struct Collector {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> current;
};

void on_field(void* data, size_t length, void* collector) {
  static_cast<Collector*>(collector)->current.emplace_back(static_cast<const char*>(data), length);
}

void on_record(int, void* collector) {
  auto* state = static_cast<Collector*>(collector);
  state->records.push_back(std::move(state->current));
  state->current.clear();
}

std::vector<std::vector<std::string>> records_of(std::string_view text, char separator,
                                                 const std::string& where) {
  csv_parser parser{};
  if (csv_init(&parser, 0) != 0) throw Error(ErrorKind::kInternal, "cannot start the CSV parser");
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, csv_free);
  csv_set_delim(&parser, static_cast<unsigned char>(separator));
  Collector collector;
  if (csv_parse(&parser, text.data(), text.size(), on_field, on_record, &collector) !=
          text.size() ||
      csv_fini(&parser, on_field, on_record, &collector) != 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not CSV: {}", where, csv_strerror(csv_error(&parser))));
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

double CsvTable::number(size_t row, size_t column) const {
  std::string cell(trim(rows[row][column]));
  const size_t comma = cell.find(',');
  if (decimal_comma && comma != std::string::npos && cell.find('.') == std::string::npos)
    cell[comma] = '.';
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: row {}: '{}': expected a number, found '{}'", where, row + 1,
                            shown_name(header[column]), shown_name(rows[row][column])));
  return value;
}

int64_t CsvTable::integer(size_t row, size_t column) const {
  const double value = number(row, column);
  if (value < 0 || value > 9e15 || value != std::floor(value))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: row {}: '{}': expected a whole number ≥ 0, found '{}'", where,
                            row + 1, shown_name(header[column]), shown_name(rows[row][column])));
  return static_cast<int64_t>(value);
}

CsvTable parse_csv(std::string_view text, const std::string& where) {
  CsvTable table;
  table.where = where;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty() && text.front() == '#') {
    const size_t end = std::min(text.find('\n'), text.size());
    table.comments.emplace_back(trim(text.substr(1, end - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  table.decimal_comma = has_semicolons(text);
  std::vector<std::vector<std::string>> records =
      records_of(text, table.decimal_comma ? ';' : ',', where);
  if (records.empty())
    throw Error(ErrorKind::kInput, where + ": expected a CSV file with a header line, found none");
  table.header = std::move(records.front());
  check_header(table);
  size_t number = 0;
  for (std::vector<std::string>& record : std::span(records).subspan(1)) {
    ++number;
    if (is_empty(record)) continue;
    if (record.size() != table.header.size())
      throw Error(ErrorKind::kInput, fmt::format("{}: row {}: expected {} columns, found {}", where,
                                                 number, table.header.size(), record.size()));
    table.rows.push_back(std::move(record));
  }
  return table;
}

}  // namespace tilecast
