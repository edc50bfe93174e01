#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "importers/huggingface/diffusion_pipeline.h"
#include "importers/model.h"
#include "ops/validate.h"
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
