// Model types of transformers against PyTorch: tests/model_types/*.jsonl, which
// tests/pytorch/model_types.py writes, holds a config in each line, the parameters of its model and
// the FLOPs that torch.utils.flop_counter counts; null: it does not count those.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "importers/model.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/serving.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Row {
  std::string label;
  Json json;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> result;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(TILECAST_MODEL_TYPES))
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& path : files) {
      std::ifstream file(path);
      for (std::string line; std::getline(file, line);) {
        const Json json = parse_json(line, path.string());
        result.push_back({json["label"], json});
      }
    }
    return result;
  }();
  return all;
}

/// FLOPs of all matrix products, convolutions and attention, without the products of decoders'
/// table of angles.
int64_t product_flops(const Graph& graph) {
  int64_t total = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.name == "rotary_emb") continue;
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) {
        if (kernel.uses_matrix_units()) total += kernel.flops * segment.repeat;
      }
    }
  }
  return total;
}

class ModelType : public testing::TestWithParam<size_t> {
 protected:
  const Json& json = rows()[GetParam()].json;
  Model model = import(json["config"]);

  static Model import(const Json& config) { return import_model(config.dump(), "config.json"); }

  bool multimodal() const { return json.contains("vision_parameters"); }
  /// Work outside a vision tower.
  int64_t parameters() const {
    return json["parameters"].get<int64_t>() -
           (multimodal() ? json["vision_parameters"].get<int64_t>() : 0);
  }

  Graph modules(DType dtype = DType::kFp32) const {
    const int64_t seq = json["seq"];
    return model.build(
        {.batch = json["batch"], .seq = seq == 0 ? model.default_seq : seq, .dtype = dtype});
  }
};

TEST_P(ModelType, HasTheParametersOfPyTorch) {
  EXPECT_EQ(multimodal() ? model.vision.has_value() : model.family == json["type"], true);
  EXPECT_EQ(modules().parameter_count(), parameters());
  EXPECT_EQ(decompose(modules(), {}).parameter_count(), parameters());
}

/// The same weights for images of any size, as PyTorch and as serving software run the tower.
TEST_P(ModelType, HasTheVisionTowerOfPyTorch) {
  if (!multimodal()) {
    EXPECT_FALSE(model.vision);
    return;
  }
  EXPECT_TRUE(model.warnings.empty());
  const auto expected = json["vision_parameters"].get<int64_t>();
  for (const int64_t side : {int64_t{1}, int64_t{300}, model.vision->default_side}) {
    const VisionTower::Image image = model.vision->image(side);
    const Graph tower = model.vision->build({.batch = 2, .dtype = DType::kBf16}, image);
    ASSERT_NO_THROW(validate(tower));
    EXPECT_EQ(tower.parameter_count(), expected) << side;
    for (const bool fused : {false, true}) {
      const Graph eager = decompose(tower, {.fused_attention = fused});
      ASSERT_NO_THROW(validate(eager));
      EXPECT_EQ(eager.parameter_count(), expected) << side;
    }
    const Shape tokens = tower.tensor(tower.outputs.back()).shape;
    EXPECT_EQ(tokens[0] * tokens[1], 2 * image.tokens) << side;
    // Qwen's default configs name a width of their own.
    const Json& config = json["config"]["vision_config"];
    const char* width = json["type"] == "qwen2_vl" ? "hidden_size" : "out_hidden_size";
    EXPECT_EQ(tokens[2], config.value(width, model.decoder->hidden_dim)) << side;
    ASSERT_NO_THROW(validate(shard(tower, 4)));
  }
}

TEST_P(ModelType, HasTheProductsOfPyTorch) {
  if (json["forward_flops"].is_null()) return;
  EXPECT_EQ(product_flops(decompose(modules(), {})), json["forward_flops"].get<int64_t>());
  if (json["training_flops"].is_null()) return;
  Graph training = decompose(modules(), {.training = true});
  add_backward(training);
  EXPECT_EQ(product_flops(training), json["training_flops"].get<int64_t>());
}

/// As eager PyTorch runs the model and as serving software does: one model.
TEST_P(ModelType, IsServedWithTheSameParameters) {
  if (!model.decoder) return;
  const Graph served =
      fuse(model.build({.dtype = DType::kBf16}), {.groups = {{2, 1, 64}, {1, 32, 0}}});
  EXPECT_EQ(served.parameter_count(), parameters());
}

/// Fused attention leaves out what a mask hides; otherwise both forms have the same products.
TEST_P(ModelType, HasTheSameProductsWithFusedAttention) {
  if (!model.has_fused_attention) return;
  const Graph whole = modules(), fused = decompose(modules(), {.fused_attention = true});
  EXPECT_EQ(fused.parameter_count(), whole.parameter_count());
  if (json["forward_flops"].is_null()) return;
  // Decoders' latent and compressed attention is causal without an attribute.
  const bool masked =
      model.decoder || std::any_of(whole.nodes.begin(), whole.nodes.end(), [](const Node& node) {
        return op_def(node.op).name == "sdpa" &&
               (attribute<int64_t>(node, "causal") != 0 || attribute<int64_t>(node, "window") != 0);
      });
  if (masked)
    EXPECT_LE(product_flops(fused), json["forward_flops"].get<int64_t>());
  else
    EXPECT_EQ(product_flops(fused), json["forward_flops"].get<int64_t>());
}

TEST_P(ModelType, IsSoundInInferenceAndTraining) {
  Graph inference =
      decompose(modules(DType::kBf16), {.fused_attention = model.has_fused_attention});
  ASSERT_NO_THROW(validate(inference));
  fuse_pointwise(inference);
  ASSERT_NO_THROW(validate(inference));
  if (json["type"] == "deepseek_v4") {
    Graph graph = decompose(modules(), {.training = true});
    EXPECT_THROW(add_backward(graph), Error) << "training is refused";
    return;
  }
  for (const bool mixed : {false, true}) {
    Graph graph = decompose(modules(), {.training = true});
    if (mixed) autocast(graph, DType::kBf16);
    ASSERT_NO_THROW(validate(graph));
    add_backward(graph);
    ASSERT_NO_THROW(validate(graph));
    add_optimizer(graph, {.optimizer = Optimizer::kAdamW});
    ASSERT_NO_THROW(validate(graph));
  }
}

/// An indexer chooses keys, which has no gradient. Routers, and the update rate of gated delta
/// nets, have one in PyTorch; it is not forecast yet.
bool has_no_gradient(const std::string& weight) {
  constexpr std::string_view kParts[] = {".indexer.", "mlp.gate.", "mixer.gate.",
                                         "linear_attn.in_proj_b.", "self_attn.b_proj."};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return weight.find(part) != std::string::npos; });
}

/// Every other weight that the forward pass reads and that is not frozen is trained.
TEST_P(ModelType, TrainsEveryWeight) {
  if (json["type"] == "deepseek_v4") return;  // training is refused
  Graph graph = decompose(modules(), {.training = true});
  std::set<std::string> read;
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.inputs) {
      const Tensor& tensor = graph.tensor(id);
      if (tensor.kind == TensorKind::kWeight && !tensor.frozen && !has_no_gradient(tensor.name))
        read.insert(tensor.name);
    }
  }
  add_backward(graph);
  for (const Tensor& tensor : graph.tensors) {
    constexpr std::string_view kGrad = ".grad";
    if (tensor.kind == TensorKind::kGradient)
      read.erase(tensor.name.substr(0, tensor.name.size() - kGrad.size()));
  }
  EXPECT_TRUE(read.empty()) << *read.begin() << " and " << read.size() - 1 << " more";
}

/// An absurd or a missing number is either not read, or refused by a message that names its field
/// and the file.
TEST_P(ModelType, NamesAFieldThatIsAbsurd) {
  const auto expect_named = [&](const Json& config, const std::string& key) {
    const int64_t seq = std::max<int64_t>(1, json["seq"]);
    try {
      import(config).build({.batch = 1, .seq = seq, .dtype = DType::kFp32});
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << what;
      EXPECT_NE(what.find("config.json: "), std::string::npos) << key << ": " << what;
      EXPECT_GT(what.size(), 30u) << what;
    }
  };
  for (const auto& item : json["config"].items()) {
    if (!item.value().is_number()) continue;
    Json config = json["config"];
    for (const Json& value : {Json(-1), Json(0), Json(1e30), Json("many"), Json(0.37)}) {
      config[item.key()] = value;
      expect_named(config, item.key());
    }
    config.erase(item.key());
    expect_named(config, item.key());
  }
}

std::string name_of(const testing::TestParamInfo<size_t>& info) {
  std::string name = rows()[info.param].label;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, ModelType, testing::Range<size_t>(0, rows().size()), name_of);

/// The rows of types, without rows of the same type with other fields.
TEST(ModelTypes, AreThoseOfTheTable) {
  size_t types = 0;
  std::set<std::string> labels;
  for (const Row& row : rows()) {
    EXPECT_TRUE(labels.insert(row.label).second) << row.label << " is there twice";
    types += row.label == row.json["type"] ? 1 : 0;
  }
  EXPECT_GE(types, 43u + 79u) << "of encoders.jsonl and of decoders.jsonl";
}

}  // namespace
}  // namespace tilecast
