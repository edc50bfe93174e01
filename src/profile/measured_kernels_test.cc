#include "profile/measured_kernels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "devices/registry.h"
#include "laws/constants.h"
#include "profiler_trace.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string launched(const std::string& name, int id, const std::string& arguments,
                     const std::string& kernel, double us, int kernels = 1) {
  std::string text = op_event(name, id, 1000 * id, 30, arguments) + "," +
                     call_event("cudaLaunchKernel", 100 + id, 1000 * id + 5, 5);
  for (int i = 0; i < kernels; ++i)
    text += "," + kernel_event(kernel, id, 100 + id, 1000 * id + 20 + 2 * us * i, us);
  return text;
}

TEST(MeasuredKernels, ThoseWhoseWorkIsSure) {
  const std::string pointwise =
      R"("Input Dims": [[4096, 1024]], "Input type": ["c10::BFloat16"], "Concrete Inputs": [""])";
  const std::string strided =
      R"("Input Dims": [[4096, 1024]], "Input type": ["c10::BFloat16"],
 "Input Strides": [[2048, 1]], "Concrete Inputs": [""])";
  const std::string list =
      R"("Input Dims": [[[64], [128]], []], "Input type": ["TensorList", "Scalar"],
 "Concrete Inputs": ["", "1"])";
  const std::string path =
      (std::filesystem::temp_directory_path() / "tilecast_measured_kernels_test.json").string();
  std::ofstream(path) << h100_trace(
      launched("aten::mm", 1, kProductArguments, "gemm", 31) + "," +
      launched("aten::mm", 2, kProductArguments, "gemm", 30) + "," +
      launched("aten::mm", 3, kProductArguments, "gemm", 90) + "," +
      launched("aten::relu", 4, pointwise, "relu", 7) + "," +
      launched("aten::relu", 5, strided, "relu", 9) + "," +
      launched("aten::sigmoid", 6, pointwise, "sigmoid", 9, 2) + "," +
      launched("aten::_foreach_add_", 7, list, "multi_tensor<float>", 9) + "," +
      launched("my_lib::op", 8, pointwise, "op", 9));
  const Forecaster forecaster;
  const MeasuredKernels measured = measured_kernels(forecaster, path, find_device("H100"));
  ASSERT_EQ(measured.kernels.size(), 2u) << "without gaps, of one kernel, with a known work";
  EXPECT_NEAR(measured.kernels[0].seconds, 31e-6, 1e-12) << "the median of three calls";
  EXPECT_TRUE(measured.kernels[0].kernel.is<Gemm>());
  const LawConstants& laws = bundled_laws();
  EXPECT_NEAR(measured.kernels[1].seconds, 7e-6 + laws.stream.start_s - laws.trace.nvidia_start_s,
              1e-12)
      << "from the start that the law counts from";
  EXPECT_NEAR(measured.share, 158.0 / (158 + 9 + 18 + 9 + 9), 1e-9);
  EXPECT_THROW(measured_kernels(forecaster, path, find_device("A100")), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tilecast
