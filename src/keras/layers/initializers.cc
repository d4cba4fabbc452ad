// Initializers: their formulas, names and configs.

#include "berth/keras/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/config/classes.h"
#include "keras/config/custom_objects.h"
#include "op/dispatcher.h"

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
double lecun(Fans f) { return 1 / f.in; }

// Numbers of variance `v`.
Tensor drawn(const Shape& shape, DType dtype, double v,
             const std::string& distribution, std::optional<int64_t> seed) {
  if (distribution == "uniform") {
    const double limit = std::sqrt(3 * v);
    return random::uniform(
        shape,
        {.minval = -limit, .maxval = limit, .dtype = dtype, .seed = seed},
        t_state.site);
  }
  if (distribution == "untruncated_normal") {
    return random::normal(
        shape, {.stddev = std::sqrt(v), .dtype = dtype, .seed = seed},
        t_state.site);
  }
  return random::truncated_normal(
      shape,
      {.stddev = std::sqrt(v) / kCutStddev, .dtype = dtype, .seed = seed},
      t_state.site);
}

Initializer::Fn scaled(Variance variance, bool uniform,
                       std::optional<int64_t> seed) {
  return [=](const Shape& shape, DType dtype) {
    // An empty kernel has no numbers to draw; any scale will do.
    double v = variance(fans_of(shape));
    if (!std::isfinite(v)) v = 1;
    return drawn(shape, dtype, v, uniform ? "uniform" : "truncated_normal",
                 seed);
  };
}

using namespace initializers;

void no_fields(Fields&) {}
void constant_fields(Fields& f, double& value) { f("value", value); }
void seed_fields(Fields& f, SeedOptions& o) { f("seed", o.seed); }
void normal_fields(Fields& f, RandomNormalOptions& o) {
  f("mean", o.mean);
  f("stddev", o.stddev);
  f("seed", o.seed);
}
void uniform_fields(Fields& f, RandomUniformOptions& o) {
  f("minval", o.minval);
  f("maxval", o.maxval);
  f("seed", o.seed);
}
void scaling_fields(Fields& f, VarianceScalingOptions& o) {
  f("scale", o.scale);
  f("mode", o.mode);
  f("distribution", o.distribution);
  f("seed", o.seed);
}
void orthogonal_fields(Fields& f, OrthogonalOptions& o) {
  f("gain", o.gain);
  f("seed", o.seed);
}
void identity_fields(Fields& f, double& gain) {
  if (f.reading()) gain = 1;
  f("gain", gain);
}

Initializer filled(double value, std::shared_ptr<const Description> how) {
  return Initializer(
      [=](const Shape& s, DType dtype) {
        return fill(s, value, dtype, t_state.site);
      },
      std::move(how));
}

// The sum of products, in several sums that the compiler can put side by side.
double dot(const double* a, const double* b, int64_t n) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  double all = 0;
  for (double s : sums) all += s;
  return all;
}

// Makes `count` rows of `length` numbers orthonormal, each against those
// before it, twice: once leaves the rounding of nearly dependent rows.
void orthonormalize(std::vector<double>* rows, int64_t count, int64_t length) {
  for (int64_t i = 0; i < count; ++i) {
    double* row = rows->data() + i * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* before = rows->data() + j * length;
        const double part = dot(row, before, length);
        for (int64_t k = 0; k < length; ++k) row[k] -= part * before[k];
      }
    }
    const double norm = std::sqrt(dot(row, row, length));
    for (int64_t k = 0; k < length; ++k) row[k] /= norm;
  }
}

Tensor orthogonal(const Shape& shape, DType dtype, double gain,
                  std::optional<int64_t> seed) {
  if (shape.rank() < 2) {
    throw errors::InvalidArgument(
        fmt::format("Orthogonal: the weight is {}; expected at least two axes",
                    shape.str()));
  }
  const int64_t all = shape.num_elements();
  if (all == 0) return zeros(shape, dtype, t_state.site);
  const int64_t columns = shape[shape.rank() - 1], rows = all / columns;
  const int64_t count = std::min(rows, columns), length = all / count;
  std::vector<double> q =
      random::normal({count, length}, {.seed = seed}, t_state.site)
          .to_vector<double>();
  orthonormalize(&q, count, length);
  std::vector<float> values(q.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t from = columns < rows ? j * length + i : i * length + j;
      values[static_cast<size_t>(i * columns + j)] =
          static_cast<float>(gain * q[static_cast<size_t>(from)]);
    }
  }
  return math::cast(constant(values, shape, t_state.site), dtype, t_state.site);
}

Initializer initializer_by_name(const std::string& name) {
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
      {"lecun_uniform", [] { return LecunUniform(); }},
      {"lecun_normal", [] { return LecunNormal(); }},
      {"variance_scaling", [] { return VarianceScaling(); }},
      {"orthogonal", [] { return Orthogonal(); }},
      {"identity", [] { return initializers::Identity(); }},
  };
  if (const InitializerFactory own = find_custom_object(name).initializer) {
    const Initializer made = own(Config());
    if (made.description()) return made;
    return {[made](const Shape& s, DType dtype) { return made(s, dtype); },
            made_with<no_fields>(name)};
  }
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
    : Initializer(initializer_by_name(name)) {}

namespace initializers {

Initializer Zeros() { return filled(0, made_with<no_fields>("Zeros")); }
Initializer Ones() { return filled(1, made_with<no_fields>("Ones")); }
Initializer Constant(double value) {
  return filled(value, made_with<constant_fields>("Constant", value));
}

Initializer RandomNormal(RandomNormalOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::normal(s,
                                  {.mean = o.mean,
                                   .stddev = o.stddev,
                                   .dtype = dtype,
                                   .seed = o.seed},
                                  t_state.site);
          },
          made_with<normal_fields>("RandomNormal", o)};
}
Initializer TruncatedNormal(RandomNormalOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::truncated_normal(s,
                                            {.mean = o.mean,
                                             .stddev = o.stddev,
                                             .dtype = dtype,
                                             .seed = o.seed},
                                            t_state.site);
          },
          made_with<normal_fields>("TruncatedNormal", o)};
}
Initializer RandomUniform(RandomUniformOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::uniform(s,
                                   {.minval = o.minval,
                                    .maxval = o.maxval,
                                    .dtype = dtype,
                                    .seed = o.seed},
                                   t_state.site);
          },
          made_with<uniform_fields>("RandomUniform", o)};
}

Initializer GlorotUniform(SeedOptions o) {
  return {scaled(&glorot, true, o.seed),
          made_with<seed_fields>("GlorotUniform", o)};
}
Initializer GlorotNormal(SeedOptions o) {
  return {scaled(&glorot, false, o.seed),
          made_with<seed_fields>("GlorotNormal", o)};
}
Initializer HeUniform(SeedOptions o) {
  return {scaled(&he, true, o.seed), made_with<seed_fields>("HeUniform", o)};
}
Initializer HeNormal(SeedOptions o) {
  return {scaled(&he, false, o.seed), made_with<seed_fields>("HeNormal", o)};
}
Initializer LecunUniform(SeedOptions o) {
  return {scaled(&lecun, true, o.seed),
          made_with<seed_fields>("LecunUniform", o)};
}
Initializer LecunNormal(SeedOptions o) {
  return {scaled(&lecun, false, o.seed),
          made_with<seed_fields>("LecunNormal", o)};
}

Initializer VarianceScaling(VarianceScalingOptions o) {
  const bool mode = o.mode == "fan_in" || o.mode == "fan_out" ||
                    o.mode == "fan_avg" || o.mode == "fan_geo_avg";
  const bool known = o.distribution == "truncated_normal" ||
                     o.distribution == "untruncated_normal" ||
                     o.distribution == "uniform";
  if (!mode || !known || !(o.scale > 0) || !std::isfinite(o.scale)) {
    throw errors::InvalidArgument(fmt::format(
        "VarianceScaling: scale is {}, mode \"{}\", distribution \"{}\"; "
        "expected a scale above 0; fan_in, fan_out, fan_avg or fan_geo_avg; "
        "truncated_normal, untruncated_normal or uniform",
        o.scale, o.mode, o.distribution));
  }
  const Initializer::Fn fn = [o](const Shape& shape, DType dtype) {
    const Fans f = fans_of(shape);
    const double fan = o.mode == "fan_in"    ? f.in
                       : o.mode == "fan_out" ? f.out
                       : o.mode == "fan_avg" ? (f.in + f.out) / 2
                                             : std::sqrt(f.in * f.out);
    return drawn(shape, dtype, o.scale / std::max(1.0, fan), o.distribution,
                 o.seed);
  };
  return {fn, made_with<scaling_fields>("VarianceScaling", o)};
}

Initializer Orthogonal(OrthogonalOptions o) {
  if (!std::isfinite(o.gain)) {
    throw errors::InvalidArgument(fmt::format(
        "Orthogonal: gain is {}; expected a finite number", o.gain));
  }
  const Initializer::Fn fn = [o](const Shape& shape, DType dtype) {
    return orthogonal(shape, dtype, o.gain, o.seed);
  };
  return {fn, made_with<orthogonal_fields>("Orthogonal", o)};
}

Initializer Identity(double gain) {
  const Initializer::Fn fn = [gain](const Shape& shape, DType dtype) {
    if (shape.rank() != 2) {
      throw errors::InvalidArgument(fmt::format(
          "Identity: the weight is {}; expected two axes", shape.str()));
    }
    return eye(shape[0], shape[1], {}, dtype, t_state.site) * gain;
  };
  return {fn, made_with<identity_fields>("Identity", gain)};
}

}  // namespace initializers

void add_initializer_classes(Classes& c) {
  auto& all = c.initializers;
  all["Zeros"] = &made_of<&Zeros, no_fields>;
  all["Ones"] = &made_of<&Ones, no_fields>;
  all["Constant"] = &made_of<&Constant, constant_fields>;
  all["RandomNormal"] = &made_of<&RandomNormal, normal_fields>;
  all["TruncatedNormal"] = &made_of<&TruncatedNormal, normal_fields>;
  all["RandomUniform"] = &made_of<&RandomUniform, uniform_fields>;
  all["GlorotUniform"] = &made_of<&GlorotUniform, seed_fields>;
  all["GlorotNormal"] = &made_of<&GlorotNormal, seed_fields>;
  all["HeUniform"] = &made_of<&HeUniform, seed_fields>;
  all["LecunUniform"] = &made_of<&LecunUniform, seed_fields>;
  all["LecunNormal"] = &made_of<&LecunNormal, seed_fields>;
  all["VarianceScaling"] = &made_of<&VarianceScaling, scaling_fields>;
  all["Orthogonal"] = &made_of<&Orthogonal, orthogonal_fields>;
  all["Identity"] = &made_of<&initializers::Identity, identity_fields>;
  all["HeNormal"] = &made_of<&HeNormal, seed_fields>;
}

}  // namespace berth::keras
