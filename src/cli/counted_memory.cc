// The program's operators new and delete: malloc and free, which count what each question holds
// (CountedMemory in base/budget.h). They are the program's alone: a library leaves those of its
// process as they are. ThreadSanitizer has operators of its own, which cannot be replaced.

#if defined(__SANITIZE_THREAD__)
#define TILECAST_COUNTS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TILECAST_COUNTS_MEMORY 0
#endif
#endif
#ifndef TILECAST_COUNTS_MEMORY
#define TILECAST_COUNTS_MEMORY 1
#endif

#if TILECAST_COUNTS_MEMORY

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/budget.h"

namespace {

using tilecast::CountedMemory;

/// Less is not looked at before it is allocated.
constexpr size_t kLarge = 1 << 20;

[[maybe_unused]] const bool counts = (CountedMemory::begin(), true);

/// `alignment` 0: that of malloc.
void* allocate(size_t size, size_t alignment = 0) {
  if (size >= kLarge) CountedMemory::before(size);
  if (size == 0) size = 1;
  void* memory = nullptr;
  while (memory == nullptr) {
    // aligned_alloc takes multiples of the alignment.
    memory = alignment == 0
                 ? std::malloc(size)
                 : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (memory != nullptr) break;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  if (CountedMemory::is_wanted())
    CountedMemory::add(static_cast<int64_t>(::malloc_usable_size(memory)));
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr && CountedMemory::is_wanted())
    CountedMemory::add(-static_cast<int64_t>(::malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

// The forms for arrays call these: [new.delete].
void* operator new(size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size);
  } catch (...) {
    return nullptr;
  }
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, static_cast<size_t>(alignment));
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}

#endif  // TILECAST_COUNTS_MEMORY
