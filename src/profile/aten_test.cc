#include "profile/aten.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

namespace tilecast {
namespace {

OperatorCall call_of(const std::string& name, const std::string& dims, const std::string& types,
                     const std::string& strides = "", const std::string& values = "") {
  return {name, dims, types, strides, values};
}

TEST(Aten, ProductsReadTransposedViewsAsTheyAreStored) {
  const auto work =
      work_of(call_of("aten::mm", "[[4096, 1024], [1024, 2048]]",
                      R"(["c10::BFloat16", "c10::BFloat16"])", "[[1024, 1], [1, 1024]]"));
  ASSERT_TRUE(work);
  ASSERT_EQ(work->kernels.size(), 1u);
  const Kernel& kernel = work->kernels[0];
  const Gemm& gemm = std::get<Gemm>(kernel.shape);
  EXPECT_EQ(gemm.m, 4096);
  EXPECT_EQ(gemm.n, 2048);
  EXPECT_EQ(gemm.k, 1024);
  EXPECT_EQ(gemm.trans_b, 1);
  EXPECT_EQ(kernel.dtype, DType::kBf16);
  EXPECT_EQ(kernel.flops, int64_t{2} * 4096 * 2048 * 1024);
  EXPECT_EQ(kernel.bytes(), 2 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048));
}

TEST(Aten, PointwiseKernelsReadRepeatedElementsOnce) {
  const auto work = work_of(call_of("aten::mul", "[[8, 1024, 64], [1024, 64]]",
                                    R"(["c10::BFloat16", "float"])", "[[65536, 64, 1], [0, 1]]"));
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kernels[0].read_bytes, 2 * 8 * 1024 * 64 + 4 * 64);
  EXPECT_EQ(work->kernels[0].write_bytes, 4 * 8 * 1024 * 64) << "the wider dtype";
}

TEST(Aten, ConvolutionsAndTheirGradients) {
  const std::string types = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "ScalarList",
 "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "ScalarList"])";
  const auto work = work_of(call_of(
      "aten::convolution_backward",
      "[[8, 64, 28, 28], [8, 32, 56, 56], [64, 32, 3, 3], [], [], [], [], [], [], [], []]", types,
      "", R"(["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1",
 "[False, True, False]"])"));
  ASSERT_TRUE(work);
  ASSERT_EQ(work->kernels.size(), 1u) << "the weight's gradient alone";
  EXPECT_EQ(work->kernels[0].flops, int64_t{2} * 8 * 64 * 28 * 28 * 32 * 9);
  EXPECT_EQ(std::get<Convolution>(work->kernels[0].shape).stride, 2);
}

TEST(Aten, AConvolutionsGradientHasTheRankOfItsInput) {
  const std::string types = R"(["float", "float", "float", "ScalarList",
 "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "ScalarList"])";
  EXPECT_FALSE(work_of(
      call_of("aten::convolution_backward",
              "[[64], [8, 32, 56, 56], [64, 32, 3, 3], [], [], [], [], [], [], [], []]", types, "",
              R"(["", "", "", "[64]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1",
 "[False, False, True]"])")));
}

TEST(Aten, AttentionIsCausalWhereItsArgumentSays) {
  const std::string types =
      R"(["c10::Half", "c10::Half", "c10::Half", "", "", "Scalar", "Scalar", "Scalar", "Scalar"])";
  const auto flops = [&](const char* causal) {
    const auto work = work_of(call_of(
        "aten::_flash_attention_forward",
        "[[2, 512, 8, 64], [2, 512, 2, 64], [2, 512, 2, 64], [], [], [], [], [], []]", types, "",
        std::string(R"(["", "", "", "", "", "512", "512", "0.", ")") + causal + "\"]"));
    EXPECT_TRUE(work);
    EXPECT_EQ(std::get<Attention>(work->kernels[0].shape).kv_heads, 2);
    return work->kernels[0].flops;
  };
  EXPECT_EQ(flops("False"), int64_t{4} * 2 * 8 * 512 * 512 * 64);
  EXPECT_LT(flops("True"), flops("False"));
}

TEST(Aten, ListsTakeTheirTypeFromTheKernel) {
  const OperatorCall cat =
      call_of("aten::cat", "[[[4, 1, 768], [4, 196, 768]], []]", R"(["TensorList", "Scalar"])");
  EXPECT_FALSE(work_of(cat)) << "nothing states the size of an element";
  const auto work = work_of(cat, hints_of("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>"));
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kernels[0].bytes(), 2 * 2 * 4 * 197 * 768);
}

TEST(Aten, PartsOfOtherNamesAreNoTypes) {
  EXPECT_EQ(hints_of("PointwiseOpScalarListFunctor<c10::BFloat16, 3, 3, 0>").dtype, DType::kBf16);
  EXPECT_EQ(hints_of("FillFunctor<int>").dtype, DType::kInt32);
  EXPECT_EQ(hints_of("longest_kernel<float>").dtype, DType::kFp32);
  EXPECT_FALSE(hints_of("bfloat16_copy_kernel").dtype);
  EXPECT_FALSE(hints_of("print").dtype);
}

TEST(Aten, NormsHaveTheirDimensionsAfterTheOrder) {
  const std::string types = R"(["float", "Scalar", "ScalarList", "Scalar", ""])";
  for (const char* name : {"aten::norm", "aten::linalg_vector_norm"}) {
    const auto rows = work_of(call_of(name, "[[64, 256], [], [], [], []]", types, "",
                                      R"(["", "2.", "[1]", "True", ""])"));
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->kernels[0].write_bytes, 4 * 64);
    const auto whole = work_of(
        call_of(name, "[[64, 256], [], [], [], []]", types, "", R"(["", "1", "", "False", ""])"));
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->kernels[0].write_bytes, 4) << "the order is no dimension";
  }
}

TEST(Aten, NormsOfListsWriteANumberEachAndZerosReadNothing) {
  const auto of_list = [](const char* name) {
    return work_of(call_of(name, "[[[64, 256], [256]], []]", R"(["TensorList", "Scalar"])", "", ""),
                   hints_of("multi_tensor_apply_kernel<float>"));
  };
  const int64_t bytes = 4 * (64 * 256 + 256);
  const auto norm = of_list("aten::_foreach_norm"), zero = of_list("aten::_foreach_zero_");
  ASSERT_TRUE(norm && zero);
  EXPECT_EQ(norm->kernels[0].read_bytes, bytes);
  EXPECT_EQ(norm->kernels[0].write_bytes, 4 * 2);
  EXPECT_EQ(zero->kernels[0].read_bytes, 0);
  EXPECT_EQ(zero->kernels[0].write_bytes, bytes);
}

TEST(Aten, TheGradientOfALossIsAnElementOfEachRow) {
  const auto work =
      work_of(call_of("aten::nll_loss_backward", "[[], [8192, 32000], [8192], [], [], [], []]",
                      R"(["float", "float", "long int", "", "Scalar", "Scalar", "float"])", "",
                      R"(["", "", "", "", "1", "-100", ""])"));
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kernels[0].bytes(), 8192 * (8 + 4)) << "fill_ has written the zeros";
}

TEST(Aten, TensorsInDifferentOrdersAreStrided) {
  const auto strided = [](const char* strides) {
    const auto work = work_of(
        call_of("aten::copy_", "[[16, 8, 32], [16, 8, 32]]", R"(["float", "float"])", strides));
    return work && work->is_strided;
  };
  EXPECT_FALSE(strided("[[256, 32, 1], [256, 32, 1]]"));
  EXPECT_FALSE(strided("[[32, 512, 1], [32, 512, 1]]")) << "both in the same other order";
  EXPECT_TRUE(strided("[[256, 32, 1], [32, 512, 1]]"));
  EXPECT_TRUE(strided("[[256, 32, 1], [512, 64, 1]]")) << "every second row";
}

TEST(Aten, WhatDoesNotFitIsNotKnown) {
  EXPECT_FALSE(work_of(call_of("aten::mm", "[[4, 5], [6, 7]]", R"(["float", "float"])")));
  EXPECT_FALSE(work_of(call_of("aten::mm", "[[4, 5]]", R"(["float"])")));
  EXPECT_FALSE(work_of(call_of("aten::mm", "not json", "[]")));
  EXPECT_FALSE(work_of(call_of("my::op", "[[4, 5]]", R"(["float"])")));
  EXPECT_FALSE(work_of(call_of("aten::add", "[[]]", R"(["double"])")));
  for (const char* sizes :
       {"[[1099511627776, 1099511627776]]", "[[0, 1099511627776, 1099511627776]]",
        "[[1099511627776, 1099511627776, 1099511627776, 2]]"}) {
    const OperatorCall call = call_of("aten::mul", sizes, R"(["float"])");
    EXPECT_FALSE(work_of(call)) << sizes;
    EXPECT_TRUE(arguments_of(call).front().tensors.empty()) << sizes;
  }
}

}  // namespace
}  // namespace tilecast
