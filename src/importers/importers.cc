#include <fmt/format.h>

#include <filesystem>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/model.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;

const std::vector<ImporterDef>& importers() {
  static const std::vector<ImporterDef> table = {huggingface_importer(), graph_importer()};
  return table;
}

Model import_model(std::string_view content, const std::string& where) {
  for (const ImporterDef& importer : importers()) {
    if (!importer.sniff(where, content)) continue;
    Model model = importer.import(content, where);
    model.format = importer.name;
    if (model.name.empty()) {
      const fs::path path(where);
      // .../llama-2-7b/config.json is the model llama-2-7b.
      model.name = path.stem() == "config" && path.has_parent_path()
                       ? path.parent_path().filename().string()
                       : path.stem().string();
    }
    model.name = shown_name(model.name);
    return model;
  }
  throw Error(ErrorKind::kUnsupported,
              where +
                  ": not a model file that Tilecast knows; expected a Hugging Face config.json "
                  "or Tilecast's graph notation (.tcg)");
}

std::vector<std::string> bundled_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files("models/"))
    names.push_back(fs::path(file.path).stem().string());
  return names;
}

Model load_model(const std::string& name_or_path) {
  std::error_code code;
  const fs::path path(name_or_path);
  if (fs::is_directory(path, code)) {
    const fs::path config = path / "config.json";
    if (!fs::exists(config, code))
      throw Error(ErrorKind::kNotFound,
                  name_or_path +
                      ": a folder without config.json; expected the folder of a Hugging "
                      "Face model");
    return import_model(read_file(config), config.string());
  }
  if (fs::exists(path, code)) return import_model(read_file(path), name_or_path);
  // "gpt2_large.json" means the bundled model too, where no such file lies here.
  const std::string wanted =
      normalized_name(path.extension() == ".json" ? path.stem().string() : name_or_path);
  for (const EmbeddedFile& file : embedded_files("models/")) {
    const std::string name = fs::path(file.path).stem().string();
    if (normalized_name(name) == wanted) return import_model(file.content, std::string(file.path));
  }
  throw Error(
      ErrorKind::kNotFound,
      fmt::format("{}: no such file, folder or bundled model{}; 'tilecast models' lists "
                  "the bundled ones",
                  shown_name(name_or_path), did_you_mean(path.stem().string(), bundled_models())));
}

}  // namespace tilecast
