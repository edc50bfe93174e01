// Names of nodes, tensors and segments are labels: every bundled model forecasts the same numbers
// when all of them are replaced. Roles say what they are (src/graph/role.h).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/validate.h"
#include "passes/serving.h"
#include "scenario/internal.h"
#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

Graph renamed(Graph graph) {
  size_t n = 0;
  for (Node& node : graph.nodes) node.name = fmt::format("n{}", n++);
  for (Tensor& tensor : graph.tensors) tensor.name = fmt::format("t{}", n++);
  for (Segment& segment : graph.segments) segment.name = fmt::format("s{}", n++);
  return graph;
}

/// A model whose graphs have no names that say anything.
ModelRef without_names(Model model) {
  model.build = [build = model.build](const GraphRequest& r) { return renamed(build(r)); };
  if (model.vision)
    model.vision->build = [build = model.vision->build](const GraphRequest& r,
                                                        const VisionTower::Image& image) {
      return renamed(build(r, image));
    };
  if (model.recommendation)
    model.recommendation->build_dense = [build = model.recommendation->build_dense](
                                            const GraphRequest& r) { return renamed(build(r)); };
  ModelRef ref;
  ref.content = std::make_shared<const ModelRef::Content>(ModelRef::Content{std::move(model)});
  return ref;
}

using Numbers = std::vector<double>;

void add(Numbers& numbers, std::initializer_list<double> more) {
  numbers.insert(numbers.end(), more);
}

Numbers pass(const ModelRef& model, const GpuRef& gpu, const Request& request) {
  const Forecast f = forecaster().forecast(model, gpu, request);
  const PassMemory& m = f.memory;
  Numbers n = {f.latency_s.value, f.latency_s.low, f.latency_s.high, f.forward_s,
               f.backward_s,      f.optimizer_s,   f.host_wait_s,    f.utilization_ratio};
  for (const int64_t x : {f.flops, f.bytes, f.parameters, m.peak_bytes, m.weights_bytes,
                          m.gradients_bytes, m.optimizer_bytes, m.activations_bytes,
                          m.reserved_bytes.value_or(-1), m.largest_batch.value_or(-1)})
    n.push_back(static_cast<double>(x));
  for (const KernelForecast& k : f.kernels) add(n, {k.latency_s, static_cast<double>(k.count)});
  if (!f.parallel) return n;
  add(n, {f.parallel->communication_s, f.parallel->exposed_communication_s, f.parallel->bubble_s});
  for (const StageForecast& s : f.parallel->stages)
    add(n, {s.compute_s, s.communication_s, static_cast<double>(s.memory.peak_bytes)});
  return n;
}

/// Memory over time, with the allocator.
Numbers timeline(const ModelRef& model, const GpuRef& gpu, const Request& request) {
  const MemoryTimeline t = forecaster().memory_timeline(model, gpu, request);
  Numbers n = {static_cast<double>(t.peak_point)};
  for (const MemoryPoint& point : t.points) n.push_back(static_cast<double>(point.parts.sum()));
  for (const int64_t x : {t.allocated_bytes, t.reserved_low_bytes, t.reserved_high_bytes})
    n.push_back(static_cast<double>(x));
  return n;
}

Numbers generation(const ModelRef& model, const GpuRef& gpu, const Request& request) {
  const GenerationForecast f = forecast_generation(forecaster(), model, gpu, request);
  Numbers n;
  for (const Interval& e : {f.latency, f.ttft, f.tpot, f.request}) add(n, {e.value, e.low, e.high});
  add(n, {f.tokens_per_s, f.communication_s, f.utilization_ratio});
  for (const int64_t x :
       {f.flops, f.bytes, f.memory.weights_bytes, f.memory.cache_bytes, f.memory.activations_bytes})
    n.push_back(static_cast<double>(x));
  return n;
}

class EveryModelWithoutNames : public testing::TestWithParam<std::string> {
 protected:
  using Ask = Numbers (*)(const ModelRef&, const GpuRef&, const Request&);

  /// Asks for both; a request that one refuses, the other must refuse too.
  void same(Ask ask, const Request& request, const char* what) {
    const Numbers named = numbers(ask, named_, request), unnamed = numbers(ask, unnamed_, request);
    ASSERT_EQ(named.size(), unnamed.size()) << what;
    for (size_t i = 0; i < named.size(); ++i)
      ASSERT_EQ(named[i], unnamed[i]) << what << ", number " << i << " of " << named.size();
  }

  const Model& model() const { return named_.content->model; }
  bool has_experts() const { return model().decoder && model().decoder->expert_ffn_dim > 0; }

  static Request in(const char* dtype) { return {.execution = {.dtype = dtype}}; }

 private:
  Numbers numbers(Ask ask, const ModelRef& model, const Request& request) const {
    try {
      return ask(model, gpu_, request);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      return {};
    }
  }

  ModelRef named_ = load_model_ref(GetParam());
  ModelRef unnamed_ = without_names(named_.content->model);
  GpuRef gpu_ = load_gpu_ref("h200");
};

TEST_P(EveryModelWithoutNames, ForecastsTheSameInference) {
  for (const char* dtype : {"fp32", "bf16", "amp", "fp8"}) {
    Request request = in(dtype);
    same(pass, request, dtype);
    request.execution.fusion = Fusion::kPointwise;
    request.execution.attention = AttentionKind::kFlash;
    same(pass, request, dtype);
  }
}

TEST_P(EveryModelWithoutNames, ForecastsTheSameTrainingStep) {
  Request request = in("amp");
  request.mode = Mode::kTraining;
  request.optimizer = Optimizer::kAdamW;
  request.seq = model().fixed_seq ? std::nullopt : std::optional<int64_t>(128);
  for (const Checkpointing checkpointing :
       {Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull}) {
    for (const Fusion fusion : {Fusion::kNone, Fusion::kPointwise}) {
      request.checkpointing = checkpointing;
      request.execution.fusion = fusion;
      same(pass, request, "training");
    }
  }
  same(timeline, request, "memory over time");
  request = in("bf16");
  request.mode = Mode::kTraining;
  request.lora_rank = 8;
  same(pass, request, "adapters");
  request.execution.dtype = "int4_wo";
  same(pass, request, "adapters beside quantized weights");
}

TEST_P(EveryModelWithoutNames, ForecastsTheSameTrainingStepOnRanks) {
  Request request = in("bf16");
  request.mode = Mode::kTraining;
  request.optimizer = Optimizer::kAdamW;
  request.batch = 8;
  request.seq = model().fixed_seq ? std::nullopt : std::optional<int64_t>(128);
  request.execution.tp = request.execution.pp = request.execution.dp = 2;
  request.execution.microbatches = 2;
  same(pass, request, "tp, pp and dp");
  request.parallel.sequence_parallel = true;
  request.execution.attention = AttentionKind::kFlash;
  same(pass, request, "sequence-parallel");
  request.parallel = {.ep = 2};
  request.execution.pp = request.execution.tp = 1;
  same(pass, request, "ep");
  request.parallel = {};
  request.execution.microbatches = 1;
  same(pass, request, "dp alone");
}

TEST_P(EveryModelWithoutNames, GeneratesTextInTheSameTime) {
  if (!model().decoder) return;
  for (const char* dtype : {"bf16", "fp8"}) {
    Request request = in(dtype);
    request.kind = RequestKind::kGenerate;
    request.batch = 4;
    request.prompt = 128;
    request.output = 16;
    same(generation, request, dtype);
    request.execution.tp = 2;
    same(generation, request, "tp");
    request.execution.pp = 2;
    same(generation, request, "tp and pp");
    request.execution.pp = 1;
    request.execution.dp = 2;
    if (has_experts()) request.parallel.ep = 4;
    same(generation, request, "dp and ep");
    if (!model().vision) continue;
    request = in(dtype);
    request.kind = RequestKind::kGenerate;
    request.images = 1;
    same(generation, request, "images");
    request.kind = RequestKind::kPass;
    same(pass, request, "images in a pass");
  }
}

TEST_P(EveryModelWithoutNames, ServesALoadInTheSameTime) {
  if (!model().decoder) return;
  Request request = in("bf16");
  request.kind = RequestKind::kServe;
  request.prompt = 64;
  request.output = 8;
  request.load = {.concurrency = 4, .requests = 12};
  request.execution.tp = 2;
  same(generation, request, "a server");
}

TEST_P(EveryModelWithoutNames, HasRolesThatFit) {
  Graph graph = model().build({.batch = 1, .seq = model().default_seq, .dtype = DType::kBf16});
  EXPECT_NO_THROW(validate(graph));
  if (model().vision) {
    EXPECT_NO_THROW(
        validate(model().vision->build({.dtype = DType::kBf16}, model().vision->image(224))));
  }
  if (!model().decoder) return;
  const Graph step = fuse(graph, {.groups = {{1, 1, 8}, {1, 8, 0}}});
  const auto count = [&](Role role) {
    return std::count_if(step.nodes.begin(), step.nodes.end(),
                         [role](const Node& node) { return node.role == role; });
  };
  EXPECT_GE(count(Role::kOutput), 2) << "the output layer and the draw of tokens";
  EXPECT_GT(count(Role::kGroup), 0);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Bundled, EveryModelWithoutNames, testing::ValuesIn(bundled_models()),
                         test_name);

}  // namespace
}  // namespace tilecast
