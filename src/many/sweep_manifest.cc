#include "many/sweep_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/commit.h"
#include "base/content_hash.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/hub.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

namespace fs = std::filesystem;
using Kind = JobColumn::Kind;

/// Forecasts read no values of tensors. Of a checkpoint count its size and both ends, where formats
/// have their headers and directories.
void add_file(ContentHash& hash, const fs::path& path) {
  constexpr uint64_t kStart = uint64_t{32} << 20, kEnd = uint64_t{1} << 20;
  std::error_code code;
  const uint64_t size = fs::file_size(path, code);
  if (code) return;
  hash.add(size);
  std::ifstream in(path, std::ios::binary);
  std::string block(static_cast<size_t>(kEnd), '\0');
  const auto take = [&](uint64_t from, uint64_t to) {
    in.seekg(static_cast<std::streamoff>(from));
    for (uint64_t place = from; place < to && in; place += kEnd) {
      in.read(block.data(), static_cast<std::streamsize>(std::min(kEnd, to - place)));
      hash.add(std::string_view(block.data(), static_cast<size_t>(in.gcount())));
    }
  };
  take(0, std::min(size, kStart));
  if (size > kStart) take(std::max(kStart, size - std::min(size, kEnd)), size);
}

/// Whether a file of a model's folder states the model.
bool is_config(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with("config.json") || name == "model_index.json";
}

/// Configs of a model's folder, and of its parts in folders below it.
void add_folder(ContentHash& hash, const fs::path& folder) {
  std::set<fs::path> configs;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(folder, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    if (it.depth() > 0) it.disable_recursion_pending();
    if (is_config(it->path()) && it->is_regular_file(code)) configs.insert(it->path());
  }
  for (const fs::path& config : configs) {
    hash.add(fs::relative(config, folder, code).string());
    add_file(hash, config);
  }
}

/// The other files of a model that GGUF divides: NAME-00001-of-00003.gguf.
std::set<fs::path> other_parts(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t of = name.rfind("-of-");
  std::set<fs::path> parts;
  if (!name.ends_with(".gguf") || of == std::string::npos) return parts;
  const std::string start = name.substr(0, name.rfind('-', of - 1) + 1);
  std::error_code code;
  for (auto it = fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", code);
       !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string other = it->path().filename().string();
    if (other != name && other.starts_with(start) && other.ends_with(name.substr(of)))
      parts.insert(it->path());
  }
  return parts;
}

/// "": there is no such file or folder.
std::string hash_of_path(const fs::path& path) {
  ContentHash hash;
  if (is_folder(path)) {
    add_folder(hash, path);
  } else if (is_file(path)) {
    add_file(hash, path);
    for (const fs::path& part : other_parts(path)) add_file(hash, part);
    if (is_config(path)) add_folder(hash, path.has_parent_path() ? path.parent_path() : ".");
  } else {
    return "";
  }
  return hash.text();
}

/// The paths that a word of a column may name.
std::vector<fs::path> paths_in(const std::string& word, const SweepColumn& column) {
  std::vector<fs::path> paths = {word};
  if (column.kind == Kind::kModel) {
    if (is_there(word)) return paths;
    const std::optional<HubName> hub = find_hub_name(word);
    if (const auto cached = hub ? find_cached_model(*hub) : std::nullopt)
      paths.push_back(cached->folder);
  } else if (column.kind == Kind::kGpu) {
    // Numbers and a dataflow stand behind a colon.
    for (size_t colon = word.find(':'); colon != std::string::npos;
         colon = word.find(':', colon + 1))
      paths.emplace_back(word.substr(0, colon));
  } else if (column.option->access.type == OptionType::kText &&
             word.find_first_of("./") == std::string::npos) {
    return {};  // "fp16" is no file, whatever lies there
  }
  if (column.kind == Kind::kGpu)
    std::erase_if(paths, [](const fs::path& path) { return !is_path(path.string()); });
  return paths;
}

Json hashes_of_files(const SweepSpec& spec) {
  Json hashes = Json::object();
  for (const SweepColumn& column : spec.columns()) {
    if (column.kind == Kind::kParameter || !column.values.is_list()) continue;
    for (const std::string& word : column.values.words())
      for (const fs::path& path : paths_in(word, column))
        if (const std::string hash = hash_of_path(path); !hash.empty())
          hashes[printable(path.string())] = hash;
  }
  return hashes;
}

std::string version_in(const Json& manifest) {
  const std::string commit = manifest.value("commit", "");
  return fmt::format("{} (commit {})", manifest.value("version", "?"),
                     commit.empty() ? "unknown" : printable(commit));
}

}  // namespace

SweepManifest::SweepManifest(const std::string& output, const SweepSpec& spec)
    : output_(output),
      path_(output + ".manifest.json"),
      content_{{"version", TILECAST_VERSION},
               {"commit", std::string(built_commit())},
               {"data", hash_of_embedded_data()},
               {"spec", fmt::format("{:016x}", spec.hash())},
               {"files", hashes_of_files(spec)}} {}

void SweepManifest::refuse(const std::string& why) const {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}; remove the file or write to another one",
                                             printable(output_), why));
}

/// "": there is none.
std::string SweepManifest::difference(const Json& before) const {
  if (before.at("spec") != content_.at("spec")) return "its rows are of another spec than this";
  for (const char* key : {"version", "commit"})
    if (before.at(key) != content_.at(key))
      return fmt::format("its rows are by tilecast {}, this is {}", version_in(before),
                         version_in(content_));
  if (before.at("data") != content_.at("data"))
    return "its rows are by a program with other weights or devices than this one's";
  if (before.at("files") == content_.at("files")) return "";
  for (const auto& [name, hash] : content_.at("files").items())
    if (before.at("files").value(name, Json()) != hash)
      return fmt::format("its rows were made with another content of '{}'", name);
  return "its rows were made with a file that is no longer there";
}

void SweepManifest::check(bool has_rows) const {
  if (!has_rows) return write_file(path_, content_.dump(1) + "\n");
  if (!is_file(path_))
    refuse(fmt::format("{} is missing, which says what the rows were made with", printable(path_)));
  const Json before = Json::parse(read_file(path_), nullptr, false);
  bool is_whole = before.is_object();
  for (const auto& [key, value] : content_.items())
    is_whole = is_whole && before.contains(key) && before.at(key).type() == value.type();
  if (!is_whole) refuse(printable(path_) + " is no manifest of a sweep");
  if (const std::string why = difference(before); !why.empty())
    refuse(fmt::format("{} ({})", why, printable(path_)));
}

}  // namespace tilecast
