#include "berth/keras/initializers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/random.h"
#include "keras/classes.h"
#include "keras/custom_objects.h"

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

Initializer::Fn scaled(Variance variance, bool uniform,
                       std::optional<int64_t> seed) {
  return [=](const Shape& shape, DType dtype) {
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
  };
}

using namespace initializers;

// Fields of initializers; make() is one of the public functions.
template <Initializer (*kMake)()>
struct PlainInitArgs {
  void fields(Fields&) {}
  Initializer make() const { return kMake(); }
};
struct ConstantInitArgs {
  double value = 0;
  void fields(Fields& f) { f("value", value); }
  Initializer make() const { return Constant(value); }
};
template <Initializer (*kMake)(SeedOptions)>
struct SeedInitArgs {
  SeedOptions o;
  void fields(Fields& f) { f("seed", o.seed); }
  Initializer make() const { return kMake(o); }
};
template <Initializer (*kMake)(RandomNormalOptions)>
struct NormalInitArgs {
  RandomNormalOptions o;
  void fields(Fields& f) {
    f("mean", o.mean);
    f("stddev", o.stddev);
    f("seed", o.seed);
  }
  Initializer make() const { return kMake(o); }
};
struct UniformInitArgs {
  RandomUniformOptions o;
  void fields(Fields& f) {
    f("minval", o.minval);
    f("maxval", o.maxval);
    f("seed", o.seed);
  }
  Initializer make() const { return RandomUniform(o); }
};
// One registered by name.
struct CustomInitArgs {
  void fields(Fields&) {}
};

Initializer filled(double value, std::shared_ptr<const Description> how) {
  return Initializer(
      [=](const Shape& s, DType dtype) { return fill(s, value, dtype); },
      std::move(how));
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
  };
  if (const InitializerFactory own = find_custom_object(name).initializer) {
    const Initializer made = own(Config());
    if (made.description()) return made;
    return {[made](const Shape& s, DType dtype) { return made(s, dtype); },
            description(name, CustomInitArgs())};
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

Initializer Zeros() {
  return filled(0, description("Zeros", PlainInitArgs<&Zeros>()));
}
Initializer Ones() {
  return filled(1, description("Ones", PlainInitArgs<&Ones>()));
}
Initializer Constant(double value) {
  return filled(value, description("Constant", ConstantInitArgs{value}));
}

Initializer RandomNormal(RandomNormalOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::normal(s, {.mean = o.mean,
                                      .stddev = o.stddev,
                                      .dtype = dtype,
                                      .seed = o.seed});
          },
          description("RandomNormal", NormalInitArgs<&RandomNormal>{o})};
}
Initializer TruncatedNormal(RandomNormalOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::truncated_normal(s, {.mean = o.mean,
                                                .stddev = o.stddev,
                                                .dtype = dtype,
                                                .seed = o.seed});
          },
          description("TruncatedNormal", NormalInitArgs<&TruncatedNormal>{o})};
}
Initializer RandomUniform(RandomUniformOptions o) {
  return {[=](const Shape& s, DType dtype) {
            return random::uniform(s, {.minval = o.minval,
                                       .maxval = o.maxval,
                                       .dtype = dtype,
                                       .seed = o.seed});
          },
          description("RandomUniform", UniformInitArgs{o})};
}

Initializer GlorotUniform(SeedOptions o) {
  return {scaled(&glorot, true, o.seed),
          description("GlorotUniform", SeedInitArgs<&GlorotUniform>{o})};
}
Initializer GlorotNormal(SeedOptions o) {
  return {scaled(&glorot, false, o.seed),
          description("GlorotNormal", SeedInitArgs<&GlorotNormal>{o})};
}
Initializer HeUniform(SeedOptions o) {
  return {scaled(&he, true, o.seed),
          description("HeUniform", SeedInitArgs<&HeUniform>{o})};
}
Initializer HeNormal(SeedOptions o) {
  return {scaled(&he, false, o.seed),
          description("HeNormal", SeedInitArgs<&HeNormal>{o})};
}

}  // namespace initializers

void add_initializer_classes(Classes& c);
void add_initializer_classes(Classes& c) {
  auto& all = c.initializers;
  all["Zeros"] = &made_of<Initializer, PlainInitArgs<&Zeros>>;
  all["Ones"] = &made_of<Initializer, PlainInitArgs<&Ones>>;
  all["Constant"] = &made_of<Initializer, ConstantInitArgs>;
  all["RandomNormal"] = &made_of<Initializer, NormalInitArgs<&RandomNormal>>;
  all["TruncatedNormal"] =
      &made_of<Initializer, NormalInitArgs<&TruncatedNormal>>;
  all["RandomUniform"] = &made_of<Initializer, UniformInitArgs>;
  all["GlorotUniform"] = &made_of<Initializer, SeedInitArgs<&GlorotUniform>>;
  all["GlorotNormal"] = &made_of<Initializer, SeedInitArgs<&GlorotNormal>>;
  all["HeUniform"] = &made_of<Initializer, SeedInitArgs<&HeUniform>>;
  all["HeNormal"] = &made_of<Initializer, SeedInitArgs<&HeNormal>>;
}

}  // namespace berth::keras
