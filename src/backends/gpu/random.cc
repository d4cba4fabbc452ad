// Random ops and dropout, with the numbers of base/rng.h.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/gpu/kernels.h"
#include "base/rng.h"

namespace berth::gpu {

namespace {
namespace random {

// `Key` of kernels/random.cl.
struct Key {
  uint32_t key0, key1;
};

Key key_of(const Recipe& r) {
  const RandomStream stream(
      static_cast<uint64_t>(r.args().attr<int64_t>("seed")),
      static_cast<uint32_t>(r.args().attr<int64_t>("op_id")), 0);
  return {stream.key()[0], stream.key()[1]};
}

Arg step_of(const Recipe& r) {
  return r.args().attr<bool>("stateless") ? no_buffer() : step_counter();
}

KernelSource random_source(DType dtype) {
  KernelSource s;
  s.files = {"index.cl", "random.cl"};
  s.types = {{"T", dtype}};
  s.defines = {{"T_SINGLE", dtype == float32 ? "1" : "0"}};
  return s;
}

// Returns one item per block of four words that `n` elements touch, wherever
// they begin.
int64_t blocks_of(int64_t n) { return n == 0 ? 0 : (n + 3) / 4 + 1; }

float float_attr(const Recipe& r, const char* name) {
  return static_cast<float>(r.args().attr<double>(name));
}

bool uniform(Recipe& r) {
  const double low = r.args().attr<double>("minval");
  const double high = r.args().attr<double>("maxval");
  const auto from = static_cast<float>(low);
  // Rounding must not reach maxval.
  const float top =
      std::max(from, std::nextafter(static_cast<float>(high), from));
  const int64_t n = r.out_shape(0).num_elements();
  r.flat(random_source(r.out_type(0)), "uniform", blocks_of(n),
         {out(0), step_of(r), value(key_of(r)), value(from),
          value(static_cast<float>(high - low)), value(top), slice_origin(),
          value(n)});
  return true;
}

bool draw_normal(Recipe& r, const char* kernel) {
  const int64_t n = r.out_shape(0).num_elements();
  r.flat(random_source(r.out_type(0)), kernel, blocks_of(n),
         {out(0), step_of(r), value(key_of(r)), value(float_attr(r, "mean")),
          value(float_attr(r, "stddev")), slice_origin(), value(n)});
  return true;
}

bool uniform_int(Recipe& r) {
  if (r.num_in() > 0) return false;  // a key is read on the host
  const auto low = static_cast<uint64_t>(r.args().attr<int64_t>("minval"));
  const uint64_t range =
      static_cast<uint64_t>(r.args().attr<int64_t>("maxval")) - low;
  const int64_t n = r.out_shape(0).num_elements();
  const bool wide = range > uint64_t{1} << 32;
  r.flat(random_source(r.out_type(0)), wide ? "uniform_wide" : "uniform_int",
         wide ? n : blocks_of(n),
         {out(0), step_of(r), value(key_of(r)), value(low), value(range),
          slice_origin(), value(n)});
  return true;
}

bool multinomial(Recipe& r) {
  const Shape& logits = r.in_shape(0);
  const int64_t classes = logits[1], samples = r.out_shape(0)[1];
  const int64_t n = r.out_shape(0).num_elements();
  if (n == 0) return true;
  KernelSource source = random_source(r.in_type(0));
  source.files.emplace_back("multinomial.cl");
  std::vector<std::string> texts;
  for (const char* what : {"inf", "-inf", "nan"}) {
    texts.push_back(fmt::format(
        "Multinomial: the largest logit of row {{0}} is {}; expected a finite "
        "one",
        what));
  }
  const Arg shares =
      r.scratch(static_cast<size_t>(logits.num_elements()) * sizeof(double));
  r.groups(source, "sum_shares", logits[0],
           {shares, in(0), value(classes), r.fault(std::move(texts))});
  r.flat(source, "draw_classes", n,
         {out(0), shares, step_of(r), value(key_of(r)),
          value(int32_t{r.out_type(0) == int64 ? 1 : 0}), value(classes),
          value(samples), slice_origin(), value(n)});
  return true;
}

// Returns the argument of `dropped` in kernels/random.cl.
Arg scale_of(const Recipe& r) {
  const double rate = r.args().attr<double>("rate");
  if (r.in_type(0) == float64) return value(1 - rate);
  return value(static_cast<float>(1 / (1 - rate)));
}

bool dropout(Recipe& r) {
  const int64_t n = r.out_shape(0).num_elements();
  r.flat(random_source(r.in_type(0)), "dropout", blocks_of(n),
         {out(0), out(1), in(0), step_counter(), value(key_of(r)),
          value(float_attr(r, "rate")), scale_of(r), slice_origin(), value(n)});
  return true;
}

bool dropout_grad(Recipe& r) {
  const Shape& to = r.out_shape(0);
  const int64_t n = to.num_elements();
  const KernelSource source = random_source(r.in_type(0));
  if (r.in_shape(0) == r.in_shape(1)) {
    r.flat(source, "dropout_grad", n,
           {out(0), in(0), in(1), scale_of(r), value(n)});
  } else {
    r.flat(source, "dropout_grad_walk", n,
           {out(0), in(0), in(1), value(broadcast(r.in_shape(0), to)),
            value(broadcast(r.in_shape(1), to)), scale_of(r), value(n)});
  }
  return true;
}

}  // namespace random
}  // namespace

void add_random(Kernels& k) {
  k.add("RandomUniform", kRealFloats, &random::uniform);
  k.add("RandomStandardNormal", kRealFloats,
        [](Recipe& r) { return random::draw_normal(r, "normal"); });
  k.add("TruncatedNormal", kRealFloats,
        [](Recipe& r) { return random::draw_normal(r, "truncated"); });
  k.add("RandomUniformInt", kEveryInteger, &random::uniform_int);
  k.add("Multinomial", kFloatingTypes, &random::multinomial);
  k.add("Dropout", kRealFloats, &random::dropout, true);
  k.add("DropoutGrad", kRealFloats, &random::dropout_grad, true);
}

}  // namespace berth::gpu
