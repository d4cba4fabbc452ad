// Composite reductions, norms and clips.

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/factor.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/named_call.h"

namespace berth {

namespace {

math::ReduceOptions kept(const math::ReduceOptions& o) {
  return {.axis = o.axis, .keepdims = true};
}

// `t`, reduced with kept axes, as `o` wants it.
Tensor finish(const Tensor& t, const math::ReduceOptions& o, Site site) {
  if (o.keepdims) return t;
  // Max over axes of length 1 drops them, whatever else is unknown.
  return math::reduce_max(t, o, site);
}

}  // namespace

namespace math {

Tensor reduce_logsumexp(const Tensor& x, const ReduceOptions& o, Site s) {
  const Tensor high = reduce_max(x, kept(o), s);
  // Infinite maxima are what they are: inf - inf would be NaN.
  const Tensor shift = stop_gradient(
      where(is_finite(high, s), high, scalar_like(high, 0), s), s);
  const Tensor sum = reduce_sum(exp(subtract(x, shift, s), s), kept(o), s);
  const Tensor y = add(log(sum, s), shift, s);
  return o.keepdims ? y : reduce_sum(y, o, s);
}

Tensor reduce_variance(const Tensor& x, const ReduceOptions& o, Site s) {
  const Tensor mean = reduce_mean(x, kept(o), s);
  return reduce_mean(real(squared_difference(x, mean, s), s), o, s);
}
Tensor reduce_std(const Tensor& x, const ReduceOptions& o, Site s) {
  return sqrt(reduce_variance(x, o, s), s);
}
// The norm of complex numbers is complex, as in TensorFlow, with no imaginary
// part.
Tensor reduce_euclidean_norm(const Tensor& x, const ReduceOptions& o, Site s) {
  const Tensor squares =
      is_complex(x.dtype()) ? multiply(x, conj(x, s), s) : square(x, s);
  return sqrt(reduce_sum(squares, o, s), s);
}
Tensor count_nonzero(const Tensor& x, const ReduceOptions& o, Site s) {
  const Tensor some =
      x.dtype() == bool_ ? x : not_equal(x, scalar_like(x, 0), s);
  return reduce_sum(cast(some, int64, s), o, s);
}
Tensor zero_fraction(const Tensor& x, Site s) {
  const Tensor none = equal(x, scalar_like(x, 0), s);
  return reduce_mean(cast(none, float32, s), {}, s);
}

Tensor l2_normalize(const Tensor& x, const Axes& axis, double epsilon, Site s) {
  const Tensor squares = is_complex(x.dtype())
                             ? real(multiply(x, conj(x, s), s), s)
                             : square(x, s);
  const Tensor sum = reduce_sum(squares, {.axis = axis, .keepdims = true}, s);
  const Tensor by = rsqrt(maximum(sum, scalar_like(sum, epsilon), s), s);
  return multiply(x, cast(by, x.dtype(), s), s);
}

}  // namespace math

namespace {

Tensor vector_norm(const Tensor& x, double p, const math::ReduceOptions& o,
                   Site s) {
  if (p == 2) return math::reduce_euclidean_norm(x, o, s);
  const Tensor size = math::abs(x, s);
  if (p == 1) return math::reduce_sum(size, o, s);
  if (std::isinf(p)) return math::reduce_max(size, o, s);
  const Tensor sum =
      math::reduce_sum(math::pow(size, scalar_like(size, p), s), o, s);
  return math::pow(sum, scalar_like(sum, 1 / p), s);
}

// The largest sum over axis `over` of matrices: of columns for 1, of rows for
// infinity.
Tensor matrix_norm(const Tensor& x, double p, const math::ReduceOptions& o,
                   Site s) {
  const size_t over = p == 1 ? 0 : 1;
  const std::vector<int64_t> sum{(*o.axis)[over]}, most{(*o.axis)[1 - over]};
  const Tensor sums =
      math::reduce_sum(math::abs(x, s), {.axis = sum, .keepdims = true}, s);
  const Tensor y = math::reduce_max(sums, {.axis = most, .keepdims = true}, s);
  return finish(y, o, s);
}

// The largest singular value of matrices, or the sum of all.
Tensor spectral_norm(const Tensor& x, bool nuclear,
                     const math::ReduceOptions& o, Site s) {
  const int rows = normalize_axis((*o.axis)[0], x.rank(), "norm");
  const int columns = normalize_axis((*o.axis)[1], x.rank(), "norm");
  std::vector<int64_t> perm;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != rows && i != columns) perm.push_back(i);
  }
  perm.insert(perm.end(), {rows, columns});
  const Tensor values =
      linalg::svd(transpose(x, perm, s), {.compute_uv = false}, s).s;
  const math::ReduceOptions last{.axis = std::vector<int64_t>{-1}};
  Tensor y = nuclear ? math::reduce_sum(values, last, s)
                     : math::reduce_max(values, last, s);
  if (o.keepdims) {
    y = expand_dims(expand_dims(y, std::min(rows, columns), s),
                    std::max(rows, columns), s);
  }
  return y;
}

}  // namespace

Tensor linalg::norm(const Tensor& x, const NormOptions& options, Site site) {
  set_site(site);
  const NormOrder& ord = options.ord;
  const auto fail = [&](const char* wanted) {
    throw errors::InvalidArgument(fmt::format(
        "norm: ord is {}, of {} axes{}; expected {}",
        ord.name.empty() ? fmt::format("{}", ord.p) : ord.name,
        options.axis ? fmt::format("{}", options.axis->size()) : "all",
        where_text(), wanted));
  };
  const bool euclidean = ord.name == "euclidean" || ord.name == "fro";
  const bool nuclear =
      ord.name == "nuc" && options.axis && options.axis->size() == 2;
  if (!ord.name.empty() && !euclidean && !nuclear) {
    fail("euclidean, fro, 1, 2, another p > 0, infinity or, of two axes, nuc");
  }
  if (!(ord.p > 0)) fail("p > 0");
  const math::ReduceOptions over{.axis = options.axis,
                                 .keepdims = options.keepdims};
  if (!options.axis || options.axis->size() == 1 || euclidean) {
    return vector_norm(x, euclidean ? 2 : ord.p, over, site);
  }
  if (options.axis->size() != 2) fail("one axis or two");
  if (ord.p == 2) return spectral_norm(x, nuclear, over, site);
  if (ord.p != 1 && !std::isinf(ord.p)) {
    fail("euclidean, 1, 2, nuc or infinity for matrices");
  }
  return matrix_norm(x, ord.p, over, site);
}

Tensor clip_by_value(const Tensor& x, const Tensor& low, const Tensor& high,
                     Site site) {
  return math::maximum(math::minimum(x, high, site), low, site);
}
Tensor clip_by_value(const Tensor& x, double low, double high, Site site) {
  return clip_by_value(x, scalar_like(x, low), scalar_like(x, high), site);
}

Tensor clip_by_norm(const Tensor& x, double clip_norm,
                    const std::optional<std::vector<int64_t>>& axes,
                    Site site) {
  const Tensor sum = math::reduce_sum(math::square(x, site),
                                      {.axis = axes, .keepdims = true}, site);
  // The root has no slope at 0.
  const Tensor some = sum > 0.0;
  const Tensor safe = where(some, sum, scalar_like(x, 1), site);
  const Tensor norm = where(some, math::sqrt(safe, site), sum, site);
  const Tensor limit = scalar_like(x, clip_norm);
  return math::divide(math::multiply(x, limit, site),
                      math::maximum(norm, limit, site), site);
}

Tensor linalg::global_norm(const Tensors& list, Site site) {
  Tensors sums;
  for (const Tensor& t : list) {
    if (!t.defined()) continue;
    sums.push_back(math::reduce_sum(math::square(t, site), {}, site));
  }
  if (sums.empty()) {
    throw errors::InvalidArgument(
        fmt::format("global_norm: no tensors given{}; expected at least one",
                    where_text(nullptr, site)));
  }
  return math::sqrt(math::add_n(sums, site), site);
}

std::pair<Tensors, Tensor> clip_by_global_norm(const Tensors& list,
                                               double clip_norm,
                                               const Tensor& norm, Site site) {
  const Tensor total = norm.defined() ? norm : global_norm(list, site);
  const Tensor limit = scalar_like(total, clip_norm);
  // limit / max(total, limit); a total that is not finite makes all NaN.
  const Tensor scale =
      math::divide(limit, math::maximum(total, limit, site), site);
  const Tensor nan = scalar_like(total, std::nan(""));
  const Tensor factor = where(math::is_finite(total, site), scale, nan, site);
  Tensors clipped;
  for (const Tensor& t : list) {
    clipped.push_back(t.defined() ? math::multiply(t, factor, site) : t);
  }
  return {clipped, total};
}

}  // namespace berth
