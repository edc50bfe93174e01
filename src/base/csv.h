#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// A CSV file with a header line. Lines that start with '#' before the header are kept as comments.
struct CsvTable {
  std::string where;
  std::vector<std::string> comments;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  /// Column of that name; nullopt where there is none.
  std::optional<size_t> column(std::string_view name) const;
  /// As `column`, but throws Error{kInput} naming the file and the columns it has.
  size_t require_column(std::string_view name) const;
  /// The number in a cell. Throws Error{kInput} with file and row.
  double number(size_t row, size_t column) const;
  /// The non-negative integer in a cell. Throws Error{kInput} with file and row.
  int64_t integer(size_t row, size_t column) const;
};

/// Parses CSV (RFC 4180 quoting). Throws Error{kInput} where a row's width differs from the header.
CsvTable parse_csv(std::string_view text, const std::string& where);

}  // namespace tilecast
