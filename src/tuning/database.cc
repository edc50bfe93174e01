#include "tuning/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

[[noreturn]] void broken(const std::string& where, size_t line, const std::string& what) {
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: line {}: {}; expected KEY=SOLVER:VALUES;SOLVER:VALUES", where, line, what));
}

struct RawEntry {
  std::string name, values;
};
struct RawRecord {
  size_t line;
  std::string key;
  std::vector<RawEntry> entries;
};

std::vector<RawRecord> parse_lines(std::string_view text, const std::string& where) {
  std::vector<RawRecord> records;
  size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      broken(where, number, fmt::format("'{}' has no '='", shown_name(line)));
    RawRecord record{number, std::string(line.substr(0, equals)), {}};
    if (record.key.empty()) broken(where, number, "the key is empty");
    for (const std::string& part : split(line.substr(equals + 1), ';')) {
      const size_t colon = part.find(':');
      if (colon == std::string::npos || colon == 0 || colon + 1 == part.size())
        broken(where, number, fmt::format("'{}' is no SOLVER:VALUES", shown_name(part)));
      record.entries.push_back({part.substr(0, colon), part.substr(colon + 1)});
    }
    if (record.entries.empty()) broken(where, number, "the record has no solver");
    records.push_back(std::move(record));
  }
  return records;
}

template <class T>
T number_of(const std::string& text, const std::string& where, size_t line, T least) {
  const std::optional<T> value = parse_number<T>(text);
  if (!value || !(*value >= least) || !std::isfinite(static_cast<double>(*value)))
    broken(where, line, fmt::format("'{}' is no number that is not negative", shown_name(text)));
  return *value;
}

}  // namespace

std::vector<FindRecord> parse_find_database(std::string_view text, const std::string& where) {
  std::vector<FindRecord> records;
  for (const RawRecord& raw : parse_lines(text, where)) {
    FindRecord& record = records.emplace_back();
    record.key = raw.key;
    for (const RawEntry& entry : raw.entries) {
      const std::vector<std::string> parts = split(entry.values, ',');
      if (parts.size() != 3)
        broken(where, raw.line,
               fmt::format("{} has {} values, not time, workspace and algorithm",
                           shown_name(entry.name), parts.size()));
      record.entries.push_back({entry.name, number_of<double>(parts[0], where, raw.line, 0),
                                number_of<int64_t>(parts[1], where, raw.line, 0), parts[2]});
    }
  }
  return records;
}

std::vector<PerfRecord> parse_perf_database(std::string_view text, const std::string& where) {
  std::vector<PerfRecord> records;
  for (const RawRecord& raw : parse_lines(text, where)) {
    PerfRecord& record = records.emplace_back();
    record.key = raw.key;
    for (const RawEntry& entry : raw.entries) record.entries.push_back({entry.name, entry.values});
  }
  return records;
}

std::string format_find_database(const std::vector<FindRecord>& records) {
  std::string text;
  for (const FindRecord& record : records) {
    text += record.key + "=";
    for (size_t i = 0; i < record.entries.size(); ++i) {
      const FindEntry& e = record.entries[i];
      text += fmt::format("{}{}:{:g},{},{}", i == 0 ? "" : ";", e.solver, e.time_ms,
                          e.workspace_bytes, e.algorithm);
    }
    text += "\n";
  }
  return text;
}

std::string format_perf_database(const std::vector<PerfRecord>& records) {
  std::string text;
  for (const PerfRecord& record : records) {
    text += record.key + "=";
    for (size_t i = 0; i < record.entries.size(); ++i)
      text += fmt::format("{}{}:{}", i == 0 ? "" : ";", record.entries[i].solver,
                          record.entries[i].parameters);
    text += "\n";
  }
  return text;
}

int64_t workspace_bytes(const Solver& solver, const ConvProblem& p) {
  const int64_t bytes = dtype_bits(p.dtype) / 8;
  if (solver.workspace == Workspace::kNone) return 0;
  if (solver.workspace == Workspace::kUnrolled) return bytes * p.r * p.s * p.c * p.oh * p.ow;
  if (solver.workspace == Workspace::kStrided) return bytes * p.n * (p.c + p.k) * p.oh * p.ow;
  if (solver.workspace == Workspace::kStridedInput)
    return std::max(p.stride_h, p.stride_w) == 1 ? 0 : bytes * p.n * p.c * p.oh * p.ow;
  const double elements = p.input_bytes() + p.output_bytes() + p.weight_bytes();
  return static_cast<int64_t>(
      std::ceil(solver.workspace_factor * 4 * elements / static_cast<double>(bytes)));
}

}  // namespace tilecast::tuning
