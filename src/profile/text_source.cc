#include "profile/text_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include "base/budget.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#ifdef TILECAST_GZIP
#include <zlib.h>
#endif

namespace tilecast {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr char kGzipMagic[] = {'\x1f', '\x8b'};

/// Reads up to so many bytes; 0 at the end.
using ReadBytes = std::function<size_t(char*, size_t)>;

/// Counts the text against its limit.
class CountedText {
 public:
  explicit CountedText(std::string name) : name_(std::move(name)) {}
  void add(size_t bytes) {
    total_ += static_cast<int64_t>(bytes);
    // Not `allow`: the text passes through, so that a limit of memory does not count for it.
    if (total_ > kTraceBytes.usual)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: more than {} {}", name_, format_integer(kTraceBytes.usual),
                              kTraceBytes.what));
    Budget::here().check("reading a profiler trace");
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int64_t total_ = 0;
};

class PlainSource final : public TextSource {
 public:
  PlainSource(ReadBytes read, std::string name) : read_(std::move(read)), text_(std::move(name)) {}
  bool append_to(std::string& text) override {
    const size_t before = text.size();
    text.resize(before + kPieceBytes);
    const size_t got = read_(text.data() + before, kPieceBytes);
    text.resize(before + got);
    text_.add(got);
    return got > 0;
  }

 private:
  ReadBytes read_;
  CountedText text_;
};

#ifdef TILECAST_GZIP
class GzipSource final : public TextSource {
 public:
  GzipSource(ReadBytes read, std::string name)
      : read_(std::move(read)), text_(std::move(name)), packed_(kPieceBytes) {
    constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  bool append_to(std::string& text) override {
    const size_t before = text.size();
    text.resize(before + kPieceBytes);
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream_.avail_out = static_cast<uInt>(kPieceBytes);
    while (stream_.avail_out > 0 && unpack()) {
    }
    const size_t got = kPieceBytes - stream_.avail_out;
    text.resize(before + got);
    text_.add(got);
    return got > 0;
  }

 private:
  /// One call of inflate; false at the end of the file.
  bool unpack() {
    if (stream_.avail_in == 0) {
      const size_t got = read_(packed_.data(), packed_.size());
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_in = static_cast<uInt>(got);
      if (got == 0) return false;  // also in the middle: what is there is read
    }
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {  // another member may follow
      inflateReset(&stream_);
      return true;
    }
    if (code != Z_OK && code != Z_BUF_ERROR)
      fail_input(text_.name(), "damaged gzip: the file cannot be unpacked to its end");
    return true;
  }

  ReadBytes read_;
  CountedText text_;
  std::vector<char> packed_;
  z_stream stream_{};
};
#endif

std::unique_ptr<TextSource> source_of(ReadBytes read, bool gzip, std::string name) {
  if (!gzip) return std::make_unique<PlainSource>(std::move(read), std::move(name));
#ifdef TILECAST_GZIP
  return std::make_unique<GzipSource>(std::move(read), std::move(name));
#else
  throw Error(ErrorKind::kUnsupported,
              name + ": this build of Tilecast has no zlib; unpack the file with gzip -d");
#endif
}

bool is_gzip(std::string_view start) {
  return start.starts_with(std::string_view(kGzipMagic, sizeof kGzipMagic));
}

}  // namespace

std::unique_ptr<TextSource> open_text(const std::filesystem::path& path) {
  const std::string start = read_file_start(path, sizeof kGzipMagic);  // with the errors of files
  auto file = std::make_shared<std::ifstream>(path, std::ios::binary);
  const std::string name = printable(path.string());
  if (!*file) throw Error(ErrorKind::kIo, name + ": cannot be read");
  ReadBytes read = [file, name](char* to, size_t most) {
    file->read(to, static_cast<std::streamsize>(most));
    if (file->bad()) throw Error(ErrorKind::kIo, name + ": reading fails");
    return static_cast<size_t>(file->gcount());
  };
  return source_of(std::move(read), is_gzip(start), name);
}

std::unique_ptr<TextSource> text_of_memory(std::string_view content, std::string name) {
  const bool gzip = is_gzip(content);
  ReadBytes read = [content](char* to, size_t most) mutable {
    const size_t count = std::min(most, content.size());
    std::memcpy(to, content.data(), count);
    content.remove_prefix(count);
    return count;
  };
  return source_of(std::move(read), gzip, std::move(name));
}

bool reads_gzip() {
#ifdef TILECAST_GZIP
  return true;
#else
  return false;
#endif
}

}  // namespace tilecast
