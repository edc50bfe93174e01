#include "scenario/price_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/embedded.h"
#include "base/text.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr std::string_view kPriceFolder = "prices/", kPriceEnding = ".csv";

std::string name_of_table(std::string_view path) {
  path.remove_prefix(kPriceFolder.size());
  return std::string(path.substr(0, path.size() - kPriceEnding.size()));
}

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// A year, a month or a day, as ISO 8601 writes them.
bool is_date(std::string_view text) {
  constexpr size_t kYear = 4, kMonth = 7, kDay = 10;
  const auto part = [&](size_t from, int most) {
    const std::string_view digits = text.substr(from, 2);
    if (text[from - 1] != '-' || !are_digits(digits)) return false;
    const int value = 10 * (digits[0] - '0') + (digits[1] - '0');
    return value >= 1 && value <= most;
  };
  if (text.size() != kYear && text.size() != kMonth && text.size() != kDay) return false;
  return are_digits(text.substr(0, kYear)) && (text.size() < kMonth || part(kYear + 1, 12)) &&
         (text.size() < kDay || part(kMonth + 1, 31));
}

bool is_currency(std::string_view text) {
  return text.size() == 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

class PriceTableReader {
 public:
  PriceTableReader(const std::string& content, const std::string& where)
      : table_(parse_csv(content, where)),
        gpu_(table_.require_column("gpu")),
        price_(table_.require_column("price_per_gpu_hour")) {}

  std::vector<PriceRow> rows() const {
    std::vector<PriceRow> rows;
    for (size_t row = 0; row < table_.rows.size(); ++row) rows.push_back(row_at(row));
    return rows;
  }

 private:
  [[noreturn]] void fail(size_t row, size_t column, const std::string& expected) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: column '{}': expected {}, found '{}'",
                                               table_.place(row), shown_name(table_.header[column]),
                                               expected, shown_name(table_.rows[row][column])));
  }

  /// The text of a column that need not be there.
  std::string text_at(size_t row, const char* name) const {
    const std::optional<size_t> column = table_.column(name);
    return column ? printable(table_.rows[row][*column]) : "";
  }

  PriceRow row_at(size_t row) const {
    PriceRow read{.price = {.gpu = table_.rows[row][gpu_],
                            .table = table_.where,
                            .currency = text_at(row, "currency"),
                            .date = text_at(row, "date"),
                            .source = text_at(row, "source")},
                  .where = table_.place(row)};
    if (read.price.gpu.empty()) fail(row, gpu_, "the name of a GPU or a cluster");
    const std::optional<double> price = table_.find_number(row, price_);
    if (!price || *price < 0) fail(row, price_, "a price of 0 or more");
    read.price.price_per_gpu_hour = *price;
    if (!read.price.currency.empty() && !is_currency(read.price.currency))
      fail(row, *table_.column("currency"), "three letters, as USD");
    if (!read.price.date.empty() && !is_date(read.price.date))
      fail(row, *table_.column("date"), "a date, as 2025, 2025-06 or 2025-06-30");
    return read;
  }

  CsvTable table_;
  size_t gpu_, price_;
};

}  // namespace

const std::vector<std::string>& price_table_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const EmbeddedFile& file : embedded_files(kPriceFolder))
      all.push_back(name_of_table(file.path));
    return all;
  }();
  return names;
}

std::vector<PriceRow> parse_price_table(const std::string& content, const std::string& where) {
  return PriceTableReader(content, where).rows();
}

std::vector<PriceRow> find_price_table(const std::string& name) {
  for (const EmbeddedFile& file : embedded_files(kPriceFolder)) {
    const std::string known = name_of_table(file.path);
    if (normalized_name(known) == normalized_name(name))
      return parse_price_table(std::string(file.content), known);
  }
  throw OptionError(fmt::format(
      "`price-per-gpu-hour`: expected a number of 0 or more, GPU=NUMBER,..., a file "
      "(.json, .csv) or a price table ({}), found '{}'{}",
      join(price_table_names(), ", "), shown_name(name), did_you_mean(name, price_table_names())));
}

}  // namespace tilecast
