#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "embedding/tables.h"
#include "graph/graph.h"
#include "graph/scheme.h"
#include "graph/storage.h"

namespace tilecast {

/// The parts of a request that the graph depends on.
struct GraphRequest {
  int64_t batch = 1;
  int64_t seq = 1;
  /// Tokens of the decoder, of models with an encoder beside it; 0: as `seq`.
  int64_t decoder_seq = 0;
  DType dtype = DType::kFp32;
  /// Sizes of symbolic dimensions by name, for formats that have such.
  std::vector<std::pair<std::string, int64_t>> dims = {};
  /// Operators that are not supported are left out instead of an error.
  bool skip_unsupported = false;
  /// Each layer repeats alone: a pipeline divides single layers, not the pairs of a pattern.
  bool single_layers = false;

  int64_t decoder_tokens() const { return decoder_seq > 0 ? decoder_seq : seq; }
};

/// The facts about a decoder that serving depends on.
struct Decoder {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t ffn_dim = 0;
  int64_t expert_ffn_dim = 0;  ///< 0: no experts
  int64_t hidden_dim = 0;
  /// Parameters of embedding tables, without a table that is also the output layer.
  int64_t embedding_parameters = 0;
  /// The cache that serving software keeps of the tokens of a sequence, summed over equal layers.
  struct Cache {
    int64_t layers = 0;
    int64_t dim = 0;                  ///< elements per entry
    int64_t window = 0;               ///< only the last tokens are kept; 0: all
    int64_t ratio = 1;                ///< tokens per entry
    int64_t kv_heads = 1;             ///< that ranks divide; a single one is replicated
    std::optional<DType> dtype = {};  ///< if it is not that of the KV cache
    bool operator==(const Cache&) const = default;
  };
  std::vector<Cache> caches;
  bool latent = false;  ///< multi-head latent attention: one vector per token
  /// For recurrent layers: bytes of the states of a sequence (fp32; of convolutions: bf16), all
  /// layers.
  int64_t state_bytes = 0;
  int64_t recurrent_layers = 0;
  int64_t recurrent_heads = 0, recurrent_groups = 0;  ///< that ranks divide; 0: no such layers
  /// Layers for multi-token prediction, each like the last layer; the graph does not have them.
  int64_t mtp_layers = 0;
};

/// The vision tower of a multimodal model: it makes tokens of the prompt from square images.
struct VisionTower {
  /// Input of the tower for one image.
  struct Image {
    int64_t side = 0;    ///< pixels, after the processor's resizing
    int64_t views = 1;   ///< inputs of the tower: tiles, and the whole image beside them
    int64_t tokens = 0;  ///< that the image adds to the prompt, over all views
  };
  int64_t heads = 0, ffn_dim = 0;  ///< that ranks divide
  /// Widths of its tokens and of the text tokens that they replace. They are equal where a
  /// checkpoint can run.
  int64_t out_dim = 0, text_dim = 0;
  int64_t default_side = 0;  ///< pixels, if no size of images is given
  /// Throws Error{kInput} if the number of tokens overflows.
  std::function<Image(int64_t side)> image;
  /// The modules for `batch` images of a side that `image` returned; in the request, `seq` is not
  /// used.
  std::function<Graph(const GraphRequest&, const Image&)> build;
};

/// A pipeline of image or video diffusion: networks that run one after the other.
struct DiffusionPipeline {
  /// One batch, with all sizes.
  struct Batch {
    int64_t outputs = 1, height = 0, width = 0, frames = 1;
    bool guided = false;
    int64_t ulysses = 1, ring = 1, cfg = 1;  ///< ranks, as in DiffusionTerms
  };
  enum class Stage : uint8_t { kEncode, kDenoise, kDecode };
  struct Part {
    std::string name, component;  ///< parts of one component have the same weights
    Stage stage = Stage::kDenoise;
    int64_t runs = 1;  ///< of a batch; of the denoiser in each step
    /// The modules on one rank, with samples and tokens of their own.
    std::function<Graph(DType)> build;
  };
  bool video = false;
  /// Guidance is an input of the denoiser, which runs once (guidance-distilled).
  bool distilled = false;
  int64_t steps = 0, height = 0, width = 0, frames = 1;  ///< defaults of the pipeline's class
  double guidance = 0, fps = 0;
  int64_t pixel_multiple = 1;  ///< of height and width
  int64_t frame_multiple = 1;  ///< of the frames after the first
  int64_t heads = 1;           ///< of the denoiser's attention, which Ulysses ranks divide
  /// Throws Error{kInput} for sizes that the networks do not take.
  std::function<std::vector<Part>(const Batch&)> parts;
};

/// The parts of a recommendation model that ranks divide.
struct Recommendation {
  TableSet tables;
  /// The model with the sums of the tables as an input that other ranks compute.
  std::function<Graph(const GraphRequest&)> build_dense;
};

/// The dtypes of a checkpoint, from its config.
struct Checkpoint {
  std::optional<DType> dtype;  ///< of everything that is not quantized
  std::string dtype_field;     ///< the field it comes from: "torch_dtype" or "dtype"
  std::string quantization;    ///< "quantization_config" or "hf_quant_config.json"; "": none
  /// Schemes in use, starting with the scheme of the most weights; empty: not quantized.
  std::vector<QuantScheme> schemes;
  /// The scheme of a linear layer or a layer of experts, by its name in the graph. Set if `schemes`
  /// is not empty.
  std::function<QuantScheme(std::string_view module)> scheme_of;
  /// How the weights of a scheme are stored, where it is not the scheme's own way.
  StorageTable storage;
  std::optional<DType> kv_dtype;  ///< of the KV cache
  /// Bytes of all weights, if the file states them tensor by tensor (GGUF).
  std::optional<int64_t> weights_bytes;
  std::vector<std::string> warnings;  ///< about the quantization
  /// Why the dtypes could not be read; "": no problem. Forecasts with an explicit dtype are still
  /// possible.
  std::string problem;
};

/// A model description that has been read and checked. It builds graphs for any batch and length.
struct Model {
  std::string name;
  std::string format;       ///< "huggingface", "gguf", "onnx" or "graph"
  std::string family;       ///< "gpt2", "llama", …
  int64_t default_seq = 0;  ///< used if no length is given; 0: the graph fixes the length
  /// An encoder reads sequences beside the decoder's, which may have another length.
  bool has_two_lengths = false;
  std::optional<int64_t> max_positions;
  /// Builds the graph of a forward pass.
  std::function<Graph(const GraphRequest&)> build;
  /// The graph consists of modules, which `decompose` (src/passes) replaces by PyTorch's operators
  /// and `fuse` by serving software's. False for graph notation: the operators are launched as they
  /// are.
  bool has_modules = false;
  /// Modules may be spelled out as operators, which `recognize` (src/passes) finds.
  bool spelled_out = false;
  /// The file fixes all shapes but the batch; `default_seq` is 0.
  bool open_batch = false;
  std::optional<Decoder> decoder;                ///< set for models that generate text
  std::optional<VisionTower> vision;             ///< beside the decoder; `build` leaves it out
  std::optional<Recommendation> recommendation;  ///< set for models with embedding tables
  std::optional<DiffusionPipeline> pipeline;     ///< `build` has one run of each of its networks
  bool fixed_seq = false;                        ///< the config fixes the length (images)
  bool has_fused_attention = false;              ///< supports EagerForm::fused_attention
  /// Transformers calls it with SDPA unless it is told otherwise (`_supports_sdpa`). Scores that
  /// are capped and sinks are exceptions; files that spell attention out have chosen.
  bool takes_fused_attention = true;
  /// Its code casts logits to FP32 for the loss (transformers, loss/loss_utils.py), as those of
  /// decoders do.
  bool upcasts_loss = false;
  bool trains_position_bias = false;  ///< of attention: no fused kernel of PyTorch computes that
  /// Set for graph notation: the file states batch, length and dtypes.
  std::optional<DType> fixed_dtype;
  bool has_backward = false;  ///< the graph is that of a training step, with its backward pass
  Checkpoint checkpoint;
  std::string note;                   ///< for lists of models: says so if the name is misleading
  std::vector<std::string> warnings;  ///< assumptions, and parts that were left out
  /// Remarks on what the graph assumes or leaves out for a request; null: there are none.
  std::function<std::vector<std::string>(const GraphRequest&)> remarks;

  /// Whether forecasts for other batches are possible.
  bool takes_batch() const { return default_seq > 0 || open_batch; }
};

/// The file next to config.json in which ModelOpt describes the quantization of a checkpoint. The
/// importer stores its content in the config, in a field of the same name.
inline constexpr const char* kQuantConfigFile = "hf_quant_config.json";

/// The content of a model file.
struct ModelText {
  std::string_view content;
  std::string where;                   ///< its name in messages
  std::string_view quantization = "";  ///< content of hf_quant_config.json next to a config.json
  /// The file whose content it is, if that must be loaded part by part; nullptr: it is whole.
  PartlyReadFile* file = nullptr;
};

/// One model format.
struct ImporterDef {
  std::string_view name;
  std::string_view doc;
  /// Whether a file with this name and content has this format.
  bool (*sniff)(std::string_view file_name, std::string_view content);
  Model (*import)(const ModelText& text);
  /// For formats where only the start is read: whether `content`, the start of a file, is enough.
  /// May throw as `import` does. nullptr: files are read whole.
  bool (*is_complete)(std::string_view content) = nullptr;
  /// Files may be large, and only parts of them are read (`ModelText::file`).
  bool partly_read = false;
};

const std::vector<ImporterDef>& importers();

/// Whether the module, named as in a graph, is a router ("layers.3.mlp.gate",
/// "…shared_expert_gate"): a small layer that common checkpoints do not quantize.
bool is_router(std::string_view module);
/// The role of a weight by its name in a file ("layers.3.mlp.gate.weight"): kRouter, kGate or
/// kNone.
Role router_role(std::string_view weight);

/// Loads a model file, a folder with a config.json, or a bundled model by its name. Throws
/// Error{kNotFound} with the nearest names, Error{kInput} for a broken file, Error{kUnsupported}
/// for an unknown family.
Model load_model(const std::string& name_or_path);

/// Names of the bundled models, sorted.
std::vector<std::string> bundled_models();

/// Families of config.json: `model_type` and what it is.
std::vector<std::pair<std::string, std::string>> model_families();

/// Reads a model from text. `where` names it in messages.
Model import_model(const ModelText& text);
inline Model import_model(std::string_view content, const std::string& where) {
  return import_model(ModelText{content, where});
}

}  // namespace tilecast
