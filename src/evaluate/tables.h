#pragma once

// Tables of measurements in a file or a folder.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/text.h"
#include "measurements/xz.h"

namespace tilecast {

/// The header of a CSV file (.csv or .csv.xz) without its rows; nullopt for other files and for a
/// file without rows.
std::optional<CsvTable> table_header(const std::string& path);

/// Why rows could not be compared, each reason once, with the number of its rows.
std::vector<std::string> unmatched_reasons(const std::map<std::string, int>& rows_of_reason);
/// Throws Error{kInput} for a file none of whose rows could be compared.
[[noreturn]] void refuse_unmatched(const std::string& path,
                                   const std::vector<std::string>& unmatched);

/// Cycles of layers that were measured on an accelerator.
inline bool is_cycles_table(const CsvTable& table) {
  return table.column("rtl_cycles") && table.column("dram_order") && table.column("spatial_c");
}

/// Solvers of MIOpen's find databases with their times; names of such files begin with
/// `kFindPrefix`.
inline bool lists_solvers(const CsvTable& table) {
  return table.column("solver") && table.column("time_ms");
}
inline constexpr std::string_view kFindPrefix = "find_";

/// The results of `evaluate(table, file)` for the file, or for the files of the folder in the order
/// of their names, which begin with `prefix` and end with .csv or .csv.xz. nullopt if there are
/// none, or if `knows(table)` is false for one.
template <typename Result, typename Knows, typename Evaluate>
std::optional<std::vector<Result>> evaluate_tables(const std::string& path, std::string_view prefix,
                                                   const Knows& knows, const Evaluate& evaluate) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  const auto is_table = [&](const fs::path& file) {
    const std::string name = file.filename().string();
    return name.starts_with(prefix) && (name.ends_with(".csv") || name.ends_with(".csv.xz"));
  };
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (is_table(entry.path())) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else if (is_table(path)) {
    files.emplace_back(path);
  }
  std::vector<Result> results;
  for (const fs::path& file : files) {
    const CsvTable table = parse_csv(read_measurement_text(file), printable(file.string()));
    if (!knows(table)) return std::nullopt;
    results.push_back(evaluate(table, file));
  }
  if (results.empty()) return std::nullopt;
  return results;
}

}  // namespace tilecast
