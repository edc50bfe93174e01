// The kit's kernels compute what their names say. They run here on the CPU, thread by thread.
#include "cuda_on_cpu.h"
// After the shim, which stands in for CUDA's language.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../worker/kernels.cuh"

namespace tilecast::measure {
namespace {

using cuda_on_cpu::launch;

std::vector<float> random_values(int64_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(engine);
  return values;
}

unsigned blocks(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

TEST(KitPointwise, EveryElementIsWrittenOnce) {
  for (const int64_t count : {1, 3, 4, 511, 512, 513, 2000}) {
    const std::vector<float> a = random_values(count, 1), b = random_values(count, 2),
                             c = random_values(count, 3);
    std::vector<float> out(count + 1, 7);
    launch({blocks(count, 128 * 4)}, {128}, 0, [&] {
      pointwise<float, 3>(a.data(), b.data(), c.data(), out.data(), count, Addcmul{});
    });
    for (int64_t i = 0; i < count; ++i) ASSERT_FLOAT_EQ(out[i], a[i] + 0.5f * b[i] * c[i]) << i;
    EXPECT_EQ(out[count], 7) << "wrote behind the end";
  }
}

TEST(KitPointwise, CastTakesEveryElement) {
  const std::vector<float> in = random_values(1027);
  std::vector<float> out(1028, 7);
  launch({blocks(1027, 512)}, {128}, 0, [&] { cast(in.data(), out.data(), 1027); });
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  EXPECT_EQ(out[1027], 7);
}

std::vector<float> softmax(const std::vector<float>& in, int rows, int columns) {
  std::vector<float> out(in.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(in[r * columns + c]);
    for (int c = 0; c < columns; ++c)
      out[r * columns + c] = static_cast<float>(std::exp(in[r * columns + c]) / sum);
  }
  return out;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  // 1e-5: sums of some thousand floats of about 1.
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5 * std::max(1.0f, std::abs(expected[i])))
        << "element " << i;
}

TEST(KitSoftmax, WarpRowsAgreeWithTheDefinition) {
  for (const int columns : {1, 31, 33, 128}) {
    const int rows = 7;
    const std::vector<float> in = random_values(rows * columns);
    std::vector<float> out(in.size());
    launch({blocks(rows, kWarpsPerBlock)}, {kWarpsPerBlock * kWarp}, 0,
           [&] { softmax_warp<float, 4>(in.data(), out.data(), rows, columns); });
    expect_near(out, softmax(in, rows, columns));
  }
}

TEST(KitSoftmax, BlockRowsAgreeWithTheDefinition) {
  const int rows = 3, columns = 1501;
  const std::vector<float> in = random_values(rows * columns);
  std::vector<float> out(in.size()), uncached(in.size());
  launch({rows}, {kRowBlock}, columns * sizeof(float),
         [&] { softmax_block<float, true>(in.data(), out.data(), columns); });
  launch({rows}, {kRowBlock}, 0,
         [&] { softmax_block<float, false>(in.data(), uncached.data(), columns); });
  expect_near(out, softmax(in, rows, columns));
  expect_near(uncached, out);
}

TEST(KitNorm, LayerNormAndRmsNormAgreeWithTheDefinition) {
  const int rows = 2, columns = 700;
  const std::vector<float> in = random_values(rows * columns), weight = random_values(columns, 2),
                           bias = random_values(columns, 3);
  std::vector<float> layer(in.size()), rms(in.size()), mean(rows), scale(rows);
  launch({rows}, {kRowBlock}, 0, [&] {
    norm<float, true>(in.data(), weight.data(), bias.data(), layer.data(), mean.data(),
                      scale.data(), columns);
  });
  launch({rows}, {kRowBlock}, 0, [&] {
    norm<float, false>(in.data(), weight.data(), nullptr, rms.data(), nullptr, nullptr, columns);
  });
  std::vector<float> expected_layer(in.size()), expected_rms(in.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (int c = 0; c < columns; ++c) {
      sum += in[r * columns + c];
      squares += double{in[r * columns + c]} * in[r * columns + c];
    }
    const double m = sum / columns, variance = squares / columns - m * m;
    for (int c = 0; c < columns; ++c) {
      const int i = r * columns + c;
      expected_layer[i] =
          static_cast<float>((in[i] - m) / std::sqrt(variance + 1e-5) * weight[c] + bias[c]);
      expected_rms[i] = static_cast<float>(in[i] / std::sqrt(squares / columns + 1e-5) * weight[c]);
    }
    EXPECT_NEAR(mean[r], m, 1e-5);
  }
  expect_near(layer, expected_layer);
  expect_near(rms, expected_rms);
}

TEST(KitReduce, SumsRows) {
  const std::vector<float> in = random_values(3 * 999);
  std::vector<float> out(3), expected(3);
  launch({3}, {kRowBlock}, 0, [&] { reduce_sum_rows(in.data(), out.data(), 999); });
  for (int r = 0; r < 3; ++r) {
    double sum = 0;
    for (int c = 0; c < 999; ++c) sum += in[r * 999 + c];
    expected[r] = static_cast<float>(sum);
  }
  expect_near(out, expected);
}

TEST(KitTopK, FindsTheLargestAlsoAmongEqualValues) {
  const int columns = 600, k = 17;
  std::vector<float> in = random_values(2 * columns);
  for (int c = 0; c < columns; ++c) in[columns + c] = static_cast<float>(c % 3 - 1);  // many ties
  std::vector<float> values(2 * k);
  std::vector<int> indices(2 * k);
  launch({2}, {kRowBlock}, 0, [&] { top_k(in.data(), values.data(), indices.data(), columns, k); });
  for (int r = 0; r < 2; ++r) {
    std::vector<float> row(in.begin() + r * columns, in.begin() + (r + 1) * columns);
    std::vector<float> found(values.begin() + r * k, values.begin() + (r + 1) * k);
    std::vector<int> columns_found(indices.begin() + r * k, indices.begin() + (r + 1) * k);
    for (int i = 0; i < k; ++i) EXPECT_EQ(row[columns_found[i]], found[i]);
    std::sort(columns_found.begin(), columns_found.end());
    EXPECT_EQ(std::unique(columns_found.begin(), columns_found.end()), columns_found.end());
    std::sort(row.rbegin(), row.rend());
    std::sort(found.rbegin(), found.rend());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), row.begin()));
  }
}

TEST(KitMovement, TransposesShapesThatAreNoMultipleOfTheTile) {
  const int rows = 45, columns = 70;
  const std::vector<float> in = random_values(rows * columns);
  std::vector<float> out(in.size());
  launch({blocks(columns, kTransposeTile), blocks(rows, kTransposeTile)},
         {kTransposeTile, kTransposeRows}, 0,
         [&] { transpose(in.data(), out.data(), rows, columns); });
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) ASSERT_EQ(out[c * rows + r], in[r * columns + c]);
  }
}

TEST(KitMovement, GathersAndPoolsRows) {
  const std::vector<float> table = random_values(10 * 37);
  const std::vector<int64_t> ids = {3, 3, 9, 0, 1, 5};
  std::vector<float> rows(6 * 37), bags(2 * 37);
  launch({6}, {64}, 0, [&] { gather_rows(table.data(), ids.data(), rows.data(), 37); });
  launch({2}, {64}, 0, [&] { embedding_bag(table.data(), ids.data(), bags.data(), 3, 37); });
  for (int c = 0; c < 37; ++c) {
    for (int i = 0; i < 6; ++i) ASSERT_EQ(rows[i * 37 + c], table[ids[i] * 37 + c]);
    ASSERT_FLOAT_EQ(bags[37 + c], table[c] + table[37 + c] + table[5 * 37 + c]);
  }
}

}  // namespace
}  // namespace tilecast::measure
