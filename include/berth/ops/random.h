// random: tensors of random numbers (tf.random.*).
//
// A number is a pure function of (seed, op id, step, position of the element):
// it depends neither on the device nor on how the tensor is split. The op id
// counts the calls of this process since the last set_seed(), so the same
// program with the same seed draws the same numbers. In a traced function the
// call is counted once, while tracing, and the step counter of each run gives
// new numbers. Without set_seed() the seed is 0. float64 tensors hold the
// numbers that float32 would. Thread-safe, but threads that draw at the same
// time share the count.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_RANDOM_H_
#define BERTH_OPS_RANDOM_H_

#include <cstdint>
#include <optional>

#include "berth/tensor.h"

namespace berth::random {

// Sets the seed of the process and restarts the count of op ids
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
  // Exclusive. 1 if absent; required for integers.
  std::optional<double> maxval = std::nullopt;
  DType dtype = float32;  // any numeric dtype
  std::optional<int64_t> seed = std::nullopt;
};

// Each returns a tensor of `shape`, and throws errors::InvalidArgument for an
// unsupported dtype, a stddev that is negative or not finite, an empty or
// infinite range, or integers that the dtype cannot hold.

// Normal numbers.
Tensor normal(const Shape& shape, const NormalOptions& options = {},
              Site site = Site::here());
// Normal numbers within two stddev of the mean; others are drawn again.
Tensor truncated_normal(const Shape& shape, const NormalOptions& options = {},
                        Site site = Site::here());
// Numbers in [minval, maxval), integers for integer dtypes.
Tensor uniform(const Shape& shape, const UniformOptions& options = {},
               Site site = Site::here());

struct DrawOptions {
  std::optional<DType> dtype = std::nullopt;
  std::optional<int64_t> seed = std::nullopt;
};
// 1 with the probability in each element of probs, else 0; [shape of probs],
// int32 by default.
Tensor bernoulli(const Tensor& probs, const DrawOptions& options = {},
                 Site site = Site::here());
// Classes with probabilities softmax(logits), logits [batch, classes]:
// [batch, num_samples], int64 or int32. A row whose largest logit is not finite
// (NaN, +inf, all -inf) is an error.
Tensor categorical(const Tensor& logits, int64_t num_samples,
                   const DrawOptions& options = {}, Site site = Site::here());
// The rows of x, along axis 0, in random order; gradients flow back to their
// original positions.
Tensor shuffle(const Tensor& x, std::optional<int64_t> seed = std::nullopt,
               Site site = Site::here());

// Equal seeds give equal numbers, at every call and step; the option `seed` is
// ignored.
struct StatelessSeed {
  int64_t first = 0;
  int64_t second = 0;  // only its low 32 bits count
  // In place of both: int32 or int64 [2], which is read when the op runs.
  std::optional<Tensor> pair = std::nullopt;
};
Tensor stateless_normal(const Shape& shape, StatelessSeed seed,
                        const NormalOptions& options = {},
                        Site site = Site::here());
Tensor stateless_truncated_normal(const Shape& shape, StatelessSeed seed,
                                  const NormalOptions& options = {},
                                  Site site = Site::here());
Tensor stateless_uniform(const Shape& shape, StatelessSeed seed,
                         const UniformOptions& options = {},
                         Site site = Site::here());
Tensor stateless_bernoulli(const Tensor& probs, StatelessSeed seed,
                           DType dtype = int32, Site site = Site::here());
Tensor stateless_categorical(const Tensor& logits, int64_t num_samples,
                             StatelessSeed seed, DType dtype = int64,
                             Site site = Site::here());
Tensor stateless_shuffle(const Tensor& x, StatelessSeed seed,
                         Site site = Site::here());

}  // namespace berth::random

#endif  // BERTH_OPS_RANDOM_H_
