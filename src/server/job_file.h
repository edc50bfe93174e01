#pragma once

// Jobs as files: a line of JSON that says what it is, then the body of its request or, once it is
// finished, of its answer.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast::server {

/// What a job's file begins with.
struct JobHead {
  std::string target, content_type, accept;  ///< of the request
  double created_s = 0;                      ///< since 1970
  int64_t runs = 0;                          ///< that were begun and did not end
  // Once it is finished:
  double finished_s = 0, seconds = 0;
  int status = 0;  ///< of the answer; 0: it is not finished
  std::string result_type;
};

/// Whether a text can be the name of a job: 32 hexadecimal digits.
bool is_job_id(std::string_view text);
/// A name that nobody guesses: 128 random bits.
std::string new_job_id();

class JobFolder {
 public:
  /// Makes the folder, for its owner alone, and locks it. Throws Error{kIo}.
  explicit JobFolder(const std::string& path);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  struct Found {
    std::string id;
    JobHead head;
    int64_t bytes = 0;
  };
  /// All jobs. A file that is none is reported on standard error and left alone.
  std::vector<Found> read() const;

  /// Whole, or not at all. Throws Error{kIo}.
  void write(const std::string& id, const JobHead& head, std::string_view body) const;
  /// What follows the head. Throws Error{kIo} or Error{kNotFound}.
  std::string body(const std::string& id) const;
  void remove(const std::string& id) const;

 private:
  std::filesystem::path path_of(const std::string& id) const;

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace tilecast::server
