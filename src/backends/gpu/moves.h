// Moves: launches that bring elements of any dtype from one array to another.
//
// Programs are made for the size of an element. Pure; thread-safe.

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
// `x` as an element of `dtype`.
ElementBits bits_of(DType dtype, double x);

// The program of files of kernels/ for elements of the size of `dtype`'s;
// storage.cl, runs.cl and index.cl come before them.
Source storage_source(DType dtype, std::vector<std::string> files);

// The product of dimensions [from, to).
int64_t elements_between(const Shape& shape, int from, int to);
// Row-major strides in elements, up to kMaxRank of them.
std::vector<int64_t> row_strides(const Shape& shape);

// How many runs of consecutive elements items of runs.cl make of `n`.
int64_t runs_of(const Features& features, int64_t n);
// 1 where numbers up to `n` may be divided as 32-bit ones.
int32_t narrow_walk(int64_t n);

// An array walked along `shape`, which need not be its own.
struct Walk {
  Arg memory;
  std::vector<int64_t> strides;  // in elements, one per axis
  int64_t start = 0;             // in elements
};

// Appends moving one element for each of `shape`.
void move_elements(Recipe& r, DType dtype, const Shape& shape, const Walk& to,
                   const Walk& from);
// Appends setting `n` elements.
void fill_elements(Recipe& r, DType dtype, const Arg& target, ElementBits value,
                   int64_t n);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_MOVES_H_
