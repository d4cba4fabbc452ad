#include "device/slabs.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace berth {

std::vector<Slab> take_free_slabs(std::vector<Slab>& slabs,
                                  std::span<FreeList> lists) {
  const auto first = [](const Slab& s) -> const Block* {
    return &s.blocks[0].block;
  };
  constexpr std::less<const Block*> before;
  std::sort(slabs.begin(), slabs.end(), [&](const Slab& a, const Slab& b) {
    return before(first(a), first(b));
  });
  const auto slab_of = [&](const Block* b) {
    const auto after = std::upper_bound(
        slabs.begin(), slabs.end(), b,
        [&](const Block* at, const Slab& s) { return before(at, first(s)); });
    return static_cast<size_t>(after - slabs.begin()) - 1;
  };
  std::vector<size_t> free(slabs.size());
  for (const FreeList& list : lists) {
    for (const Block* b = list.head; b; b = b->next) ++free[slab_of(b)];
  }
  const auto is_free = [&](size_t i) { return free[i] == slabs[i].count; };
  for (FreeList& list : lists) {
    FreeList all = std::exchange(list, {});
    while (Block* b = all.pop()) {
      if (!is_free(slab_of(b))) list.push(b);
    }
  }
  std::vector<Slab> taken, kept;
  for (size_t i = 0; i < slabs.size(); ++i) {
    (is_free(i) ? taken : kept).push_back(std::move(slabs[i]));
  }
  slabs = std::move(kept);
  return taken;
}

}  // namespace berth
