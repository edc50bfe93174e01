#include "profile/sqlite_file.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

bool SqliteRow::has(size_t column) const {
  return places_[column] >= 0 && sqlite3_column_type(statement_, places_[column]) != SQLITE_NULL;
}

int64_t SqliteRow::number(size_t column, int64_t fallback) const {
  if (places_[column] < 0 || sqlite3_column_type(statement_, places_[column]) != SQLITE_INTEGER)
    return fallback;
  return sqlite3_column_int64(statement_, places_[column]);
}

std::string_view SqliteRow::text(size_t column) const {
  if (places_[column] < 0 || sqlite3_column_type(statement_, places_[column]) != SQLITE_TEXT)
    return {};
  const unsigned char* text = sqlite3_column_text(statement_, places_[column]);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, places_[column]))};
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
  // A few MB of pages are kept; damaged cells are looked for.
  for (const char* pragma : {"PRAGMA cell_size_check=ON", "PRAGMA mmap_size=0",
                             "PRAGMA cache_size=-4096", "PRAGMA query_only=ON"})
    sqlite3_exec(file_.get(), pragma, nullptr, nullptr, nullptr);
  Statement names(file_.get(), "SELECT name FROM sqlite_schema WHERE type='table' AND rootpage>0");
  const std::vector<int> places = {0};
  constexpr size_t kMostTables = 10'000;
  while (names.valid() && names.next() && tables_.size() < kMostTables)
    tables_.emplace_back(SqliteRow(names.get(), places).text(0));
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
  Statement rows(file_.get(), "SELECT * FROM main." + quoted_name(table));
  if (!rows.valid()) return false;
  std::vector<int> places(columns.size(), -1);
  for (int i = 0; i < sqlite3_column_count(rows.get()); ++i) {
    const char* name = sqlite3_column_name(rows.get(), i);
    const auto found = std::find(columns.begin(), columns.end(), name == nullptr ? "" : name);
    if (found != columns.end()) places[static_cast<size_t>(found - columns.begin())] = i;
  }
  int64_t count = 0;
  while (rows.next()) {
    Budget::here().allow(kTraceEvents, ++count, name_);
    work(SqliteRow(rows.get(), places));
    go_on("reading a profiler trace");
  }
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
