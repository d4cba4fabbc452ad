// Non-max suppression of boxes, and bytes read as another type.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

// Intersection over union of boxes between opposite corners.
template <class T>
double overlap(const T* a, const T* b) {
  const auto side = [](const T* box, int axis) {
    return std::abs(static_cast<double>(box[axis + 2]) - box[axis]);
  };
  double both = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const double low = std::max(std::min(a[axis], a[axis + 2]),
                                std::min(b[axis], b[axis + 2]));
    const double high = std::min(std::max(a[axis], a[axis + 2]),
                                 std::max(b[axis], b[axis + 2]));
    both *= std::max(0.0, high - low);
  }
  const double of_a = side(a, 0) * side(a, 1), of_b = side(b, 0) * side(b, 1);
  return of_a <= 0 || of_b <= 0 ? 0 : both / (of_a + of_b - both);
}

template <class T>
void suppress(const KernelCall& c, const T* boxes, const T* scores) {
  const double threshold = c.attr<double>("iou_threshold");
  const double least = c.attr<double>("score_threshold");
  const int64_t most = c.out[0].size();
  Scratch<int32_t> order(static_cast<size_t>(c.in[1].size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
    return scores[i] > scores[j] || (!(scores[j] > scores[i]) && i < j);
  });
  auto* selected = c.out[0].as<int32_t>();
  std::fill_n(selected, most, 0);
  int32_t count = 0;
  for (const int32_t i : order) {
    if (count == most) break;
    if (!(static_cast<double>(scores[i]) > least)) continue;
    const bool hidden = std::any_of(selected, selected + count, [&](int32_t j) {
      return overlap(boxes + 4 * int64_t{i}, boxes + 4 * int64_t{j}) >
             threshold;
    });
    if (!hidden) selected[count++] = i;
  }
  *c.out[1].as<int32_t>() = count;
}

void suppression(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    suppress(c, c.in[0].as<T>(), c.in[1].as<T>());
  });
}

void bitcast(const KernelCall& c) {
  const size_t bytes =
      static_cast<size_t>(c.in[0].size()) * size_of(c.in[0].dtype);
  if (bytes > 0) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

}  // namespace

void add_suppression(KernelTable& t) {
  t.direct("NonMaxSuppression", kFloatingTypes, &suppression, "reference");
  t.direct("Bitcast", kEveryType, &bitcast, "reference");
}

}  // namespace berth::reference
