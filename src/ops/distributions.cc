// Draws from gamma, beta, Poisson and binomial distributions, and from normal
// ones between bounds.

#include <fmt/format.h>

#include <cmath>

#include "berth/ops/array.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/draw_stream.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace random {

namespace {

// `more`: attributes of the op beside the stream's; `second`: of ops with two
// parameters.
Tensor draw(const OpDef& op, const DrawStream& s,
            const std::vector<Attrs::Pair>& more, Site site,
            const Tensor& first, const Tensor* second = nullptr) {
  std::vector<Attrs::Pair> pairs = s.attrs();
  pairs.insert(pairs.end(), more.begin(), more.end());
  const AttrsRef attrs(std::move(pairs));
  const Tensor* key = s.pair ? &*s.pair : second;
  if (second && s.pair) {
    return call_checked(op, site, {&first, second, key}, attrs.get());
  }
  return key ? call_checked(op, site, {&first, key}, attrs.get())
             : call_checked(op, site, {&first}, attrs.get());
}

// The shape of one number for each element of `parameters`, `shape` times.
Shape repeated(Shape shape, const Tensor& parameters) {
  for (int i = 0; i < parameters.rank(); ++i) {
    shape.push_back(parameters.shape()[i]);
  }
  return shape;
}

Tensor spread(const Tensor& x, DType dtype, const Shape& shape, Site site) {
  return broadcast_to(math::cast(x, dtype, site), shape, site);
}

Tensor draw_gamma(const Shape& shape, const Tensor& alpha,
                  const GammaOptions& o, const DrawStream& s, Site site) {
  const Tensor a = spread(alpha, o.dtype, shape, site);
  const Tensor unit = draw(op_of<"RandomGamma">(), s, {}, site, a);
  return o.beta.defined() ? unit / math::cast(o.beta, o.dtype, site) : unit;
}

Tensor draw_poisson(const Shape& shape, const Tensor& lam, DType dtype,
                    const DrawStream& s, Site site) {
  const Tensor rate =
      spread(lam, lam.dtype() == float64 ? float64 : float32, shape, site);
  return draw(op_of<"RandomPoisson">(), s, {{"dtype", dtype}}, site, rate);
}

// The probability that a standard normal number is below x.
Tensor below(const Tensor& x) {
  return math::erfc(x * -std::sqrt(0.5), {}) * 0.5;
}

}  // namespace

Tensor gamma(const Shape& shape, const Tensor& alpha, const GammaOptions& o,
             Site site) {
  set_site(site);
  const Tensor both =
      o.beta.defined() ? math::cast(alpha, o.dtype, site) +
                             zeros_like(math::cast(o.beta, o.dtype, site), site)
                       : alpha;
  return draw_gamma(repeated(shape, both), both, o, next_stream(o.seed), site);
}

Tensor stateless_gamma(const Shape& shape, StatelessSeed seed,
                       const Tensor& alpha, const GammaOptions& o, Site site) {
  set_site(site);
  return draw_gamma(shape, alpha, o, stateless_stream(seed), site);
}

// a / (a + b) of two gamma numbers; the second one's seed is far from any that
// counts up.
Tensor stateless_beta(const Shape& shape, StatelessSeed seed,
                      const Tensor& alpha, const Tensor& beta, DType dtype,
                      Site site) {
  constexpr int64_t kFar = 0x5DEECE66D5DEECE6;
  StatelessSeed other{seed.first ^ kFar, seed.second};
  if (seed.pair) {
    other.pair = bitwise::bitwise_xor(math::cast(*seed.pair, int64, site),
                                      constant({kFar, int64_t{0}}), site);
  }
  const Tensor a = stateless_gamma(shape, seed, alpha, {.dtype = dtype}, site);
  const Tensor b = stateless_gamma(shape, other, beta, {.dtype = dtype}, site);
  return a / (a + b);
}

Tensor poisson(const Shape& shape, const Tensor& lam, const PoissonOptions& o,
               Site site) {
  set_site(site);
  return draw_poisson(repeated(shape, lam), lam, o.dtype, next_stream(o.seed),
                      site);
}

Tensor stateless_poisson(const Shape& shape, StatelessSeed seed,
                         const Tensor& lam, DType dtype, Site site) {
  set_site(site);
  return draw_poisson(shape, lam, dtype, stateless_stream(seed), site);
}

Tensor stateless_binomial(const Shape& shape, StatelessSeed seed,
                          const Tensor& counts, const Tensor& probs,
                          DType output_dtype, Site site) {
  set_site(site);
  const DType dtype = probs.dtype() == float64 ? float64 : float32;
  const Tensor n = spread(counts, dtype, shape, site);
  const Tensor p = spread(probs, dtype, shape, site);
  return draw(op_of<"RandomBinomial">(), stateless_stream(seed),
              {{"dtype", output_dtype}}, site, n, &p);
}

Tensor stateless_parameterized_truncated_normal(
    const Shape& shape, StatelessSeed seed, const Tensor& means,
    const Tensor& stddevs, const Tensor& minvals, const Tensor& maxvals,
    Site site) {
  set_site(site);
  const Tensor low = below((minvals - means) / stddevs);
  const Tensor high = below((maxvals - means) / stddevs);
  const Tensor u =
      stateless_uniform(shape, seed, {.dtype = means.dtype()}, site);
  const Tensor x = means + stddevs * math::ndtri(low + (high - low) * u, site);
  return math::minimum(math::maximum(x, minvals, site), maxvals, site);
}

}  // namespace random

namespace {

// How many parameters the op has, which come before its key.
int parameters_of(const InferContext& c) {
  return c.op().name() == "RandomBinomial" ? 2 : 1;
}

void check_key(InferContext& c) {
  const int at = parameters_of(c);
  if (c.num_inputs() == at) return;
  const Shape& key = c.shape(at);
  if (c.num_inputs() == at + 1 && key.rank() == 1 &&
      (key[0] < 0 || key[0] == 2)) {
    return;
  }
  c.fail(fmt::format("the key is {}; expected one, [2]", key.str()));
}

void infer_gamma(InferContext& c) {
  check_key(c);
  infer_same_as_0(c);
}

void infer_counts(InferContext& c) {
  check_key(c);
  const DType dtype = c.attr<DType>("dtype");
  const DTypeSet wanted = kFloatingTypes | kIndexTypes;
  if (!(wanted & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected {}", name_of(dtype),
                       dtype_list(wanted)));
  }
  for (int i = 1; i < parameters_of(c); ++i) {
    if (c.shape(i).compatible_with(c.shape(0))) continue;
    c.fail(fmt::format("the parameters are {} and {}; expected equal shapes",
                       c.shape(0).str(), c.shape(i).str()));
  }
  c.set_output(0, dtype, c.shape(0));
}

void distribution(OpBuilder& op) {
  op.any_inputs("key", kIndexTypes)  // one, or none
      .output("output")
      .attr("seed", int64_t{0})
      .attr("op_id", int64_t{0})
      .attr("stateless", false)
      .cost([](const InferContext& c) {
        Cost cost = cost_move(c);
        cost.flops = 200 * static_cast<double>(c.shape(0).num_elements());
        return cost;
      })
      .split([](const InferContext& c) {
        if (c.shape(0).rank() == 0) return std::vector<SplitSignature>{};
        SplitSignature rows{{}, {cut(0)}};
        rows.inputs.assign(static_cast<size_t>(parameters_of(c)), cut(0));
        rows.inputs.resize(static_cast<size_t>(c.num_inputs()),
                           SplitSignature::kWhole);
        return std::vector<SplitSignature>{rows};
      })
      .random()
      .not_differentiable();
}

}  // namespace

void register_distribution_ops(OpRegistry& r) {
  distribution(r.op("RandomGamma")
                   .input("alpha", kFloatingTypes)
                   .infer(&infer_gamma)
                   .doc("Gamma numbers of shape alpha and scale 1."));
  distribution(r.op("RandomPoisson")
                   .input("rate", kFloatingTypes)
                   .attr("dtype", float32)
                   .infer(&infer_counts)
                   .doc("Poisson numbers of these means."));
  distribution(r.op("RandomBinomial")
                   .input("counts", kFloatingTypes)
                   .input("probs", kFloatingTypes)
                   .attr("dtype", int32)
                   .infer(&infer_counts)
                   .doc("Successes of so many trials of this probability."));
}

}  // namespace berth
