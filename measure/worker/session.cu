#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "cuda_error.h"
#include "session.h"

namespace tilecast::measure {
namespace {

constexpr int64_t kAlignment = 256;
// Kept free for the libraries' own needs and for the driver.
constexpr int64_t kSpareBytes = int64_t{512} << 20;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A number in [-1, 1) from the element's place (splitmix64).
__device__ float noise(uint64_t at) {
  uint64_t x = at * 0x9e3779b97f4a7c15ull + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<float>((x ^ (x >> 31)) >> 40) * (2.0f / 16777216.0f) - 1.0f;
}

template <typename T>
__global__ void fill_kernel(T* out, int64_t count, uint64_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    out[i] = static_cast<T>(noise(seed + static_cast<uint64_t>(i)));
}

__global__ void fill_int8(signed char* out, int64_t count, uint64_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    out[i] = static_cast<signed char>(noise(seed + static_cast<uint64_t>(i)) * 100.0f);
}

template <typename T>
std::vector<double> download(int64_t count, const void* address) {
  std::vector<T> raw(static_cast<size_t>(count));
  TILECAST_CUDA(cudaMemcpy(raw.data(), address, raw.size() * sizeof(T), cudaMemcpyDeviceToHost));
  std::vector<double> values(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>)
      values[i] = static_cast<double>(raw[i]);
    else
      values[i] = static_cast<double>(static_cast<float>(raw[i]));
  }
  return values;
}

}  // namespace

int64_t dtype_bytes(const std::string& dtype) {
  if (dtype == "fp32" || dtype == "tf32" || dtype == "int32") return 4;
  if (dtype == "fp16" || dtype == "bf16") return 2;
  if (dtype == "fp8" || dtype == "int8") return 1;
  if (dtype == "int64") return 8;
  throw Unsupported("dtype: '" + dtype + "' is not measured by the kit");
}

Session::Session() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    throw std::runtime_error(
        "no NVIDIA driver, or one too old: the kit was built with CUDA " +
        std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10) +
        "; install a newer driver, or build with an older CUDA (nvidia-smi shows the newest that "
        "the driver takes)");
  }
  if (found != cudaSuccess || count == 0)
    throw std::runtime_error("no NVIDIA GPU: " + std::string(cudaGetErrorString(found)));
  TILECAST_CUDA(cudaSetDevice(0));
  TILECAST_CUDA(cudaGetDeviceProperties(&properties_, 0));
  // A build without this card's architecture fails at the first launch: say so now.
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, fill_int8) != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error("the kit was built without code for compute capability " +
                             std::to_string(properties_.major) + "." +
                             std::to_string(properties_.minor) +
                             ": build it with a CUDA that knows " + std::string(properties_.name));
  }
  TILECAST_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  char bus[32] = "";
  TILECAST_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  nvml_.open(bus);
}

Session::~Session() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void Session::Buffer::reserve(int64_t wanted) {
  if (wanted <= bytes) return;
  free();
  TILECAST_CUDA(cudaMalloc(&address, static_cast<size_t>(wanted)));
  bytes = wanted;
}

void Session::Buffer::free() {
  if (address != nullptr) cudaFree(address);
  address = nullptr;
  bytes = 0;
}

int64_t Session::usable_bytes() const {
  size_t free_bytes = 0, total = 0;
  TILECAST_CUDA(cudaMemGetInfo(&free_bytes, &total));
  return std::max<int64_t>(0, static_cast<int64_t>(free_bytes) + arena_.bytes - kSpareBytes);
}

std::vector<Operands> Session::place(const std::vector<Region>& regions, int64_t sets) {
  int64_t set_bytes = 0;
  for (const Region& region : regions) set_bytes += aligned(region.bytes());
  arena_.reserve(set_bytes * sets);
  std::vector<Operands> all;
  char* next = static_cast<char*>(arena_.address);
  for (int64_t set = 0; set < sets; ++set) {
    Operands operands;
    for (const Region& region : regions) {
      fill(region, next, static_cast<uint64_t>(next - static_cast<char*>(arena_.address)));
      operands.push_back(next);
      next += aligned(region.bytes());
    }
    all.push_back(std::move(operands));
  }
  TILECAST_CUDA(cudaStreamSynchronize(stream_));
  return all;
}

void Session::fill(const Region& region, void* address, uint64_t seed) {
  const int blocks = properties_.multiProcessorCount * 8, threads = 256;
  if (!region.ids.empty()) {
    TILECAST_CUDA(cudaMemcpyAsync(address, region.ids.data(), region.ids.size() * sizeof(int64_t),
                                  cudaMemcpyHostToDevice, stream_));
  } else if (region.output) {
    // Every bit set: a NaN in every float type, so that an element nobody wrote is seen.
    TILECAST_CUDA(cudaMemsetAsync(address, 0xff, static_cast<size_t>(region.bytes()), stream_));
  } else if (region.dtype == "fp32" || region.dtype == "tf32") {
    fill_kernel<<<blocks, threads, 0, stream_>>>(static_cast<float*>(address), region.count, seed);
  } else if (region.dtype == "fp16") {
    fill_kernel<<<blocks, threads, 0, stream_>>>(static_cast<__half*>(address), region.count, seed);
  } else if (region.dtype == "bf16") {
    fill_kernel<<<blocks, threads, 0, stream_>>>(static_cast<__nv_bfloat16*>(address), region.count,
                                                 seed);
  } else if (region.dtype == "fp8") {
    fill_kernel<<<blocks, threads, 0, stream_>>>(static_cast<__nv_fp8_e4m3*>(address), region.count,
                                                 seed);
  } else if (region.dtype == "int8") {
    fill_int8<<<blocks, threads, 0, stream_>>>(static_cast<signed char*>(address), region.count,
                                               seed);
  } else {
    TILECAST_CUDA(cudaMemsetAsync(address, 0, static_cast<size_t>(region.bytes()), stream_));
  }
  TILECAST_CUDA(cudaGetLastError());
}

void* Session::workspace(int64_t bytes) {
  workspace_.reserve(bytes);
  return workspace_.address;
}

void Session::flush_l2() {
  flush_.reserve(2 * std::max<int64_t>(properties_.l2CacheSize, 1 << 20));
  TILECAST_CUDA(cudaMemsetAsync(flush_.address, 1, static_cast<size_t>(flush_.bytes), stream_));
}

void Session::release() {
  TILECAST_CUDA(cudaDeviceSynchronize());
  arena_.free();
  workspace_.free();
  flush_.free();
}

std::vector<double> read_region(const Region& region, const void* address) {
  if (region.dtype == "fp16") return download<__half>(region.count, address);
  if (region.dtype == "bf16") return download<__nv_bfloat16>(region.count, address);
  if (region.dtype == "fp8") return download<__nv_fp8_e4m3>(region.count, address);
  if (region.dtype == "int8") return download<signed char>(region.count, address);
  if (region.dtype == "int32") return download<int32_t>(region.count, address);
  if (region.dtype == "int64") return download<int64_t>(region.count, address);
  return download<float>(region.count, address);
}

}  // namespace tilecast::measure
