// Moves: launches that copy elements of any dtype from one array to another.
//
// Programs depend on the size of an element. Pure; thread-safe.

#ifndef BERTH_BACKENDS_GPU_MOVES_H_
#define BERTH_BACKENDS_GPU_MOVES_H_

#include <string>
#include <vector>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

// The bits of one element: `Bits` of kernels/storage.cl.
struct ElementBits {
  uint64_t lo = 0;
  uint64_t hi = 0;
};
// Returns `x` as an element of `dtype`.
ElementBits bits_of(DType dtype, double x);

// Returns the program of files of kernels/ for elements as large as `dtype`'s,
// preceded by index.cl, storage.cl and quotient.cl.
KernelSource storage_source(DType dtype, std::vector<std::string> files);

// Returns the product of dimensions [from, to).
int64_t elements_between(const Shape& shape, int from, int to);
// Returns row-major strides in elements, up to kMaxRank of them.
std::vector<int64_t> row_strides(const Shape& shape);

// Returns 1 where numbers up to `n` can be divided in 32 bits.
int32_t narrow_walk(int64_t n);

// An array walked along `shape`, which need not be its own shape.
struct StridedView {
  Arg memory;
  std::vector<int64_t> strides;  // in elements, one per axis
  int64_t start = 0;             // in elements
};

// Appends a move of one element for each position of `shape`.
void move_elements(Recipe& r, DType dtype, const Shape& shape,
                   const StridedView& to, const StridedView& from);
// Appends setting `n` elements.
void fill_elements(Recipe& r, DType dtype, const Arg& target, ElementBits value,
                   int64_t n);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_MOVES_H_
