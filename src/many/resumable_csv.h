#pragma once

// A CSV file that grows by a line for each result. A run that was interrupted continues with the
// lines that are missing.

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace tilecast {

class ResumableCsv {
 public:
  /// The lines of a table: each begins with its number and what identifies it, and ends with a cell
  /// for an error, which is empty if there is none. No cell has a line break.
  struct Lines {
    std::string header;
    size_t count = 0;
    /// The first cells of a line, without its number; they end in a comma.
    std::function<std::string(size_t number)> cells;
  };

  /// Reads what the file holds already. Lines that were cut off or that hold an error are removed:
  /// they run again. Throws Error{kInput} if the file holds another table, Error{kIo} if it cannot
  /// be written, is no regular file, or if another run writes to it.
  ResumableCsv(std::string path, Lines lines);
  ~ResumableCsv();
  ResumableCsv(const ResumableCsv&) = delete;
  ResumableCsv& operator=(const ResumableCsv&) = delete;

  /// The lines that the file held at first.
  size_t rows() const { return done_.size(); }
  bool has(size_t number) const { return done_.contains(number); }
  /// Adds a line. `results`: its other cells. Any number of threads may call it. Throws Error{kIo}
  /// where the line cannot be written, and ever after; the file then ends with a whole line.
  void add(size_t number, const std::string& results);
  /// Throws Error{kIo} unless all lines are on the disk.
  void finish();
  /// Gives each line of the file but the header, without its end; none is kept in memory.
  void each_line(const std::function<void(std::string_view line)>& take) const;

 private:
  void open();
  bool read_done();

  std::string path_;
  Lines lines_;
  std::set<size_t> done_;
  std::mutex mutex_;
  int descriptor_ = -1;         ///< locked: no other run writes
  std::exception_ptr failure_;  ///< of the first line that could not be written
};

}  // namespace tilecast
