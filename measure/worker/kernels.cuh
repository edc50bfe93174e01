#pragma once
// The simple kernels that frameworks launch, written the way frameworks write them: 16-byte loads,
// a warp for a short row, a block for a long one. Nothing here knows of timing. The file also
// compiles as plain C++ (tests/cuda_on_cpu.h), which is how its results are tested without a GPU.

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define TILECAST_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

namespace tilecast::measure {

constexpr int kWarp = 32;
constexpr int kRowBlock = 256;     ///< threads that share one long row
constexpr int kWarpsPerBlock = 4;  ///< short rows of one block
constexpr int kLongestWarpRow = 1024;
constexpr int kTransposeTile = 32;
constexpr int kTransposeRows = 8;  ///< rows of a tile that the block's threads move at a time

__device__ inline float to_float(float x) { return x; }
template <typename T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
#ifdef __CUDACC__
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16(x);
}
#endif

/// 16 bytes of elements: the widest load of one thread.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  T value[kCount];
};

// ---- pointwise: out[i] = f(a[i], b[i], c[i]); inputs beyond kInputs are not read ----

struct Copy {
  __device__ float operator()(float a, float, float) const { return a; }
};
struct AddScalar {
  __device__ float operator()(float a, float, float) const { return a + 0.5f; }
};
struct MulScalar {
  __device__ float operator()(float a, float, float) const { return a * 0.5f; }
};
struct Relu {
  __device__ float operator()(float a, float, float) const { return a > 0 ? a : 0; }
};
struct Gelu {
  __device__ float operator()(float a, float, float) const {
    return 0.5f * a * (1 + erff(a * 0.70710678f));
  }
};
struct Silu {
  __device__ float operator()(float a, float, float) const { return a / (1 + expf(-a)); }
};
struct Tanh {
  __device__ float operator()(float a, float, float) const { return tanhf(a); }
};
struct Add {
  __device__ float operator()(float a, float b, float) const { return a + b; }
};
struct Mul {
  __device__ float operator()(float a, float b, float) const { return a * b; }
};
struct Div {
  __device__ float operator()(float a, float b, float) const { return a / b; }
};
struct Addcmul {
  __device__ float operator()(float a, float b, float c) const { return a + 0.5f * b * c; }
};

/// Launch with ceil(count / (blockDim.x · Pack<T>::kCount)) blocks.
template <typename T, int kInputs, typename Function>
__global__ void pointwise(const T* a, const T* b, const T* c, T* out, int64_t count, Function f) {
  constexpr int kLanes = Pack<T>::kCount;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kLanes;
  if (at + kLanes <= count) {
    const Pack<T> pa = *reinterpret_cast<const Pack<T>*>(a + at);
    Pack<T> pb = pa, pc = pa, result;
    if constexpr (kInputs > 1) pb = *reinterpret_cast<const Pack<T>*>(b + at);
    if constexpr (kInputs > 2) pc = *reinterpret_cast<const Pack<T>*>(c + at);
    for (int i = 0; i < kLanes; ++i)
      result.value[i] =
          from_float<T>(f(to_float(pa.value[i]), to_float(pb.value[i]), to_float(pc.value[i])));
    *reinterpret_cast<Pack<T>*>(out + at) = result;
    return;
  }
  for (int64_t i = at; i < count; ++i)
    out[i] = from_float<T>(
        f(to_float(a[i]), kInputs > 1 ? to_float(b[i]) : 0, kInputs > 2 ? to_float(c[i]) : 0));
}

/// One input and output of different types; a thread moves 4 elements.
template <typename From, typename To>
__global__ void cast(const From* in, To* out, int64_t count) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
  for (int64_t i = at; i < at + 4 && i < count; ++i) out[i] = from_float<To>(to_float(in[i]));
}

// ---- rows ----

struct Max {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Combine>
__device__ float warp_reduce(float x, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    x = combine(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

/// All threads of the block get the result. `scratch` holds kWarp floats.
template <typename Combine>
__device__ float block_reduce(float x, float* scratch, float identity, Combine combine) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  x = warp_reduce(x, combine);
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = lane < static_cast<int>(blockDim.x) / kWarp ? scratch[lane] : identity;
  x = warp_reduce(x, combine);
  __syncthreads();  // scratch may be written again
  return x;
}

/// A row of up to kItems · 32 elements a warp; grid: ceil(rows / kWarpsPerBlock).
template <typename T, int kItems>
__global__ void softmax_warp(const T* in, T* out, int rows, int columns) {
  const int row =
      static_cast<int>(blockIdx.x) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= rows) return;  // whole warps leave together
  const T* x = in + static_cast<int64_t>(row) * columns;
  float value[kItems];
  float largest = -3.4e38f;
  for (int i = 0; i < kItems; ++i) {
    const int column = lane + i * kWarp;
    value[i] = column < columns ? to_float(x[column]) : -3.4e38f;
    largest = Max{}(largest, value[i]);
  }
  largest = warp_reduce(largest, Max{});
  float sum = 0;
  for (int i = 0; i < kItems; ++i) {
    value[i] = lane + i * kWarp < columns ? expf(value[i] - largest) : 0;
    sum += value[i];
  }
  sum = warp_reduce(sum, Sum{});
  T* y = out + static_cast<int64_t>(row) * columns;
  for (int i = 0; i < kItems; ++i) {
    if (lane + i * kWarp < columns) y[lane + i * kWarp] = from_float<T>(value[i] / sum);
  }
}

/// A row a block; the row is kept in shared memory (columns floats) where kCached.
template <typename T, bool kCached>
__global__ void softmax_block(const T* in, T* out, int columns) {
  TILECAST_DYNAMIC_SHARED(float, row);
  __shared__ float scratch[kWarp];
  const T* x = in + static_cast<int64_t>(blockIdx.x) * columns;
  T* y = out + static_cast<int64_t>(blockIdx.x) * columns;
  float largest = -3.4e38f;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
    const float value = to_float(x[i]);
    if constexpr (kCached) row[i] = value;
    largest = Max{}(largest, value);
  }
  largest = block_reduce(largest, scratch, -3.4e38f, Max{});
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    sum += expf((kCached ? row[i] : to_float(x[i])) - largest);
  sum = block_reduce(sum, scratch, 0, Sum{});
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    y[i] = from_float<T>(expf((kCached ? row[i] : to_float(x[i])) - largest) / sum);
}

/// A row a block. kCentered: layer norm, mean and reciprocal deviation written too; else RMS norm.
template <typename T, bool kCentered>
__global__ void norm(const T* in, const T* weight, const T* bias, T* out, float* mean_out,
                     float* scale_out, int columns) {
  __shared__ float scratch[kWarp];
  const T* x = in + static_cast<int64_t>(blockIdx.x) * columns;
  T* y = out + static_cast<int64_t>(blockIdx.x) * columns;
  float sum = 0, squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
    const float value = to_float(x[i]);
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<float>(columns);
  const float mean = kCentered ? block_reduce(sum, scratch, 0, Sum{}) / n : 0;
  const float scale = rsqrtf(block_reduce(squares, scratch, 0, Sum{}) / n - mean * mean + 1e-5f);
  if (kCentered && threadIdx.x == 0) {
    mean_out[blockIdx.x] = mean;
    scale_out[blockIdx.x] = scale;
  }
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
    const float centered = (to_float(x[i]) - mean) * scale * to_float(weight[i]);
    y[i] = from_float<T>(kCentered ? centered + to_float(bias[i]) : centered);
  }
}

/// Sum of each row, a block a row.
template <typename T>
__global__ void reduce_sum_rows(const T* in, T* out, int columns) {
  __shared__ float scratch[kWarp];
  const T* x = in + static_cast<int64_t>(blockIdx.x) * columns;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    sum += to_float(x[i]);
  sum = block_reduce(sum, scratch, 0, Sum{});
  if (threadIdx.x == 0) out[blockIdx.x] = from_float<T>(sum);
}

__device__ inline unsigned float_bits(float x) {
  union {
    float f;
    unsigned u;
  } both;
  both.f = x;
  return both.u;
}

/// Bits that sort like the number.
__device__ inline unsigned sortable(float x) {
  const unsigned bits = float_bits(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// The k largest of each row and their columns, in no order: four rounds of an 8-bit radix select,
/// then one pass that collects. A row a block; k <= columns.
template <typename T>
__global__ void top_k(const T* in, T* values, int* indices, int columns, int k) {
  __shared__ int histogram[256];
  __shared__ unsigned prefix, mask;
  __shared__ int wanted, taken, ties;
  const T* x = in + static_cast<int64_t>(blockIdx.x) * columns;
  if (threadIdx.x == 0) {
    prefix = 0;
    mask = 0;
    wanted = k;
    taken = 0;
    ties = 0;
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x))
      histogram[i] = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
      const unsigned key = sortable(to_float(x[i]));
      if ((key & mask) == prefix) atomicAdd(&histogram[(key >> shift) & 255u], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255;
      while (digit > 0 && histogram[digit] < wanted) wanted -= histogram[digit--];
      prefix |= static_cast<unsigned>(digit) << shift;
      mask |= 255u << shift;
    }
    __syncthreads();
  }
  // prefix is the k-th largest key; `wanted` of the elements equal to it belong to the result.
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
    const unsigned key = sortable(to_float(x[i]));
    if (key < prefix || (key == prefix && atomicAdd(&ties, 1) >= wanted)) continue;
    const int64_t at = static_cast<int64_t>(blockIdx.x) * k + atomicAdd(&taken, 1);
    values[at] = x[i];
    indices[at] = i;
  }
}

// ---- movement ----

/// out[columns, rows] = in[rows, columns] transposed; block kTransposeTile × kTransposeRows, grid
/// (ceil(columns / tile), ceil(rows / tile)).
template <typename T>
__global__ void transpose(const T* in, T* out, int rows, int columns) {
  __shared__ T tile[kTransposeTile][kTransposeTile + 1];
  const int column = static_cast<int>(blockIdx.x) * kTransposeTile + static_cast<int>(threadIdx.x);
  const int top = static_cast<int>(blockIdx.y) * kTransposeTile;
  for (int i = static_cast<int>(threadIdx.y); i < kTransposeTile; i += kTransposeRows) {
    if (column < columns && top + i < rows)
      tile[i][threadIdx.x] = in[static_cast<int64_t>(top + i) * columns + column];
  }
  __syncthreads();
  const int out_column = top + static_cast<int>(threadIdx.x);
  const int out_top = static_cast<int>(blockIdx.x) * kTransposeTile;
  for (int i = static_cast<int>(threadIdx.y); i < kTransposeTile; i += kTransposeRows) {
    if (out_column < rows && out_top + i < columns)
      out[static_cast<int64_t>(out_top + i) * rows + out_column] = tile[threadIdx.x][i];
  }
}

/// out[i, :] = table[ids[i], :]; a block a row.
template <typename T>
__global__ void gather_rows(const T* table, const int64_t* ids, T* out, int columns) {
  const T* from = table + ids[blockIdx.x] * columns;
  T* to = out + static_cast<int64_t>(blockIdx.x) * columns;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    to[i] = from[i];
}

/// out[bag, :] = sum of the table's rows ids[bag · pooling …]; a block a bag.
template <typename T>
__global__ void embedding_bag(const T* table, const int64_t* ids, T* out, int pooling,
                              int columns) {
  const int64_t* bag = ids + static_cast<int64_t>(blockIdx.x) * pooling;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int j = 0; j < pooling; ++j) sum += to_float(table[bag[j] * columns + i]);
    out[static_cast<int64_t>(blockIdx.x) * columns + i] = from_float<T>(sum);
  }
}

/// Reads everything, writes next to nothing: for the read bandwidth.
template <typename Vector>
__global__ void read_only(const Vector* in, float* out, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  float sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    sum += in[i].x + in[i].y + in[i].z + in[i].w;
  if (sum == 1.2345e30f) out[0] = sum;  // never: keeps the loads alive
}

}  // namespace tilecast::measure
