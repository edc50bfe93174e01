#include "server/job_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/ascii.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kEnding = ".job";
constexpr int kVersion = 1;
/// Of a job's file: a request has at most 64 MiB, an answer 256 MiB.
constexpr uint64_t kMostFileBytes = uint64_t{260} << 20;
/// A target has at most the 16 KiB of a header.
constexpr uint64_t kMostHeadBytes = 256 << 10;

std::string head_text(const JobHead& head) {
  const Json json = {{"version", kVersion},
                     {"target", head.target},
                     {"content_type", head.content_type},
                     {"accept", head.accept},
                     {"created_s", head.created_s},
                     {"runs", head.runs},
                     {"finished_s", head.finished_s},
                     {"seconds", head.seconds},
                     {"status", head.status},
                     {"result_type", head.result_type}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

JobHead head_of(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonObject object(json, where);
  if (object.integer({"version"}, 0, INT32_MAX) != kVersion)
    object.fail("version", fmt::format("expected {}", kVersion));
  return {.target = object.string("target"),
          .content_type = object.string("content_type"),
          .accept = object.string("accept"),
          .created_s = object.number("created_s"),
          .runs = object.integer({"runs"}, 0, INT32_MAX),
          .finished_s = object.number("finished_s"),
          .seconds = object.number("seconds"),
          .status = static_cast<int>(object.integer({"status"}, 0, 999)),
          .result_type = object.string("result_type")};
}

}  // namespace

bool is_job_id(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f');
         });
}

std::string new_job_id() {
  std::random_device device;  // the system's (getrandom)
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

JobFolder::JobFolder(const std::string& path) : path_(path) {
  const std::string shown = printable(path);
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot make the folder of jobs: {}", shown, std::strerror(errno)));
  lock_ = ::open((path_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (lock_ >= 0) ::close(lock_);
    throw Error(ErrorKind::kIo,
                error == EWOULDBLOCK
                    ? fmt::format("{}: another service keeps its jobs there; give each its own "
                                  "folder with --state",
                                  shown)
                    : fmt::format("{}: cannot lock the folder: {}", shown, std::strerror(error)));
  }
}

JobFolder::~JobFolder() { ::close(lock_); }

fs::path JobFolder::path_of(const std::string& id) const {
  return path_ / (id + std::string(kEnding));
}

std::vector<JobFolder::Found> JobFolder::read() const {
  std::vector<Found> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(path_, code)) {
    const std::string name = entry.path().filename().string();
    // What a killed service had not finished writing (base/unfinished_file.cc).
    if (name.starts_with(".tilecast-") && name.ends_with(".part")) {
      fs::remove(entry.path(), code);
      continue;
    }
    if (!name.ends_with(kEnding)) continue;
    const std::string id = name.substr(0, name.size() - kEnding.size());
    const std::string where = printable(entry.path().string());
    try {
      if (!is_job_id(id)) throw Error(ErrorKind::kInput, where + ": is not named like a job");
      const std::string start = read_file_start(entry.path(), kMostHeadBytes);
      found.push_back({.id = id,
                       .head = head_of(std::string_view(start).substr(0, start.find('\n')), where),
                       .bytes = static_cast<int64_t>(fs::file_size(entry.path(), code))});
    } catch (const Error& error) {
      fmt::print(stderr, "tilecast: a job is left out: {}\n", error.what());
    }
  }
  if (code)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot read the folder: {}",
                                            printable(path_.string()), code.message()));
  return found;
}

void JobFolder::write(const std::string& id, const JobHead& head, std::string_view body) const {
  write_file(path_of(id), head_text(head).append(body));
}

std::string JobFolder::body(const std::string& id) const {
  std::string content = read_file(path_of(id), kMostFileBytes);
  return content.substr(std::min(content.size(), content.find('\n') + 1));
}

void JobFolder::remove(const std::string& id) const {
  std::error_code code;
  fs::remove(path_of(id), code);
}

}  // namespace tilecast::server
