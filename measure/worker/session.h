#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvml.h"
#include "operation.h"

namespace tilecast::measure {

/// The GPU that is measured: its stream, its memory, its sensors.
class Session {
 public:
  /// Opens device 0 of those that CUDA shows. Throws std::runtime_error saying what is missing.
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const cudaDeviceProp& properties() const { return properties_; }
  cudaStream_t stream() const { return stream_; }
  const Nvml& nvml() const { return nvml_; }

  /// Bytes that operands may take now.
  int64_t usable_bytes() const;
  /// Addresses of `sets` copies of the regions, filled. Throws CudaError (out of memory).
  std::vector<Operands> place(const std::vector<Region>& regions, int64_t sets);
  /// Scratch space for libraries; stays where it is until release().
  void* workspace(int64_t bytes);
  /// Overwrites twice the L2, so that what comes next finds nothing of its own in there.
  void flush_l2();
  /// Gives all device memory back, for another process's turn.
  void release();

 private:
  void fill(const Region& region, void* address, uint64_t seed);

  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  Nvml nvml_;
  struct Buffer {
    void* address = nullptr;
    int64_t bytes = 0;
    void reserve(int64_t wanted);
    void free();
  };
  Buffer arena_, workspace_, flush_;
};

/// The region's elements as numbers.
std::vector<double> read_region(const Region& region, const void* address);

}  // namespace tilecast::measure
