#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "graph/graph.h"
#include "graph/scheme.h"

namespace tilecast {

/// What a forecast is asked for, as far as the graph depends on it.
struct GraphRequest {
  int64_t batch = 1;
  int64_t seq = 1;
  DType dtype = DType::kFp32;
};

/// What a language model that writes token by token is, as far as serving depends on it.
struct Decoder {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  bool latent = false;  ///< keys and values are one vector that every rank holds whole
  int64_t ffn_dim = 0;
  int64_t expert_ffn_dim = 0;  ///< 0: no experts
  /// Of tables that tokens or positions are looked up in; not of one that is the output layer too.
  int64_t embedding_parameters = 0;
  int64_t kv_cache_dim = 0;      ///< elements that a token leaves in one layer's cache
  std::vector<int64_t> windows;  ///< of each layer; 0: attention reaches all tokens
};

/// What a config says of the types of its checkpoint.
struct Checkpoint {
  std::optional<DType> dtype;  ///< of what is not quantized
  std::string dtype_field;     ///< where it stands: "torch_dtype" or "dtype"
  std::string quantization;    ///< "quantization_config" or "hf_quant_config.json"; "": none
  /// Schemes in use, that of the most weights first; empty where nothing is quantized.
  std::vector<QuantScheme> schemes;
  /// How a linear layer or the experts, named as in the graph, are stored. Set with `schemes`.
  std::function<QuantScheme(std::string_view module)> scheme_of;
  std::optional<DType> kv_dtype;      ///< of the cache
  std::vector<std::string> warnings;  ///< of the quantization
  /// Why the types could not be read; a forecast in a type that is asked for is possible.
  std::string problem;
};

/// A model description that was read and checked; builds graphs for any batch and length.
struct Model {
  std::string name;
  std::string format;       ///< "huggingface" or "graph"
  std::string family;       ///< "gpt2", "llama", …
  int64_t default_seq = 0;  ///< when the user names no length; 0 where the graph fixes it
  std::optional<int64_t> max_positions;
  /// The graph of a forward pass.
  std::function<Graph(const GraphRequest&)> build;
  /// Its operators are modules: `decompose` (src/passes) writes what PyTorch launches, `fuse` what
  /// serving software does. Else they are what is launched (graph notation).
  bool has_modules = false;
  std::optional<Decoder> decoder;    ///< of language models that write token by token
  bool fixed_seq = false;            ///< the length follows from the config (images)
  bool has_fused_attention = false;  ///< EagerForm::fused_attention is known
  /// Batch, length and types are those of the file (graph notation).
  std::optional<DType> fixed_dtype;
  Checkpoint checkpoint;
  std::string note;                   ///< for lists: in what the name misleads
  std::vector<std::string> warnings;  ///< what was taken to be so, or left out
};

/// The file beside a config.json in which ModelOpt says how a checkpoint is quantized; also the
/// field of the config that import puts its content into.
inline constexpr const char* kQuantConfigFile = "hf_quant_config.json";

/// The text of a model file.
struct ModelText {
  std::string_view content;
  std::string where;                   ///< names it in messages
  std::string_view quantization = "";  ///< hf_quant_config.json beside a config.json
};

/// One model format.
struct ImporterDef {
  std::string_view name;
  std::string_view doc;
  /// Whether a file of this name and content is of this format.
  bool (*sniff)(std::string_view file_name, std::string_view content);
  Model (*import)(const ModelText& text);
};

const std::vector<ImporterDef>& importers();

/// Whether the module, named as in a graph, chooses experts ("layers.3.mlp.gate",
/// "…shared_expert_gate"): a small layer that keeps its type in the usual checkpoints.
bool is_router(std::string_view module);

/// A model file (or the folder that holds its config.json), or the name of a bundled model.
/// Throws Error{kNotFound} with the nearest names, Error{kInput} for a broken file,
/// Error{kUnsupported} for an unknown family.
Model load_model(const std::string& name_or_path);

/// Names of the bundled models, sorted.
std::vector<std::string> bundled_models();

/// Reads a model from text. `where` names it in messages.
Model import_model(const ModelText& text);
inline Model import_model(std::string_view content, const std::string& where) {
  return import_model(ModelText{content, where});
}

}  // namespace tilecast
