#include "sim/encode_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "test_support.h"

namespace tilecast {
namespace {

/// 10 ms a run, 20 ms an image; 3 ms of the link for each image.
Encoders encoders_of(int64_t workers, int64_t together = 4) {
  return {.workers = workers,
          .together = together,
          .encode_s = [](int64_t images) { return 0.010 + 0.020 * static_cast<double>(images); },
          .transfer_s = [](int64_t images) { return 0.003 * static_cast<double>(images); }};
}

/// When a server has the images of each of the requests, which come at these times with so many.
std::vector<double> ready(const Encoders& encoders,
                          const std::vector<std::pair<double, int64_t>>& requests) {
  EncodeQueue queue(encoders, requests.size());
  std::vector<double> at(requests.size(), -1);
  std::vector<EncodeQueue::Encoded> encoded;
  const auto end_runs = [&](double until_s) {
    while (queue.next_s() <= until_s && std::isfinite(queue.next_s())) {
      encoded.clear();
      queue.advance(encoded);
      for (const EncodeQueue::Encoded& e : encoded) at[e.request] = e.at_s;
    }
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    end_runs(requests[i].first);
    queue.receive(i, requests[i].second, requests[i].first);
  }
  end_runs(std::numeric_limits<double>::max());
  return at;
}

TEST(EncodeQueue, ARequestHasAllItsImages) {
  EXPECT_NEAR(ready(encoders_of(1), {{1, 3}})[0], 1.070 + 0.009, 1e-12);
  // Two images and one: the link of each worker sends its own.
  EXPECT_NEAR(ready(encoders_of(2), {{1, 3}})[0], 1.050 + 0.006, 1e-12);
  EXPECT_NEAR(ready(encoders_of(3), {{1, 3}})[0], 1.030 + 0.003, 1e-12);
  // More than a run takes: one run after the other. The first one's transfer is done by then.
  EXPECT_NEAR(ready(encoders_of(1), {{1, 6}})[0], 1.090 + 0.050 + 0.006, 1e-12);
}

TEST(EncodeQueue, ImagesThatWaitAreEncodedTogether) {
  const std::vector<double> at = ready(encoders_of(1), {{0, 1}, {0.01, 1}, {0.02, 1}});
  EXPECT_NEAR(at[0], 0.033, 1e-12);
  // A run of both begins when the first one ends; the link is taken in turn.
  EXPECT_NEAR(at[1], 0.030 + 0.050 + 0.003, 1e-12);
  EXPECT_NEAR(at[2], 0.030 + 0.050 + 0.006, 1e-12);
}

TEST(EncodeQueue, RequestsAreServedInTheirOrder) {
  // The second request's image waits for the first one's last images, beside which it has room.
  const std::vector<double> at = ready(encoders_of(1), {{0, 6}, {0, 1}});
  EXPECT_NEAR(at[0], 0.090 + 0.070 + 0.006, 1e-12);
  EXPECT_NEAR(at[1], at[0] + 0.003, 1e-12);
}

TEST(EncodeQueue, WorkersTakeTurns) {
  const Encoders encoders = encoders_of(3, 1);
  // Five images, then four: each worker has three of them, one in a run.
  const std::vector<double> at = ready(encoders, {{0, 5}, {0, 4}});
  EXPECT_NEAR(at[0], 2 * 0.030 + 0.003, 1e-12);
  EXPECT_NEAR(at[1], 3 * 0.030 + 0.003, 1e-12);
}

TEST(EncodeQueue, CountsWhatItDid) {
  const Encoders encoders = encoders_of(2);
  EncodeQueue queue(encoders, 2);
  std::vector<EncodeQueue::Encoded> encoded;
  queue.receive(0, 4, 0);
  queue.advance(encoded);
  queue.advance(encoded);
  EXPECT_NEAR(queue.busy_s(), 0.100, 1e-12);
  EXPECT_EQ(queue.mean_images(), 2);
  EXPECT_NEAR(queue.mean_s(), 0.056, 1e-12);
  ASSERT_EQ(encoded.size(), 1U);
  queue.forget_counts();
  EXPECT_EQ(queue.busy_s(), 0);
  EXPECT_EQ(queue.mean_images(), 0);
  EXPECT_EQ(queue.mean_s(), 0);
}

}  // namespace
}  // namespace tilecast
