#include "op/view_cut.h"

namespace berth {

bool cut_is_dense(const Shape& shape, int axis) {
  for (int i = 0; i < axis; ++i) {
    if (shape[i] != 1) return false;
  }
  return true;
}

ViewCut::ViewCut(const Shape& whole, int axis, int64_t begin, int64_t end)
    : shape(whole) {
  shape[axis] = end - begin;
  int64_t run = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) run *= shape[i];
  offset = begin * run;
  if (cut_is_dense(shape, axis)) return;
  run_axis = static_cast<int8_t>(axis);
  pitch = run * whole[axis];
}

}  // namespace berth
