#include "berth/keras/initializers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/random.h"

namespace berth::keras {

namespace {

// Standard deviation of a standard normal that is cut at two.
constexpr double kCutStddev = 0.87962566103423978;

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape) {
  const int r = shape.rank();
  if (r == 0) return {1, 1};
  if (r == 1) {
    const auto n = static_cast<double>(shape[0]);
    return {n, n};
  }
  double field = 1;
  for (int i = 0; i + 2 < r; ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[r - 2]),
          field * static_cast<double>(shape[r - 1])};
}

// A variance that depends on the fans.
using Variance = double (*)(Fans);
double glorot(Fans f) { return 2 / (f.in + f.out); }
double he(Fans f) { return 2 / f.in; }

Initializer scaled(Variance variance, bool uniform,
                   std::optional<int64_t> seed) {
  return Initializer([=](const Shape& shape, DType dtype) {
    // An empty kernel has no numbers to draw; any scale will do.
    double v = variance(fans_of(shape));
    if (!std::isfinite(v)) v = 1;
    if (uniform) {
      const double limit = std::sqrt(3 * v);
      return random::uniform(
          shape,
          {.minval = -limit, .maxval = limit, .dtype = dtype, .seed = seed});
    }
    return random::truncated_normal(
        shape,
        {.stddev = std::sqrt(v) / kCutStddev, .dtype = dtype, .seed = seed});
  });
}

Initializer initializer_by_name(const std::string& name) {
  using namespace initializers;
  const std::pair<const char*, Initializer (*)()> kAll[] = {
      {"zeros", [] { return Zeros(); }},
      {"ones", [] { return Ones(); }},
      {"glorot_uniform", [] { return GlorotUniform(); }},
      {"glorot_normal", [] { return GlorotNormal(); }},
      {"he_uniform", [] { return HeUniform(); }},
      {"he_normal", [] { return HeNormal(); }},
      {"random_normal", [] { return RandomNormal(); }},
      {"random_uniform", [] { return RandomUniform(); }},
      {"truncated_normal", [] { return TruncatedNormal(); }},
  };
  std::string known;
  for (const auto& [n, make] : kAll) {
    if (name == n) return make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", n);
  }
  throw errors::InvalidArgument(fmt::format(
      "there is no initializer \"{}\"; expected one of {}", name, known));
}

}  // namespace

Initializer::Initializer(const char* name)
    : Initializer(std::string(name ? name : "")) {}
Initializer::Initializer(const std::string& name)
    : fn_(initializer_by_name(name).fn_) {}

namespace initializers {

Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }
Initializer Constant(double value) {
  return Initializer(
      [=](const Shape& s, DType dtype) { return fill(s, value, dtype); });
}

Initializer RandomNormal(RandomNormalOptions o) {
  return Initializer([=](const Shape& s, DType dtype) {
    return random::normal(
        s,
        {.mean = o.mean, .stddev = o.stddev, .dtype = dtype, .seed = o.seed});
  });
}
Initializer TruncatedNormal(RandomNormalOptions o) {
  return Initializer([=](const Shape& s, DType dtype) {
    return random::truncated_normal(
        s,
        {.mean = o.mean, .stddev = o.stddev, .dtype = dtype, .seed = o.seed});
  });
}
Initializer RandomUniform(RandomUniformOptions o) {
  return Initializer([=](const Shape& s, DType dtype) {
    return random::uniform(s, {.minval = o.minval,
                               .maxval = o.maxval,
                               .dtype = dtype,
                               .seed = o.seed});
  });
}

Initializer GlorotUniform(SeedOptions o) {
  return scaled(&glorot, true, o.seed);
}
Initializer GlorotNormal(SeedOptions o) {
  return scaled(&glorot, false, o.seed);
}
Initializer HeUniform(SeedOptions o) { return scaled(&he, true, o.seed); }
Initializer HeNormal(SeedOptions o) { return scaled(&he, false, o.seed); }

}  // namespace initializers
}  // namespace berth::keras
