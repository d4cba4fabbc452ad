// initializers: first values of weights (tf.keras.initializers).
//
// An Initializer is a value handle, made from a name ("glorot_uniform") or by
// one of the functions below. It acts when the layer is built, on the layer's
// device and outside any trace. Numbers follow from random::set_seed() and the
// order in which weights are made. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_INITIALIZERS_H_
#define BERTH_KERAS_INITIALIZERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/tensor.h"

namespace berth::keras {

struct Description;  // keras/fields.h

class Initializer {
 public:
  // Returns a tensor of this shape and dtype.
  using Fn = std::function<Tensor(const Shape& shape, DType dtype)>;

  // Finds one by Keras' name: zeros, ones, glorot_uniform, glorot_normal,
  // he_uniform, he_normal, lecun_uniform, lecun_normal, random_normal,
  // random_uniform, truncated_normal, variance_scaling, orthogonal, identity.
  // Throws errors::InvalidArgument for another name.
  Initializer(const char* name);  // NOLINT: {.kernel_initializer = "ones"}
  Initializer(const std::string& name);       // NOLINT
  Initializer(Fn fn) : fn_(std::move(fn)) {}  // NOLINT: one of your own
  Initializer(Fn fn, std::shared_ptr<const Description> description)
      : fn_(std::move(fn)), description_(std::move(description)) {}

  Tensor operator()(const Shape& shape, DType dtype = float32) const {
    return fn_(shape, dtype);
  }

  // How it was made, for configs; null: from a function.
  const std::shared_ptr<const Description>& description() const {
    return description_;
  }

 private:
  Fn fn_;
  std::shared_ptr<const Description> description_;
};

namespace initializers {

struct SeedOptions {
  std::optional<int64_t> seed = std::nullopt;  // mixed into the process' seed
};
struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<int64_t> seed = std::nullopt;
};
struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<int64_t> seed = std::nullopt;
};

Initializer Zeros();
Initializer Ones();
Initializer Constant(double value);
Initializer RandomNormal(RandomNormalOptions options = {});
// Values further than two stddev from the mean are drawn again.
Initializer TruncatedNormal(RandomNormalOptions options = {});
Initializer RandomUniform(RandomUniformOptions options = {});

// Fans of a kernel [..., in, out] are in and out times the product of the
// other axes. Uniform ones draw from [-limit, limit]; normal ones from a
// normal truncated at two stddev, scaled to the wanted variance.
//   Glorot (Glorot and Bengio 2010): variance 2 / (fan_in + fan_out)
//   He (He et al. 2015): variance 2 / fan_in
//   Lecun (LeCun et al. 1998): variance 1 / fan_in
Initializer GlorotUniform(SeedOptions options = {});
Initializer GlorotNormal(SeedOptions options = {});
Initializer HeUniform(SeedOptions options = {});
Initializer HeNormal(SeedOptions options = {});
Initializer LecunUniform(SeedOptions options = {});
Initializer LecunNormal(SeedOptions options = {});
struct VarianceScalingOptions {
  double scale = 1;
  std::string mode = "fan_in";  // "fan_out", "fan_avg", "fan_geo_avg"
  // Or "untruncated_normal", "uniform".
  std::string distribution = "truncated_normal";
  std::optional<int64_t> seed = std::nullopt;
};
// Variance scale / fan.
Initializer VarianceScaling(VarianceScalingOptions options = {});

struct OrthogonalOptions {
  double gain = 1;
  std::optional<int64_t> seed = std::nullopt;
};
// A random matrix [product of the others, last] whose columns, or rows if there
// are fewer, are orthonormal, times gain (Saxe et al. 2014). At least rank 2.
Initializer Orthogonal(OrthogonalOptions options = {});
// Ones times gain on the diagonal of a matrix.
Initializer Identity(double gain = 1);
// Keras' other names.
inline Initializer OrthogonalInitializer(OrthogonalOptions options = {}) {
  return Orthogonal(options);
}
inline Initializer IdentityInitializer(double gain = 1) {
  return Identity(gain);
}

}  // namespace initializers
}  // namespace berth::keras

#endif  // BERTH_KERAS_INITIALIZERS_H_
