// How often a forecast builds the graph of its model, which takes most of its time.

#include <gtest/gtest.h>

#include <atomic>

#include "scenario/internal.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// A bundled model that counts the builds of its graph.
struct CountedModel {
  explicit CountedModel(const std::string& name) {
    Model model = load_model_ref(name).content->model;
    model.build = [this, build = model.build](const GraphRequest& request) {
      ++builds;
      return build(request);
    };
    ref.content = std::make_shared<const ModelRef::Content>(ModelRef::Content{std::move(model)});
  }
  std::atomic<int> builds = 0;
  ModelRef ref;
};

int builds_of(const std::string& name, Request request) {
  request.mode = Mode::kTraining;
  request.optimizer = Optimizer::kAdamW;
  request.batch = 64;
  request.seq = 512;
  request.execution.dtype = "bf16";
  CountedModel model(name);
  const Forecast f = forecaster().forecast(model.ref, load_gpu_ref("H200"), as_published(request));
  EXPECT_TRUE(f.memory.fits) << name;  // else the search for what fits builds further ones
  EXPECT_EQ(f.parallel ? f.parallel->ranks : 1, request.execution.dp * request.execution.tp *
                                                    request.execution.pp * request.parallel.cp);
  return model.builds;
}

TEST(Builds, ATrainingForecastOver8GpusBuildsItsModelOnce) {
  Request one, data, tensor, pipeline, all, context;
  data.execution.dp = 8;
  data.parallel.micro_batch_size = 1;
  tensor.execution.tp = 4;
  tensor.execution.dp = 2;
  tensor.parallel.micro_batch_size = 1;
  pipeline.execution.pp = 8;
  pipeline.parallel.micro_batch_size = 1;
  all.execution.dp = all.execution.tp = all.execution.pp = 2;
  all.parallel.micro_batch_size = 1;
  context.execution.dp = 2;
  context.parallel.cp = 4;
  context.execution.attention = AttentionKind::kFlash;
  context.parallel.micro_batch_size = 1;
  for (const Request& request : {data, tensor, pipeline, all, context})
    EXPECT_EQ(builds_of("gpt2_large", request), 1);
  EXPECT_EQ(builds_of("gpt2", one), 1);
}

TEST(Builds, AServerBuildsItsModelOnce) {
  for (const RequestKind kind : {RequestKind::kGenerate, RequestKind::kServe}) {
    Request request{.kind = kind, .prompt = 512, .output = 32};
    request.execution.tp = 2;
    if (kind == RequestKind::kServe) request.load.concurrency = 4;
    CountedModel model("llama-3-8b");
    forecast_generation(forecaster(), model.ref, load_gpu_ref("H100"), request);
    EXPECT_EQ(model.builds, 1);
  }
}

}  // namespace
}  // namespace tilecast
