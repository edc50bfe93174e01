#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "collectives/collective.h"
#include "devices/registry.h"
#include "importers/huggingface/diffusion_pipeline.h"
#include "importers/model.h"
#include "ops/validate.h"
#include "scenario/parallel/rank_layout.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

namespace fs = std::filesystem;

Request of(const std::vector<GivenOption>& given) { return make_request(given); }

Forecast forecast_of(const std::string& model, const std::vector<GivenOption>& given,
                     const std::string& gpu = "H100") {
  static const Forecaster forecaster;
  return forecaster.forecast(load_model_ref(model), load_gpu_ref(gpu), of(given));
}

const DiffusionPart& part_of(const Forecast& f, const std::string& name) {
  for (const DiffusionPart& part : f.diffusion->parts) {
    if (part.name.starts_with(name)) return part;
  }
  ADD_FAILURE() << name;
  std::abort();
}

struct Count {
  const char* model;
  const char* part;
  int64_t parameters;
};

/// Counted by diffusers 0.42 and transformers 5.24 on PyTorch's meta device from the same configs;
/// of autoencoders the decoder with its convolution in front.
constexpr Count kCounts[] = {
    {"flux.1-dev", "transformer", 11'901'408'320},
    {"flux.1-dev", "vae", 49'545'475},
    {"flux.1-dev", "text_encoder", 123'060'480},
    {"flux.1-dev", "text_encoder_2", 4'762'310'656},
    {"pixart-sigma", "transformer", 610'856'096},
    {"pixart-sigma", "vae", 49'490'179 + 4 * 4 + 4},
    {"hunyuandit-v1.2", "transformer", 1'499'952'032},
    {"hunyuandit-v1.2", "text_encoder_2", 1'669'958'656},
    {"sana1.5-1.6b", "transformer", 1'604'641'952},
    {"sana1.5-1.6b", "vae", 159'223'171},
    {"sana1.5-1.6b", "text_encoder", 2'614'341'888},
    {"sana1.5-4.8b", "transformer", 4'721'825'952},
    {"wan2.1-t2v-1.3b", "transformer", 1'418'996'800},
    {"wan2.1-t2v-1.3b", "vae", 73'295'331 + 16 * 16 + 16},
    {"wan2.1-t2v-1.3b", "text_encoder", 5'680'910'336},
    {"wan2.1-t2v-14b", "transformer", 14'288'491'584},
    {"cogvideox-2b", "transformer", 1'693'783'872},
    {"cogvideox-2b", "vae", 123'368'451},
    {"cogvideox1.5-5b", "transformer", 5'570'676'352},
    {"sd3.5-medium", "transformer", 2'243'171'520},
    {"sd3.5-medium", "text_encoder", 123'650'304},
    {"sd3.5-medium", "text_encoder_2", 694'659'840},
    {"sd3.5-large", "transformer", 8'056'627'520},
    {"hunyuanvideo", "transformer", 12'821'012'544},
    {"hunyuanvideo", "vae", 146'136'067 + 16 * 16 + 16},
    {"hunyuanvideo", "text_encoder", 7'505'186'816},
};

TEST(Diffusion, PartsHaveTheParametersOfDiffusers) {
  for (const Count& count : kCounts) {
    const Model model = load_model(count.model);
    ASSERT_TRUE(model.pipeline) << count.model;
    const DiffusionPipeline& p = *model.pipeline;
    bool found = false;
    for (const DiffusionPipeline::Part& part :
         p.parts({.height = p.height, .width = p.width, .frames = p.frames})) {
      if (part.component != count.part || found) continue;
      found = true;
      const Graph graph = part.build(DType::kBf16);
      validate(graph);
      EXPECT_EQ(graph.parameter_count(), count.parameters) << count.model << " " << count.part;
    }
    EXPECT_TRUE(found) << count.model << " " << count.part;
  }
}

TEST(Diffusion, LatencyIsEncodersStepsAndDecoder) {
  const Forecast one = forecast_of("pixart-sigma", {{"steps", "1"}});
  const Forecast ten = forecast_of("pixart-sigma", {{"steps", "10"}});
  const DiffusionForecast& d = *ten.diffusion;
  EXPECT_NEAR(ten.latency_s, d.encode_s + 10 * d.step_s + d.decode_s, 1e-9);
  EXPECT_NEAR(ten.latency_s - one.latency_s, 9 * d.step_s, 1e-9);
  EXPECT_NEAR(d.outputs_per_s * ten.latency_s, 1, 1e-9);
  // Guidance encodes the negative prompt too, and doubles the denoiser's batch.
  EXPECT_EQ(d.passes, 2);
  EXPECT_EQ(part_of(ten, "text_encoder").runs, 2);
  const Forecast plain = forecast_of("pixart-sigma", {{"steps", "10"}, {"guidance", "1"}});
  EXPECT_NEAR(static_cast<double>(part_of(ten, "transformer").flops),
              2.0 * static_cast<double>(part_of(plain, "transformer").flops),
              1e-3 * static_cast<double>(part_of(ten, "transformer").flops));
  // A denoiser that is distilled for guidance runs once.
  EXPECT_EQ(forecast_of("flux.1-dev", {{"steps", "2"}}).diffusion->passes, 1);
}

TEST(Diffusion, RanksShareTheDenoisersWork) {
  const std::vector<GivenOption> given = {{"steps", "2"}};
  const auto flops = [&](const char* model, const std::vector<GivenOption>& more) {
    std::vector<GivenOption> all = given;
    all.insert(all.end(), more.begin(), more.end());
    return static_cast<double>(part_of(forecast_of(model, all), "transformer").flops);
  };
  for (const char* model : {"flux.1-dev", "pixart-sigma", "sd3.5-medium"}) {
    const double whole = flops(model, {});
    EXPECT_NEAR(4 * flops(model, {{"ulysses-degree", "4"}}), whole, 0.05 * whole) << model;
    EXPECT_NEAR(4 * flops(model, {{"ring-degree", "4"}}), whole, 0.05 * whole) << model;
    EXPECT_NEAR(4 * flops(model, {{"ulysses-degree", "2"}, {"ring-degree", "2"}}), whole,
                0.05 * whole)
        << model;
  }
  const double guided = flops("pixart-sigma", {});
  EXPECT_NEAR(2 * flops("pixart-sigma", {{"cfg-degree", "2"}}), guided, 0.01 * guided);
  const Forecast ranks = forecast_of("flux.1-dev", {{"steps", "2"}, {"ulysses-degree", "4"}});
  EXPECT_EQ(ranks.gpus(), 4);
  EXPECT_GT(ranks.diffusion->communication_s, 0);
  EXPECT_LT(ranks.latency_s, forecast_of("flux.1-dev", given).latency_s);
}

TEST(Diffusion, MemoryHasTheWeightsOfAllParts) {
  const Forecast f = forecast_of("flux.1-dev", {{"steps", "1"}});
  EXPECT_EQ(f.memory.weights_bytes, 2 * f.parameters);
  EXPECT_EQ(f.parameters, 11'901'408'320 + 49'545'475 + 123'060'480 + 4'762'310'656);
  EXPECT_GE(f.memory.peak_bytes, f.memory.weights_bytes);
}

TEST(Diffusion, VideosAreDecodedInTiles) {
  const Forecast f = forecast_of("wan2.1-t2v-1.3b", {{"steps", "1"}});
  int64_t runs = 0;
  for (const DiffusionPart& part : f.diffusion->parts)
    runs += part.stage == "decode" ? part.runs : 0;
  EXPECT_EQ(runs, 3 * 5 * 21);  // tiles of 256 pixels every 192, each latent frame alone
  EXPECT_EQ(part_of(f, "transformer").runs, 2);  // two passes, one after the other
  ASSERT_TRUE(f.diffusion->seconds_per_video_second);
  EXPECT_NEAR(*f.diffusion->seconds_per_video_second, f.latency_s * 16 / 81, 1e-9);
}

TEST(Diffusion, WrongRequestsSayWhatIsExpected) {
  EXPECT_ERROR(of({{"steps", "0"}}), kInput, "`steps`");
  EXPECT_ERROR(forecast_of("flux.1-dev", {{"height", "1000"}}), kInput,
               "`height` 1000 is not divisible by 16");
  EXPECT_ERROR(forecast_of("flux.1-dev", {{"frames", "9"}}), kInput, "this one makes images");
  EXPECT_ERROR(forecast_of("wan2.1-t2v-1.3b", {{"frames", "80"}}), kInput, "use 77 or 81");
  EXPECT_ERROR(forecast_of("wan2.1-t2v-1.3b", {{"ulysses-degree", "8"}}), kInput,
               "does not divide the 12 heads");
  EXPECT_ERROR(forecast_of("flux.1-dev", {{"cfg-degree", "2"}}), kInput, "distilled for guidance");
  EXPECT_ERROR(forecast_of("flux.1-dev", {{"tp", "2"}, {"mode", "training"}}), kUnsupported,
               "only inference is forecast");
  EXPECT_ERROR(forecast_of("gpt2", {{"steps", "4"}}), kInput, "apply to pipelines of diffusers");
}

/// The cluster of so many GPUs of one kind.
Cluster ranks_of(int64_t ranks) {
  Request request;
  request.parallel.cp = ranks;
  return cluster_of(find_device("H100"), request);
}

TEST(Diffusion, RingsOverNodesTakeTheNetwork) {
  const auto exchanges = [](const char* ulysses, const char* ring) {
    return forecast_of("flux.1-dev",
                       {{"steps", "1"}, {"ulysses-degree", ulysses}, {"ring-degree", ring}});
  };
  const Forecast one_node = exchanges("4", "2"), two_nodes = exchanges("8", "2");
  // Half the bytes of each rank, over a slower link.
  EXPECT_GT(two_nodes.diffusion->communication_s, 1.5 * one_node.diffusion->communication_s);
  EXPECT_GT(two_nodes.diffusion->communication_s,
            1.5 * exchanges("8", "1").diffusion->communication_s);
  const auto warns_of_network = [](const Forecast& f) {
    return std::any_of(f.warnings.begin(), f.warnings.end(), [](const Warning& warning) {
      return warning.code == WarningCode::kUnmeasuredLinks;
    });
  };
  EXPECT_TRUE(warns_of_network(two_nodes));
  EXPECT_FALSE(warns_of_network(one_node));
}

TEST(Diffusion, RingsPassKeysAndValues) {
  const Forecast f = forecast_of("flux.1-dev", {{"steps", "1"}, {"ring-degree", "2"}});
  int64_t count = 0;
  for (const KernelForecast& row : f.kernels) {
    if (row.op != "ring_exchange") continue;
    count += row.count;
    // Half of 4096 + 512 tokens, of 24 heads of 128 columns.
    const int64_t bytes = 2304 * 24 * 128 * 2;
    const CommGroup pair{.ranks = 2, .ranks_per_node = 2};
    EXPECT_NEAR(
        row.latency_s,
        collective_time(CollectiveKind::kSendRecv, bytes, DType::kBf16, pair, ranks_of(2)).seconds,
        1e-9);
  }
  EXPECT_EQ(count, 57 * 2);  // keys and values of 57 blocks
}

TEST(Diffusion, GuidanceOnRanksExchangesTheNoise) {
  const Forecast f = forecast_of("pixart-sigma", {{"steps", "3"}, {"cfg-degree", "2"}});
  const int64_t noise = 128 * 128 * 8 * 2;  // latents with learned variances, in bf16
  const CommGroup pair{.ranks = 2, .ranks_per_node = 2};
  EXPECT_NEAR(
      f.diffusion->communication_s,
      3 * collective_time(CollectiveKind::kAllGather, 2 * noise, DType::kBf16, pair, ranks_of(2))
              .seconds,
      1e-9);
  // With eight ranks to a pass, the passes lie on two nodes.
  const auto step = [](const char* ulysses, const char* cfg) {
    return forecast_of("wan2.1-t2v-1.3b",
                       {{"steps", "1"}, {"ring-degree", ulysses}, {"cfg-degree", cfg}})
        .diffusion->communication_s;
  };
  EXPECT_GT(step("8", "2") - step("8", "1") / 2, step("4", "2") - step("4", "1") / 2);
}

/// A bundled pipeline with a change.
Model changed(const std::string& name, const std::function<void(Json&)>& change) {
  const TemporaryFolder temporary;
  const fs::path bundled = fs::path(TILECAST_MODELS) / (name + ".json");
  Json json = parse_json(read_file(bundled), bundled.string());
  change(json);
  const fs::path file = temporary.path() / "changed.json";
  write_file(file, json.dump());
  return load_model(file.string());
}

TEST(Diffusion, NetworksThatAPipelineDoesNotRunAreRefused) {
  // Wan 2.2 A14B has a second denoiser.
  EXPECT_ERROR(
      changed("wan2.1-t2v-14b", [](Json& json) { json["transformer_2"] = json["transformer"]; }),
      kUnsupported, "the component 'transformer_2' is not supported in a WanPipeline");
  EXPECT_ERROR(changed("wan2.1-t2v-14b",
                       [](Json& json) {
                         json["transformer_2"] =
                             Json::array({"diffusers", "WanTransformer3DModel"});
                       }),
               kUnsupported, "'transformer_2'");
  EXPECT_TRUE(changed("wan2.1-t2v-14b", [](Json& json) {
                json["transformer_2"] = Json::array({nullptr, nullptr});
                json["scheduler"] = Json::array({"diffusers", "UniPCMultistepScheduler"});
              }).pipeline);
}

TEST(Diffusion, AutoencodersOfOtherKindsAreRefused) {
  EXPECT_ERROR(changed("wan2.1-t2v-1.3b", [](Json& json) { json["vae"]["is_residual"] = true; }),
               kInput, "'is_residual'");
  EXPECT_ERROR(changed("wan2.1-t2v-1.3b", [](Json& json) { json["vae"]["patch_size"] = 2; }),
               kInput, "'patch_size'");
}

TEST(Diffusion, EncodersAreAsWideAsTheDenoiserReads) {
  EXPECT_ERROR(
      changed("pixart-sigma", [](Json& json) { json["transformer"]["caption_channels"] = 1024; }),
      kInput, "reads text of 1024 columns, but 'text_encoder' gives 4096");
  EXPECT_ERROR(changed("sd3.5-medium",
                       [](Json& json) { json["transformer"]["pooled_projection_dim"] = 1280; }),
               kInput, "but 'text_encoder' with 'text_encoder_2' gives 2048");
}

TEST(Diffusion, ADenoiserAloneHasTheSizeOfItsConfig) {
  for (const int64_t side : {32, 64, 128}) {
    const Model model = changed("pixart-sigma", [&](Json& json) {
      Json transformer = json["transformer"];
      transformer["sample_size"] = side;
      json = transformer;
    });
    bool found = false;
    const Graph graph = model.build({.batch = 1, .seq = 300});
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.name != "latents") continue;
      found = true;
      EXPECT_EQ(tensor.shape, (Shape{1, 4, side, side}));
    }
    EXPECT_TRUE(found);
  }
}

TEST(Diffusion, DtypesAreThoseOfTheDevice) {
  const Forecast h100 = forecast_of("wan2.1-t2v-1.3b", {{"steps", "1"}});
  EXPECT_EQ(h100.dtype, "bf16");
  EXPECT_EQ(h100.dtype_source, "default");
  EXPECT_NE(h100.input.find("VAE in tf32"), std::string::npos);
  // No unit for bf16, nor for TF32.
  const Forecast v100 = forecast_of("wan2.1-t2v-1.3b", {{"steps", "1"}}, "V100");
  EXPECT_EQ(v100.dtype, "fp16");
  EXPECT_EQ(v100.input.find("VAE in tf32"), std::string::npos);
  EXPECT_TRUE(std::any_of(v100.warnings.begin(), v100.warnings.end(), [](const Warning& warning) {
    return warning.code == WarningCode::kDtypeReplaced;
  }));
  EXPECT_EQ(forecast_of("pixart-sigma", {{"steps", "1"}, {"dtype", "fp16"}}).dtype_source, "asked");
}

TEST(Diffusion, DegreesAndSizesHaveLimits) {
  EXPECT_ERROR(forecast_of("sana1.5-1.6b", {{"ring-degree", "3"}}), kInput,
               "do not divide the 32 rows");
  // Linear attention sends no heads, of which Sana has 70.
  EXPECT_EQ(forecast_of("sana1.5-1.6b", {{"steps", "1"}, {"ulysses-degree", "8"}}).gpus(), 8);
  EXPECT_ERROR(forecast_of("sd3.5-medium", {{"height", "8192"}}), kInput,
               "`height` 8192: the denoiser's table of positions ends at 6144 pixels");
  EXPECT_ERROR(forecast_of("flux.1-dev", {{"ring-degree", "8192"}}), kInput,
               "there are 4096 tokens");
}

TEST(Diffusion, WarningsAreOfNetworks) {
  for (const char* gpu : {"H100", "V100"}) {
    const Forecast f = forecast_of("wan2.1-t2v-1.3b", {{"steps", "1"}}, gpu);
    int of_decoder = 0;
    for (const Warning& warning : f.warnings) {
      if (warning.code != WarningCode::kExtrapolated) continue;
      EXPECT_EQ(warning.subject.find(' '), std::string::npos) << warning.subject;
      of_decoder += warning.subject == "vae" ? 1 : 0;
    }
    EXPECT_EQ(of_decoder, 1) << gpu;
  }
}

TEST(Diffusion, DecodersKeepFramesForTheNextOnes) {
  const Model model = load_model("wan2.1-t2v-1.3b");
  const DiffusionPipeline& p = *model.pipeline;
  for (const DiffusionPipeline::Part& part :
       p.parts({.height = p.height, .width = p.width, .frames = p.frames})) {
    if (part.component != "vae") continue;
    const Graph graph = part.build(DType::kBf16);
    // Two convolutions over time in each block: two in the middle, three at each of four sizes.
    const size_t blocks = 2 + 4 * 3, ends = 2;
    EXPECT_GE(graph.outputs.size(), 1 + 2 * blocks + ends) << part.name;
  }
}

/// A pipeline's folder as diffusers saves it.
void write_pipeline(const fs::path& folder, const std::string& left_out) {
  fs::create_directories(folder);
  const fs::path bundled = fs::path(TILECAST_MODELS) / "pixart-sigma.json";
  const Json whole = parse_json(read_file(bundled), bundled.string());
  Json index = {{"_class_name", whole["_class_name"]}, {"_diffusers_version", "0.42.0"}};
  for (const char* part : {"text_encoder", "transformer", "vae"}) {
    index[part] = Json::array({"diffusers", "Class"});
    if (part == left_out) continue;
    fs::create_directories(folder / part);
    write_file(folder / part / "config.json", whole[part].dump());
  }
  write_file(folder / kPipelineFile, index.dump());
}

TEST(Diffusion, FoldersArePipelines) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "pixart";
  write_pipeline(folder, "");
  const Model model = load_model(folder.string());
  EXPECT_EQ(model.name, "pixart");
  EXPECT_EQ(model.build({}).parameter_count(),
            load_model("pixart-sigma").build({}).parameter_count());
  EXPECT_EQ(load_model((folder / kPipelineFile).string()).name, "pixart");
  EXPECT_FALSE(load_model((folder / "transformer").string()).pipeline);
}

TEST(Diffusion, MissingComponentsAreNamed) {
  for (const char* part : {"text_encoder", "transformer", "vae"}) {
    const TemporaryFolder temporary;
    write_pipeline(temporary.path() / "pixart", part);
    EXPECT_ERROR(load_model((temporary.path() / "pixart").string()), kInput,
                 std::string("the component '") + part + "' is missing");
  }
}

}  // namespace
}  // namespace tilecast
