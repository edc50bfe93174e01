#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

TEST(EvaluateTest, ListsErrorsAndWhatItCouldNotUse) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv",
             "gpu,op,dtype,m,n,k,latency_s,protocol\nT4,add,fp32,1,50000000,1,0.0025,back_to_back\n"
             "X9,add,fp32,1,1000,1,1e-5,back_to_back\n");
  const Evaluation e = evaluate(forecaster(), folder.path().string());
  ASSERT_EQ(e.rows.size(), 1u);
  EXPECT_EQ(e.rows[0].gpu, "nvidia-t4");
  EXPECT_EQ(e.rows[0].count, 1);
  EXPECT_LT(e.rows[0].mape_percent, 30);
  ASSERT_EQ(e.unmatched.size(), 1u);
  EXPECT_NE(e.unmatched[0].find("unknown GPU 'X9'"), std::string::npos);
  EXPECT_NO_THROW(parse_json(to_json(e), "out"));
}

}  // namespace
}  // namespace tilecast
