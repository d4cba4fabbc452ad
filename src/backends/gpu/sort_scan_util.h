// Sorting and counting inside a recipe, for kernels whose work depends on
// values. Deterministic: every step has a fixed order. Pure; thread-safe.

#ifndef BERTH_BACKENDS_GPU_SORT_SCAN_UTIL_H_
#define BERTH_BACKENDS_GPU_SORT_SCAN_UTIL_H_

#include <algorithm>
#include <string>
#include <vector>

#include "backends/gpu/moves.h"
#include "backends/gpu/recipe.h"

namespace berth::gpu {

// Keys in order, and their original places; equal keys keep their order.
struct SortedKeys {
  Arg keys;    // u64
  Arg places;  // i32
};
// Appends a sort of `n` keys of at most `bits` bits; it may overwrite them.
SortedKeys sort_keys(Recipe& r, const Arg& keys, int64_t n, int bits);

// Appends replacing each of `n` u32 values by the sum of those before it.
void sum_before(Recipe& r, const Arg& values, int64_t n);

// INDEX_... of kernels/gather.cl.
int32_t index_kind(DType dtype);

// `Coordinates` of kernels/gather.cl: those in the last axis of `indices`, for
// `target`, whose strides are counted in `unit` elements.
struct Coordinates {
  int64_t dim[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int32_t depth = 0;
  int32_t kind = 0;
};
Coordinates coordinates_of(const Recipe& r, int indices, const Shape& target,
                           int64_t unit);
// Returns the number of rows of coordinates.
int64_t coordinate_rows(const Shape& indices);

// Returns the texts for the reports of gather.cl and keys.cl.
std::vector<std::string> index_texts(const Recipe& r, const Shape& target,
                                     int axis);
std::vector<std::string> coordinate_texts(const Recipe& r, int indices,
                                          const Shape& target);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_SORT_SCAN_UTIL_H_
