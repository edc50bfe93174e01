#pragma once
// Just enough of CUDA's device language to run kernels.cuh on a CPU: the threads of a block are
// coroutines that take turns at barriers. Not modelled: concurrency of blocks, memory ordering.

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define TILECAST_DYNAMIC_SHARED(type, name) \
  type* name = reinterpret_cast<type*>(::cuda_on_cpu::dynamic_shared.data())

namespace cuda_on_cpu {
struct Dim {
  unsigned x = 1, y = 1, z = 1;
};
inline std::vector<double> dynamic_shared;
}  // namespace cuda_on_cpu

inline cuda_on_cpu::Dim threadIdx, blockIdx, blockDim, gridDim;
struct float4 {
  float x, y, z, w;
};

namespace cuda_on_cpu {

class Block {
 public:
  static inline Block* current = nullptr;

  Block(Dim block, const std::function<void()>& kernel) : block_(block), kernel_(kernel) {
    threads_.resize(block.x * block.y);
    for (Thread& thread : threads_) prepare(thread, main_);
  }

  /// Each round lets every living thread run up to its next barrier.
  void run() {
    current = this;
    for (bool alive = true; alive;) {
      alive = false;
      for (running_ = 0; running_ < threads_.size(); ++running_) {
        Thread& thread = threads_[running_];
        if (thread.done) continue;
        const auto id = static_cast<unsigned>(running_);
        threadIdx = {id % block_.x, id / block_.x, 0};
        swapcontext(&main_, &thread.context);
        alive = alive || !thread.done;
      }
    }
    current = nullptr;
  }

  void barrier() { swapcontext(&threads_[running_].context, &main_); }

  float exchange(float value, int lane_mask) {
    threads_[running_].value = value;
    barrier();
    const size_t lane = running_ % 32;
    const float other = threads_[running_ - lane + (lane ^ static_cast<size_t>(lane_mask))].value;
    barrier();
    return other;
  }

 private:
  struct Thread {
    ucontext_t context{};
    std::vector<char> stack;
    float value = 0;
    bool done = false;
  };

  // getcontext returns twice as far as the compiler knows: no loop variable may be near it.
  static void prepare(Thread& thread, ucontext_t& after) {
    thread.stack.resize(size_t{1} << 16);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = &after;
    makecontext(&thread.context, &Block::entry, 0);
  }

  static void entry() {
    Block& block = *current;
    block.kernel_();
    block.threads_[block.running_].done = true;
  }

  Dim block_;
  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  ucontext_t main_{};
  size_t running_ = 0;
};

/// Runs `kernel` (a call of a __global__ function) once a thread of grid × block.
inline void launch(Dim grid, Dim block, size_t shared_bytes, const std::function<void()>& kernel) {
  gridDim = grid;
  blockDim = block;
  dynamic_shared.assign(shared_bytes / sizeof(double) + 1, 0);
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y, 0};
      Block(block, kernel).run();
    }
  }
}

}  // namespace cuda_on_cpu

// A thread that has left the kernel does not wait any more, as on a GPU; every barrier of the
// kernels is passed by all threads that are left.
inline void __syncthreads() { cuda_on_cpu::Block::current->barrier(); }
inline float __shfl_xor_sync(unsigned, float value, int lane_mask) {
  return cuda_on_cpu::Block::current->exchange(value, lane_mask);
}
inline int atomicAdd(int* address, int value) {
  const int before = *address;
  *address += value;
  return before;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
