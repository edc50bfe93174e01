#include "accelerator/names.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace tilecast::accelerator {
namespace {

constexpr const char* kFolder = "accelerators/";

struct BundledFile {
  EmbeddedFile file;
  std::vector<std::string> names;  ///< the id, then its aliases
};

/// The bundled descriptions by name. Read once: every forecast of a GPU asks for its name here.
const std::vector<BundledFile>& bundled_files() {
  static const std::vector<BundledFile> files = [] {
    std::vector<BundledFile> read;
    for (const EmbeddedFile& file : embedded_files(kFolder)) {
      // A forecast of a GPU reads all of them; parse_json, which finds keys that are there twice,
      // takes twice as long.
      const Json json = Json::parse(file.content);
      const JsonObject object(json, std::string(file.path));
      BundledFile& entry = read.emplace_back(BundledFile{file, {object.string("id")}});
      if (!object.has("aliases")) continue;
      for (std::string& alias : object.strings("aliases")) entry.names.push_back(std::move(alias));
    }
    return read;
  }();
  return files;
}

}  // namespace

const EmbeddedFile* find_bundled_accelerator(const std::string& name) {
  const std::string wanted = normalized_name(name);
  for (const BundledFile& entry : bundled_files())
    for (const std::string& known : entry.names)
      if (normalized_name(known) == wanted) return &entry.file;
  return nullptr;
}

const std::vector<std::string>& accelerator_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const BundledFile& entry : bundled_files())
      all.insert(all.end(), entry.names.begin(), entry.names.end());
    return all;
  }();
  return names;
}

std::vector<std::string> bundled_accelerators() {
  std::vector<std::string> ids;
  for (const BundledFile& entry : bundled_files()) ids.push_back(entry.names.front());
  return ids;
}

bool names_accelerator(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  // Parameters, or a name that is nearly right: the message lists accelerators, not GPUs. What has
  // no "=" behind the colon may be a slice of a GPU.
  if (!is_path(name))
    return find_bundled_accelerator(name) != nullptr ||
           text.find('=', name.size()) != std::string::npos ||
           !did_you_mean(name, accelerator_names()).empty();
  if (!is_file(name)) return false;
  const Json json = parse_json(read_file(name, kLargestDescription), printable(name));
  return json.is_object() && (json.contains("objects") || json.contains("dataflows"));
}

}  // namespace tilecast::accelerator
