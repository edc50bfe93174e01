#pragma once

// A CSV file that grows by a line for each result. A run that was interrupted continues with the
// lines that are missing.

#include <cstddef>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace tilecast {

class ResumableCsv {
 public:
  /// The lines of a table: each begins with its number and what identifies it, and ends with a cell
  /// for an error, which is empty if there is none.
  struct Lines {
    std::string header;
    size_t count = 0;
    /// The first cells of a line, without its number; they end in a comma.
    std::function<std::string(size_t number)> cells;
  };

  /// Reads what the file holds already. Lines that were cut off or that hold an error are removed:
  /// they run again. Throws Error{kInput} if the file holds another table, Error{kIo} if it cannot
  /// be written.
  ResumableCsv(std::string path, Lines lines);

  /// The lines that the file held at first.
  size_t rows() const { return done_.size(); }
  bool has(size_t number) const { return done_.contains(number); }
  /// Adds a line. `results`: its other cells. Any number of threads may call it.
  void add(size_t number, const std::string& results);
  /// What the file holds.
  std::string text();

 private:
  void read_done();

  std::string path_;
  Lines lines_;
  std::set<size_t> done_;
  std::mutex mutex_;
  std::ofstream out_;
};

}  // namespace tilecast
