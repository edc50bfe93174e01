#include "importers/huggingface/diffusion_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/huggingface/denoiser.h"
#include "importers/huggingface/latent_decoder.h"
#include "ops/joined_graphs.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

namespace fs = std::filesystem;

struct EncoderUse {
  const char* component;
  int64_t tokens;  ///< of a prompt, filled up
};

/// A pipeline's class: what `__call__` of diffusers takes by default.
struct PipelineDef {
  std::string_view class_name;
  std::string_view doc;
  std::vector<EncoderUse> encoders;
  std::vector<int64_t> text_tokens;  ///< that the denoiser reads
  int64_t steps = 0, height = 0, width = 0, frames = 1;
  double guidance = 0, fps = 0;
  bool distilled = false;   ///< the scale of guidance is an input of the denoiser
  bool two_passes = false;  ///< of guidance, one after the other; else one of twice the batch
};

/// Source: diffusers 0.42, pipelines/*/pipeline_*.py: defaults of __call__ and its
/// max_sequence_length; frames a second of videos as in their examples (export_to_video).
const std::vector<PipelineDef>& pipelines() {
  static const std::vector<PipelineDef> table = {
      {.class_name = "FluxPipeline",
       .doc = "FLUX.1 (diffusers)",
       .encoders = {{"text_encoder", 77}, {"text_encoder_2", 512}},
       .text_tokens = {512},
       .steps = 28,
       .height = 1024,
       .width = 1024,
       .guidance = 3.5,
       .distilled = true},
      {.class_name = "StableDiffusion3Pipeline",
       .doc = "Stable Diffusion 3 and 3.5 (diffusers)",
       .encoders = {{"text_encoder", 77}, {"text_encoder_2", 77}, {"text_encoder_3", 256}},
       .text_tokens = {77 + 256},
       .steps = 28,
       .height = 1024,
       .width = 1024,
       .guidance = 7},
      {.class_name = "PixArtSigmaPipeline",
       .doc = "PixArt-Sigma (diffusers)",
       .encoders = {{"text_encoder", 300}},
       .text_tokens = {300},
       .steps = 20,
       .height = 1024,
       .width = 1024,
       .guidance = 4.5},
      {.class_name = "HunyuanDiTPipeline",
       .doc = "HunyuanDiT (diffusers)",
       .encoders = {{"text_encoder", 77}, {"text_encoder_2", 256}},
       .text_tokens = {77, 256},
       .steps = 50,
       .height = 1024,
       .width = 1024,
       .guidance = 5},
      // Prompts stand behind an instruction; the denoiser reads the last 300 tokens.
      {.class_name = "SanaPipeline",
       .doc = "Sana (diffusers)",
       .encoders = {{"text_encoder", 300}},
       .text_tokens = {300},
       .steps = 20,
       .height = 1024,
       .width = 1024,
       .guidance = 4.5},
      {.class_name = "WanPipeline",
       .doc = "Wan, videos from text (diffusers)",
       .encoders = {{"text_encoder", 512}},
       .text_tokens = {512},
       .steps = 50,
       .height = 480,
       .width = 832,
       .frames = 81,
       .guidance = 5,
       .fps = 16,
       .two_passes = true},
      {.class_name = "CogVideoXPipeline",
       .doc = "CogVideoX, videos from text (diffusers)",
       .encoders = {{"text_encoder", 226}},
       .text_tokens = {226},
       .steps = 50,
       .height = 480,
       .width = 720,
       .frames = 49,
       .guidance = 6,
       .fps = 8},
      // 95 tokens of the prompt's template are cut off before the denoiser.
      {.class_name = "HunyuanVideoPipeline",
       .doc = "HunyuanVideo (diffusers)",
       .encoders = {{"text_encoder", 256 + 95}, {"text_encoder_2", 77}},
       .text_tokens = {256},
       .steps = 50,
       .height = 720,
       .width = 1280,
       .frames = 129,
       .guidance = 6,
       .fps = 15,
       .distilled = true}};
  return table;
}

struct DenoiserModel {
  const DenoiserDef* def = nullptr;
  DenoiserConfig config;
};
struct DecoderModel {
  const LatentDecoderDef* def = nullptr;
  LatentDecoderConfig config;
};

/// The config of a component; throws if it is missing.
JsonObject component(const JsonObject& pipeline, const std::string& name) {
  if (!pipeline.has(name) || !pipeline.json()[name].is_object())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the component '{}' is missing: expected its config, with the "
                            "component's `_class_name` or `architectures`",
                            pipeline.where(), name));
  return pipeline.object(name);
}

/// Throws Error{kUnsupported} with the known classes.
template <typename Def>
const Def& class_of(const JsonObject& config, const Def* (*find)(std::string_view),
                    const std::vector<Def>& all) {
  const std::string name = config.string("_class_name");
  if (const Def* def = find(name)) return *def;
  std::vector<std::string> names;
  for (const Def& def : all) names.emplace_back(def.class_name);
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: '_class_name': unknown class '{}'{}; known: {}", config.where(),
                          shown_name(name), did_you_mean(name, names), join(names, ", ")));
}

DenoiserModel read_denoiser(const JsonObject& config) {
  const DenoiserDef& def = class_of(config, find_denoiser, denoisers());
  return {&def, def.read(config)};
}
DecoderModel read_latent_decoder(const JsonObject& config) {
  const LatentDecoderDef& def = class_of(config, find_latent_decoder, latent_decoders());
  return {&def, def.read(config)};
}

/// A decoder of text gives its last hidden states only: the output layer does not run.
void drop_output_layer(Graph& graph) {
  while (!graph.nodes.empty() && !graph.segments.empty() && graph.segments.back().node_count > 0 &&
         graph.nodes.back().role == Role::kOutput) {
    graph.outputs = {graph.nodes.back().inputs.front()};
    graph.nodes.pop_back();
    --graph.segments.back().node_count;
  }
  std::vector<bool> read(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.inputs) read[static_cast<size_t>(id)] = true;
    for (const TensorId id : node.outputs) read[static_cast<size_t>(id)] = true;
  }
  for (size_t i = 0; i < read.size(); ++i) {
    if (!read[i] && graph.tensors[i].kind != TensorKind::kInput)
      graph.tensors[i].kind = TensorKind::kReference;
  }
}

/// All that graphs are built from.
struct Pipeline {
  const PipelineDef* def = nullptr;
  std::vector<std::shared_ptr<const Model>> encoders;
  DenoiserModel denoiser;
  DecoderModel decoder;

  LatentTile latents(const DiffusionPipeline::Batch& batch) const {
    const int64_t pixels = pixels_of_latent(decoder.config);
    return {.samples = batch.outputs,
            .frames = (batch.frames - 1) / decoder.def->time_factor + 1,
            .height = batch.height / pixels,
            .width = batch.width / pixels};
  }
};

using Part = DiffusionPipeline::Part;

void add_encoders(const std::shared_ptr<const Pipeline>& p, const DiffusionPipeline::Batch& batch,
                  std::vector<Part>& parts) {
  for (size_t i = 0; i < p->encoders.size(); ++i) {
    const EncoderUse& use = p->def->encoders[i];
    parts.push_back({.name = use.component,
                     .component = use.component,
                     .stage = DiffusionPipeline::Stage::kEncode,
                     .runs = batch.guided ? 2 : 1,  // also the negative prompts
                     .build = [p, i, tokens = use.tokens, outputs = batch.outputs](DType dtype) {
                       const Model& model = *p->encoders[i];
                       const int64_t seq = std::min(tokens, model.max_positions.value_or(tokens));
                       Graph graph = model.build({.batch = outputs, .seq = seq, .dtype = dtype});
                       if (model.decoder) drop_output_layer(graph);
                       return graph;
                     }});
  }
}

void add_denoiser(const std::shared_ptr<const Pipeline>& p, const DiffusionPipeline::Batch& batch,
                  std::vector<Part>& parts) {
  const bool twice = batch.guided && batch.cfg == 1;
  const LatentTile latents = p->latents(batch);
  const DenoiserBatch work = {
      .samples = checked_multiply(batch.outputs, twice && !p->def->two_passes ? 2 : 1),
      .frames = latents.frames,
      .height = latents.height,
      .width = latents.width,
      .text_tokens = p->def->text_tokens,
      .ulysses = batch.ulysses,
      .ring = batch.ring};
  parts.push_back({.name = "transformer",
                   .component = "transformer",
                   .stage = DiffusionPipeline::Stage::kDenoise,
                   .runs = twice && p->def->two_passes ? 2 : 1,
                   .build = [p, work](DType dtype) {
                     Graph graph;
                     p->denoiser.def->build(graph, p->denoiser.config, work, dtype);
                     return graph;
                   }});
}

void add_decoder(const std::shared_ptr<const Pipeline>& p, const DiffusionPipeline::Batch& batch,
                 std::vector<Part>& parts) {
  const LatentTile whole = p->latents(batch);
  const std::vector<TileRuns> all = p->decoder.def->runs(p->decoder.config, whole);
  for (const auto& [tile, runs] : all) {
    parts.push_back(
        {.name = all.size() == 1 ? "vae"
                                 : fmt::format("vae {}x{}x{}{}", tile.frames, tile.height,
                                               tile.width, tile.first ? ", first" : ""),
         .component = "vae",
         .stage = DiffusionPipeline::Stage::kDecode,
         .runs = runs,
         .build = [p, tile = tile](DType dtype) {
           Graph graph;
           const bool wide = p->decoder.def->wide && dtype_bits(dtype) == 16;
           p->decoder.def->build(graph, p->decoder.config, tile, wide ? DType::kTf32 : dtype);
           return graph;
         }});
  }
}

/// Text encoders, a step of the denoiser and a run of the decoder, one after the other.
Graph build_whole(const DiffusionPipeline& pipeline, const GraphRequest& request) {
  JoinedGraphs joined;
  std::vector<TensorId> outputs;
  std::string last;
  for (const Part& part : pipeline.parts({.outputs = request.batch,
                                          .height = pipeline.height,
                                          .width = pipeline.width,
                                          .frames = pipeline.frames})) {
    if (part.component == last) continue;
    last = part.component;
    const Graph graph = part.build(request.dtype);
    const std::vector<TensorId> now = joined.add(graph);
    outputs.clear();
    for (const TensorId id : graph.outputs) outputs.push_back(now[static_cast<size_t>(id)]);
  }
  Graph graph = joined.done();
  graph.outputs = std::move(outputs);
  return graph;
}

/// The sizes that the class's defaults are not for: of the second generation of CogVideoX.
void set_defaults(const Pipeline& p, DiffusionPipeline& pipeline) {
  const PipelineDef& def = *p.def;
  pipeline.video = def.frames > 1;
  pipeline.distilled = def.distilled;
  pipeline.steps = def.steps;
  pipeline.height = def.height;
  pipeline.width = def.width;
  pipeline.frames = def.frames;
  pipeline.guidance = def.guidance;
  pipeline.fps = def.fps;
  if (p.denoiser.config.patch_t > 1) {
    // The model card of CogVideoX1.5: 1360 x 768 and 81 frames.
    pipeline.height = 768;
    pipeline.width = 1360;
    pipeline.frames = 81;
  }
  pipeline.pixel_multiple =
      checked_multiply(pixels_of_latent(p.decoder.config), p.denoiser.config.patch);
  pipeline.frame_multiple = p.decoder.def->time_factor;
  pipeline.heads = p.denoiser.config.heads;
}

Model read_pipeline(const JsonObject& config) {
  const std::string name = config.string("_class_name");
  const auto pipeline = std::make_shared<Pipeline>();
  pipeline->def = &*std::find_if(pipelines().begin(), pipelines().end(),
                                 [&](const PipelineDef& def) { return def.class_name == name; });
  for (const EncoderUse& use : pipeline->def->encoders) {
    const JsonObject part = component(config, use.component);
    pipeline->encoders.push_back(
        std::make_shared<const Model>(read_config(part.json(), part.where())));
  }
  pipeline->denoiser = read_denoiser(component(config, "transformer"));
  pipeline->decoder = read_latent_decoder(component(config, "vae"));
  if (pipeline->decoder.config.latents != pipeline->denoiser.config.in)
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: 'transformer' denoises {} channels, but 'vae' decodes {}", config.where(),
                    pipeline->denoiser.config.in, pipeline->decoder.config.latents));
  Model model;
  model.default_seq = 1;
  model.fixed_seq = true;
  model.has_modules = true;
  model.has_fused_attention = true;
  DiffusionPipeline& p = model.pipeline.emplace();
  set_defaults(*pipeline, p);
  const std::shared_ptr<const Pipeline> shared = pipeline;
  p.parts = [shared](const DiffusionPipeline::Batch& batch) {
    std::vector<Part> parts;
    add_encoders(shared, batch, parts);
    add_denoiser(shared, batch, parts);
    add_decoder(shared, batch, parts);
    return parts;
  };
  model.build = [p](const GraphRequest& request) { return build_whole(p, request); };
  return model;
}

/// A denoiser alone: one run, for an image of 1024 x 1024 pixels or a video of 49 frames of 480 x
/// 720 pixels; `seq` is the length of the text.
Model read_denoiser_alone(const JsonObject& config) {
  const DenoiserModel denoiser = read_denoiser(config);
  constexpr int64_t kText = 256;
  Model model = make_model(
      denoiser, kText, std::nullopt, +[](const DenoiserModel& m, const GraphRequest& request) {
        const bool video = m.def->class_name.find("3D") != std::string::npos;
        DenoiserBatch batch{.samples = request.batch};
        batch.frames = video ? 13 : 1;
        batch.height = video ? 60 : 128;
        batch.width = video ? 90 : 128;
        if (m.config.sample > 1 && !video && m.config.sample < 64)
          batch.height = batch.width = m.config.sample;
        batch.text_tokens.assign(2, request.seq);
        Graph graph;
        m.def->build(graph, m.config, batch, request.dtype);
        return graph;
      });
  model.has_fused_attention = true;
  return model;
}

/// A decoder alone, for the latents of such an image, or of one tile of a video.
Model read_decoder_alone(const JsonObject& config) {
  Model model = make_image_model(
      read_latent_decoder(config), +[](const DecoderModel& m, const GraphRequest& request) {
        const int64_t side =
            m.config.tile_height > 0 ? m.config.tile_height : 1024 / pixels_of_latent(m.config);
        const LatentTile tile{.samples = request.batch,
                              .frames = 1,
                              .height = side,
                              .width = m.config.tile_width > 0 ? m.config.tile_width : side};
        Graph graph;
        m.def->build(graph, m.config, tile, request.dtype);
        return graph;
      });
  model.has_fused_attention = true;
  return model;
}

}  // namespace

std::vector<FamilyDef> diffusion_families() {
  std::vector<FamilyDef> all;
  for (const DenoiserDef& def : denoisers())
    all.push_back({def.class_name, "", def.doc, read_denoiser_alone});
  for (const LatentDecoderDef& def : latent_decoders())
    all.push_back(
        {def.class_name, "", "the decoder of an autoencoder (diffusers)", read_decoder_alone});
  for (const PipelineDef& def : pipelines())
    all.push_back({def.class_name, "", def.doc, read_pipeline});
  return all;
}

Json read_pipeline_folder(const fs::path& folder) {
  const fs::path index = folder / kPipelineFile;
  const std::string where = printable(index.string());
  Json pipeline = parse_json(read_file(index), where);
  static_cast<void>(JsonObject(pipeline, where).string("_class_name"));  // an object, or an error
  for (auto& item : pipeline.items()) {
    // ["diffusers", "FluxTransformer2DModel"]; schedulers and tokenizers have no networks.
    const Json& value = item.value();
    if (!value.is_array() || value.size() != 2 || !value[1].is_string()) continue;
    const fs::path file = folder / item.key() / "config.json";
    std::error_code code;
    if (!fs::is_regular_file(file, code)) continue;
    const std::string file_where = printable(file.string());
    Json config = parse_json(read_file(file), file_where);
    static_cast<void>(JsonObject(config, file_where));
    item.value() = std::move(config);
  }
  return pipeline;
}

}  // namespace tilecast
