#include "predict/residual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/registry.h"
#include "predict/predictor.h"
#include "random_kernels.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// x < 0.5 gives 1, else the sign of y decides between 2 and 3.
Forest two_splits() {
  Forest::Tree tree;
  const auto inner = [&](size_t at, uint8_t feature, float threshold) {
    tree.feature[at] = feature;
    tree.threshold[at] = Forest::quantized(threshold, Forest::kInputSteps);
  };
  inner(0, 0, 0.5f);
  inner(2, 1, 0.0f);
  for (size_t leaf = 0; leaf < Forest::kLeaves; ++leaf) {
    const size_t quarter = leaf / (Forest::kLeaves / 4);
    const float value = quarter < 2 ? 1.0f : quarter == 2 ? 2.0f : 3.0f;
    tree.leaf[leaf] = Forest::quantized(value, Forest::kLeafSteps);
  }
  return Forest({tree});
}

TEST(Forests, WalkTheirTrees) {
  const std::vector<float> inputs = {0.2f, 5, 0.9f, -1, 0.9f, 1, 0.5f, 1};
  std::vector<float> outputs(4, 10.0f);
  forest_add(two_splits(), inputs.data(), 2, 4, 0.5f, outputs.data());
  EXPECT_EQ(outputs, (std::vector<float>{10.5f, 11.0f, 11.5f, 11.5f}));
}

TEST(Forests, AClassHasTheSoftwaresOrTheNearest) {
  ClassResidual residual;
  EXPECT_EQ(residual.forest_of(software_of("vllm")), nullptr);
  residual.forests = {{software_of("trtllm"), two_splits()}};
  EXPECT_EQ(residual.forest_of(software_of("pytorch")), &residual.forests[0]);
  residual.forests = {{software_of("trtllm"), two_splits()}, {software_of("sglang"), two_splits()}};
  EXPECT_EQ(residual.forest_of(software_of("trtllm")), &residual.forests[0]);
  EXPECT_EQ(residual.forest_of(software_of("vllm")), &residual.forests[1]);
  EXPECT_EQ(residual.forest_of(software_of("pytorch")), &residual.forests[1]);
}

TEST(Forests, PyTorchsKernelsStandForNoOthersWhereTheyDiffer) {
  ClassResidual residual;
  residual.forests = {{software_of("pytorch"), two_splits()}, {software_of("vllm"), two_splits()}};
  const auto of = [&](Software software) { return residual.forest_of(software, false, true); };
  EXPECT_EQ(of(software_of("pytorch")), &residual.forests[0]);
  EXPECT_EQ(of(software_of("sglang")), &residual.forests[1]);
  residual.forests = {{software_of("vllm"), two_splits()}};
  EXPECT_EQ(of(software_of("pytorch")), nullptr);
  residual.forests = {{software_of("pytorch"), two_splits()}};
  EXPECT_EQ(of(software_of("vllm")), nullptr);
}

TEST(Forests, SoftwareWithKernelsOfItsOwnHasItsOwnTimes) {
  const SizeList sizes = {
      {"batch", 32}, {"keys", 4096}, {"head_dim", 128}, {"heads", 32}, {"kv_heads", 8}};
  const std::vector<Kernel> kernels(
      3, kernels_of_sizes("cached_attention", DType::kBf16, sizes).front());
  // Nothing was measured with PyTorch on this class.
  const Device device = find_device("B200");
  const std::vector<Conditions> conditions = {{.software = software_of("pytorch")},
                                              {.software = software_of("trtllm")},
                                              {.software = software_of("vllm")}};
  std::vector<KernelTime> times(3);
  predict_each(*make_learned_predictor(embedded_weights()), kernels, conditions, device, times);
  EXPECT_NE(times[1].seconds, times[2].seconds);
  const auto residual = [&](size_t i) {
    return times[i].seconds /
           decode_law(kernels[i], Chip(device, bundled_laws()), conditions[i]).seconds;
  };
  EXPECT_NEAR(residual(0), residual(2), 1e-9) << "PyTorch has FlashAttention as vLLM does";
}

TEST(KernelClasses, AreArchitectureAndKindOfMemory) {
  const auto class_of_gpu = [](const char* gpu) { return class_of(find_device(gpu)); };
  EXPECT_EQ(class_of_gpu("V100-PCIe"), (KernelClass{Architecture::kVolta, true}));
  EXPECT_EQ(class_of_gpu("L40S"), (KernelClass{Architecture::kAda, false}));
  EXPECT_EQ(class_of_gpu("H100"), class_of_gpu("H200")) << "HBM3 and HBM3e";
  EXPECT_EQ(class_of_gpu("A100"), class_of_gpu("A30"));
  EXPECT_NE(class_of_gpu("A100"), class_of_gpu("A10")) << "HBM and GDDR";
  EXPECT_NE(class_of_gpu("A10"), class_of_gpu("L4")) << "Ampere and Ada";
}

/// A class that was measured on this device.
ClassResidual measured_on(const char* gpu) {
  const Device device = find_device(gpu);
  return {.of = class_of(device),
          .matrix_instruction = device.gpu().matrix_instruction,
          .forests = {{software_of("pytorch"), two_splits()}},
          .devices = {{.source = device.id, .signature = signature_of(device)}}};
}

TEST(AppliedResidual, IsThatOfTheDevicesClass) {
  KindModel model;
  model.classes = {measured_on("L40S"), measured_on("H100"), measured_on("A100")};
  model.classes[2].devices.push_back(measured_on("A30").devices.front());
  const auto applied = [&](const char* gpu) {
    return applied_residual(model, KernelKind::kElementwise, find_device(gpu));
  };
  const Applied h200 = applied("H200");
  EXPECT_EQ(h200.residual, &model.classes[1]);
  EXPECT_TRUE(h200.own_class);
  EXPECT_GT(h200.similarity, 0.3f);
  EXPECT_LT(h200.similarity, 1);
  const Applied a30 = applied("A30");
  EXPECT_EQ(a30.nearest, &model.classes[2].devices[1]);
  EXPECT_EQ(a30.similarity, 1);
  EXPECT_EQ(applied("A100").nearest, &model.classes[2].devices[0]);
  EXPECT_EQ(applied("V100-PCIe").residual, nullptr) << "nobody measured Volta";
}

TEST(AppliedResidual, IsBorrowedForTheSameMatrixInstructionAndMemoryByKindsThatDo) {
  KindModel model;
  model.classes = {measured_on("A10"), measured_on("L40S"), measured_on("H100"), measured_on("P4")};
  const auto applied = [&](KernelKind kind, const char* gpu) {
    return applied_residual(model, kind, find_device(gpu));
  };
  // RTX 5090: mma.sync and GDDR, as Ampere's A10 and Ada's L40S; the newer one counts.
  const Applied borrowed = applied(KernelKind::kTensorMatmul, "RTX 5090");
  EXPECT_EQ(borrowed.residual, &model.classes[1]);
  EXPECT_FALSE(borrowed.own_class);
  model.classes[1].forests.clear();
  EXPECT_EQ(applied(KernelKind::kTensorMatmul, "RTX 5090").residual, &model.classes[0])
      << "too few rows for a forest";
  model.classes[1].forests = model.classes[0].forests;
  EXPECT_EQ(borrowed.similarity, 0) << "nothing of a device, only of its kernels";
  EXPECT_EQ(applied(KernelKind::kTensorMatmul, "B200").residual, nullptr) << "tcgen05";
  EXPECT_EQ(applied(KernelKind::kTensorMatmul, "A100").residual, nullptr) << "HBM";
  EXPECT_EQ(applied(KernelKind::kTensorMatmul, "RX 6800 XT").residual, nullptr)
      << "without a matrix instruction there is none to share";
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const auto kind = static_cast<KernelKind>(n);
    EXPECT_EQ(applied(kind, "RTX 5090").residual != nullptr, kernel_kind_def(kind).learning.borrows)
        << kernel_kind_name(kind);
  }
  EXPECT_FALSE(kernel_kind_def(KernelKind::kElementwise).learning.borrows);
  EXPECT_TRUE(kernel_kind_def(KernelKind::kExperts).learning.borrows);
}

TEST(AppliedResidual, OfOneDeviceHeldBackByItsPowerSlowsNoneWithMorePowerForItsRate) {
  KindModel model;
  model.classes = {measured_on("P4")};
  const auto only_faster = [&](KernelKind kind, const char* gpu) {
    return applied_residual(model, kind, find_device(gpu)).only_faster;
  };
  EXPECT_FALSE(only_faster(KernelKind::kMatmul, "P4"));
  // 22 W a TFLOP/s in place of 13.
  EXPECT_TRUE(only_faster(KernelKind::kMatmul, "GTX 1080 Ti"));
  EXPECT_FALSE(only_faster(KernelKind::kElementwise, "GTX 1080 Ti"))
      << "power holds no stream back";
  model.classes[0].devices.push_back(measured_on("Titan X").devices.front());
  EXPECT_FALSE(only_faster(KernelKind::kMatmul, "GTX 1080 Ti")) << "two devices are no accident";
  const std::vector<float> inputs = {0.2f, 5};
  std::vector<float> logs = {0};
  add_residual({.residual = &model.classes[0], .only_faster = true}, software_of("pytorch"),
               {inputs.data(), 2, 1}, logs);
  EXPECT_EQ(logs[0], 0) << "the forest adds 1";
}

TEST(AppliedResidual, AddsItsForestToTheLogarithm) {
  ClassResidual residual = measured_on("V100-PCIe");
  residual.forests.clear();
  const std::vector<float> inputs = {0.2f, 5, 0.9f, -1, 0.9f, 1};
  const InputRows rows{inputs.data(), 2, 3};
  std::vector<float> logs = {0, 1, 2};
  add_residual({}, software_of("vllm"), rows, logs);
  add_residual({.residual = &residual}, software_of("vllm"), rows, logs);
  EXPECT_EQ(logs, (std::vector<float>{0, 1, 2})) << "no residual, or none of any software";
  residual.forests = {{software_of("pytorch"), two_splits()}};
  add_residual({.residual = &residual}, software_of("vllm"), rows, logs);
  EXPECT_EQ(logs, (std::vector<float>{1, 3, 5}));
}

TEST(AppliedResidual, FadesOutsideTheRowsThatItWasLearnedFrom) {
  ClassResidual residual = measured_on("V100-PCIe");
  residual.forests = {{software_of("pytorch"), two_splits(), {-1, -2}, {1, 0}}};
  // All of 2 and 1 inside and at the edge; half of 3 half a standard deviation outside, a fifth of
  // 1 a whole one outside; the feature that is furthest outside counts.
  const std::vector<float> inputs = {1, -2, -1, 0, 0.9f, 0.5f, -2, 0, -2, -2.5f};
  std::vector<float> logs(5, 0.0f);
  add_residual({.residual = &residual}, software_of("pytorch"), {inputs.data(), 2, 5}, logs);
  EXPECT_FLOAT_EQ(logs[0], 2);
  EXPECT_FLOAT_EQ(logs[1], 1);
  EXPECT_FLOAT_EQ(logs[2], 1.5f);
  EXPECT_FLOAT_EQ(logs[3], 0.2f);
  EXPECT_FLOAT_EQ(logs[4], 0.2f);
}

TEST(Standardize, HoldsFeaturesInTheirRangeAndSaysWhichIsFurthestOutside) {
  KindModel model;
  model.mean = {1, 10};
  model.scale = {2, 5};
  model.minimum = {0, 0};
  model.maximum = {4, 20};
  float inputs[2];
  EXPECT_EQ(standardize(model, Features{3, 15}, inputs).excess, 0);
  EXPECT_EQ(inputs[0], 1);
  EXPECT_EQ(inputs[1], 1);
  const Outside outside = standardize(model, Features{5, 30}, inputs);  // by 1 of 4 and by 10 of 20
  EXPECT_DOUBLE_EQ(outside.excess, 0.5);
  EXPECT_EQ(outside.feature, 1u);
  EXPECT_EQ(inputs[0], 1.5f);
  EXPECT_EQ(inputs[1], 2);
}

TEST(Learned, AForecastIsTheLawTimesTheClassesResidual) {
  // A forest with e^0.5 in all leaves.
  Forest::Tree tree;
  tree.leaf.fill(Forest::quantized(0.5f, Forest::kLeafSteps));
  Weights weights = load_weights("");
  KindModel& model = weights.models[static_cast<size_t>(KernelKind::kSoftmax)];
  model.classes = {measured_on("V100-PCIe")};
  model.classes[0].forests = {{software_of("pytorch"), Forest({tree})}};
  const Kernel kernel =
      kernels_of_sizes("softmax", DType::kFp32, {{"rows", 65536}, {"columns", 4096}})[0];
  const auto ratio = [&](const char* gpu) {
    const Device device = find_device(gpu);
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, device, {}, {&time, 1});
    return time.seconds / rows_law(kernel, Chip(device, bundled_laws()), {}).seconds;
  };
  EXPECT_NEAR(ratio("V100-PCIe"), std::exp(0.5), 1e-3);
  EXPECT_NEAR(ratio("V100-SXM2-32GB"), std::exp(0.5), 1e-3) << "the class's, not the device's";
  EXPECT_NEAR(ratio("A100"), 1, 1e-9) << "the law alone";
}

TEST(MeasuredDevices, AMeasuredMachinesCallOverheadIsItsOwn) {
  const KindModel& model = embedded_weights().model(KernelKind::kElementwise);
  const CallOverhead v100 =
      call_overhead(model, KernelKind::kElementwise, find_device("V100-PCIE-32GB"), "add");
  EXPECT_EQ(v100.low_s, v100.high_s);
  const CallOverhead unknown =
      call_overhead(model, KernelKind::kElementwise, find_device("H100"), "add");
  EXPECT_EQ(unknown, model.call_overhead);
  EXPECT_LT(unknown.low_s, unknown.high_s);
}

TEST(SimilarityTest, FallsWithTheDataSheetsDistance) {
  const Signature v100 = signature_of(find_device("V100-PCIe"));
  EXPECT_FLOAT_EQ(similarity(v100, v100), 1);
  const float pcie = similarity(v100, signature_of(find_device("V100-PCIE-32GB")));
  EXPECT_GT(pcie, 0.3f);
  EXPECT_LT(similarity(v100, signature_of(find_device("H100"))), 0.02f);
}

}  // namespace
}  // namespace tilecast
