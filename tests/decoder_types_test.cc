// Decoders of transformers with their default configs: parameters to the unit, and FLOPs of matrix
// products, as PyTorch counts them on its meta device (extras/decoder_types.py); and both forms, as
// eager PyTorch runs the model and as serving software does, are one model.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "importers/model.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/serving.h"

namespace tilecast {
namespace {

const std::map<std::string, Json>& rows() {
  static const std::map<std::string, Json> all = [] {
    std::map<std::string, Json> read;
    std::ifstream file(TILECAST_DECODER_TYPES);
    for (std::string line; std::getline(file, line);) {
      Json row = Json::parse(line);
      const std::string label = row["label"];
      read[label] = std::move(row);
    }
    return read;
  }();
  return all;
}

std::vector<std::string> labels() {
  std::vector<std::string> all;
  for (const auto& [label, row] : rows()) all.push_back(label);
  return all;
}

/// FLOPs of matrix products, without those of the table of angles.
int64_t product_flops(const Graph& graph) {
  int64_t total = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& k : kernels) {
        if (k.uses_matrix_units() && node.name != "rotary_emb") total += k.flops * segment.repeat;
      }
    }
  }
  return total;
}

class EveryType : public testing::TestWithParam<std::string> {};

TEST_P(EveryType, IsAsPyTorchCountsIt) {
  const Json& row = rows().at(GetParam());
  const auto number = [&](const char* key) { return row[key].get<int64_t>(); };
  const Model model = import_model(row["config"].dump(), GetParam() + "/config.json");
  const Graph modules =
      model.build({.batch = number("batch"), .seq = number("seq"), .dtype = DType::kBf16});
  EXPECT_EQ(modules.parameter_count(), number("parameters"));
  const Graph eager = decompose(modules, {});
  EXPECT_EQ(eager.parameter_count(), number("parameters"));
  if (!row["forward_flops"].is_null()) {
    EXPECT_EQ(product_flops(eager), number("forward_flops"));
  }
  if (!model.decoder) return;  // GPT-2 without an output layer is not served
  const Graph served =
      fuse(model.build({.dtype = DType::kBf16}), {.groups = {{2, 1, 64}, {1, 32, 0}}});
  EXPECT_EQ(served.parameter_count(), number("parameters"));
}

INSTANTIATE_TEST_SUITE_P(Transformers, EveryType, testing::ValuesIn(labels()),
                         [](const auto& info) { return info.param; });

TEST(DecoderTypes, AreAtLeastSixty) { EXPECT_GE(rows().size(), 60U); }

}  // namespace
}  // namespace tilecast
