#include "base/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>

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
                                               where, name, join(header, ", ")));
  return *found;
}

double CsvTable::number(size_t row, size_t column) const {
  const std::string& cell = rows[row][column];
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    throw Error(ErrorKind::kInput, fmt::format("{}: row {}: '{}': expected a number, found '{}'",
                                               where, row + 1, header[column], cell));
  return value;
}

int64_t CsvTable::integer(size_t row, size_t column) const {
  const double value = number(row, column);
  if (value < 0 || value > 9e15 || value != std::floor(value))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: row {}: '{}': expected a whole number ≥ 0, found '{}'", where,
                            row + 1, header[column], rows[row][column]));
  return static_cast<int64_t>(value);
}

CsvTable parse_csv(std::string_view text, const std::string& where) {
  CsvTable table;
  table.where = where;
  while (!text.empty() && text.front() == '#') {
    const size_t end = std::min(text.find('\n'), text.size());
    table.comments.emplace_back(trim(text.substr(1, end - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  csv_parser parser{};
  if (csv_init(&parser, 0) != 0) throw Error(ErrorKind::kInternal, "cannot start the CSV parser");
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, csv_free);
  Collector collector;
  csv_parse(&parser, text.data(), text.size(), on_field, on_record, &collector);
  csv_fini(&parser, on_field, on_record, &collector);
  if (collector.records.empty())
    throw Error(ErrorKind::kInput, where + ": expected a CSV file with a header line, found none");
  table.header = std::move(collector.records.front());
  for (size_t i = 1; i < collector.records.size(); ++i) {
    if (collector.records[i].size() != table.header.size())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: row {}: expected {} columns, found {}", where, i,
                              table.header.size(), collector.records[i].size()));
    table.rows.push_back(std::move(collector.records[i]));
  }
  return table;
}

}  // namespace tilecast
