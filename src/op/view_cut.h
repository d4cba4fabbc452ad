// How one call is cut into views of its operands: part p of n has the elements
// [length * p / n, length * (p + 1) / n) of an axis. Pure.

#ifndef BERTH_OP_VIEW_CUT_H_
#define BERTH_OP_VIEW_CUT_H_

#include <cstdint>

#include "op/kernel.h"

namespace berth {

// Where part `part` begins of an axis of `length` that is split into `parts`.
inline int64_t part_begin(int64_t length, int parts, int part) {
  return length * part / parts;
}

// True when the parts of a cut are dense: no axis before it has elements.
bool cut_is_dense(const Shape& shape, int axis);

// Elements [begin, end) of one axis of a dense array.
struct ViewCut {
  ViewCut(const Shape& whole, int axis, int64_t begin, int64_t end);

  Shape shape;
  int64_t offset = 0;   // of its first element, in elements
  int8_t run_axis = 0;  // as in View
  int64_t pitch = 0;
};

}  // namespace berth

#endif  // BERTH_OP_VIEW_CUT_H_
