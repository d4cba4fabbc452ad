// Random numbers.

#include "berth/ops/random.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/array_util.h"
#include "ops/draw_stream.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/random_key.h"

namespace berth {

namespace random {

namespace {

// Seed of the process and calls since it was set.
std::atomic<int64_t> g_seed{0};
std::atomic<uint32_t> g_next_id{0};
std::atomic<bool> g_seeded{false};
std::atomic<uint64_t> g_next_host_seed{0};

// The seed of a call: SplitMix64 of both, so that (1, 2) and (2, 1) differ.
int64_t mixed_seed(int64_t of_process, std::optional<int64_t> own) {
  if (!own) return of_process;
  const auto seed = static_cast<uint64_t>(of_process);
  uint64_t z = seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(*own) +
               0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int64_t>(z ^ (z >> 31));
}

}  // namespace
}  // namespace random

namespace {
thread_local UncountedRandomKeys* t_uncounted = nullptr;
thread_local TracedRandomIds* t_traced_ids = nullptr;
}  // namespace

namespace {
thread_local ElementRandomKeys* t_element = nullptr;

uint64_t mixed(uint64_t z) {  // SplitMix64
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
}  // namespace

ElementRandomKeys::ElementRandomKeys(uint64_t place, uint64_t pass,
                                     uint64_t element)
    : outer_(t_element), mixed_(mixed(mixed(mixed(place) + pass) + element)) {
  t_element = this;
}
ElementRandomKeys::~ElementRandomKeys() { t_element = outer_; }

RandomKey ElementRandomKeys::take(int64_t seed) {
  return {static_cast<int64_t>(mixed(static_cast<uint64_t>(seed)) ^ mixed_),
          int64_t{next_++}};
}

RandomKey next_random_key(std::optional<int64_t> own) {
  const int64_t seed = random::g_seed;
  if (t_uncounted) {
    return {random::mixed_seed(seed, own), int64_t{t_uncounted->take()}};
  }
  if (t_element) return t_element->take(random::mixed_seed(seed, own));
  if (t_traced_ids) return t_traced_ids->take(own);
  const uint32_t id = random::g_next_id.fetch_add(1);
  return {random::mixed_seed(seed, own), int64_t{id}};
}

std::optional<uint64_t> next_host_seed() {
  if (!random::g_seeded) return std::nullopt;
  return mixed(mixed(static_cast<uint64_t>(random::g_seed.load())) +
               random::g_next_host_seed.fetch_add(1));
}

RandomState random_state() {
  return {random::g_seed, int64_t{random::g_next_id},
          static_cast<int64_t>(random::g_next_host_seed),
          random::g_seeded ? 1 : 0};
}
void set_random_state(const RandomState& state) {
  random::g_seed = state.seed;
  random::g_next_id = static_cast<uint32_t>(state.next_id);
  random::g_next_host_seed = static_cast<uint64_t>(state.next_host_seed);
  random::g_seeded = state.seeded != 0;
}

TracedRandomIds::TracedRandomIds(std::optional<Ids> earlier)
    : outer_(t_traced_ids),
      earlier_(std::move(earlier)),
      taken_{earlier_ ? earlier_->seed : random::g_seed.load(), {}, {}} {
  t_traced_ids = this;
}
TracedRandomIds::~TracedRandomIds() { t_traced_ids = outer_; }

RandomKey TracedRandomIds::take(std::optional<int64_t> own) {
  const auto list = tracing() ? &Ids::ids : &Ids::at_once;
  std::vector<int64_t>& taken = taken_.*list;
  const size_t at = taken.size();
  const bool again = earlier_ && at < ((*earlier_).*list).size();
  taken.push_back(again ? ((*earlier_).*list)[at]
                        : int64_t{random::g_next_id.fetch_add(1)});
  return {random::mixed_seed(taken_.seed, own), taken.back()};
}

UncountedRandomKeys::UncountedRandomKeys()
    : outer_(t_uncounted), next_(random::g_next_id.load()) {
  t_uncounted = this;
}
UncountedRandomKeys::~UncountedRandomKeys() { t_uncounted = outer_; }

namespace random {

DrawStream next_stream(std::optional<int64_t> seed) {
  return {next_random_key(seed), false};
}

DrawStream stateless_stream(const StatelessSeed& s) {
  return {{s.first, s.second}, true, s.pair};
}

std::vector<Attrs::Pair> DrawStream::attrs() const {
  std::vector<Attrs::Pair> pairs = {{"seed", key.seed}, {"op_id", key.op_id}};
  if (stateless) pairs.emplace_back("stateless", true);
  return pairs;
}

namespace {

Tensor draw(const OpDef& op, const Shape& shape, DType dtype,
            const DrawStream& s, Attrs::Pair a, Attrs::Pair b, Site site) {
  std::vector<Attrs::Pair> pairs = s.attrs();
  pairs.insert(
      pairs.end(),
      {{"shape", shape}, {"dtype", dtype}, std::move(a), std::move(b)});
  const AttrsRef attrs(std::move(pairs));
  return s.pair ? call_checked(op, site, {&*s.pair}, attrs.get())
                : call_checked(op, site, {}, attrs.get());
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
  g_next_host_seed = 0;
  g_seeded = true;
}

namespace {

Tensor draw_normal(const char* op, const Shape& shape, const NormalOptions& o,
                   const DrawStream& s, Site site) {
  return draw(op_named(op), shape, o.dtype, s, {"mean", o.mean},
              {"stddev", o.stddev}, site);
}

Tensor draw_uniform(const Shape& shape, const UniformOptions& o,
                    const DrawStream& s, Site site) {
  if (is_integer(o.dtype)) {
    if (!o.maxval) {
      throw errors::InvalidArgument(fmt::format(
          "RandomUniformInt: maxval is missing{}; expected one for {}",
          where_text(nullptr, site), name_of(o.dtype)));
    }
    return draw(op_of<"RandomUniformInt">(), shape, o.dtype, s,
                {"minval", whole_number(o.minval, "minval", site)},
                {"maxval", whole_number(*o.maxval, "maxval", site)}, site);
  }
  return draw(op_of<"RandomUniform">(), shape, o.dtype, s, {"minval", o.minval},
              {"maxval", o.maxval.value_or(1)}, site);
}

// By the largest of the logits with Gumbel noise.
Tensor categorical_by(const Tensor& logits, int64_t num_samples, DType dtype,
                      const DrawStream& s, Site site) {
  set_site(site);
  const Shape& rows = logits.shape();
  const Tensor u = draw_uniform(Shape{rows[0], num_samples, rows[1]},
                                {.dtype = logits.dtype()}, s, site);
  const Tensor noise = math::negative(
      math::log(math::negative(math::log(u, site), site), site), site);
  const Tensor sums = math::add(expand_dims(logits, 1, site), noise, site);
  return math::cast(math::argmax(sums, 2, site), dtype, site);
}

Tensor draw_categorical(const Tensor& logits, int64_t num_samples, DType dtype,
                        const DrawStream& s, Site site) {
  if (s.pair) return categorical_by(logits, num_samples, dtype, s, site);
  std::vector<Attrs::Pair> pairs = s.attrs();
  pairs.insert(pairs.end(),
               {{"num_samples", num_samples}, {"output_dtype", dtype}});
  return call_checked(op_of<"Multinomial">(), site, {&logits},
                      AttrsRef(std::move(pairs)).get());
}

// Sorting by numbers of 63 bits: a repeated one makes the order less than
// uniform, once in 2^63 / n^2.
Tensor shuffle_by(const Tensor& x, const DrawStream& s, Site site) {
  set_site(site);
  if (x.rank() == 0) {
    throw errors::InvalidArgument(
        fmt::format("shuffle: the value is a scalar{}; expected rank 1 or more",
                    where_text()));
  }
  const UniformOptions whole{
      .minval = -0x1p62, .maxval = 0x1p62, .dtype = int64};
  const Tensor keys = draw_uniform(Shape{x.shape()[0]}, whole, s, site);
  return gather(x, argsort(keys, {}, site), 0, site);
}

Tensor draw_bernoulli(const Tensor& probs, DType dtype, const DrawStream& s,
                      Site site) {
  set_site(site);
  const Tensor u =
      draw_uniform(probs.shape(), {.dtype = probs.dtype()}, s, site);
  return math::cast(math::less(u, probs, site), dtype, site);
}

}  // namespace

Tensor normal(const Shape& shape, const NormalOptions& o, Site site) {
  return draw_normal("RandomStandardNormal", shape, o, next_stream(o.seed),
                     site);
}
Tensor truncated_normal(const Shape& shape, const NormalOptions& o, Site site) {
  return draw_normal("TruncatedNormal", shape, o, next_stream(o.seed), site);
}
Tensor uniform(const Shape& shape, const UniformOptions& o, Site site) {
  return draw_uniform(shape, o, next_stream(o.seed), site);
}
Tensor bernoulli(const Tensor& probs, const DrawOptions& o, Site site) {
  return draw_bernoulli(probs, o.dtype.value_or(int32), next_stream(o.seed),
                        site);
}
Tensor categorical(const Tensor& logits, int64_t num_samples,
                   const DrawOptions& o, Site site) {
  return draw_categorical(logits, num_samples, o.dtype.value_or(int64),
                          next_stream(o.seed), site);
}
Tensor shuffle(const Tensor& x, std::optional<int64_t> seed, Site site) {
  return shuffle_by(x, next_stream(seed), site);
}

Tensor stateless_normal(const Shape& shape, StatelessSeed seed,
                        const NormalOptions& o, Site site) {
  return draw_normal("RandomStandardNormal", shape, o, stateless_stream(seed),
                     site);
}
Tensor stateless_truncated_normal(const Shape& shape, StatelessSeed seed,
                                  const NormalOptions& o, Site site) {
  return draw_normal("TruncatedNormal", shape, o, stateless_stream(seed), site);
}
Tensor stateless_uniform(const Shape& shape, StatelessSeed seed,
                         const UniformOptions& o, Site site) {
  return draw_uniform(shape, o, stateless_stream(seed), site);
}
Tensor stateless_bernoulli(const Tensor& probs, StatelessSeed seed, DType dtype,
                           Site site) {
  return draw_bernoulli(probs, dtype, stateless_stream(seed), site);
}
Tensor stateless_categorical(const Tensor& logits, int64_t num_samples,
                             StatelessSeed seed, DType dtype, Site site) {
  return draw_categorical(logits, num_samples, dtype, stateless_stream(seed),
                          site);
}
Tensor stateless_shuffle(const Tensor& x, StatelessSeed seed, Site site) {
  return shuffle_by(x, stateless_stream(seed), site);
}

}  // namespace random

namespace {

// Every part has the whole key.
std::vector<SplitSignature> split_draw(const InferContext& c) {
  auto signatures = split_generator(c);
  for (SplitSignature& s : signatures) {
    s.inputs.assign(static_cast<size_t>(c.num_inputs()),
                    SplitSignature::kWhole);
  }
  return signatures;
}

void infer_random(InferContext& c, DTypeSet types) {
  if (c.num_inputs() > 0 &&
      (c.shape(0).rank() != 1 || (c.shape(0)[0] >= 0 && c.shape(0)[0] != 2))) {
    c.fail(fmt::format("the key is {}; expected [2]", c.shape(0).str()));
  }
  const DType dtype = c.attr<DType>("dtype");
  if (!(types & dtype_bit(dtype))) {
    c.fail(fmt::format(
        "dtype is {}; expected {}", name_of(dtype),
        types == kFloatingTypes ? "float32 or float64" : "an integer dtype"));
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
  if (!finite(low) || !finite(high) || !finite(high - low) || low > high) {
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
  infer_random(c, kEveryInteger);
  const DType dtype = c.output(0).dtype;
  if (dtype == int64) return;
  check_value(c, "minval", static_cast<double>(low), dtype);
  check_value(c, "the largest value", static_cast<double>(high - 1), dtype);
}

void infer_multinomial(InferContext& c) {
  c.expect_rank(0, 2, "[batch, classes]");
  const DType dtype = c.attr<DType>("output_dtype");
  const int64_t n = c.attr<int64_t>("num_samples");
  if (!(kIndexTypes & dtype_bit(dtype)) || n < 0) {
    c.fail(fmt::format("{} samples of {}; expected 0 or more of int32 or int64",
                       n, name_of(dtype)));
  }
  if (c.shape(0)[1] == 0 && n != 0 && c.shape(0)[0] != 0) {
    c.fail(fmt::format("the logits are {}; expected at least one class",
                       c.shape(0).str()));
  }
  const Shape out{c.shape(0)[0], n};
  check_elements(c, out);
  c.set_output(0, dtype, out);
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
      .optional_input("key", kIndexTypes)
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
      .split(&split_draw)
      .random()
      .not_differentiable()
      .doc(
          "A function of seed, op_id, the step counter and the index in the "
          "whole tensor; key [2] stands for seed and op_id, without the step "
          "counter.");
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
  r.op("Multinomial")
      .input("logits", kFloatingTypes)
      .output("output")
      .required_attr("num_samples", int64_t{1})
      .attr("seed", int64_t{0})
      .attr("op_id", int64_t{0})
      .attr("stateless", false)
      .attr("output_dtype", int64)
      .infer(&infer_multinomial)
      .cost(&cost_random)
      .split([](const InferContext&) {
        return std::vector<SplitSignature>{{{cut(0)}, {cut(0)}}};
      })
      .random()
      .not_differentiable()
      .doc("Classes drawn with the probabilities softmax(logits).");
}

}  // namespace berth
