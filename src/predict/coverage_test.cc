#include "predict/coverage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/registry.h"
#include "predict/predictor.h"
#include "random_kernels.h"

namespace tilecast {
namespace {

/// A class that was measured on this device, with these combinations.
ClassResidual class_measured_on(const char* gpu, std::vector<Combination> measured) {
  const Device device = find_device(gpu);
  return {.of = class_of(device),
          .matrix_instruction = device.gpu().matrix_instruction,
          .devices = {{.source = device.id,
                       .signature = signature_of(device),
                       .measured = std::move(measured),
                       .interval = {.low_log = {-0.1, -0.1, -0.1}, .high_log = {0.1, 0.1, 0.1}}}}};
}

const Combination kVllmBf16 = {software_of("vllm"), DType::kBf16, DType::kBf16, QuantScheme::kNone};
const Combination kVllmFp8 = {software_of("vllm"), DType::kFp8, DType::kFp8, QuantScheme::kNone};

KindModel two_classes() {
  KindModel model;
  model.trained_on.vendors = {"nvidia"};
  model.classes = {class_measured_on("A100-PCIE-40GB", {kVllmBf16}),
                   class_measured_on("H100", {kVllmBf16, kVllmFp8})};
  for (ClassResidual& residual : model.classes)
    residual.interval = {.low_log = {-0.2, -0.2, -0.2}, .high_log = {0.2, 0.2, 0.2}};
  model.vendor_intervals["nvidia"] = {.low_log = {-0.4, -0.4, -0.4}, .high_log = {0.4, 0.4, 0.4}};
  model.interval = {.low_log = {-0.8, -0.8, -0.8}, .high_log = {0.8, 0.8, 0.8}};
  return model;
}

TEST(Coverage, NamesWhatWasNotMeasured) {
  const KindModel model = two_classes();
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 64}, {"n", 64}, {"k", 64}})[0];
  const auto missing = [&](const char* gpu, const Combination& combination) {
    const Device device = find_device(gpu);
    const Applied applied = applied_residual(model, KernelKind::kTensorMatmul, device);
    Coverages coverages(model, applied, device);
    return std::string(coverages.unmeasured(kernel, coverages.of(combination)));
  };
  EXPECT_EQ(missing("H100", kVllmFp8), "");
  EXPECT_EQ(missing("H200", kVllmFp8), "") << "of the same class";
  EXPECT_EQ(missing("A100-PCIE-40GB", kVllmFp8), "combination");
  EXPECT_EQ(missing("L40S", kVllmBf16), "architecture");
  // V100 borrows from Ampere, and still nobody measured its own.
  EXPECT_EQ(missing("V100", kVllmBf16), "architecture");
  Combination other = kVllmBf16;
  other.software = software_of("trtllm");
  EXPECT_EQ(missing("H100", other), "software");
  other = kVllmBf16;
  other.dtype = DType::kInt8;
  EXPECT_EQ(missing("H100", other), "dtype");
  other = kVllmBf16;
  other.scheme = QuantScheme::kInt4WeightOnly;
  EXPECT_EQ(missing("H100", other), "scheme");
  EXPECT_EQ(missing("MI300X", kVllmBf16), "vendor");
}

TEST(Coverage, AnIntervalIsTheDevicesItsClassesOrThatOfALeftOutClass) {
  const KindModel model = two_classes();
  const auto high = [&](const char* gpu, const Combination& combination) {
    const Device device = find_device(gpu);
    const Applied applied = applied_residual(model, KernelKind::kTensorMatmul, device);
    Coverages coverages(model, applied, device);
    return spread_of(applied, coverages.of(combination), 10).high;
  };
  EXPECT_NEAR(high("H100", kVllmFp8), 0.1, 1e-9);
  EXPECT_GT(high("H200", kVllmFp8), 0.1) << "between the measured device's";
  EXPECT_LT(high("H200", kVllmFp8), 0.2) << "and that of unmeasured ones of the class";
  EXPECT_NEAR(high("A100-PCIE-40GB", kVllmFp8), 0.4, 1e-9) << "not measured in the class";
  EXPECT_NEAR(high("L40S", kVllmBf16), 0.4, 1e-9);
  EXPECT_NEAR(high("V100", kVllmBf16), 0.4, 1e-9) << "borrowed";
}

TEST(Coverage, AnIntervalIsAsWideAsThePrecisionsRowsSay) {
  KindModel model = two_classes();
  const auto high = [&](const char* gpu) {
    const Device device = find_device(gpu);
    const Applied applied = applied_residual(model, KernelKind::kTensorMatmul, device);
    Coverages coverages(model, applied, device);
    return spread_of(applied, coverages.of(kVllmFp8), 10).high;
  };
  const PrecisionWidth fp8 = {kVllmFp8.dtype, kVllmFp8.kv_dtype, kVllmFp8.scheme, 2};
  model.class_widths = {fp8};
  EXPECT_NEAR(high("A100-PCIE-40GB"), 0.8, 1e-9) << "of any vendor";
  model.vendor_widths["nvidia"] = {};
  EXPECT_NEAR(high("A100-PCIE-40GB"), 0.4, 1e-9) << "the vendor's count before";
  EXPECT_NEAR(high("H100"), 0.1, 1e-9);
  for (ClassResidual& residual : model.classes) {
    for (MeasuredDevice& device : residual.devices) device.widths = {fp8};
  }
  EXPECT_NEAR(high("H100"), 0.2, 1e-9);
}

TEST(Coverage, ADeviceOfAClassWithOneDeviceIsNoLessCertainThanOneOfAnUnmeasuredClass) {
  KindModel model = two_classes();
  for (ClassResidual& residual : model.classes)
    residual.interval = {.low_log = {-0.2, -0.2, -0.2}, .high_log = {1, 1, 1}};  // of all classes
  const Device device = find_device("H200");
  const Applied applied = applied_residual(model, KernelKind::kTensorMatmul, device);
  Coverages coverages(model, applied, device);
  const Spread spread = spread_of(applied, coverages.of(kVllmFp8), 10);
  EXPECT_GE(spread.low, -0.2);
  EXPECT_LE(spread.high, 0.4);
  // Two devices of the class say how far it goes.
  model.classes[1].devices.push_back(model.classes[1].devices[0]);
  EXPECT_GT(spread_of(applied_residual(model, KernelKind::kTensorMatmul, device),
                      coverages.of(kVllmFp8), 10)
                .high,
            0.4);
}

TEST(Coverage, ACombinationThatNobodyMeasuredIsFlaggedAndIsAsUncertainAsAnUnseenDevice) {
  // Experts in int4 were measured with vLLM and SGLang on H100, with TensorRT-LLM on no GPU.
  const SizeList sizes = {{"tokens", 64},       {"ffn_dim", 8192},
                          {"hidden_dim", 5120}, {"num_experts", 16},
                          {"top_k", 1},         {"scheme", QuantScheme::kInt4WeightOnly}};
  const auto time_of = [&](Software software) {
    const Kernel kernel = kernels_of_sizes("experts", DType::kBf16, sizes)[0];
    KernelTime time;
    make_learned_predictor(embedded_weights())
        ->predict({&kernel, 1}, find_device("H100"), {.software = software}, {&time, 1});
    return time;
  };
  const KernelTime measured = time_of(software_of("vllm")),
                   borrowed = time_of(software_of("trtllm"));
  EXPECT_NE(measured.extrapolated_feature, "software");
  EXPECT_EQ(borrowed.extrapolated_feature, "software");
  EXPECT_GT(borrowed.high_s / borrowed.low_s, 1.5 * measured.high_s / measured.low_s);
}

TEST(Coverage, ExpertsInSinglePrecisionReachNoMoreOfThePeakThanLayers) {
  // The experts' rows are all of matrix units, whose residual would reach 97 % of H100's lanes.
  const auto use_of = [](const char* op, const SizeList& sizes, const char* gpu) {
    const Kernel kernel = kernels_of_sizes(op, DType::kFp32, sizes)[0];
    KernelTime time;
    make_learned_predictor(embedded_weights())
        ->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return time.utilization_ratio;
  };
  for (const char* gpu : {"H100", "A100", "L40S", "V100"}) {
    const double experts = use_of("experts",
                                  {{"tokens", 16384},
                                   {"ffn_dim", 14336},
                                   {"hidden_dim", 4096},
                                   {"num_experts", 8},
                                   {"top_k", 2}},
                                  gpu);
    const double layer = use_of("linear", {{"m", 4096}, {"n", 28672}, {"k", 4096}}, gpu);
    EXPECT_LT(experts, 1.3 * layer) << gpu;
    EXPECT_GT(experts, 0.6 * layer) << gpu;
  }
}

TEST(Coverage, AnUnmeasuredArchitectureHasTheIntervalOfLeftOutOnes) {
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kFp16, {{"m", 4096}, {"n", 4096}, {"k", 4096}})[0];
  const Device device = find_device("V100-PCIe");
  KernelTime time;
  make_learned_predictor(embedded_weights())->predict({&kernel, 1}, device, {}, {&time, 1});
  EXPECT_EQ(time.extrapolated_feature, "architecture");
  const KernelKind kind = KernelKind::kTensorMatmul;
  const Applied applied = applied_residual(embedded_weights().model(kind), kind, device);
  const double law_s = kernel_kind_def(kind).law(kernel, Chip(device, bundled_laws()), {}).seconds;
  const double width = width_of(applied.class_widths, combination_of(kernel, {}));
  EXPECT_NEAR(std::log(time.high_s / time.seconds),
              width * applied.unmeasured_class->at(size_of(law_s)).high, 1e-6)
      << "not wider: that interval is made of such errors";
}

TEST(Coverage, AnUnmeasuredVendorHasTwiceTheWidthOfAnUnmeasuredArchitecture) {
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kFp16, {{"m", 4096}, {"n", 4096}, {"k", 4096}})[0];
  Weights weights = load_weights("");
  KindModel& model = weights.models[static_cast<size_t>(KernelKind::kTensorMatmul)];
  const auto width_on_v100 = [&](const std::string& vendor) {
    Device device = find_device("V100-PCIe");
    device.vendor = vendor;
    model.vendor_intervals = {};  // the interval of all vendors for both
    model.vendor_widths = {};
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, device, {}, {&time, 1});
    return std::log(time.high_s / time.seconds);
  };
  EXPECT_NEAR(width_on_v100("another") / width_on_v100("nvidia"), 2, 1e-6);
}

TEST(Coverage, IsWhatTheWeightsSayTheyWereTrainedOn) {
  Weights retrained = load_weights("");
  const auto feature_of = [&](const char* op, DType dtype, const char* gpu) {
    const Kernel kernel =
        kernels_of_sizes(op, dtype, {{"batch", 8}, {"m", 512}, {"n", 512}, {"k", 512}})[0];
    KernelTime time;
    make_learned_predictor(retrained)->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return std::string(time.extrapolated_feature);
  };
  KindModel& low = retrained.models[static_cast<size_t>(KernelKind::kTensorMatmul)];
  EXPECT_EQ(feature_of("matmul", DType::kBf16, "H100"), "");
  low.trained_on.forms = {};
  EXPECT_EQ(feature_of("matmul", DType::kBf16, "H100"), "batch");
  EXPECT_EQ(feature_of("matmul", DType::kFp32, "V100"), "");
  low.trained_on.forms.add(Form::kBatch);
  const auto& features = feature_names(KernelKind::kTensorMatmul);
  low.maximum[static_cast<size_t>(std::find(features.begin(), features.end(), "log2_batch") -
                                  features.begin())] = 0;
  KindModel& single = retrained.models[static_cast<size_t>(KernelKind::kMatmul)];
  single.trained_on.forms = {};
  EXPECT_EQ(feature_of("matmul", DType::kBf16, "H100"), "log2_batch") << "not of such a size";
  EXPECT_EQ(feature_of("matmul", DType::kFp32, "V100"), "batch");
  single.trained_on.vendors = {"amd"};
  EXPECT_EQ(feature_of("matmul", DType::kFp32, "V100"), "vendor");
}

}  // namespace
}  // namespace tilecast
