// WinogradLoops: the transforms of 3x3 convolutions by Winograd's algorithm
// F(4x4, 3x3), compiled once per instruction set.
//
// Outputs are computed in tiles of 4x4 pixels from 6x6 pixels of the image. An
// image tile, a filter and a tile of the result each have 36 transformed
// elements per channel; between the transforms lies a product of matrices over
// channels. The six interpolation points are 0, +-5/8, +-3/2 and infinity: with
// them the rounding error is within twice that of the direct sum (Vincent et
// al., "On improving the numerical stability of Winograd convolutions").
// Serial, on raw pointers, without allocation. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_WINOGRAD_LOOPS_H_
#define BERTH_BACKENDS_CPU_WINOGRAD_LOOPS_H_

#include <cstdint>

#include "backends/cpu/loops.h"

namespace berth::cpu {

struct WinogradLoops {
  // Pixels along one axis of a tile of the image and of the result.
  static constexpr int kIn = 6, kOut = 4;

  // Transforms one tile of the image to v[36]; at[6 * 6] points to its pixels'
  // channels. Element k of channel c goes to v[k * stride + c].
  void (*image)(const float* const* at, int64_t channels, float* v,
                int64_t stride);
  // Transforms a filter [9, rows, cols] to u[36]. Tap t of row r is at w[t *
  // tap + r * ldw]; element k of row r goes to u[k * stride + r * ldu].
  // `turned` reads the taps in reverse.
  void (*filter)(const float* w, int64_t tap, int64_t ldw, bool turned,
                 int64_t rows, int64_t cols, float* u, int64_t ldu,
                 int64_t stride);
  // Computes one tile of the result from m[36], plus bias unless null, clipped
  // at 0 if relu. to[4 * 4] has null for pixels outside the image.
  void (*result)(const float* m, int64_t stride, int64_t channels,
                 const float* bias, bool relu, float* const* to);

  // The adjoints of `result` and `filter`: z[36] of a tile of the result's
  // gradient, at[4 * 4]; and dw[9, rows, cols] from m[36, rows, ldm].
  void (*result_grad)(const float* const* at, int64_t channels, float* z,
                      int64_t stride);
  void (*filter_grad)(const float* m, int64_t ldm, int64_t stride, int64_t rows,
                      int64_t cols, float* w, int64_t tap, int64_t ldw);
};

// Returns the transforms compiled for the instruction set of loops().
const WinogradLoops& winograd_loops();

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_WINOGRAD_LOOPS_H_
