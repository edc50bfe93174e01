#pragma once

// A file that grows by a line for each result. A run that was interrupted continues with the lines
// that are missing.

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

class ResumableLines {
 public:
  /// The lines of a table: each begins with its number and what identifies it, and shows by its end
  /// that it holds no error. No line has a break in it.
  struct Format {
    std::string header;  ///< with its line's end; "": there is none
    size_t count = 0;    ///< numbers are below it
    std::string before_number;
    /// The begin of a line, its number included.
    std::function<std::string(size_t number)> begin;
    std::string good_end;
    /// Whether there is a line of the number; null: of each.
    std::function<bool(size_t number)> has_line = nullptr;
    /// Called before anything is written, with whether lines are kept; what it throws leaves the
    /// file as it is. May be null.
    std::function<void(bool has_lines)> check = nullptr;
  };

  /// Reads what the file holds already. Lines that were cut off or that hold an error are removed:
  /// they run again. Throws Error{kInput} if the file holds another table or a line that this one
  /// lacks, Error{kIo} if it cannot
  /// be written, is no regular file, or if another run writes to it.
  ResumableLines(std::string path, Format format);
  ~ResumableLines();
  ResumableLines(const ResumableLines&) = delete;
  ResumableLines& operator=(const ResumableLines&) = delete;

  /// The lines that the file held at first.
  size_t rows() const { return rows_; }
  bool has(size_t number) const { return number < done_.size() && done_[number]; }
  /// Adds a line. `results`: what is behind its begin. Any number of threads may call it. Throws
  /// Error{kIo} where the line cannot be written, and ever after; the file then ends with a whole
  /// line.
  void add(size_t number, const std::string& results);
  /// Throws Error{kIo} unless all lines are on the disk.
  void finish();
  const std::string& header() const { return format_.header; }
  /// The number of a line of the file; nullopt: it has none.
  std::optional<size_t> number_of(std::string_view line) const;
  /// Gives each line of the file but the header, without its end; none is kept in memory.
  void each_line(const std::function<void(std::string_view line)>& take) const;

 private:
  void open();
  bool read_done();
  bool each_good_line(const std::function<void(const std::string& line)>& take);
  void keep_good_lines();
  bool is_line_of(std::string_view line, size_t number) const;
  bool note_done(size_t number);

  std::string path_;
  Format format_;
  std::vector<bool> done_;  ///< by number, as far as there are any
  size_t rows_ = 0;
  std::mutex mutex_;
  int descriptor_ = -1;         ///< locked: no other run writes
  std::exception_ptr failure_;  ///< of the first line that could not be written
};

}  // namespace tilecast
