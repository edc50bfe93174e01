#include "evaluate/tables.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/file.h"
#include "tilecast/error.h"

namespace tilecast {

std::optional<CsvTable> table_header(const std::string& path) {
  const bool is_csv = path.ends_with(".csv") || path.ends_with(".csv.xz");
  if (!is_csv || !is_file(path)) return std::nullopt;
  // Lines before the header are empty or comments. The rows may be 100 MB, which another reader
  // reads.
  constexpr uint64_t kStart = 64 << 10;
  const std::string text =
      path.ends_with(".xz") ? read_measurement_text(path) : read_file_start(path, kStart);
  size_t begin = 0, end = text.find('\n');
  const auto is_header = [&] {
    const std::string_view line = trim(std::string_view(text).substr(begin, end - begin));
    return !line.empty() && line.front() != '#';
  };
  while (end != std::string::npos && !is_header()) {
    begin = end + 1;
    end = text.find('\n', begin);
  }
  if (end == std::string::npos) return std::nullopt;  // no rows
  return parse_csv(text.substr(begin, end + 1 - begin), printable(path));
}

std::vector<std::string> unmatched_reasons(const std::map<std::string, int>& rows_of_reason) {
  std::vector<std::string> reasons;
  for (const auto& [reason, rows] : rows_of_reason)
    reasons.push_back(rows == 1 ? reason : fmt::format("{} ({} rows)", reason, rows));
  return reasons;
}

void refuse_unmatched(const std::string& path, const std::vector<std::string>& unmatched) {
  throw Error(ErrorKind::kInput, fmt::format("{}: no row could be compared{}{}", printable(path),
                                             unmatched.empty() ? "" : ": ",
                                             unmatched.empty() ? "" : unmatched.front()));
}

}  // namespace tilecast
