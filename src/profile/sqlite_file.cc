#include "profile/sqlite_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/budget.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#ifdef TILECAST_SQLITE
#include <sqlite3.h>
#endif

namespace tilecast {

bool is_sqlite(std::string_view start) { return start.starts_with("SQLite format 3"); }

bool reads_sqlite() {
#ifdef TILECAST_SQLITE
  return true;
#else
  return false;
#endif
}

#ifdef TILECAST_SQLITE
namespace {

/// A path as a URI writes it.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  // A profile does not change while it is read: no locks, and no journal beside it is played.
  return uri + "?immutable=1";
}

std::string quoted_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

class Statement {
 public:
  Statement(sqlite3* file, const std::string& sql) {
    code_ =
        sqlite3_prepare_v2(file, sql.c_str(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool valid() const { return statement_ != nullptr; }
  /// Whether there is another row; `ended` tells whether all were seen.
  bool next() {
    code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  bool ended() const { return code_ == SQLITE_DONE; }
  sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_;
};

/// Ends SQLite's work where the thread's budget is over, also within one row.
class BudgetWatch {
 public:
  explicit BudgetWatch(sqlite3* file) : file_(file) {
    constexpr int kInstructions = 1000;  // some microseconds
    sqlite3_progress_handler(file_, kInstructions, &BudgetWatch::look, this);
  }
  ~BudgetWatch() { sqlite3_progress_handler(file_, 0, nullptr, nullptr); }
  BudgetWatch(const BudgetWatch&) = delete;
  BudgetWatch& operator=(const BudgetWatch&) = delete;

  /// Throws what ended the work.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// SQLite is C: no exception may pass through it.
  static int look(void* watch) {
    try {
      go_on("reading a profiler trace");
      return 0;
    } catch (...) {
      static_cast<BudgetWatch*>(watch)->error_ = std::current_exception();
      return 1;
    }
  }

  sqlite3* file_;
  std::exception_ptr error_;
};

/// The columns whose values are in the file. Those that are computed (hidden: 2, and 3 where the
/// value is stored, too) are left out: reading one would run its expression.
std::vector<std::string> stored_columns(sqlite3* file, const std::string& table) {
  constexpr size_t kName = 1, kHidden = 6;
  std::vector<std::string> names;
  Statement columns(file, "PRAGMA main.table_xinfo(" + quoted_name(table) + ")");
  while (columns.valid() && columns.next()) {
    const SqliteRow row(columns.get());
    if (row.number(kHidden, -1) == 0) names.emplace_back(row.text(kName));
  }
  return names;
}

/// Reads these columns, NULL in place of those that the table lacks, in the order of the table: an
/// index may be one of expressions.
std::string select_of(sqlite3* file, const std::string& table,
                      const std::vector<std::string_view>& columns) {
  const std::vector<std::string> stored = stored_columns(file, table);
  std::string list;
  for (const std::string_view column : columns) {
    const bool is_there = std::find(stored.begin(), stored.end(), column) != stored.end();
    list += list.empty() ? "" : ", ";
    list += is_there ? quoted_name(std::string(column)) : "NULL";
  }
  return "SELECT " + list + " FROM main." + quoted_name(table) + " NOT INDEXED";
}

}  // namespace

bool SqliteRow::has(size_t column) const {
  return sqlite3_column_type(statement_, static_cast<int>(column)) != SQLITE_NULL;
}

int64_t SqliteRow::number(size_t column, int64_t fallback) const {
  const int place = static_cast<int>(column);
  if (sqlite3_column_type(statement_, place) != SQLITE_INTEGER) return fallback;
  return sqlite3_column_int64(statement_, place);
}

std::string_view SqliteRow::text(size_t column) const {
  const int place = static_cast<int>(column);
  if (sqlite3_column_type(statement_, place) != SQLITE_TEXT) return {};
  const unsigned char* text = sqlite3_column_text(statement_, place);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, place))};
}

void SqliteFile::Close::operator()(sqlite3* file) const { sqlite3_close_v2(file); }

void SqliteFile::connect(const std::string& uri) {
  sqlite3* file = nullptr;
  const int code = sqlite3_open_v2(
      uri.c_str(), &file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  file_.reset(file);
  if (code != SQLITE_OK || file == nullptr) fail_input(name_, "SQLite cannot open the file");
  for (const int option :
       {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, SQLITE_DBCONFIG_DQS_DDL, SQLITE_DBCONFIG_DQS_DML})
    sqlite3_db_config(file, option, 0, nullptr);
  sqlite3_db_config(file, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_drop_modules(file, nullptr);  // virtual tables
  constexpr int kMostRowBytes = 16 << 20, kMostColumns = 256, kMostDepth = 16;
  sqlite3_limit(file, SQLITE_LIMIT_LENGTH, kMostRowBytes);
  sqlite3_limit(file, SQLITE_LIMIT_COLUMN, kMostColumns);
  sqlite3_limit(file, SQLITE_LIMIT_EXPR_DEPTH, kMostDepth);
  sqlite3_limit(file, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(file, SQLITE_LIMIT_WORKER_THREADS, 0);
}

void SqliteFile::prepare() {
  BudgetWatch watch(file_.get());
  // A few MB of pages are kept; damaged cells are looked for.
  for (const char* pragma : {"PRAGMA cell_size_check=ON", "PRAGMA mmap_size=0",
                             "PRAGMA cache_size=-4096", "PRAGMA query_only=ON"})
    sqlite3_exec(file_.get(), pragma, nullptr, nullptr, nullptr);
  Statement names(file_.get(), "SELECT name FROM sqlite_schema WHERE type='table' AND rootpage>0");
  constexpr size_t kMostTables = 10'000;
  while (names.valid() && names.next() && tables_.size() < kMostTables)
    tables_.emplace_back(SqliteRow(names.get()).text(0));
  watch.rethrow();
  if (!names.valid() || !names.ended())
    fail_input(name_, "damaged SQLite file: its list of tables cannot be read");
}

SqliteFile SqliteFile::open(const std::filesystem::path& path) {
  read_file_start(path, 1);  // with the errors of files
  SqliteFile file(printable(path.string()));
  file.connect(uri_of(path));
  file.prepare();
  return file;
}

SqliteFile SqliteFile::of_memory(std::string_view content, std::string name) {
  SqliteFile file(std::move(name));
  file.connect("file::memory:");
  // SQLite does not write to a read-only image.
  auto* image = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
  const auto size = static_cast<sqlite3_int64>(content.size());
  if (sqlite3_deserialize(file.file_.get(), "main", image, size, size,
                          SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    fail_input(file.name_, "SQLite cannot open the file");
  file.prepare();
  return file;
}

bool SqliteFile::has_table(const std::string& table) const {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

bool SqliteFile::for_each_row(const std::string& table,
                              const std::vector<std::string_view>& columns,
                              const std::function<void(const SqliteRow&)>& work) const {
  BudgetWatch watch(file_.get());
  Statement rows(file_.get(), select_of(file_.get(), table, columns));
  watch.rethrow();
  if (!rows.valid()) return false;
  int64_t count = 0;
  while (rows.next()) {
    Budget::here().allow(kTraceEvents, ++count, name_);
    work(SqliteRow(rows.get()));
    go_on("reading a profiler trace");
  }
  watch.rethrow();
  return rows.ended();
}

#else

namespace {
[[noreturn]] void refuse_sqlite(const std::string& name) {
  throw Error(ErrorKind::kUnsupported,
              name + ": this build of Tilecast has no SQLite: build it where libsqlite3-dev is");
}
}  // namespace

bool SqliteRow::has(size_t) const { return false; }
int64_t SqliteRow::number(size_t, int64_t fallback) const { return fallback; }
std::string_view SqliteRow::text(size_t) const { return {}; }
void SqliteFile::Close::operator()(sqlite3*) const {}
SqliteFile SqliteFile::open(const std::filesystem::path& path) {
  refuse_sqlite(printable(path.string()));
}
SqliteFile SqliteFile::of_memory(std::string_view, std::string name) { refuse_sqlite(name); }
bool SqliteFile::has_table(const std::string&) const { return false; }
bool SqliteFile::for_each_row(const std::string&, const std::vector<std::string_view>&,
                              const std::function<void(const SqliteRow&)>&) const {
  return false;
}
#endif

}  // namespace tilecast
