// Random numbers.

#include "berth/ops/random.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/random_key.h"

namespace berth {

namespace random {

namespace {

// Seed of the process and calls since it was set.
std::atomic<int64_t> g_seed{0};
std::atomic<uint32_t> g_next_id{0};

// The seed of a call: SplitMix64 of both, so that (1, 2) and (2, 1) differ.
int64_t mixed_seed(std::optional<int64_t> own) {
  const auto seed = static_cast<uint64_t>(g_seed.load());
  if (!own) return static_cast<int64_t>(seed);
  uint64_t z = seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(*own) +
               0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int64_t>(z ^ (z >> 31));
}

}  // namespace
}  // namespace random

RandomKey next_random_key(std::optional<int64_t> own) {
  return {random::mixed_seed(own), int64_t{random::g_next_id.fetch_add(1)}};
}

namespace random {
namespace {

Tensor draw(const OpDef& op, const Shape& shape, DType dtype,
            std::optional<int64_t> seed, Attrs::Pair a, Attrs::Pair b,
            Site site) {
  const RandomKey key = next_random_key(seed);
  return call_checked(op, site, {},
                      AttrsRef({{"shape", shape},
                                {"dtype", dtype},
                                {"seed", key.seed},
                                {"op_id", key.op_id},
                                std::move(a),
                                std::move(b)})
                          .get());
}

int64_t whole_number(double value, const char* what, Site site) {
  // 2^63 itself does not fit int64.
  if (value == std::floor(value) && value >= -0x1p63 && value < 0x1p63) {
    return static_cast<int64_t>(value);
  }
  throw errors::InvalidArgument(
      fmt::format("RandomUniformInt: {} is {}{}; expected a whole number", what,
                  value, where_text(nullptr, site)));
}

}  // namespace

void set_seed(int64_t seed) {
  g_seed = seed;
  g_next_id = 0;
}

Tensor normal(const Shape& shape, const NormalOptions& o, Site site) {
  static const OpDef& op = op_named("RandomStandardNormal");
  return draw(op, shape, o.dtype, o.seed, {"mean", o.mean},
              {"stddev", o.stddev}, site);
}

Tensor truncated_normal(const Shape& shape, const NormalOptions& o, Site site) {
  static const OpDef& op = op_named("TruncatedNormal");
  return draw(op, shape, o.dtype, o.seed, {"mean", o.mean},
              {"stddev", o.stddev}, site);
}

Tensor uniform(const Shape& shape, const UniformOptions& o, Site site) {
  if (is_integer(o.dtype)) {
    if (!o.maxval) {
      throw errors::InvalidArgument(fmt::format(
          "RandomUniformInt: maxval is missing{}; expected one for {}",
          where_text(nullptr, site), name_of(o.dtype)));
    }
    static const OpDef& op = op_named("RandomUniformInt");
    return draw(op, shape, o.dtype, o.seed,
                {"minval", whole_number(o.minval, "minval", site)},
                {"maxval", whole_number(*o.maxval, "maxval", site)}, site);
  }
  static const OpDef& op = op_named("RandomUniform");
  return draw(op, shape, o.dtype, o.seed, {"minval", o.minval},
              {"maxval", o.maxval.value_or(1)}, site);
}

}  // namespace random

namespace {

void infer_random(InferContext& c, DTypeSet types) {
  const DType dtype = c.attr<DType>("dtype");
  if (!(types & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected {}", name_of(dtype),
                       types == kFloatingTypes ? "float32 or float64"
                                               : "int32, int64 or uint8"));
  }
  const Shape& shape = c.attr<Shape>("shape");
  check_elements(c, shape);
  c.set_output(0, dtype, shape);
}

// Numbers are computed in float32.
bool finite(double x) {
  return std::abs(x) <= std::numeric_limits<float>::max();
}

void infer_normal(InferContext& c) {
  const double mean = c.attr<double>("mean"), sd = c.attr<double>("stddev");
  if (!finite(mean) || !finite(sd) || sd < 0) {
    c.fail(
        fmt::format("mean is {}, stddev is {}; expected finite numbers, "
                    "stddev at least 0",
                    mean, sd));
  }
  infer_random(c, kFloatingTypes);
}

void infer_uniform(InferContext& c) {
  const double low = c.attr<double>("minval"), high = c.attr<double>("maxval");
  if (!finite(low) || !finite(high) || !finite(high - low) || low >= high) {
    c.fail(
        fmt::format("the range is [{}, {}); expected a finite one that is "
                    "not empty",
                    low, high));
  }
  infer_random(c, kFloatingTypes);
}

void infer_uniform_int(InferContext& c) {
  const int64_t low = c.attr<int64_t>("minval"),
                high = c.attr<int64_t>("maxval");
  if (low >= high) {
    c.fail(fmt::format("the range is [{}, {}); expected one that is not empty",
                       low, high));
  }
  infer_random(c, kIntegerTypes);
  const DType dtype = c.output(0).dtype;
  if (dtype == int64) return;
  check_value(c, "minval", static_cast<double>(low), dtype);
  check_value(c, "the largest value", static_cast<double>(high - 1), dtype);
}

// Ten rounds of Philox per four numbers and what is made of them.
Cost cost_random(const InferContext& c) {
  const double n = static_cast<double>(c.output(0).shape.num_elements());
  return {30 * n, n * static_cast<double>(size_of(c.output(0).dtype))};
}

// `a` and `b` are the two parameters of the distribution.
void generator(OpRegistry& r, const char* name, DType dtype, InferFn infer,
               Attrs::Pair a, Attrs::Pair b) {
  r.op(name)
      .output("output")
      .required_attr("shape", Shape{})
      .attr("dtype", dtype)
      .attr("seed", int64_t{0})
      .attr("op_id", int64_t{0})
      .attr("stateless", false)
      .attr(std::move(a.first), std::move(a.second))
      .attr(std::move(b.first), std::move(b.second))
      .infer(infer)
      .cost(&cost_random)
      .split(&split_generator)
      .random()
      .not_differentiable()
      .doc(
          "A function of seed, op_id, the step counter and the index in the "
          "whole tensor.");
}

}  // namespace

void register_random_ops(OpRegistry& r) {
  generator(r, "RandomStandardNormal", float32, &infer_normal, {"mean", 0.0},
            {"stddev", 1.0});
  generator(r, "TruncatedNormal", float32, &infer_normal, {"mean", 0.0},
            {"stddev", 1.0});
  generator(r, "RandomUniform", float32, &infer_uniform, {"minval", 0.0},
            {"maxval", 1.0});
  generator(r, "RandomUniformInt", int32, &infer_uniform_int,
            {"minval", int64_t{0}}, {"maxval", int64_t{1}});
}

}  // namespace berth
