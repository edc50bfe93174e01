#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cuda_error.h"
#include "kernels.cuh"
#include "operations.h"
#include "timing.h"

namespace tilecast::measure {
namespace {

__global__ void nothing() {}

Operation read_operation(Session& session, int64_t bytes) {
  const int blocks = session.properties().multiProcessorCount * 8;
  Operation operation;
  operation.regions = {{"fp32", bytes / 4}, {"fp32", 64, true}};
  operation.launch = [=](const Operands& x, cudaStream_t stream) {
    read_only<<<blocks, 256, 0, stream>>>(static_cast<const float4*>(x[0]),
                                          static_cast<float*>(x[1]), bytes / 16);
    TILECAST_CUDA(cudaGetLastError());
  };
  return operation;
}

Operation write_operation(int64_t bytes) {
  Operation operation;
  operation.regions = {{"fp32", bytes / 4, true}};
  operation.launch = [=](const Operands& x, cudaStream_t stream) {
    TILECAST_CUDA(cudaMemsetAsync(x[0], 1, static_cast<size_t>(bytes), stream));
  };
  return operation;
}

Operation copy_operation(int64_t bytes) {
  Operation operation;
  operation.regions = {{"fp32", bytes / 4}, {"fp32", bytes / 4, true}};
  operation.launch = [=](const Operands& x, cudaStream_t stream) {
    pointwise<float, 1, Copy><<<static_cast<unsigned>((bytes / 4 + 511) / 512), 128, 0, stream>>>(
        static_cast<float*>(x[0]), static_cast<float*>(x[0]), static_cast<float*>(x[0]),
        static_cast<float*>(x[1]), bytes / 4, Copy{});
    TILECAST_CUDA(cudaGetLastError());
  };
  return operation;
}

Operation empty_operation() {
  Operation operation;
  operation.regions = {{"fp32", 1, true}};
  operation.launch = [](const Operands&, cudaStream_t stream) {
    nothing<<<1, 1, 0, stream>>>();
    TILECAST_CUDA(cudaGetLastError());
  };
  return operation;
}

/// Host seconds of one of `launches` asynchronous launches, or of launch and wait.
double host_launch_s(Session& session, int launches, bool wait_each) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  for (int i = 0; i < 21; ++i) {
    TILECAST_CUDA(cudaStreamSynchronize(session.stream()));
    const auto begin = Clock::now();
    for (int j = 0; j < launches; ++j) {
      nothing<<<1, 1, 0, session.stream()>>>();
      if (wait_each) TILECAST_CUDA(cudaStreamSynchronize(session.stream()));
    }
    samples.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / launches);
  }
  TILECAST_CUDA(cudaStreamSynchronize(session.stream()));
  return quantile(samples, 0.5);
}

}  // namespace

Fields measure_device_fact(Session& session, const Request& request) {
  const std::string fact = request.text("op");
  const Protocol protocol{.cold_l2 = request.text("l2", "cold") == "cold"};
  Fields fields;
  if (fact == "launch_async" || fact == "launch_and_wait") {
    char text[32];
    // 500: the launch queue holds about a thousand, so the host never waits for the device.
    std::snprintf(
        text, sizeof text, "%.6g",
        host_launch_s(session, fact == "launch_async" ? 500 : 20, fact != "launch_async"));
    fields["latency_s"] = text;
    return fields;
  }
  if (fact == "empty_kernel") return time_operation(session, empty_operation(), {.cold_l2 = false});
  const int64_t bytes = request.size("n") / 16 * 16;
  if (bytes == 0) throw Unsupported("n: at least 16 bytes");
  if (fact == "read_bandwidth")
    return time_operation(session, read_operation(session, bytes), protocol);
  if (fact == "write_bandwidth") return time_operation(session, write_operation(bytes), protocol);
  if (fact == "copy_bandwidth") return time_operation(session, copy_operation(bytes), protocol);
  throw Unsupported("op: '" + fact + "' is no fact that the kit measures");
}

}  // namespace tilecast::measure
