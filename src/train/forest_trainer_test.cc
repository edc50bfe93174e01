#include "train/forest_trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace tilecast {
namespace {

TEST(Forests, LearnStepsThatNoLineFits) {
  ForestTask task{.width = 3, .trees = 150};
  Rng rng(5);
  const auto truth = [](const float* x) {
    return (x[0] < 0.3f ? 1.0f : -0.5f) + (x[1] < 0 ? x[0] : 0);
  };
  for (int i = 0; i < 3000; ++i) {
    float x[3];
    for (float& v : x) v = static_cast<float>(2 * rng.uniform() - 1);
    task.inputs.insert(task.inputs.end(), x, x + 3);
    task.targets.push_back(truth(x));
    task.weights.push_back(1);
  }
  const Forest forest = train_forest(task);
  ASSERT_EQ(forest.trees().size(), 150u);
  EXPECT_EQ(forest, train_forest(task)) << "seeded";
  double error = 0;
  for (int i = 0; i < 500; ++i) {
    float x[3];
    for (float& v : x) v = static_cast<float>(2 * rng.uniform() - 1);
    float found = 0;
    forest_add(forest, x, 3, 1, 1, &found);
    error += std::abs(found - truth(x)) / 500;
  }
  EXPECT_LT(error, 0.03);
}

}  // namespace
}  // namespace tilecast
