// Counts what a program asks the system's allocator for: include it in exactly
// one source file; malloc and its relatives are then counted and passed on.

#ifndef BERTH_BENCH_COUNT_ALLOCATIONS_H_
#define BERTH_BENCH_COUNT_ALLOCATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace berth_bench {
inline std::atomic<long> g_allocations{0};
inline long allocations() { return g_allocations.load(); }
}  // namespace berth_bench

// Sanitizers bring allocators of their own: under them nothing is counted.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// glibc's own entry points, under the names it keeps for interposers.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  ++berth_bench::g_allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  ++berth_bench::g_allocations;
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, size_t bytes) {
  ++berth_bench::g_allocations;
  return __libc_realloc(p, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  ++berth_bench::g_allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++berth_bench::g_allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  ++berth_bench::g_allocations;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;
}
}
#endif

#endif  // BERTH_BENCH_COUNT_ALLOCATIONS_H_
