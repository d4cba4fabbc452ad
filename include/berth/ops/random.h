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
// Numbers with the density x^(alpha - 1) e^(-x beta); beta is 1 if empty. The
// parameters broadcast; alpha has no gradient. Parameters that no distribution
// has give NaN, here and below, or -1 in integers. These run on host devices.
struct GammaOptions {
  Tensor beta = {};
  DType dtype = float32;  // or float64
  std::optional<int64_t> seed = std::nullopt;
};
// [shape, shape of the parameters].
Tensor gamma(const Shape& shape, const Tensor& alpha,
             const GammaOptions& options = {}, Site site = Site::here());
// [shape], to which the parameters broadcast; so below.
Tensor stateless_gamma(const Shape& shape, StatelessSeed seed,
                       const Tensor& alpha, const GammaOptions& options = {},
                       Site site = Site::here());
// Numbers with the density x^(alpha - 1) (1 - x)^(beta - 1), in [0, 1].
Tensor stateless_beta(const Shape& shape, StatelessSeed seed,
                      const Tensor& alpha, const Tensor& beta,
                      DType dtype = float32, Site site = Site::here());

struct PoissonOptions {
  DType dtype = float32;  // or float64, int32, int64
  std::optional<int64_t> seed = std::nullopt;
};
// Poisson numbers of mean lam: [shape, shape of lam].
Tensor poisson(const Shape& shape, const Tensor& lam,
               const PoissonOptions& options = {}, Site site = Site::here());
Tensor stateless_poisson(const Shape& shape, StatelessSeed seed,
                         const Tensor& lam, DType dtype = int32,
                         Site site = Site::here());
// Successes of `counts` trials that succeed with the probability probs.
Tensor stateless_binomial(const Shape& shape, StatelessSeed seed,
                          const Tensor& counts, const Tensor& probs,
                          DType output_dtype = int32, Site site = Site::here());
// Normal numbers between minvals and maxvals; all of one floating dtype.
Tensor stateless_parameterized_truncated_normal(
    const Shape& shape, StatelessSeed seed, const Tensor& means,
    const Tensor& stddevs, const Tensor& minvals, const Tensor& maxvals,
    Site site = Site::here());
Tensor stateless_shuffle(const Tensor& x, StatelessSeed seed,
                         Site site = Site::here());

}  // namespace berth::random

#endif  // BERTH_OPS_RANDOM_H_
