#include "many/resumable_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "base/unfinished_file.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Whether `path` still names the file that is open: a run that resumes replaces it.
bool names_open_file(int descriptor, const std::string& path) {
  struct stat open_file{}, named{};
  return ::fstat(descriptor, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

ResumableLines::ResumableLines(std::string path, Format format)
    : path_(std::move(path)), format_(std::move(format)) {
  try {
    open();
    // Replaced by its good lines, the file is another one, which is locked as well.
    while (read_done()) open();
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

ResumableLines::~ResumableLines() { ::close(descriptor_); }

/// Opens the file that has the path, and locks it.
void ResumableLines::open() {
  do {
    // Opening a pipe must not wait for its reader.
    const int opened = ::open(
        path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    const int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = opened;
    struct stat status{};
    const bool known = ::stat(path_.c_str(), &status) == 0;
    if (known && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: is no regular file; results are kept in one, so that a later "
                              "run goes on from there",
                              printable(path_)));
    if (descriptor_ < 0) cannot_write(path_, error);
    // A file system without locks: two runs cannot be told apart there.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: another run writes to this file; wait for its end, or give "
                              "another file with `output-file`",
                              printable(path_)));
  } while (!names_open_file(descriptor_, path_));
}

std::optional<size_t> ResumableLines::number_of(std::string_view line) const {
  if (!line.starts_with(format_.before_number)) return std::nullopt;
  line.remove_prefix(format_.before_number.size());
  return parse_number<size_t>(line.substr(0, line.find(',')));
}

/// Whether the line begins as that of its number does.
bool ResumableLines::is_line_of(std::string_view line, size_t number) const {
  return number < format_.count && line.starts_with(format_.begin(number));
}

/// False: it was there before.
bool ResumableLines::note_done(size_t number) {
  if (done_.size() <= number) done_.resize(std::min(format_.count, 2 * number + 1));
  if (done_[number]) return false;
  done_[number] = true;
  ++rows_;
  return true;
}

/// Gives each whole line without an error once, without its end, and notes it as done. Whether the
/// file has anything else.
bool ResumableLines::each_good_line(const std::function<void(const std::string& line)>& take) {
  done_.clear();
  rows_ = 0;
  std::ifstream in(path_);
  if (!in) throw Error(ErrorKind::kIo, printable(path_) + ": cannot read");
  const auto other = [&](const std::string& why) {
    return Error(ErrorKind::kInput,
                 fmt::format("{}: {}; remove it or write to another file", printable(path_), why));
  };
  std::string line;
  if (!format_.header.empty()) {
    std::getline(in, line);
    // A disk that was full may have cut the header, too.
    if (in.eof() && format_.header.starts_with(line)) return true;
    if (line + "\n" != format_.header) throw other("is not the output of this sweep");
  }
  bool has_others = false;
  for (size_t place = format_.header.empty() ? 1 : 2; std::getline(in, line); ++place) {
    if (in.eof()) return true;  // the last line has no end
    const std::optional<size_t> number = number_of(line);
    if (!number || !is_line_of(line, *number))
      throw other(fmt::format("line {}: is of other lists than this sweep's", place));
    if (format_.has_line && !format_.has_line(*number))
      throw other(fmt::format("line {}: is of a point that this sweep leaves out", place));
    // A line that is there twice counts once.
    if (line.ends_with(format_.good_end) && note_done(*number))
      take(line);
    else
      has_others = true;
  }
  return has_others;
}

/// Replaces the file by its good lines, which may be more than fit into memory.
void ResumableLines::keep_good_lines() {
  constexpr size_t kPiece = 1 << 20;
  UnfinishedFile part(std::filesystem::weakly_canonical(path_), path_);
  std::string kept = format_.header;
  each_good_line([&](const std::string& line) {
    kept += line + "\n";
    if (kept.size() < kPiece) return;
    write_all(part.descriptor(), kept, path_);
    kept.clear();
  });
  write_all(part.descriptor(), kept, path_);
  part.keep();
}

/// Whether the file was replaced, since it had lines that are to run again.
bool ResumableLines::read_done() {
  const bool has_others = each_good_line([](const std::string&) {});
  if (format_.check) format_.check(rows_ > 0);
  if (!has_others) return false;
  struct stat status{};
  if (::fstat(descriptor_, &status) == 0 && status.st_size == 0) {
    write_all(descriptor_, format_.header, path_);
    return false;
  }
  keep_good_lines();
  return true;
}

void ResumableLines::add(size_t number, const std::string& results) {
  const std::string line = format_.begin(number) + results + "\n";
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  struct stat before{};
  ::fstat(descriptor_, &before);
  try {
    write_all(descriptor_, line, path_);
  } catch (...) {
    failure_ = std::current_exception();
    // Without the half of a line; where that fails, the next run leaves it out.
    [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, before.st_size);
    throw;
  }
}

void ResumableLines::finish() { sync(descriptor_, path_); }

void ResumableLines::each_line(const std::function<void(std::string_view line)>& take) const {
  std::ifstream in(path_);
  std::string line;
  if (!format_.header.empty()) std::getline(in, line);
  while (std::getline(in, line)) take(line);
  if (!in.eof()) throw Error(ErrorKind::kIo, printable(path_) + ": cannot read");
}

}  // namespace tilecast
