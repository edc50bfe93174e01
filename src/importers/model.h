#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "graph/graph.h"

namespace tilecast {

/// What a forecast is asked for, as far as the graph depends on it.
struct GraphRequest {
  int64_t batch = 1;
  int64_t seq = 1;
  DType dtype = DType::kFp32;
  bool training = false;
};

/// A model description that was read and checked; builds graphs for any batch and length.
struct Model {
  std::string name;
  std::string format;       ///< "huggingface" or "graph"
  std::string family;       ///< "gpt2", "llama", …
  int64_t default_seq = 0;  ///< when the user names no length; 0 where the graph fixes it
  std::optional<int64_t> max_positions;
  std::function<Graph(const GraphRequest&)> build;
};

/// One model format.
struct ImporterDef {
  std::string_view name;
  std::string_view doc;
  /// Whether a file of this name and content is of this format.
  bool (*sniff)(std::string_view file_name, std::string_view content);
  Model (*import)(std::string_view content, const std::string& where);
};

const std::vector<ImporterDef>& importers();

/// A model file (or the folder that holds its config.json), or the name of a bundled model.
/// Throws Error{kNotFound} with the nearest names, Error{kInput} for a broken file,
/// Error{kUnsupported} for an unknown family.
Model load_model(const std::string& name_or_path);

/// Names of the bundled models, sorted.
std::vector<std::string> bundled_models();

/// Reads a model from text. `where` names it in messages.
Model import_model(std::string_view content, const std::string& where);

// The formats, one file each.
ImporterDef huggingface_importer();
ImporterDef graph_importer();

}  // namespace tilecast
