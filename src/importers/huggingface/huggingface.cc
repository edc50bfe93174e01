// Imports a Hugging Face config.json. Only the sizes are read: no weights, no Python.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/text.h"
#include "importers/huggingface/bart.h"
#include "importers/huggingface/decoder.h"
#include "importers/huggingface/diffusion_pipeline.h"
#include "importers/huggingface/encoder.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/multimodal.h"
#include "importers/huggingface/quantization.h"
#include "tilecast/error.h"

namespace tilecast {

// The families, one file for each architecture.
Model read_gpt2(const JsonObject& config);
Model read_opt(const JsonObject& config);
Model read_decoder(const JsonObject& config);
Model read_t5(const JsonObject& config);
Model read_vit(const JsonObject& config);
Model read_clip(const JsonObject& config);
Model read_clip_text(const JsonObject& config);
Model read_siglip(const JsonObject& config);
Model read_modernbert(const JsonObject& config);
Model read_swin(const JsonObject& config);
Model read_resnet(const JsonObject& config);
Model read_mobilenet(const JsonObject& config);
Model read_efficientnet(const JsonObject& config);
Model read_convnext(const JsonObject& config);
Model read_wav2vec2(const JsonObject& config);
Model read_whisper(const JsonObject& config);
Model read_unet(const JsonObject& config);
Model read_dit(const JsonObject& config);

namespace {

const std::vector<FamilyDef>& families() {
  static const std::vector<FamilyDef> table = [] {
    std::vector<FamilyDef> all = {{"gpt2", "GPT2", "GPT-2 and GPT-3 sizes", read_gpt2},
                                  {"opt", "OPT", "OPT decoders", read_opt}};
    const auto append = [&](const std::vector<FamilyDef>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(encoder_families());
    append({{"modernbert", "ModernBert", "ModernBERT", read_modernbert}});
    for (const DecoderFamily& family : decoder_families())
      all.push_back({family.model_type, family.architecture, family.doc, read_decoder});
    append({{"t5", "T5", "T5 encoder-decoders", read_t5},
            {"mt5", "MT5", "mT5", read_t5},
            {"umt5", "UMT5", "UMT5: relative positions in each layer", read_t5},
            {"switch_transformers", "SwitchTransformers", "Switch Transformers: T5 with experts",
             read_t5}});
    append(bart_families());
    append({{"vit", "ViT", "Vision transformers", read_vit},
            {"deit", "DeiT", "DeiT", read_vit},
            {"beit", "Beit", "BEiT", read_vit},
            {"dinov2", "Dinov2", "DINOv2", read_vit},
            {"dinov2_with_registers", "Dinov2WithRegisters", "DINOv2 with registers", read_vit},
            {"swin", "Swin", "Swin: attention in windows", read_swin},
            {"clip", "CLIP", "CLIP, both towers", read_clip},
            {"clip_text_model", "CLIPText", "CLIP's text tower", read_clip_text},
            {"siglip", "Siglip", "SigLIP, both towers", read_siglip},
            {"siglip2", "Siglip2", "SigLIP 2, both towers", read_siglip},
            {"resnet", "ResNet", "ResNet", read_resnet},
            {"regnet", "RegNet", "RegNet", read_resnet},
            {"mobilenet_v1", "MobileNetV1", "MobileNet V1", read_mobilenet},
            {"mobilenet_v2", "MobileNetV2", "MobileNet V2", read_mobilenet},
            {"efficientnet", "EfficientNet", "EfficientNet", read_efficientnet},
            {"convnext", "ConvNext", "ConvNeXt", read_convnext},
            {"convnextv2", "ConvNextV2", "ConvNeXt V2", read_convnext},
            {"whisper", "Whisper", "Whisper", read_whisper},
            {"wav2vec2", "Wav2Vec2", "wav2vec 2.0", read_wav2vec2},
            {"hubert", "Hubert", "HuBERT", read_wav2vec2},
            {"UNet2DConditionModel", "", "Stable Diffusion's U-Net (diffusers)", read_unet},
            {"DiTTransformer2DModel", "", "diffusion transformers (diffusers)", read_dit}});
    append(diffusion_families());
    return all;
  }();
  return table;
}

bool sniff_config(std::string_view file_name, std::string_view content) {
  if (file_name.ends_with(".json")) return true;
  const std::string_view text = trim(content);
  return !text.empty() && text.front() == '{';
}

const FamilyDef* family_of_type(std::string_view type) {
  for (const FamilyDef& family : families()) {
    if (family.model_type == type) return &family;
  }
  return nullptr;
}

/// "LlamaForCausalLM" → "Llama"; "" if the config names no class.
std::string architecture_of(const JsonObject& config) {
  if (!config.has("architectures")) return "";
  const std::vector<std::string> classes = config.strings("architectures");
  if (classes.empty()) return "";
  const std::string& name = classes.front();
  for (const std::string_view suffix : {"For", "LMHeadModel", "Model"}) {
    const size_t at = name.find(suffix);
    if (at != std::string::npos && at > 0) return name.substr(0, at);
  }
  return name;
}

const FamilyDef* family_of_architecture(std::string_view architecture) {
  if (architecture.empty()) return nullptr;
  for (const FamilyDef& family : families()) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

/// Fields of transformers' LlamaConfig and fields common to all configs. If an unknown family has
/// all fields that define the shape of a Llama and no others, it is read as a Llama.
bool has_fields_of_a_llama(const JsonObject& config) {
  static const std::vector<std::string> shape = {
      "hidden_size", "intermediate_size",       "num_hidden_layers", "num_attention_heads",
      "vocab_size",  "max_position_embeddings", "rms_norm_eps"};
  static const std::vector<std::string> further = {"num_key_value_heads",
                                                   "head_dim",
                                                   "hidden_act",
                                                   "rope_theta",
                                                   "rope_scaling",
                                                   "rope_parameters",
                                                   "attention_bias",
                                                   "attention_dropout",
                                                   "mlp_bias",
                                                   "pretraining_tp",
                                                   "tie_word_embeddings",
                                                   "model_type",
                                                   "architectures",
                                                   "auto_map",
                                                   "_name_or_path",
                                                   "transformers_version",
                                                   "torch_dtype",
                                                   "dtype",
                                                   "use_cache",
                                                   "bos_token_id",
                                                   "eos_token_id",
                                                   "pad_token_id",
                                                   "initializer_range",
                                                   "quantization_config",
                                                   kQuantConfigFile};
  const auto in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& item : config.json().items()) {
    if (!in(shape, item.key()) && !in(further, item.key())) return false;
  }
  return std::all_of(shape.begin(), shape.end(),
                     [&](const std::string& name) { return config.has(name); });
}

Model read_as(const FamilyDef& family, Json json, const std::string& where) {
  // The reader of several families looks up the type in the config.
  if (!json.contains("_class_name")) json["model_type"] = family.model_type;
  const JsonObject config(json, where);
  Model model = family.read(config);
  model.family = family.model_type;
  if (!model.decoder) model.checkpoint = read_checkpoint(config);
  return model;
}

[[noreturn]] void unknown_family(const JsonObject& config, const std::string& key,
                                 const std::string& type) {
  std::vector<std::string> names;
  for (const FamilyDef& family : families()) {
    names.emplace_back(family.model_type);
    // The outer config of a text model, which is in its 'text_config'.
    if (constexpr std::string_view kText = "_text"; names.back().ends_with(kText))
      names.push_back(names.back().substr(0, names.back().size() - kText.size()));
  }
  names.emplace_back("kimi_k25");  // which has a Kimi K2 in its 'text_config'
  constexpr const char* kAdvice =
      "'tilecast help families' lists the {} known ones; of a family with the same parts, write "
      "its "
      "name into '{}'\nor give the model as an ONNX file or a torch.nn.Module: "
      "docs/guide/import_a_model.md";
  const std::string advice = fmt::format(kAdvice, families().size(), key);
  if (type.empty()) config.fail("model_type", "is missing\n" + advice);
  const std::string architecture = architecture_of(config);
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("{}: '{}': unknown family '{}'{}{}\n{}", config.where(), key, shown_name(type),
                  architecture.empty() ? ""
                                       : fmt::format(" (architecture '{}', not known either)",
                                                     shown_name(architecture)),
                  did_you_mean(type, names), advice));
}

Model read_any(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  // diffusers configs name the class instead.
  const std::string key =
      config.has("model_type") || !config.has("_class_name") ? "model_type" : "_class_name";
  const std::string type = config.optional_string({key}).value_or("");
  const std::string architecture = architecture_of(config);
  const FamilyDef* named = family_of_architecture(architecture);
  if (const FamilyDef* family = family_of_type(type)) {
    Model model = read_as(*family, json, where);
    if (named != nullptr && named != family && !family->architecture.empty())
      model.warnings.push_back(
          fmt::format("'model_type' is '{}', but 'architectures' names '{}'; read as '{}'", type,
                      named->model_type, type));
    return model;
  }
  if (const std::string text = text_field(config); !text.empty()) {
    Json inner = multimodal_text(config, text);
    if (!inner.contains("model_type")) inner["model_type"] = type + "_text";
    Model model = read_any(inner, where + ": " + text);
    add_other_parts(config, text, model);
    return model;
  }
  if (const FamilyDef* family = family_of_type(type + "_text")) {
    // Older configs (Qwen2.5-VL) have the fields of the language model in the outer config.
    if (!config.has("hidden_size")) config.object("text_config");  // throws: it is missing
    Model model = read_as(*family, json, where);
    add_other_parts(config, "", model);
    return model;
  }
  if (named != nullptr) return read_as(*named, json, where);
  if (type.empty() || !has_fields_of_a_llama(config)) unknown_family(config, key, type);
  Model model = read_as(*family_of_type("llama"), json, where);
  model.warnings.push_back(
      fmt::format("unknown family '{}': its config has the fields of a Llama and is read as one",
                  shown_name(type)));
  return model;
}

Model import_config(const ModelText& text) {
  Json json = parse_json(text.content, text.where);
  static_cast<void>(JsonObject(json, text.where));  // an object, or an error
  if (!text.quantization.empty())
    json[kQuantConfigFile] =
        parse_json(text.quantization, text.where + ", " + std::string(kQuantConfigFile));
  Model model = read_any(json, text.where);
  model.note = JsonObject(json, text.where).optional_string({"tilecast_note"}).value_or("");
  return model;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> model_families() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const FamilyDef& family : families()) all.emplace_back(family.model_type, family.doc);
  return all;
}

Model read_config(const Json& json, const std::string& where) { return read_any(json, where); }

int64_t head_dim_of(const JsonObject& config, std::string_view hidden_key, int64_t hidden_dim,
                    std::string_view heads_key, int64_t heads) {
  if (hidden_dim % heads != 0)
    config.fail(std::string(heads_key),
                fmt::format("{} heads do not divide the hidden size {} ('{}')", heads, hidden_dim,
                            hidden_key));
  return hidden_dim / heads;
}

bool drops(const JsonObject& config, const char* key, double otherwise) {
  return (config.has(key) ? config.number(key) : otherwise) > 0;
}

Checkpoint read_checkpoint(const JsonObject& config) {
  Checkpoint checkpoint;
  for (const char* field : {"torch_dtype", "dtype"}) {
    const std::optional<std::string> name = config.optional_string({field});
    if (!name || *name == "auto") continue;
    static const std::map<std::string, DType> known = {{"float32", DType::kFp32},
                                                       {"float", DType::kFp32},
                                                       {"bfloat16", DType::kBf16},
                                                       {"float16", DType::kFp16},
                                                       {"half", DType::kFp16}};
    std::string bare = name->starts_with("torch.") ? name->substr(6) : *name;
    const auto found = known.find(bare);
    if (found == known.end()) {
      checkpoint.problem = fmt::format(
          "{}: '{}': a checkpoint in '{}' is not supported; known: float32, float16, bfloat16",
          config.where(), field, shown_name(*name));
      return checkpoint;
    }
    checkpoint.dtype = found->second;
    checkpoint.dtype_field = field;
    break;
  }
  try {
    std::optional<Quantization> read = read_quantization(config);
    if (!read) return checkpoint;
    checkpoint.quantization = read->source;
    checkpoint.kv_dtype = read->kv_dtype;
    checkpoint.storage = read->storage;
    checkpoint.warnings = read->warnings;
    if (read->scheme != QuantScheme::kNone) checkpoint.schemes.push_back(read->scheme);
    for (const auto& [scheme, names] : read->named) {
      if (scheme != read->scheme) checkpoint.schemes.push_back(scheme);
    }
    if (checkpoint.schemes.empty()) return checkpoint;
    // Shared, because the function is copied with each request.
    const auto shared = std::make_shared<ModuleSchemes>(*std::move(read), config.where());
    checkpoint.scheme_of = [shared](std::string_view module) { return shared->of(module); };
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    checkpoint.problem = error.what();
  }
  return checkpoint;
}

ImporterDef huggingface_importer() {
  return {.name = "huggingface",
          .doc = "config.json of a Hugging Face model",
          .sniff = sniff_config,
          .import = import_config};
}

}  // namespace tilecast
