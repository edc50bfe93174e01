#include "server/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "base/threads.h"
#include "command/job_source.h"
#include "command/option.h"
#include "schema/csv.h"
#include "schema/json.h"
#include "tilecast/search.h"

namespace tilecast::server {
namespace {

using Steady = std::chrono::steady_clock;

enum class Layout : uint8_t { kJsonLines, kCsv };

constexpr std::string_view kJsonLines = "application/x-ndjson", kCsv = "text/csv";

/// Rows that are alike share work within a block, so it has as many as take some seconds, and as
/// the memory of a request allows. The first is small: it shows how many that are.
constexpr size_t kFirstRows = 512, kLeastRows = 32;
constexpr double kBlockSeconds = 10;
constexpr int64_t kRowBytes = 2048;  ///< with its forecast and its text
constexpr size_t kBlockBytes = 16 << 20;

/// What the layout of a media type is; nullopt: it says nothing, as curl's.
std::optional<Layout> layout_of(const std::string& type) {
  if (type == kCsv) return Layout::kCsv;
  for (const std::string_view name :
       std::array<std::string_view, 3>{kJsonLines, "application/jsonl", "application/jsonlines"}) {
    if (type == name) return Layout::kJsonLines;
  }
  return std::nullopt;
}

/// The length of the next record, with its end of line: one inside quotes is part of a cell.
size_t record_size(std::string_view text, Layout layout) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && layout == Layout::kCsv) quoted = !quoted;
    if (text[i] == '\n' && !quoted) return i + 1;
  }
  return text.size();
}

/// The columns of a table: keywords, as in the JSON of requests, with the names of their options.
const std::map<std::string, std::string, std::less<>>& columns_by_keyword() {
  static const std::map<std::string, std::string, std::less<>> all = [] {
    std::map<std::string, std::string, std::less<>> columns = {{"model", "model"}, {"gpu", "gpu"}};
    for (const OptionDef& option : request_options()) {
      columns.emplace(keyword_of(option.name), option.name);
    }
    return columns;
  }();
  return all;
}

const std::string& column_of(std::string_view keyword) {
  const auto& columns = columns_by_keyword();
  const auto found = columns.find(keyword);
  if (found != columns.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, option] : columns) known.push_back(name);
  throw Error(ErrorKind::kInput, fmt::format("'{}' is no option of a forecast{}",
                                             shown_name(keyword), did_you_mean(keyword, known)));
}

/// Columns as forecast_many takes them, filled row by row.
class Columns {
 public:
  /// Adds a row with these values by name; those that are not given have their defaults.
  void add(const std::vector<std::pair<std::string, std::string>>& row) {
    for (const auto& [name, word] : row) {
      Column& column = column_named(name);
      const auto [at, fresh] =
          column.codes.emplace(word, static_cast<int32_t>(column.options.words.size()));
      if (fresh) column.options.words.push_back(word);
      column.options.codes.resize(rows_, OptionColumn::kNotGiven);
      column.options.codes.push_back(at->second);
    }
    ++rows_;
  }

  size_t rows() const { return rows_; }
  std::vector<OptionColumn> take() {
    std::vector<OptionColumn> all;
    for (Column& column : columns_) {
      column.options.codes.resize(rows_, OptionColumn::kNotGiven);
      all.push_back(std::move(column.options));
    }
    return all;
  }

 private:
  struct Column {
    OptionColumn options;
    std::unordered_map<std::string, int32_t> codes;
  };
  Column& column_named(const std::string& name) {
    for (Column& column : columns_) {
      if (column.options.name == name) return column;
    }
    columns_.push_back({.options = {.name = name}});
    return columns_.back();
  }

  std::deque<Column> columns_;
  size_t rows_ = 0;
};

/// Reads the rows of a body, a block at a time.
class Reader {
 public:
  Reader(std::string body, Layout layout) : body_(std::move(body)), layout_(layout) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // of byte order, which spreadsheets write
    if (body_.starts_with(kMark)) at_ = kMark.size();
    if (layout == Layout::kCsv) read_header();
  }

  struct Block {
    Columns columns;
    std::vector<std::string> errors;  ///< of each row; "": it is the next of `columns`
  };
  bool is_at_end() const { return at_ >= body_.size(); }

  /// So many rows at most.
  Block next(size_t rows) {
    Block block;
    const size_t start = at_;
    while (!is_at_end() && block.errors.size() < rows && at_ - start < kBlockBytes) {
      const std::string_view record = next_record();
      if (trim(record).empty()) continue;
      ++row_;
      try {
        block.columns.add(layout_ == Layout::kCsv ? csv_row(record) : json_row(record));
        block.errors.emplace_back();
      } catch (const Error& error) {
        block.errors.emplace_back(error.what());
      }
    }
    return block;
  }

  size_t lines() const { return static_cast<size_t>(std::count(body_.begin(), body_.end(), '\n')); }

 private:
  using Row = std::vector<std::pair<std::string, std::string>>;

  std::string_view next_record() {
    const std::string_view rest = std::string_view(body_).substr(at_);
    const size_t size = record_size(rest, layout_);
    at_ += size;
    std::string_view record = rest.substr(0, size);
    while (record.ends_with('\n') || record.ends_with('\r')) record.remove_suffix(1);
    return record;
  }

  void read_header() {
    std::set<std::string> seen;
    for (const std::string& keyword : csv_cells(next_record())) {
      std::string name = column_of(keyword);
      if (!seen.insert(name).second)
        throw Error(ErrorKind::kInput, fmt::format("column '{}' is there twice", keyword));
      header_.push_back(std::move(name));
    }
    if (header_.empty())
      throw Error(ErrorKind::kInput, "expected a line with the names of the columns first");
  }

  Row csv_row(std::string_view record) const {
    std::vector<std::string> cells = csv_cells(record);
    if (cells.size() != header_.size())
      throw Error(ErrorKind::kInput, fmt::format("row {}: {} cells, expected {} as in the header",
                                                 row_, cells.size(), header_.size()));
    Row row;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty()) row.emplace_back(header_[i], std::move(cells[i]));
    }
    return row;
  }

  Row json_row(std::string_view record) const {
    const std::string where = fmt::format("row {}", row_);
    const Json json = parse_json(record, where);
    if (!json.is_object())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected an object, found {}", where, json.type_name()));
    Row row;
    for (const auto& item : json.items()) {
      if (item.value().is_null()) continue;
      const std::string& name = column_of(item.key());
      if (item.value().is_object() && name == "model") {
        row.emplace_back(name, item.value().dump());
        continue;
      }
      std::optional<std::string> word = word_of_value(item.value());
      if (!word)
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: `{}`: expected a text, a number, true or false, found {}",
                                where, item.key(), item.value().type_name()));
      if (!word->empty()) row.emplace_back(name, *std::move(word));
    }
    return row;
  }

  std::string body_;
  Layout layout_;
  size_t at_ = 0, row_ = 0;
  std::vector<std::string> header_;
};

/// The answer, a block at each call.
class Answerer {
 public:
  Answerer(std::shared_ptr<const Forecaster> forecaster, Reader reader, Layout layout,
           std::vector<std::string> fields, TableWork work)
      : forecaster_(std::move(forecaster)),
        reader_(std::move(reader)),
        layout_(layout),
        fields_(std::move(fields)),
        work_(std::move(work)) {
    if (work_.show_progress) lines_ = reader_.lines();
    const int64_t memory = work_.limits.memory_bytes.value_or(int64_t{1} << 30);
    most_rows_ = std::max(kLeastRows, static_cast<size_t>(memory / kRowBytes));
    block_rows_ = std::min(kFirstRows, most_rows_);
  }

  std::optional<std::string> next() {
    if (reader_.is_at_end()) {
      if (!is_first_) return std::nullopt;
      return text_of({});  // a header alone
    }
    const Steady::time_point start = Steady::now();
    Reader::Block block = reader_.next(block_rows_);
    if (!stopped_.empty()) return text_of(failed(block.errors.size()));
    std::vector<ForecastTotals> rows;
    try {
      Limits limits = work_.limits;
      if (limits.seconds) limits.seconds = std::max(1e-3, *limits.seconds - used_s_);
      const LimitScope scope(limits);
      rows = forecast(block);
    } catch (const LimitReached& reached) {
      stopped_ = reached.what();
    } catch (const std::bad_alloc& error) {
      stopped_ = "out of memory";
    } catch (const std::exception& error) {
      stopped_ = error.what();
    }
    if (!stopped_.empty()) rows = failed(block.errors.size());
    const double seconds = std::chrono::duration<double>(Steady::now() - start).count();
    used_s_ += seconds;
    const double in_time =
        kBlockSeconds * static_cast<double>(rows.size()) / std::max(seconds, 1e-6);
    block_rows_ = static_cast<size_t>(
        std::clamp(in_time, double{kLeastRows}, static_cast<double>(most_rows_)));
    done_ += rows.size();
    if (work_.show_progress)
      work_.show_progress(
          {.done = done_, .total = std::max(lines_, done_), .unit = "rows", .note = ""});
    return text_of(rows);
  }

 private:
  std::vector<ForecastTotals> forecast(Reader::Block& block) const {
    const size_t count = block.columns.rows();
    const std::vector<OptionColumn> columns = block.columns.take();
    const ForecastTable table = forecast_many(*forecaster_, columns, count);
    std::vector<ForecastTotals> rows;
    rows.reserve(block.errors.size());
    size_t row = 0;
    for (const std::string& error : block.errors) {
      if (error.empty()) {
        rows.push_back(table.of_row(row++));
      } else {
        rows.emplace_back().error = error;
      }
    }
    return rows;
  }

  std::vector<ForecastTotals> failed(size_t count) const {
    std::vector<ForecastTotals> rows(count);
    for (ForecastTotals& row : rows) row.error = stopped_;
    return rows;
  }

  std::string text_of(const std::vector<ForecastTotals>& rows) {
    constexpr size_t kPiece = 1024;  // rows that one thread writes at a time
    const bool with_header = std::exchange(is_first_, false);
    const size_t pieces = (rows.size() + kPiece - 1) / kPiece;
    std::vector<std::string> texts(std::max<size_t>(pieces, 1));
    run_all(texts.size(), 0, [&](size_t p) {
      const auto begin = rows.begin() + static_cast<ptrdiff_t>(p * kPiece);
      const auto end =
          rows.begin() + static_cast<ptrdiff_t>(std::min(rows.size(), (p + 1) * kPiece));
      const std::vector<ForecastTotals> part(begin, end);
      texts[p] = layout_ == Layout::kCsv ? to_csv_lines(part, fields_, with_header && p == 0)
                                         : to_json_lines(part, fields_);
    });
    return join(texts, "");
  }

  std::shared_ptr<const Forecaster> forecaster_;
  Reader reader_;
  Layout layout_;
  std::vector<std::string> fields_;
  TableWork work_;
  double used_s_ = 0;
  size_t done_ = 0, lines_ = 0;
  size_t block_rows_ = 0, most_rows_ = 0;
  bool is_first_ = true;
  std::string stopped_;  ///< why no more rows are forecast
};

}  // namespace

bool is_table(std::string_view target) {
  return target.substr(0, target.find('?')) == "/v1/forecast_many";
}

HttpResponse table_answer(std::shared_ptr<const Forecaster> forecaster, const HttpRequest& request,
                          std::vector<std::string> fields, TableWork work) {
  const std::string type = media_type(request.content_type);
  std::optional<Layout> in = layout_of(type);
  if (!in && !type.empty() && type != "application/x-www-form-urlencoded" && type != "text/plain" &&
      type != "application/octet-stream")
    return problem(
        415, fmt::format("expected {} or {}, found '{}'", kJsonLines, kCsv, shown_name(type)));
  if (!in) in = trim(request.body).starts_with('{') ? Layout::kJsonLines : Layout::kCsv;
  to_json_lines(std::vector<ForecastTotals>(1), fields);  // throws for a field that there is not
  const Layout out = lists(request.accept, kCsv)         ? Layout::kCsv
                     : lists(request.accept, kJsonLines) ? Layout::kJsonLines
                                                         : *in;
  auto answerer = std::make_shared<Answerer>(std::move(forecaster), Reader(request.body, *in), out,
                                             std::move(fields), std::move(work));
  return {.content_type = out == Layout::kCsv ? "text/csv; charset=utf-8" : std::string(kJsonLines),
          .body = "",
          .headers = {},
          .parts = std::make_shared<BodyParts>(
              BodyParts{.next = [answerer] { return answerer->next(); }, .is_long = true})};
}

}  // namespace tilecast::server
