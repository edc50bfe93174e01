#include "profile/changed_work.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/dtype.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string events_of(const std::string& name, int id, const std::string& dims,
                      const std::string& types, const std::string& strides,
                      const std::string& values, const std::string& kernel, int us) {
  const std::string n = std::to_string(id), at = std::to_string(1000 * id);
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" +
         at + R"(, "dur": 9, "args": {"External id": )" + n + R"(, "Input Dims": )" + dims +
         R"(, "Input type": )" + types +
         (strides.empty() ? "" : R"(, "Input Strides": )" + strides) + R"(, "Concrete Inputs": )" +
         (values.empty() ? "[]" : values) + "}},\n" + R"({"ph": "X", "cat": "kernel", "name": ")" +
         kernel + R"(", "pid": 0, "tid": 7, "ts": )" + at + R"(, "dur": )" + std::to_string(us) +
         R"(, "args": {"External id": )" + n + R"(, "device": 0, "stream": 7}})";
}

constexpr const char* kTwo = R"(["c10::BFloat16", "c10::BFloat16"])";
constexpr const char* kThree = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";

/// A step of a transformer's layer on 4 sequences of 512 tokens, as PyTorch launches it.
std::string layer_events() {
  return events_of("aten::addmm", 1, "[[3072], [2048, 768], [768, 3072]]", kThree,
                   "[[1], [768, 1], [1, 768]]", "", "gemm", 80) +
         "," +
         events_of("aten::_flash_attention_forward", 2,
                   "[[4, 512, 12, 64], [4, 512, 12, 64], [4, 512, 12, 64]]", kThree, "", "",
                   "flash_fwd", 60) +
         "," +
         events_of("aten::native_layer_norm", 3, "[[4, 512, 768], [], [768], [768], []]",
                   R"(["c10::BFloat16", "ScalarList", "c10::BFloat16", "c10::BFloat16", "Scalar"])",
                   "", R"(["", "[768]", "", "", "1e-5"])", "layer_norm", 20) +
         "," +
         events_of("aten::mm", 4, "[[3072, 2048], [2048, 768]]", kTwo, "[[1, 3072], [768, 1]]", "",
                   "weight_gradient", 70) +
         "," + events_of("aten::mul", 5, "[[768, 3072], [768, 3072]]", kTwo, "", "", "decay", 9) +
         "," + events_of("aten::add", 6, "[[4, 512, 768], [1, 512, 768]]", kTwo, "", "", "add", 8) +
         "," +
         events_of("my_lib::experts", 7, "[[2048, 768], [8, 768, 3072]]", kTwo, "", "", "experts",
                   50) +
         "," +
         events_of("aten::nll_loss_forward", 8, "[[2048, 1000], [2048], [], [], []]",
                   R"(["float", "long int", "", "Scalar", "Scalar"])", "",
                   R"(["", "", "", "1", "-100"])", "nll", 7);
}

ProfilerTrace trace_of(const std::string& events) {
  return parse_profiler_trace(R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}", "t.json");
}

struct Changed {
  ProfilerTrace trace;
  std::vector<OperatorGroup> before;
  ChangedWork after;

  Changed(const std::string& events, const WorkChange& change)
      : trace(trace_of(events)),
        before(operator_groups(trace)),
        after(changed_work(trace, before, change, "t.json")) {}

  size_t at(const std::string& name) const {
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i].call >= 0 && trace.calls[static_cast<size_t>(before[i].call)].name == name)
        return i;
    ADD_FAILURE() << name;
    return 0;
  }
  bool kept(const std::string& name) const { return after.kept[at(name)]; }
  double flops_ratio(const std::string& name) const {
    return static_cast<double>(after.groups[at(name)].work.kernels.at(0).flops) /
           static_cast<double>(before[at(name)].work.kernels.at(0).flops);
  }
};

TEST(ChangedWork, TheBatchOfALayerScalesWhatCountsSamples) {
  const Changed twice(layer_events(), {.batch_factor = 2});
  EXPECT_EQ(twice.after.traced_batch, 4);
  EXPECT_EQ(twice.after.batch, 8);
  for (const char* name : {"aten::addmm", "aten::_flash_attention_forward",
                           "aten::native_layer_norm", "aten::mm", "aten::nll_loss_forward"}) {
    EXPECT_FALSE(twice.kept(name)) << name;
    EXPECT_NEAR(twice.flops_ratio(name), 2, 0.01) << name;
  }
  const Gemm& forward =
      std::get<Gemm>(twice.after.groups[twice.at("aten::addmm")].work.kernels[0].shape);
  EXPECT_EQ(forward.m, 4096);
  EXPECT_EQ(forward.n, 3072);
  const Gemm& gradient =
      std::get<Gemm>(twice.after.groups[twice.at("aten::mm")].work.kernels[0].shape);
  EXPECT_EQ(gradient.k, 4096) << "a weight's gradient sums over the samples";
  EXPECT_EQ(gradient.m, 3072);
}

TEST(ChangedWork, WeightsDoNotScaleAndUnknownOperatorsAreKept) {
  const Changed twice(layer_events(), {.batch_factor = 2});
  EXPECT_FALSE(twice.kept("aten::mul"));
  EXPECT_EQ(twice.flops_ratio("aten::mul"), 1) << "as large as a weight";
  EXPECT_TRUE(twice.kept("my_lib::experts"));
  EXPECT_FALSE(twice.kept("aten::add"));
  const Kernel& add = twice.after.groups[twice.at("aten::add")].work.kernels[0];
  EXPECT_EQ(add.read_bytes, 2 * (8 * 512 * 768 + 512 * 768)) << "one of them is repeated";
}

TEST(ChangedWork, HalfABatchIsWholeOrRefused) {
  EXPECT_EQ(Changed(layer_events(), {.batch_factor = 0.5}).after.batch, 2);
  try {
    Changed(layer_events(), {.batch_factor = 0.3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "t.json: its batch is 4: 0.3 times that is no whole number of samples");
  }
  EXPECT_THROW(Changed(events_of("my_lib::op", 1, "[[4, 5, 6]]", R"(["float"])", "", "", "k", 9),
                       {.batch_factor = 2}),
               Error);
}

TEST(ChangedWork, SizesThatDoNotFitIntoNumbersAreKept) {
  const Changed huge(
      events_of("aten::add", 1, "[[4, 1099511627776], [4, 1099511627776]]", kTwo, "", "", "add",
                9) +
          "," + events_of("aten::mul", 2, "[[4, 8, 8], [4, 8, 8]]", kTwo, "", "", "mul", 99),
      {.batch_factor = 1e8});
  EXPECT_TRUE(huge.kept("aten::add"));
  EXPECT_FALSE(huge.kept("aten::mul"));
}

TEST(ChangedWork, ImagesHaveTheBatchOfConvolutions) {
  const std::string types = R"(["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList",
 "ScalarList", "Scalar"])";
  const std::string values = R"(["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"])";
  const Changed twice(events_of("aten::cudnn_convolution", 1,
                                "[[16, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], []]", types, "",
                                R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])", "conv", 30) +
                          "," +
                          events_of("aten::copy_", 2, "[[64, 64, 3, 3], [64, 64, 3, 3]]", kTwo, "",
                                    "", "cast", 90) +
                          "," +
                          events_of("aten::relu", 3, "[[16, 64, 56, 56]]", R"(["c10::BFloat16"])",
                                    "", "", "relu", 9),
                      {.batch_factor = 2});
  EXPECT_EQ(twice.after.traced_batch, 16) << "not that of the filter, whose copy takes longer";
  EXPECT_EQ(twice.flops_ratio("aten::cudnn_convolution"), 2);
  EXPECT_EQ(twice.flops_ratio("aten::relu"), 2);
  EXPECT_FALSE(twice.kept("aten::copy_"));
  EXPECT_EQ(twice.after.groups[twice.at("aten::copy_")].work.kernels[0].bytes(),
            twice.before[twice.at("aten::copy_")].work.kernels[0].bytes());
}

TEST(ChangedWork, WhatIsAsLongAsAWeightAndTheSamplesIsKept) {
  // 4 x 192 = 768 rows, as many as the weight has.
  const Changed twice(
      events_of("aten::mm", 1, "[[768, 768], [768, 3072]]", kTwo, "[[768, 1], [3072, 1]]", "",
                "gemm", 40) +
          "," +
          events_of("aten::add", 2, "[[4, 192, 768], [4, 192, 768]]", kTwo, "", "", "add", 9) +
          "," +
          events_of("aten::mul", 3, "[[768, 3072], []]", R"(["c10::BFloat16", "Scalar"])", "", "",
                    "mul", 9),
      {.batch_factor = 2});
  EXPECT_TRUE(twice.kept("aten::mul"));
  EXPECT_EQ(twice.flops_ratio("aten::mm"), 2) << "the left operand's rows";
}

TEST(ChangedWork, DtypesOfTheProductsChangeAndOthersStay) {
  const Changed wide(layer_events(), {.dtype = "fp32"});
  EXPECT_EQ(wide.after.traced_dtype, "bf16");
  const auto kernel = [&](const char* name) {
    return wide.after.groups[wide.at(name)].work.kernels[0];
  };
  EXPECT_EQ(kernel("aten::addmm").dtype, DType::kFp32);
  EXPECT_EQ(kernel("aten::native_layer_norm").dtype, DType::kFp32);
  EXPECT_EQ(kernel("aten::nll_loss_forward").bytes(),
            wide.before[wide.at("aten::nll_loss_forward")].work.kernels[0].bytes());
  const Changed tf32(layer_events(), {.dtype = "tf32"});
  EXPECT_EQ(tf32.after.groups[tf32.at("aten::addmm")].work.kernels[0].dtype, DType::kTf32);
  EXPECT_EQ(tf32.after.groups[tf32.at("aten::add")].work.kernels[0].dtype, DType::kFp32);
}

}  // namespace
}  // namespace tilecast
