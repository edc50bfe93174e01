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
#include "importers/huggingface/pipeline_classes.h"
#include "ops/joined_graphs.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

namespace fs = std::filesystem;

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

[[noreturn]] void refuse_sizes(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

/// Tables of positions have an end, and ranks need tokens.
void check_sizes(const Pipeline& p, const DiffusionPipeline::Batch& batch) {
  const DenoiserConfig& c = p.denoiser.config;
  const LatentTile latents = p.latents(batch);
  const int64_t rows = latents.height / c.patch, columns = latents.width / c.patch;
  const int64_t most = c.positions * c.patch * pixels_of_latent(p.decoder.config);
  for (const auto& [option, pixels] : {std::pair("height", batch.height), {"width", batch.width}}) {
    if (c.positions > 0 && pixels > most)
      refuse_sizes(fmt::format("`{}` {}: the denoiser's table of positions ends at {} pixels",
                               option, pixels, most));
  }
  const int64_t ranks = checked_multiply(batch.ulysses, batch.ring);
  const int64_t tokens = checked_product({rows, columns, ceil_divide(latents.frames, c.patch_t)});
  if (ranks > tokens)
    refuse_sizes(
        fmt::format("`ulysses-degree` {} × `ring-degree` {} = {} ranks, but there are {} "
                    "tokens; use at most one rank a token",
                    batch.ulysses, batch.ring, ranks, tokens));
  if (c.linear && rows % ranks != 0)
    refuse_sizes(
        fmt::format("`ulysses-degree` {} × `ring-degree` {} = {} ranks do not divide the "
                    "{} rows of tokens that the denoiser convolves; use a divisor",
                    batch.ulysses, batch.ring, ranks, rows));
}

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
         .build = [p, tile = tile](DType dtype) mutable {
           Graph graph;
           tile.chunked = p->decoder.def->time_factor > 1;
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
  // Linear attention sends sums, whatever the number of heads.
  pipeline.heads = p.denoiser.config.linear ? 0 : p.denoiser.config.heads;
}

/// The width of an encoder's result, by its config; 0: not stated.
int64_t width_of_encoder(const JsonObject& encoder) {
  const std::vector<std::string> classes =
      encoder.has("architectures") ? encoder.strings("architectures") : std::vector<std::string>{};
  const bool projects = !classes.empty() && classes.front().ends_with("WithProjection");
  return encoder
      .optional_integer(projects ? std::vector<std::string>{"projection_dim"}
                                 : std::vector<std::string>{"hidden_size", "d_model"},
                        1, kLargestConfigSize)
      .value_or(0);
}

void check_text_widths(const Pipeline& p, const JsonObject& config) {
  for (const EncoderUse& use : p.def->encoders) {
    int64_t given = 0;
    bool stated = true;
    std::vector<std::string> names;
    for (const EncoderUse& other : p.def->encoders) {
      if (other.width != use.width) continue;
      const int64_t width = width_of_encoder(component(config, other.component));
      names.push_back(fmt::format("'{}'", other.component));
      given = checked_add(given, width);
      stated = stated && width > 0;
    }
    const int64_t read = p.denoiser.config.*use.width;
    if (stated && read > 0 && given != read)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: 'transformer' reads text of {} columns, but {} gives {}",
                              config.where(), read, join(names, " with "), given));
  }
}

Model read_pipeline(const JsonObject& config) {
  const std::string name = config.string("_class_name");
  const auto pipeline = std::make_shared<Pipeline>();
  pipeline->def = &*std::find_if(pipeline_classes().begin(), pipeline_classes().end(),
                                 [&](const PipelineDef& def) { return def.class_name == name; });
  refuse_other_networks(*pipeline->def, config);
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
  check_text_widths(*pipeline, config);
  Model model;
  model.default_seq = 1;
  model.fixed_seq = true;
  model.has_modules = true;
  model.has_fused_attention = true;
  DiffusionPipeline& p = model.pipeline.emplace();
  set_defaults(*pipeline, p);
  const std::shared_ptr<const Pipeline> shared = pipeline;
  p.parts = [shared](const DiffusionPipeline::Batch& batch) {
    check_sizes(*shared, batch);
    std::vector<Part> parts;
    add_encoders(shared, batch, parts);
    add_denoiser(shared, batch, parts);
    add_decoder(shared, batch, parts);
    return parts;
  };
  model.build = [p](const GraphRequest& request) { return build_whole(p, request); };
  return model;
}

/// A denoiser alone: one run, for an image of the size in its config, without one 1024 x 1024
/// pixels, or a video of 49 frames of 480 x 720 pixels; `seq` is the length of the text.
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
        if (!video && m.config.sample >= m.config.patch)
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
  for (const PipelineDef& def : pipeline_classes())
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
