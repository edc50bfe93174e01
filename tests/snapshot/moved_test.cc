#include "moved.h"

#include <gtest/gtest.h>

namespace tilecast {
namespace {

TEST(Moved, NamesTheMedianAndTheLargestChangeOfEachNumber) {
  const std::vector<std::string> was = {"math 1", "a p4 pass 11 22 fp32 flops=100 s=1 [0.9 1.1]",
                                        "b p4 pass 11 22 fp32 flops=100 s=2 [1.9 2.1]",
                                        "c p4 pass 11 22 fp32 flops=100 s=4 [3.9 4.1]"};
  const std::vector<std::string> is = {"math 1", "a p4 pass 11 23 fp32 flops=100 s=1.1 [0.9 1.1]",
                                       "b p4 pass 11 23 fp32 flops=100 s=2.04 [1.9 2.1]",
                                       "c p4 pass 11 23 fp32 flops=100 s=2 [3.9 4.1]"};
  EXPECT_EQ(moved_report(was, is),
            "pass       s        3 of 3 moved, median +2 %, most -50 % (c p4 pass)\n");
  EXPECT_EQ(moved_report(was, was), "no number of a headline moved\n");
}

TEST(Moved, CountsLinesThatAreNewGoneOrRefused) {
  EXPECT_EQ(moved_report({"a p4 pass 11 22 fp32 s=1", "b p4 pass refused: no unit"},
                         {"b p4 pass 11 22 fp32 s=1", "c p4 pass 11 22 fp32 s=1"}),
            "no number of a headline moved\nlines: 1 new, 1 gone, 1 refused in one of both\n");
}

}  // namespace
}  // namespace tilecast
