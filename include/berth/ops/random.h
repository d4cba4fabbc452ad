// random: tensors of random numbers (tf.random.*).
//
// A number is a pure function of (seed, op id, step, place of the element):
// it depends neither on the device nor on how the tensor is cut. The op id
// counts the calls of this process since the last set_seed(), so the same
// program with the same seed draws the same numbers. In a traced function the
// call is counted once, while tracing, and the step counter of each run gives
// new numbers. Without set_seed() the seed is 0. float64 tensors hold the
// numbers that float32 would. Thread-safe, but threads that draw at the same
// time share the count.

#ifndef BERTH_OPS_RANDOM_H_
#define BERTH_OPS_RANDOM_H_

#include <cstdint>
#include <optional>

#include "berth/tensor.h"

namespace berth::random {

// Sets the seed of the process and starts counting op ids anew
// (tf.random.set_seed).
void set_seed(int64_t seed);

struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DType dtype = float32;  // or float64
  // Mixed into the seed of the process.
  std::optional<int64_t> seed = std::nullopt;
};

struct UniformOptions {
  double minval = 0;
  // Not reached. 1 when absent; integers must say it.
  std::optional<double> maxval = std::nullopt;
  DType dtype = float32;  // any that holds numbers but bool
  std::optional<int64_t> seed = std::nullopt;
};

// Each returns a tensor of `shape`, and throws errors::InvalidArgument for a
// dtype it does not draw, a stddev that is negative or not finite, an empty
// or not finite range, or integers that the dtype cannot hold.

// Normal numbers.
Tensor normal(const Shape& shape, const NormalOptions& options = {},
              Site site = Site::here());
// Normal numbers within two stddev of the mean; others are drawn again.
Tensor truncated_normal(const Shape& shape, const NormalOptions& options = {},
                        Site site = Site::here());
// Numbers in [minval, maxval), whole ones for integer dtypes.
Tensor uniform(const Shape& shape, const UniformOptions& options = {},
               Site site = Site::here());

}  // namespace berth::random

#endif  // BERTH_OPS_RANDOM_H_
