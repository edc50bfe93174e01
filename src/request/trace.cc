// Traces: recorded requests, as CSV or as a JSON object a line. Columns and keys have the names of
// public traces beside our own; docs/reference/traces.md describes them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "request/load.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

enum Field : uint8_t {
  kArrival,
  kPrompt,
  kOutput,
  kSession,
  kTurn,
  kThink,
  kHashIds,
  kAdapter,
  kFields
};

/// A name of a field in files. Of several that a file has, the first counts.
struct FieldName {
  Field field;
  const char* name;
  double unit_s = 1;  ///< of a time
};
/// `timestamp`, `input_length`, `output_length`, `hash_ids`: Mooncake's traces
/// (github.com/kvcache-ai/Mooncake). `session_id`, `delay`: AIPerf's, of the same kind.
constexpr FieldName kNames[] = {
    {kArrival, "arrival"},         {kArrival, "arrival_s"},
    {kArrival, "timestamp", 1e-3}, {kPrompt, "prompt"},
    {kPrompt, "input_length"},     {kOutput, "output"},
    {kOutput, "output_length"},    {kSession, "session"},
    {kSession, "session_id"},      {kTurn, "turn"},
    {kThink, "think_s"},           {kThink, "delay", 1e-3},
    {kHashIds, "hash_ids"},        {kAdapter, "adapter"},
};
/// The names that messages use for what is missing.
constexpr const char* kOwnNames[] = {"arrival_s", "prompt",  "output",   "session",
                                     "turn",      "think_s", "hash_ids", "adapter"};

/// What a row says of a field; null: nothing.
struct Cell {
  Json value;
  std::string text;  ///< of a CSV file, as it stands there
  const FieldName* name = nullptr;
};
struct Row {
  size_t line = 0;
  std::array<Cell, kFields> cells;
};

/// Values of rows, with messages that say where.
class Reader {
 public:
  Reader(const std::string& path, const Row& row) : path_(path), row_(row) {}

  bool has(Field field) const { return !row_.cells[field].value.is_null(); }

  [[noreturn]] void fail(Field field, const std::string& expected) const {
    const Cell& cell = row_.cells[field];
    const char* name = cell.name == nullptr ? kOwnNames[field] : cell.name->name;
    std::string found = "nothing";
    if (!cell.text.empty() || cell.value.is_string())
      found = fmt::format(
          "'{}'", shown_name(cell.text.empty() ? cell.value.get<std::string>() : cell.text));
    else if (has(field))
      found = shown_name(cell.value.dump());
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: '{}': expected {}, found {}", path_,
                                               row_.line, name, expected, found));
  }

  double seconds(Field field, const std::string& expected, double least) const {
    const Cell& cell = row_.cells[field];
    constexpr double kMax = 1e9;
    const double value = cell.value.is_number() ? cell.value.get<double>() * cell.name->unit_s : -1;
    if (!(value >= least) || value > kMax) fail(field, expected);
    return value;
  }

  int64_t tokens(Field field) const {
    const std::optional<int64_t> value = whole_number(row_.cells[field].value, 1, 1'000'000'000);
    if (!value) fail(field, "a whole number of tokens, 1 or more");
    return *value;
  }

  int64_t turn(int64_t least) const {
    const std::optional<int64_t> value =
        whole_number(row_.cells[kTurn].value, least, int64_t{1} << 40);
    if (!value)
      fail(kTurn, fmt::format("a whole number, {} or more, in the order of the session", least));
    return *value;
  }

  /// Words of a CSV file, words or numbers of JSON.
  std::string word(Field field) const {
    const Json& value = row_.cells[field].value;
    if (value.is_string() && !is_not_finite(value)) return value.get<std::string>();
    if (!value.is_number_integer()) fail(field, "a word or a whole number");
    return value.dump();
  }

  std::vector<int64_t> hash_ids() const {
    const Json& list = row_.cells[kHashIds].value;
    constexpr const char* kExpected = "whole numbers of 0 or more";
    if (!list.is_array()) fail(kHashIds, kExpected);
    std::vector<int64_t> ids;
    for (const Json& each : list) {
      const std::optional<int64_t> id = whole_number(each, 0, int64_t{1} << 53);
      if (!id) fail(kHashIds, kExpected);
      ids.push_back(*id);
    }
    return ids;
  }

 private:
  const std::string& path_;
  const Row& row_;
};

constexpr const char* kExpectedNames =
    "arrival_s, prompt and output (or timestamp, input_length and output_length)";

/// 1024.0 as 1024: tables with empty cells write whole numbers so.
Json as_whole(Json value) {
  constexpr double kMost = 9e15;
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (!(std::abs(number) < kMost) || number != std::floor(number)) return value;
  return Json(static_cast<int64_t>(number));
}

/// The numbers in a cell with spaces between; a text that is no list stays one.
Json list_of(std::string_view text) {
  Json list = Json::array();
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const std::optional<int64_t> number = parse_number<int64_t>(word);
    if (!number) return Json(std::string(text));
    list.push_back(*number);
  }
  return list;
}

std::vector<Row> csv_rows(std::string_view text, const std::string& path) {
  const CsvTable table = parse_csv(text, path);
  std::vector<std::pair<const FieldName*, size_t>> columns;
  std::array<bool, kFields> known{};
  for (const FieldName& name : kNames) {
    const std::optional<size_t> column = table.column(name.name);
    if (!column || known[name.field]) continue;
    known[name.field] = true;
    columns.emplace_back(&name, *column);
  }
  // Nothing of a file that is no trace is shown: who asks a service may name any file.
  for (const Field field : {kArrival, kPrompt, kOutput}) {
    if (known[field]) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: column '{}' is missing; expected a first line with {}", path,
                            kOwnNames[field], kExpectedNames));
  }
  std::vector<Row> rows(table.rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].line = table.lines[r];
    for (const auto& [name, column] : columns) {
      const std::string& cell = table.rows[r][column];
      if (trim(cell).empty()) continue;
      Json value = cell;
      if (name->field == kHashIds) {
        value = list_of(cell);
      } else if (name->field != kSession && name->field != kAdapter) {
        // What is no number stays a text, which the reader refuses.
        if (const std::optional<double> number = table.find_number(r, column)) value = *number;
      }
      rows[r].cells[name->field] = {as_whole(std::move(value)), cell, name};
    }
  }
  return rows;
}

/// `known`: lines before it were those of a trace.
Json line_as_json(std::string_view line, size_t number, const std::string& path, bool known) {
  try {
    return parse_json(line, path);
  } catch (const Error&) {
    // As above: the first line may be of any file.
    if (!known)
      throw Error(ErrorKind::kInput, fmt::format("{}:{}: expected a JSON object with {}", path,
                                                 number, kExpectedNames));
  }
  return parse_json(std::string(number - 1, '\n') + std::string(line), path);  // it says which line
}

std::vector<Row> json_rows(std::string_view text, const std::string& path) {
  std::vector<Row> rows;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    number += 1;
    if (line.empty()) continue;
    Json object = line_as_json(line, number, path, !rows.empty());
    if (!object.is_object())
      throw Error(ErrorKind::kInput, fmt::format("{}:{}: expected a JSON object", path, number));
    Row row{.line = number, .cells = {}};
    for (const FieldName& name : kNames) {
      Cell& cell = row.cells[name.field];
      const auto found = object.find(name.name);
      if (found == object.end() || cell.name != nullptr) continue;
      cell = {as_whole(std::move(*found)), "", &name};
    }
    for (const Field field : {kPrompt, kOutput}) {
      if (row.cells[field].name != nullptr) continue;
      throw Error(ErrorKind::kInput, fmt::format("{}:{}: '{}' is missing; expected {}", path,
                                                 number, kOwnNames[field], kExpectedNames));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What the rows before say of a session.
struct Session {
  int64_t number = 0;
  double arrival_s = 0;
  int64_t next_turn = 0;
};

/// Numbers of names, in the order of the file.
struct Named {
  std::map<std::string, Session> sessions;
  std::map<std::string, int64_t> adapters;
};

TraceRequest request_of(const Reader& row, Named& named) {
  TraceRequest r{.prompt = row.tokens(kPrompt), .output = row.tokens(kOutput)};
  Session* session = nullptr;
  bool first = true;
  if (row.has(kSession)) {
    const auto [found, added] = named.sessions.try_emplace(
        row.word(kSession), Session{static_cast<int64_t>(named.sessions.size()), 0, 0});
    session = &found->second;
    first = added;
    r.session = session->number;
  }
  if (row.has(kThink)) {
    r.think_s = row.seconds(kThink, "seconds, 0 or more", 0);
    if (session == nullptr) row.fail(kSession, "a name, since the row states a time to think");
  }
  if (row.has(kTurn)) {
    if (session == nullptr) row.fail(kSession, "a name, since the row states a turn");
    session->next_turn = row.turn(first ? 0 : session->next_turn) + 1;
  }
  if (row.has(kArrival) || first) {
    const double least = first ? 0 : session->arrival_s;
    r.arrival_s =
        row.seconds(kArrival,
                    first ? std::string("seconds, 0 or more")
                          : fmt::format("seconds, {} or more, when the turn before arrives", least),
                    least);
  } else {
    r.arrival_s = session->arrival_s;
    r.follows = true;
  }
  if (session != nullptr) session->arrival_s = r.arrival_s;
  if (row.has(kHashIds)) r.hash_ids = row.hash_ids();
  if (row.has(kAdapter))
    r.adapter =
        named.adapters.try_emplace(row.word(kAdapter), static_cast<int64_t>(named.adapters.size()))
            .first->second;
  return r;
}

}  // namespace

std::vector<TraceRequest> read_trace(const std::string& path) {
  return parse_trace(read_file(path), path);
}

std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path) {
  const bool json = trim(text).starts_with('{');
  const std::vector<Row> rows = json ? json_rows(text, path) : csv_rows(text, path);
  std::vector<TraceRequest> trace;
  Named named;
  for (const Row& row : rows) trace.push_back(request_of(Reader(path, row), named));
  if (trace.empty())
    throw Error(ErrorKind::kInput,
                path + ": expected a line for each request after the header, found none");
  std::stable_sort(trace.begin(), trace.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  return trace;
}

}  // namespace tilecast
