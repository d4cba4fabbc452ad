// Sums of the parts of a split op, in the fixed order of a tree.

#include <algorithm>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/loops.h"
#include "base/thread_pool.h"

namespace berth::cpu {

void tree_sum(float* parts, int count, int64_t size, int64_t stride,
              ThreadPool* pool) {
  auto add_range = [&](int64_t begin, int64_t end) {
    for (int step = 1; step < count; step *= 2) {
      for (int i = 0; i + step < count; i += 2 * step) {
        float* to = parts + i * stride + begin;
        binary_loops(BinaryOp::kAdd)
            .same(to, parts + (i + step) * stride + begin, to, end - begin);
      }
    }
  };
  // Below 16 KB a fork costs more than the sums.
  constexpr int64_t kForkFloats = 4096;
  const int64_t most = pool == nullptr ? 1 : pool->size();
  const int chunks =
      static_cast<int>(std::clamp<int64_t>(size / kForkFloats, 1, most));
  if (chunks == 1 || count == 1) {
    add_range(0, size);
    return;
  }
  pool->parallel_for(std::min(chunks, ThreadPool::kMaxChunks), [&](int i) {
    const int n = std::min(chunks, ThreadPool::kMaxChunks);
    add_range(size * i / n, size * (i + 1) / n);
  });
}

}  // namespace berth::cpu
