#pragma once

// Tables of an SQLite file that nobody vouches for. Nothing in the file runs: views, triggers and
// virtual tables are off, columns that expressions compute are not read, and rows have a limit. The
// library is SQLite's own; a reader of the format by hand was ruled out, as damaged files are what
// that library is fuzzed with.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace tilecast {

/// A row, with the columns that were asked for.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  /// Whether the table has the column, and the row a value in it.
  bool has(size_t column) const;
  /// A whole number; `fallback` where there is none.
  int64_t number(size_t column, int64_t fallback) const;
  /// Valid until the next row.
  std::string_view text(size_t column) const;

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  /// Opens a file, read-only. Throws Error{kInput} for what is no SQLite file, and as open_text.
  static SqliteFile open(const std::filesystem::path& path);
  /// The content of such a file, which must outlive the result. `name` is for messages.
  static SqliteFile of_memory(std::string_view content, std::string name);

  bool has_table(const std::string& table) const;
  /// Calls `work` for each row of a table, in the file's order; columns that the table lacks, or
  /// computes, are empty. False where the file is damaged: the rows before were passed.
  bool for_each_row(const std::string& table, const std::vector<std::string_view>& columns,
                    const std::function<void(const SqliteRow&)>& work) const;

 private:
  struct Close {
    void operator()(sqlite3* file) const;
  };
  explicit SqliteFile(std::string name) : name_(std::move(name)) {}
  void connect(const std::string& uri);
  void prepare();

  std::string name_;
  std::unique_ptr<sqlite3, Close> file_;
  std::vector<std::string> tables_;
};

/// Whether this build reads SQLite files.
bool reads_sqlite();

/// Whether content, or its beginning, is that of an SQLite file.
bool is_sqlite(std::string_view start);

}  // namespace tilecast
