// Indices as kernels read them: int32 or int64, checked.

#ifndef BERTH_BACKENDS_REFERENCE_INDICES_H_
#define BERTH_BACKENDS_REFERENCE_INDICES_H_

#include "backends/reference/loops.h"

namespace berth::reference {

inline int64_t index_at(const View& indices, int64_t i) {
  return indices.dtype == int32 ? indices.as<int32_t>()[i]
                                : indices.as<int64_t>()[i];
}

inline void set_index(const View& v, int64_t i, int64_t value) {
  if (v.dtype == int32) {
    v.as<int32_t>()[i] = static_cast<int32_t>(value);
  } else {
    v.as<int64_t>()[i] = value;
  }
}

// Returns index i, which must be a place of `axis` of `target`. Throws
// errors::InvalidArgument naming both.
int64_t checked_index(const KernelCall& c, const View& indices, int64_t i,
                      const Shape& target, int axis);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_INDICES_H_
