#include "tuning/problem_rows.h"

#include <gtest/gtest.h>

#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

constexpr std::string_view kHeader =
    "direction,precision,layout,n,c,h,w,k,oh,ow,r,s,pad_h,pad_w,stride_h,stride_w,dil_h,dil_w,"
    "group\n";

ConvProblem read(const std::string& row) {
  return problem_of_row(parse_csv(std::string(kHeader) + row + "\n", "x.csv"), 0);
}

std::string row_error(const std::string& row) {
  try {
    read(row);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ProblemRow, IsTheConvolutionOfItsText) {
  EXPECT_EQ(read("W,FP16,NHWC,8,64,56,56,32,28,28,3,3,1,1,2,2,1,1,2"),
            parse_problem("conv n=8 c=64 h=56 w=56 k=32 r=3 s=3 pad=1 stride=2 group=2 "
                          "layout=NHWC dtype=fp16 dir=W",
                          "p"));
}

TEST(ProblemRow, UnknownInputIsTheLeastThatGivesTheOutput) {
  const ConvProblem p = read("B,FP32,NCHW,8,64,0,0,32,28,28,3,3,1,1,2,2,1,1,1");
  EXPECT_EQ(p.h, 27 * 2 + 1 - 2 + 2);
  ConvProblem whole = p;
  complete_problem(whole, "p");
  EXPECT_EQ(whole, p);
}

TEST(ProblemRow, MistakesAreNamedByLine) {
  EXPECT_EQ(row_error("X,FP32,NCHW,8,64,9,9,32,9,9,1,1,0,0,1,1,1,1,1"),
            "x.csv: line 2: direction is 'X'; expected F, B or W");
  EXPECT_EQ(row_error("F,FP32,CHWN,8,64,9,9,32,9,9,1,1,0,0,1,1,1,1,1"),
            "x.csv: line 2: layout is 'CHWN'; expected NCHW or NHWC");
  EXPECT_EQ(row_error("F,FP32,NCHW,0,64,9,9,32,9,9,1,1,0,0,1,1,1,1,1"),
            "x.csv: line 2: n is 0; expected a size up to 16777216");
  EXPECT_EQ(row_error("F,FP32,NCHW,8,64,9,9,32,9,9,1,1,0,0,1,1,1,1,5"),
            "x.csv: line 2: group 5 does not divide c 64 and k 32");
}

}  // namespace
}  // namespace tilecast::tuning
