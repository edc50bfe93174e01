// Not a test: rows per second of forecast_many on a CSV of rows, without reading and writing, for
// tools/measure_service.sh.
//   many_rows rows.csv

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <unordered_map>

#include "base/csv.h"
#include "base/file.h"
#include "tilecast/search.h"

namespace {

void measure(const char* path) {
  const tilecast::CsvTable table = tilecast::parse_csv(tilecast::read_file(path), path);
  std::vector<tilecast::OptionColumn> columns;
  for (size_t c = 0; c < table.header.size(); ++c) {
    tilecast::OptionColumn column{.name = table.header[c], .words = {}, .codes = {}};
    std::unordered_map<std::string, int32_t> codes;
    for (const auto& row : table.rows) {
      const auto [at, fresh] = codes.emplace(row[c], static_cast<int32_t>(column.words.size()));
      if (fresh) column.words.push_back(row[c]);
      column.codes.push_back(at->second);
    }
    columns.push_back(std::move(column));
  }
  const tilecast::Forecaster forecaster;
  const auto start = std::chrono::steady_clock::now();
  const tilecast::ForecastTable result =
      tilecast::forecast_many(forecaster, columns, table.rows.size());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  fmt::print("{:.0f} rows/s, {} of {} rows differ\n",
             static_cast<double>(table.rows.size()) / passed.count(), result.distinct.size(),
             table.rows.size());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2) measure(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return argc == 2 ? 0 : 2;
}
