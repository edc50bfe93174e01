#include "server/static_files.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/embedded.h"

namespace tilecast::server {
namespace {

constexpr std::string_view kFolder = "/web/";

/// Only files of the service run or are shown, nothing is sent elsewhere, and no other page frames
/// this one. Pictures of charts that are saved are `data:`.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

std::string content_type_of(std::string_view path) {
  const std::string_view ending = path.substr(path.rfind('.') + 1);
  if (ending == "html") return "text/html; charset=utf-8";
  if (ending == "js") return "text/javascript; charset=utf-8";
  if (ending == "css") return "text/css; charset=utf-8";
  if (ending == "svg") return "image/svg+xml";
  return "application/octet-stream";
}

/// FNV-1a: another content has another tag, whoever made it.
std::string tag_of(std::string_view content) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return fmt::format("\"{:016x}\"", hash);
}

struct PageFile {
  std::string_view content;
  std::string type, tag;
};

const std::map<std::string, PageFile, std::less<>>& served_files() {
  static const std::map<std::string, PageFile, std::less<>> all = [] {
    std::map<std::string, PageFile, std::less<>> files;
    for (const EmbeddedFile& file : page_files("")) {
      const std::string path =
          file.path == "index.html" ? "/" : std::string(kFolder) + std::string(file.path);
      files[path] = {file.content, content_type_of(file.path), tag_of(file.content)};
    }
    return files;
  }();
  return all;
}

}  // namespace

bool is_of_page(std::string_view path) { return path == "/" || path.starts_with(kFolder); }

std::optional<HttpResponse> page_file(std::string_view path, std::string_view known) {
  const auto found = served_files().find(path);
  if (found == served_files().end()) return std::nullopt;
  const PageFile& file = found->second;
  HttpResponse response{.content_type = file.type,
                        .headers = {{"ETag", file.tag},
                                    {"Cache-Control", "no-cache"},  // asks whether it has changed
                                    {"Content-Security-Policy", kPolicy},
                                    {"Cross-Origin-Opener-Policy", "same-origin"},
                                    {"Cross-Origin-Resource-Policy", "same-origin"},
                                    {"Referrer-Policy", "no-referrer"}}};
  // A proxy that compresses makes the tag a weak one: W/"...".
  if (known.find(file.tag) != std::string_view::npos)
    response.status = 304;
  else
    response.body = file.content;
  return response;
}

}  // namespace tilecast::server
