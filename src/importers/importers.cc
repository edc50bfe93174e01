#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/budget.h"
#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/bundled.h"
#include "importers/encoded.h"
#include "importers/gguf/splits.h"
#include "importers/hub.h"
#include "importers/huggingface/diffusion_pipeline.h"
#include "ops/validate.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;

// The formats, one file each.
ImporterDef dlrm_importer();
ImporterDef huggingface_importer();
ImporterDef gguf_importer();
ImporterDef graph_importer();
ImporterDef onnx_importer();

const std::vector<ImporterDef>& importers() {
  static const std::vector<ImporterDef> table = {gguf_importer(), onnx_importer(), dlrm_importer(),
                                                 huggingface_importer(), graph_importer()};
  return table;
}

/// In debug builds, graphs are validated as they are built.
static void validate_what_it_builds(Model& model) {
  if (!kValidatesGraphs) return;
  model.build = [build = std::move(model.build)](const GraphRequest& request) {
    Graph graph = build(request);
    validate(graph);
    return graph;
  };
}

/// An imported model with its format and name.
static Model finished(Model model, std::string_view format, const std::string& where) {
  model.format = format;
  if (model.name.empty()) {
    const fs::path path(where);
    // .../llama-2-7b/config.json is the model llama-2-7b.
    // So is .../llama-2-7b/model_index.json, of a pipeline.
    model.name =
        (path.stem() == "config" || path.filename() == kPipelineFile) && path.has_parent_path()
            ? path.parent_path().filename().string()
            : path.stem().string();
  }
  model.name = shown_name(model.name);
  validate_what_it_builds(model);
  return model;
}

Model import_model(const ModelText& text) {
  const std::string& where = text.where;
  if (const std::optional<EncodedFile> file = decoded_file(text))
    return import_model(file->content, file->name);
  for (const ImporterDef& importer : importers()) {
    if (!importer.sniff(where, text.content)) continue;
    return finished(importer.import(text), importer.name, where);
  }
  throw Error(ErrorKind::kUnsupported,
              where +
                  ": not a model file that Tilecast knows; expected a Hugging Face config.json, "
                  "an ONNX file (.onnx) or Tilecast's graph notation (.tcg)");
}

bool is_router(std::string_view module) {
  return module.ends_with(".gate") || module.ends_with("_gate");
}

Role router_role(std::string_view weight) {
  constexpr std::string_view kEnd = ".weight";
  if (!weight.ends_with(kEnd)) return Role::kNone;
  const std::string_view module = weight.substr(0, weight.size() - kEnd.size());
  if (module == "gate" || module.ends_with(".gate")) return Role::kRouter;
  return module.ends_with("_gate") ? Role::kGate : Role::kNone;
}

std::vector<std::string> bundled_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files("models/"))
    names.push_back(fs::path(file.path).stem().string());
  return names;
}

/// The content of a model file; of a format that does not need the rest, only its start. Pieces
/// grow until the format has enough.
static std::string read_model_file(const fs::path& path) {
  constexpr uint64_t kFirst = uint64_t{1} << 20, kGrowth = 8;
  const std::string where = printable(path.string());
  for (uint64_t most = kFirst;; most *= kGrowth) {
    most = std::min(most, kMaxFileBytes);
    std::string start = read_file_start(path, most);
    const auto& all = importers();
    const auto format = std::find_if(all.begin(), all.end(), [&](const ImporterDef& importer) {
      return importer.is_complete != nullptr && importer.sniff(where, start);
    });
    if (format == all.end()) return start.empty() || start.size() == most ? read_file(path) : start;
    if (start.size() < most || most == kMaxFileBytes || format->is_complete(start)) return start;
  }
}

/// Bytes that tell the format of a file that is read partly.
constexpr size_t kStart = 64;

/// Whether only parts of a file of this format are read. Its first bytes tell the format.
static bool is_partly_read(const fs::path& path) {
  const std::string where = printable(path.string()), start = read_file_start(path, kStart);
  return std::any_of(importers().begin(), importers().end(), [&](const ImporterDef& importer) {
    return importer.partly_read && importer.sniff(where, start);
  });
}

/// A GGUF file whose model is in several; nullopt for all other files.
static std::optional<Model> load_parts(const fs::path& path, const ModelText& text) {
  if (!is_gguf(text.content)) return std::nullopt;
  std::vector<GgufSplit> parts;
  for (const std::string& name : other_gguf_splits(text)) {
    const fs::path other = path.parent_path() / name;
    const std::string where = printable(other.string());
    std::error_code code;
    if (!fs::exists(other, code))
      throw Error(
          ErrorKind::kNotFound,
          fmt::format("{}: no such file; {} is one part of the model, whose other parts are "
                      "expected in the same folder: download this one too",
                      where, text.where));
    parts.push_back({read_model_file(other), where});
  }
  if (parts.empty()) return std::nullopt;
  return finished(import_gguf_splits(text, parts), "gguf", text.where);
}

/// A config.json and ModelOpt's file in the same folder.
static Model load_config(const fs::path& path) {
  std::error_code code;
  if (path.filename() == "config.json" && !fs::exists(path, code))
    throw Error(ErrorKind::kNotFound,
                printable(path.parent_path().string()) +
                    ": a folder without config.json; expected the folder of a Hugging "
                    "Face model");
  if (path.filename() != "config.json" && is_partly_read(path)) {
    PartlyReadFile file(path);
    file.load(file.content().substr(0, kStart));
    return import_model(
        {.content = file.content(), .where = printable(path.string()), .file = &file});
  }
  const std::string content = read_model_file(path);
  const std::string where = printable(path.string());
  const fs::path beside = path.parent_path() / kQuantConfigFile;
  std::string quantization;
  if (path.filename() == "config.json" && fs::is_regular_file(beside, code))
    quantization = read_file(beside);
  if (std::optional<Model> model = load_parts(path, {content, where})) return *std::move(model);
  return import_model(ModelText{content, where, quantization});
}

namespace {

/// "; did you mean …": bundled and cached models near the name, or near what is left of it without
/// its last parts ("Llama-3.1-8B-Instruct").
std::string nearest_models(const std::string& name) {
  std::vector<std::string> known = bundled_models();
  for (const CachedModel& model : cached_models())
    known.push_back(model.name.owner + (model.name.owner.empty() ? "" : "/") + model.name.name);
  const std::optional<HubName> hub = find_hub_name(name);
  std::string part = hub ? hub->name : fs::path(name).stem().string();
  while (true) {
    if (std::string text = did_you_mean(part, known); !text.empty()) return text;
    const size_t dash = part.rfind('-');
    if (dash == std::string::npos || dash == 0) return "";
    part.resize(dash);
  }
}

/// "gpt2_large.json" also means the bundled model if there is no such file.
const EmbeddedFile* find_bundled(const std::vector<EmbeddedFile>& files, const fs::path& path) {
  const std::string wanted =
      normalized_name((path.extension() == ".json" ? path.stem() : path).string());
  const auto found = std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) {
    return normalized_name(fs::path(file.path).stem().string()) == wanted;
  });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::string> find_bundled_model(const std::string& name_or_path) {
  if (is_there(name_or_path)) return std::nullopt;
  const std::vector<EmbeddedFile> files = embedded_files("models/");
  const EmbeddedFile* file = find_bundled(files, name_or_path);
  if (file == nullptr) return std::nullopt;
  return fs::path(file->path).stem().string();
}

Model load_bundled_model(const std::string& name) {
  const std::vector<EmbeddedFile> files = embedded_files("models/");
  if (const EmbeddedFile* file = find_bundled(files, name))
    return import_model(file->content, std::string(file->path));
  throw Error(ErrorKind::kNotFound,
              fmt::format("{}: no such file, folder or bundled model{}{}; 'tilecast models' lists "
                          "the bundled ones",
                          shown_name(name),
                          find_hub_name(name) && Budget::here().reads_files()
                              ? ", nor in the local cache of Hugging Face (" +
                                    printable(hub_cache().string()) + ")"
                              : "",
                          nearest_models(name)));
}

/// A folder of a pipeline has no config of its own.
static bool is_pipeline_folder(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(folder / kPipelineFile, code) &&
         !fs::is_regular_file(folder / "config.json", code);
}

Model load_model(const std::string& name_or_path) {
  const fs::path path(name_or_path);
  const fs::path folder = path.filename() == kPipelineFile ? path.parent_path() : path;
  if (is_folder(folder) && is_pipeline_folder(folder))
    return import_model(read_pipeline_folder(folder).dump(),
                        printable((folder / kPipelineFile).string()));
  if (is_folder(path)) return load_config(path / "config.json");
  if (is_there(path)) return load_config(path);
  const std::optional<HubName> hub = find_hub_name(name_or_path);
  if (!hub) return load_bundled_model(name_or_path);
  if (const std::optional<CachedModel> cached = find_cached_model(*hub)) {
    const fs::path file = cached->folder / "config.json";
    Model model = load_config(file);
    model.name = cached->name.name;
    model.warnings.push_back(
        fmt::format("{}: read from {}", name_or_path, printable(file.string())));
    return model;
  }
  if (find_bundled(embedded_files("models/"), hub->name) == nullptr)
    load_bundled_model(name_or_path);  // throws
  Model model = load_bundled_model(hub->name);
  model.warnings.push_back(
      fmt::format("{}: not in the local cache of Hugging Face; read from the bundled model {}",
                  name_or_path, model.name));
  return model;
}

}  // namespace tilecast
