#include <gtest/gtest.h>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr const char* kProducts =
    "gpu,gfx,cus,dtype,scale,out_dtype,bias,batch,m,n,k,preshuffled,latency_us,library,split_k,"
    "kernel,file\n";
constexpr const char* kExperts =
    "gpu,gfx,cus,dtype,activation_dtype,weight_dtype,scale,tokens,hidden_dim,ffn_dim,num_experts,"
    "top_k,activation,gated,latency_us,file\n";

MeasurementSet read_rows(const std::string& header, const std::string& rows) {
  const TemporaryFolder folder;
  write_file(folder.path() / "rows.csv", header + rows);
  return read_measurements(folder.path());
}

TEST(AiterLayout, ReadsProductsOfRowsByFeatures) {
  const MeasurementSet set =
      read_rows(kProducts, "amd-mi300x,gfx942,304,bf16,,bf16,0,1,16,512,7168,0,11.5,ck,3,k,a\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  const KernelMeasurement& m = set.kernels[0];
  EXPECT_EQ(m.op, "gemm");
  const Gemm* gemm = m.kernel.as<Gemm>();
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->m, 16);
  EXPECT_EQ(gemm->n, 512);
  EXPECT_EQ(gemm->k, 7168);
  EXPECT_DOUBLE_EQ(m.measured_s, 11.5e-6);
  EXPECT_EQ(m.protocol, Protocol::kBackToBack);
  EXPECT_EQ(m.conditions.caches, Caches::kCold);
  EXPECT_EQ(software_name(m.conditions.software), "aiter");
}

TEST(AiterLayout, ScalesAreSchemes) {
  const std::string start = "amd-mi355x,gfx950,256,", end = ",1,16,512,7168,0,11.5,ck,3,k,a\n";
  const MeasurementSet set =
      read_rows(kProducts, start + "fp8,token,bf16,0" + end + start + "fp8,1x128,bf16,0" + end +
                               start + "int8,token,bf16,0" + end + start + "fp4,1x32,bf16,0" + end +
                               start + "fp4,token,bf16,0" + end);
  ASSERT_EQ(set.kernels.size(), 4u);
  EXPECT_EQ(set.kernels[0].kernel.scheme, QuantScheme::kFp8);
  EXPECT_EQ(set.kernels[1].kernel.scheme, QuantScheme::kFp8Block);
  EXPECT_EQ(set.kernels[2].kernel.scheme, QuantScheme::kInt8);
  EXPECT_EQ(set.kernels[3].kernel.scheme, QuantScheme::kFp4);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("dtype 'fp4' with scale 'token' is not forecast"),
            std::string::npos);
}

TEST(AiterLayout, BatchedProductsAreMatmuls) {
  const MeasurementSet set = read_rows(
      kProducts, "amd-mi300x,gfx942,304,int8,token,bf16,0,16,32,512,128,0,11.5,ck,3,k,a\n");
  ASSERT_EQ(set.kernels.size(), 1u);
  EXPECT_EQ(set.kernels[0].op, "matmul");
  EXPECT_EQ(set.kernels[0].kernel.as<Gemm>()->batch, 16);
  EXPECT_EQ(set.kernels[0].kernel.scheme, QuantScheme::kInt8);
}

TEST(AiterLayout, OfOneSizeTheFastestCounts) {
  const std::string size = "amd-mi355x,gfx950,256,fp8,1x128,bf16,0,1,16,512,7168,";
  const std::string other = "amd-mi355x,gfx950,256,fp8,1x128,bf16,0,1,32,512,7168,0,14,ck,0,k,a\n";
  const MeasurementSet set =
      read_rows(kProducts, size + "0,12,ck,0,k,a\n" + other + size + "1,10,asm,0,k,b\n" + size +
                               "0,13,ck,0,k,c\n");
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_DOUBLE_EQ(set.kernels[0].measured_s, 14e-6);
  EXPECT_DOUBLE_EQ(set.kernels[1].measured_s, 10e-6);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("is faster there (2 rows)"), std::string::npos);
}

TEST(AiterLayout, ReadsLayersOfExperts) {
  const std::string sizes = ",64,4096,1536,128,8,silu,1,50,";
  const std::string start = "amd-mi355x,gfx950,256,bf16,";
  const MeasurementSet set = read_rows(
      kExperts, start + "fp8,fp8,1x128" + sizes + "a\n" + start + "fp8,fp8,token" + sizes + "a\n" +
                    start + "fp8,fp8,1x32" + sizes + "b\n" + start + "fp4,fp4,1x32" + sizes +
                    "a\n" + start + "fp8,fp4,1x32" + sizes + "a\n" + start + "bf16,fp4,1x32" +
                    sizes + "a\n" + start + "bf16,int4,1x32" + sizes + "a\n" + start +
                    "int8,int8,token" + sizes + "a\n");
  const QuantScheme expected[] = {QuantScheme::kFp8Block,      QuantScheme::kFp8,
                                  QuantScheme::kFp8,           QuantScheme::kFp4,
                                  QuantScheme::kFp4Fp8,        QuantScheme::kFp4WeightOnly,
                                  QuantScheme::kInt4WeightOnly};
  ASSERT_EQ(set.kernels.size(), std::size(expected));
  for (size_t i = 0; i < set.kernels.size(); ++i)
    EXPECT_EQ(set.kernels[i].kernel.scheme, expected[i]) << i;
  const Experts* e = set.kernels[0].kernel.as<Experts>();
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->tokens, 64);
  EXPECT_EQ(e->hidden_dim, 4096);
  EXPECT_EQ(e->ffn_dim, 1536);
  EXPECT_EQ(e->num_experts, 128);
  EXPECT_EQ(e->top_k, 8);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("experts in 'int8'"), std::string::npos);
}

TEST(AiterLayout, OneTimeOfSeveralNumbersOfTokensIsOfNone) {
  const std::string start = "amd-mi355x,gfx950,256,bf16,fp8,fp8,1x128,",
                    sizes = ",4096,1536,128,8,silu,1,";
  const MeasurementSet set =
      read_rows(kExperts, start + "1" + sizes + "50,a\n" + start + "2" + sizes + "50,a\n" + start +
                              "4" + sizes + "51,a\n" + start + "8" + sizes + "50,b\n");
  ASSERT_EQ(set.kernels.size(), 2u);
  EXPECT_EQ(set.kernels[0].kernel.as<Experts>()->tokens, 4);
  EXPECT_EQ(set.kernels[1].kernel.as<Experts>()->tokens, 8);
}

}  // namespace
}  // namespace tilecast
