#include "predict/weights.h"

#include <gtest/gtest.h>

#include "base/embedded.h"
#include "devices/registry.h"
#include "random_kernels.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// Weights of one kind, measured on one device.
Weights small_weights() {
  Weights weights;
  weights.provenance = R"({"seed":7})";
  KindModel& model = weights.models[static_cast<size_t>(KernelKind::kSoftmax)];
  const size_t width = feature_names(KernelKind::kSoftmax).size();
  model.trained_on = {.operators = {"softmax"}, .vendors = {"nvidia"}};
  model.trained_on.forms.add(Form::kBackward);
  model.mean.assign(width, 0.5f);
  model.scale.assign(width, 2.0f);
  model.minimum.assign(width, -1.0f);
  model.maximum.assign(width, 3.0f);
  model.vendor_intervals["nvidia"] = {.low_log = {-0.3, -0.2, -0.1}, .high_log = {0.3, 0.2, 0.1}};
  model.interval = {
      .low_log = {-0.6, -0.5, -0.4}, .high_log = {0.6, 0.5, 0.4}, .common_share = 0.5};
  model.vendor_widths["nvidia"] = {{DType::kBf16, DType::kFp8, QuantScheme::kFp8, 1.5}};
  model.class_widths = {{DType::kFp32, DType::kFp32, QuantScheme::kNone, 0.75}};
  model.sibling_widths = {{DType::kFp32, DType::kFp32, QuantScheme::kNone, 1.25}};
  model.call_overhead = {2e-5, 1e-5, 3e-5};
  Forest::Tree tree;
  tree.threshold[0] = 100;
  tree.feature[0] = 1;
  tree.leaf.fill(-7);
  const Device device = find_device("V100");
  model.classes.push_back(
      {.of = class_of(device),
       .matrix_instruction = device.gpu().matrix_instruction,
       .forests = {{software_of("pytorch"), Forest({tree, tree}), std::vector<float>(width, -2),
                    std::vector<float>(width, 3)}},
       .devices = {
           {.source = device.id,
            .signature = signature_of(device),
            .measured = {{software_of("pytorch"), DType::kFp32, DType::kFp32, QuantScheme::kNone},
                         {software_of("vllm"), DType::kBf16, DType::kFp8,
                          QuantScheme::kInt4WeightOnly}},
            .interval = {.low_log = {-0.1, -0.1, -0.1}, .high_log = {0.1, 0.1, 0.1}},
            .widths = {{DType::kBf16, DType::kBf16, QuantScheme::kNone, 0.5}},
            .call_overhead_s = {{"linear", 2e-5}}}}});
  return weights;
}

/// The file with `from` in its header replaced by `to`, both equally long.
std::string with(std::string content, std::string_view from, std::string_view to) {
  const size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  return content.replace(at, from.size(), to);
}

TEST(WeightsFile, KeepsEveryMember) {
  const Weights weights = small_weights();
  const std::string content = serialize_weights(weights);
  const Weights read = parse_weights(content, "w");
  EXPECT_EQ(read, weights);
  EXPECT_FALSE(read.model(KernelKind::kMatmul).known()) << "nothing was learned of it";
  EXPECT_EQ(parse_weights(content, "w", Checksum::kTrust), weights);
  Weights other = weights;
  other.models[static_cast<size_t>(KernelKind::kSoftmax)].classes[0].devices[0].measured.pop_back();
  EXPECT_FALSE(read == other);
  other = weights;
  other.models[static_cast<size_t>(KernelKind::kSoftmax)].classes[0].forests[0].forest = Forest();
  EXPECT_FALSE(read == other);
}

TEST(WeightsFile, AnImpossibleWidthIsRefused) {
  const std::string good = serialize_weights(small_weights());
  EXPECT_ERROR(parse_weights(with(good, "1.25", "-1.2"), "w", Checksum::kTrust), kInput,
               "a width of an interval is impossible");
}

TEST(WeightsFile, AnImpossibleHeaderIsRefused) {
  const std::string good = serialize_weights(small_weights());
  const auto refused = [&](std::string_view from, std::string_view to, const char* message) {
    EXPECT_ERROR(parse_weights(with(good, from, to), "w"), kInput, message);
  };
  refused("tilecast-weights 7", "tilecast-weights 5",
          "it does not start with 'tilecast-weights 7'; make one with 'tilecast train'");
  refused("\"trees\":2", "\"trees\":9", "it is truncated");
  refused("\"trees\":2", "\"trees\":1", "a range of a feature is empty or not finite");
  refused("\"volta\"", "\"solta\"", "a word of a class is unknown");
  refused("mma.sync", "mma.sink", "a word of a class is unknown");
  refused("\"backward\"", "\"sideward\"", "a form of kernels is unknown");
  refused("\"pytorch\"", "\"pitorch\"", "unknown");
  refused("int4_wo", "int5_wo", "a measured combination is unknown");
  refused("\"common_share\":0.5", "\"common_share\":1.5", "an interval does not hold its forecast");
  refused("\"scale\":[2.0,", "\"scale\":[0.0,", "a feature's scale is not above 0");
  refused("\"scale\":[2.0,", "\"scale\":[    ", "has 4 features, but one of its lists has 3");
  refused("\"classes\"", "\"clashes\"", "not a usable weights file");
}

TEST(WeightsFile, ATreeOfAFeatureThatTheModelLacksIsRefused) {
  Weights weights = small_weights();
  Forest::Tree tree;
  tree.feature[5] = 200;
  ClassResidual& residual = weights.models[static_cast<size_t>(KernelKind::kSoftmax)].classes[0];
  residual.forests[0].forest = Forest({tree});
  EXPECT_ERROR(parse_weights(serialize_weights(weights), "w"), kInput,
               "a forest has an impossible tree");
  residual.devices.clear();
  residual.forests.clear();
  EXPECT_ERROR(parse_weights(serialize_weights(weights), "w"), kInput,
               "a class was measured on no device");
}

TEST(WeightsFile, RoundTrips) {
  const std::string content = serialize_weights(embedded_weights());
  EXPECT_EQ(parse_weights(content, "w"), embedded_weights());
}

TEST(WeightsFile, EmbeddedOnesAreWhole) {
  // At the start of a program they are taken without a look at their checksum.
  const std::vector<EmbeddedFile> files = embedded_files("weights/kernels.weights");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(parse_weights(files.front().content, "embedded", Checksum::kVerify),
            embedded_weights());
}

TEST(WeightsFile, TreesOfTrustedContentAreReadWhereTheyLie) {
  const std::string content = serialize_weights(embedded_weights());
  const auto lies_in = [&](const Weights& read) {
    const ClassResidual& residual = read.model(KernelKind::kExperts).classes.front();
    const char* tree =
        reinterpret_cast<const char*>(residual.forests.front().forest.trees().data());
    return tree >= content.data() && tree < content.data() + content.size();
  };
  EXPECT_TRUE(lies_in(parse_weights(content, "w", Checksum::kTrust)));
  EXPECT_FALSE(lies_in(parse_weights(content, "w"))) << "a file's content ends with its reading";
}

TEST(WeightsFile, ForeignTruncatedAndDamagedOnesAreRefused) {
  const std::string good = serialize_weights(embedded_weights());
  EXPECT_ERROR(parse_weights("PK\x03\x04", "w"), kInput,
               "w: not a usable weights file: it does not start");
  EXPECT_ERROR(parse_weights(good.substr(0, good.size() / 2), "w"), kInput,
               "not a usable weights file");
  EXPECT_ERROR(parse_weights(good.substr(0, 30), "w"), kInput, "truncated");
  std::string damaged = good;
  damaged[damaged.size() - 10] ^= 0x40;
  EXPECT_ERROR(parse_weights(damaged, "w"), kInput, "checksum");
  std::string renamed = good;
  renamed.replace(renamed.find("log2_columns"), 4, "sqrt");
  EXPECT_ERROR(parse_weights(renamed, "w"), kInput,
               "model 'block_rows' has other features than this version");
  EXPECT_ERROR(load_weights("/nonexistent"), kNotFound, "no such file");
}

}  // namespace
}  // namespace tilecast
