#include "many/resumable_csv.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

ResumableCsv::ResumableCsv(std::string path, Lines lines)
    : path_(std::move(path)), lines_(std::move(lines)) {
  read_done();
  out_.open(path_, std::ios::app);
  if (!out_) throw Error(ErrorKind::kIo, "cannot write to " + printable(path_));
  if (std::filesystem::file_size(path_) == 0) out_ << lines_.header << std::flush;
}

void ResumableCsv::read_done() {
  std::ifstream in(path_);
  std::string line;
  if (!in || !std::getline(in, line)) return;
  const auto other = [&](const std::string& why) {
    return Error(ErrorKind::kInput,
                 fmt::format("{}: {}; remove it or write to another file", printable(path_), why));
  };
  if (line + "\n" != lines_.header) throw other("is not the output of this sweep");
  std::string kept = line + "\n";
  for (size_t number = 2; std::getline(in, line) && !in.eof(); ++number) {
    const auto index = parse_number<size_t>(line.substr(0, line.find(',')));
    if (!index || *index >= lines_.count ||
        !line.starts_with(fmt::format("{},{}", *index, lines_.cells(*index))))
      throw other(fmt::format("line {}: is of other lists than this sweep's", number));
    if (!line.ends_with(",")) continue;  // the last cell is an error
    kept += line + "\n";
    done_.insert(*index);
  }
  in.close();
  write_file(path_, kept);
}

void ResumableCsv::add(size_t number, const std::string& results) {
  const std::string line = fmt::format("{},{}{}\n", number, lines_.cells(number), results);
  const std::lock_guard lock(mutex_);
  out_ << line << std::flush;
}

std::string ResumableCsv::text() {
  const std::lock_guard lock(mutex_);
  return read_file(path_);
}

}  // namespace tilecast
