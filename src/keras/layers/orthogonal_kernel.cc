// First values of recurrent kernels: the orthogonal factor of normal draws.

#include <fmt/format.h>

#include <algorithm>

#include "berth/device.h"
#include "berth/errors.h"
#include "berth/keras/recurrent_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"

namespace berth::keras {

namespace {

// q with q r = a [rows, columns], rows >= columns: r is the Cholesky factor of
// a^T a. The second time mends what rounding left of the first.
Tensor orthogonal_factor(Tensor a) {
  for (int i = 0; i < 2; ++i) {
    const Tensor l = linalg::cholesky(matmul(a, a, {.transpose_a = true}));
    a = linalg::matrix_transpose(
        linalg::triangular_solve(l, linalg::matrix_transpose(a)));
  }
  return a;
}

}  // namespace

Initializer orthogonal_kernel() {
  return Initializer([](const Shape& shape, DType dtype) {
    if (shape.rank() != 2) {
      throw errors::InvalidArgument(
          fmt::format("orthogonal_kernel: the shape is {}; expected [in, out]",
                      shape.str()));
    }
    const int64_t most = std::max(shape[0], shape[1]);
    const int64_t least = std::min(shape[0], shape[1]);
    if (least == 0) return zeros(shape, dtype);
    const bool square = most < 2 * least;  // may be close to singular
    const Tensor q = with_device("/CPU:0", [&] {
      const Tensor draws =
          random::normal({most, least}, {.dtype = square ? float64 : float32});
      const Tensor factor = orthogonal_factor(draws);
      return math::cast(
          shape[0] < shape[1] ? linalg::matrix_transpose(factor) : factor,
          dtype);
    });
    return identity(q);
  });
}

}  // namespace berth::keras
