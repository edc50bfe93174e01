#include "many/resumable_csv.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

ResumableCsv::ResumableCsv(std::string path, Lines lines)
    : path_(std::move(path)), lines_(std::move(lines)) {
  try {
    open();
    // Replaced by its good lines, the file is another one, which is locked as well.
    while (read_done()) open();
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

ResumableCsv::~ResumableCsv() { ::close(descriptor_); }

/// Opens the file that has the path, and locks it.
void ResumableCsv::open() {
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

/// Whether the file was replaced, since it had lines that are to run again.
bool ResumableCsv::read_done() {
  done_.clear();
  std::ifstream in(path_);
  if (!in) throw Error(ErrorKind::kIo, printable(path_) + ": cannot read");
  std::string line;
  if (!std::getline(in, line)) {
    write_all(descriptor_, lines_.header, path_);
    return false;
  }
  const auto other = [&](const std::string& why) {
    return Error(ErrorKind::kInput,
                 fmt::format("{}: {}; remove it or write to another file", printable(path_), why));
  };
  // A disk that was full may have cut the header, too.
  const bool cut = in.eof() && lines_.header.starts_with(line);
  if (!cut && line + "\n" != lines_.header) throw other("is not the output of this sweep");
  std::string kept = lines_.header;
  bool replaced = cut;
  for (size_t number = 2; !cut && std::getline(in, line); ++number) {
    if (in.eof()) {
      replaced = true;  // the last line has no end
      break;
    }
    const auto index = parse_number<size_t>(line.substr(0, line.find(',')));
    if (!index || *index >= lines_.count ||
        !line.starts_with(fmt::format("{},{}", *index, lines_.cells(*index))))
      throw other(fmt::format("line {}: is of other lists than this sweep's", number));
    // The last cell is an error; a line that is there twice counts once.
    if (!line.ends_with(",") || !done_.insert(*index).second) {
      replaced = true;
      continue;
    }
    kept += line + "\n";
  }
  if (!replaced) return false;
  UnfinishedFile part(std::filesystem::weakly_canonical(path_), path_);
  write_all(part.descriptor(), kept, path_);
  part.keep();
  return true;
}

void ResumableCsv::add(size_t number, const std::string& results) {
  const std::string line = fmt::format("{},{}{}\n", number, lines_.cells(number), results);
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

void ResumableCsv::finish() { sync(descriptor_, path_); }

void ResumableCsv::each_line(const std::function<void(std::string_view line)>& take) const {
  std::ifstream in(path_);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) take(line);
  if (!in.eof()) throw Error(ErrorKind::kIo, printable(path_) + ": cannot read");
}

}  // namespace tilecast
