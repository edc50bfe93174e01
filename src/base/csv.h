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
  std::vector<size_t> lines;  ///< of the file, on which each of `rows` begins; the first is 1
  size_t empty_rows = 0;      ///< rows whose cells are all empty; they are not among `rows`
  /// Numbers are written with a decimal comma: in files whose separator is a semicolon.
  bool decimal_comma = false;

  /// Column of that name; nullopt where there is none.
  std::optional<size_t> column(std::string_view name) const;
  /// As `column`, but throws Error{kInput} naming the file and the columns it has.
  size_t require_column(std::string_view name) const;
  /// "few.csv: line 3", for messages about a row.
  std::string place(size_t row) const;
  /// The number in a cell; nullopt: it holds none.
  std::optional<double> find_number(size_t row, size_t column) const;
  /// The same, but throws Error{kInput} with file and line.
  double number(size_t row, size_t column) const;
  /// The non-negative integer in a cell. Throws Error{kInput} with file and line.
  int64_t integer(size_t row, size_t column) const;
};

/// Parses CSV (RFC 4180 quoting), lines ending in LF or CRLF, with or without a byte-order mark.
/// A header with semicolons and no comma outside quotes makes the semicolon the separator, as
/// spreadsheets write where the comma is the decimal mark: numbers may then have a decimal comma
/// (there is no thousands separator in either form). Rows whose cells are all empty are left out.
/// Throws Error{kInput} where a row's width differs from the header, or a column is named twice.
CsvTable parse_csv(std::string_view text, const std::string& where);

/// The cells of one line.
std::vector<std::string> csv_cells(std::string_view line);

/// `text` as a cell of a line: in quotes where it holds a comma, a quote or the end of a line. A
/// text that a spreadsheet would run as a formula (it starts with = + @ or, unless it is a number,
/// with -) gets a ' before it, by which spreadsheets tell texts.
std::string csv_cell(std::string_view text);

}  // namespace tilecast
