#include "sim/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace tilecast {
namespace {

TEST(HostFedStreamTest, LongKernelsHideTheHost) {
  HostFedStream stream(5e-6);
  HostFedStream::Sequence layer;
  for (int i = 0; i < 10; ++i) stream.append(layer, 100e-6);
  stream.run(layer, 12);
  EXPECT_NEAR(stream.end_s(), 120 * 100e-6, 1e-12);
}

TEST(HostFedStreamTest, ShortKernelsRunAtTheHostsPace) {
  HostFedStream stream(5e-6);
  HostFedStream::Sequence layer;
  for (int i = 0; i < 10; ++i) stream.append(layer, 2e-6);
  stream.run(layer, 12);
  EXPECT_NEAR(stream.end_s(), 119 * 5e-6 + 2e-6, 1e-12);
}

TEST(HostFedStreamTest, AgreesWithAStepByStepSimulation) {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    HostFedStream stream(5e-6);
    double host = -5e-6, gpu = 0;
    for (int s = 0; s < 4; ++s) {
      std::vector<double> kernels(1 + rng.below(6));
      for (double& k : kernels) k = 12e-6 * rng.uniform();
      const auto repeat = static_cast<int64_t>(1 + rng.below(5));
      HostFedStream::Sequence sequence;
      for (const double k : kernels) stream.append(sequence, k);
      stream.run(sequence, repeat);
      for (int64_t r = 0; r < repeat; ++r) {
        for (const double k : kernels) {
          host += 5e-6;
          gpu = std::max(gpu, host) + k;
        }
      }
      EXPECT_NEAR(stream.end_s(), std::max(gpu, host), 1e-12);
    }
  }
}

TEST(HostFedStreamTest, WaitsAndSharedLaunchesAgreeWithAStepByStepSimulation) {
  Rng rng(2);
  constexpr double kLaunch = 5e-6;
  for (int trial = 0; trial < 200; ++trial) {
    HostFedStream stream(kLaunch);
    double host = -kLaunch, gpu = -kLaunch;  // the first kernel starts at 0, waiting or not
    for (int s = 0; s < 4; ++s) {
      std::vector<std::pair<double, HostCalls>> kernels(1 + rng.below(6));
      for (auto& [seconds, calls] : kernels) {
        seconds = 30e-6 * rng.uniform();
        calls.launches = static_cast<int32_t>(1 + rng.below(3));
        calls.waits = rng.below(3) == 0;
      }
      const auto repeat = static_cast<int64_t>(1 + rng.below(5));
      HostFedStream::Sequence sequence;
      for (const auto& [seconds, calls] : kernels) stream.append(sequence, seconds, calls);
      const double expected_after = stream.end_after(sequence);
      double after_one = 0;
      for (int64_t r = 0; r < repeat; ++r) {
        for (const auto& [seconds, calls] : kernels) {
          if (calls.waits) host = std::max(host, gpu);
          for (int32_t i = 0; i < calls.launches; ++i) {
            host += kLaunch;
            gpu = std::max(gpu, host) + seconds / calls.launches;
          }
        }
        if (r == 0) after_one = gpu;
      }
      EXPECT_NEAR(expected_after, after_one, 1e-12);
      stream.run(sequence, repeat);
      EXPECT_NEAR(stream.end_s(), std::max(gpu, host), 1e-12);
    }
  }
}

TEST(HostFedStreamTest, AfterAWaitTheLaunchIsExposed) {
  HostFedStream stream(5e-6);
  HostFedStream::Sequence layer;
  stream.append(layer, 100e-6);
  stream.append(layer, 100e-6, {.launches = 1, .waits = true});
  stream.run(layer, 12);
  EXPECT_NEAR(stream.end_s(), 24 * 100e-6 + 12 * 5e-6, 1e-12);
}

}  // namespace
}  // namespace tilecast
