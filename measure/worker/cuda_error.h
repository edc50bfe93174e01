#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace tilecast::measure {

/// A call of CUDA that failed. `lost()` tells whether the process can go on.
struct CudaError : std::runtime_error {
  CudaError(cudaError_t code, const char* call)
      : std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code)), code(code) {}

  /// After these the context is gone: every later call fails too.
  bool lost() const {
    return code != cudaErrorMemoryAllocation && code != cudaErrorInvalidValue &&
           code != cudaErrorInvalidConfiguration && code != cudaErrorNotSupported &&
           code != cudaErrorStreamCaptureUnsupported && code != cudaErrorStreamCaptureInvalidated;
  }

  cudaError_t code;
};

/// Throws CudaError and takes the error off CUDA's last-error slot.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  throw CudaError(code, call);
}

#define TILECAST_CUDA(call) ::tilecast::measure::check_cuda((call), #call)

}  // namespace tilecast::measure
