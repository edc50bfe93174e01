// Every bundled model, built and passed through all passes, is a sound graph.

#include <gtest/gtest.h>

#include "importers/model.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "passes/serving.h"

namespace tilecast {
namespace {

class EveryGraph : public testing::TestWithParam<std::string> {
 protected:
  Model model = load_model(GetParam());

  Graph build(DType dtype, bool training, bool fused_attention = false) const {
    Graph graph = model.build({.batch = 2, .seq = model.default_seq, .dtype = dtype});
    validate(graph);
    return decompose(std::move(graph), {.fused_attention = fused_attention, .training = training});
  }
};

TEST_P(EveryGraph, IsSoundInInference) {
  Graph graph = build(DType::kBf16, false, model.has_fused_attention);
  ASSERT_NO_THROW(validate(graph));
  quantize_linears(graph, [](std::string_view, Role) { return QuantScheme::kFp8Block; });
  ASSERT_NO_THROW(validate(graph));
  fuse_pointwise(graph);
  EXPECT_NO_THROW(validate(graph));
}

TEST_P(EveryGraph, IsSoundInTraining) {
  if (model.pipeline) return;  // forecast in inference only
  for (const bool mixed : {false, true}) {
    Graph graph = build(DType::kFp32, true);
    ASSERT_NO_THROW(validate(graph));
    if (mixed) autocast(graph, DType::kBf16);
    ASSERT_NO_THROW(validate(graph));
    add_backward(graph);
    ASSERT_NO_THROW(validate(graph));
    const Graph unfused = graph;
    fuse_pointwise(graph);
    ASSERT_NO_THROW(validate(graph));
    rematerialize_pointwise(graph, unfused);
    ASSERT_NO_THROW(validate(graph));
    add_optimizer(graph, {.optimizer = Optimizer::kAdamW, .scaled_gradients = mixed});
    EXPECT_NO_THROW(validate(graph));
  }
}

TEST_P(EveryGraph, IsSoundAsAStepOfServingSoftware) {
  if (!model.decoder) return;
  const Graph modules = model.build({.dtype = DType::kBf16}), share = shard(modules, 2);
  EXPECT_NO_THROW(validate(share));
  StepRequest request;
  for (const QuantScheme scheme : {QuantScheme::kNone, QuantScheme::kFp8}) {
    request.scheme_of = [scheme](std::string_view, Role) { return scheme; };
    request.groups = {{.sequences = 4, .tokens = 1, .past = 100}};
    EXPECT_NO_THROW(validate(fuse(modules, request)));
    request.groups.push_back({.sequences = 1, .tokens = 64, .past = 0});
    EXPECT_NO_THROW(validate(fuse(share, request)));
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Bundled, EveryGraph, testing::ValuesIn(bundled_models()), test_name);

}  // namespace
}  // namespace tilecast
