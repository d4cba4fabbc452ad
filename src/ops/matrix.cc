// Functions made of other ops: matrices by their diagonals, grids, repeats,
// masks.

#include <fmt/format.h>

#include <algorithm>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"

namespace berth {

using Ints = std::vector<int64_t>;

namespace {

// bool [rows, columns]: whether the column is at least row + low and at most
// row + high.
Tensor band(int64_t rows, int64_t columns, int64_t low, int64_t high) {
  const Tensor row = range(0, rows, 1, int64, {});
  const Tensor column = range(0, columns, 1, int64, {});
  const Tensor difference = column - expand_dims(row, 1, {});
  const auto at = [&](int64_t k) {
    return constant(std::clamp<int64_t>(k, -rows - 1, columns + 1));
  };
  return math::logical_and(math::greater_equal(difference, at(low), {}),
                           math::less_equal(difference, at(high), {}), {});
}

// The two last dimensions of a matrix; they must be known.
std::pair<int64_t, int64_t> sides_of(const Tensor& x, const char* what) {
  const Shape& s = x.shape();
  if (s.rank() < 2 || s[s.rank() - 1] < 0 || s[s.rank() - 2] < 0) {
    refuse(what,
           fmt::format("the tensor is {}; expected rank 2 or more and two "
                       "known last dimensions",
                       s.str()));
  }
  return {s[s.rank() - 2], s[s.rank() - 1]};
}

Tensor zero_of(const Tensor& x) { return scalar_like(x, 0); }

}  // namespace

Tensor eye(int64_t rows, int64_t columns, const Shape& batch, DType dtype,
           Site site) {
  set_site(site);
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0) {
    refuse("eye", fmt::format("{} rows, {} columns; expected 0 or more", rows,
                              columns));
  }
  const Tensor one = math::cast(band(rows, columns, 0, 0), dtype, {});
  if (batch.rank() == 0) return one;
  Shape full = batch;
  full.push_back(rows);
  full.push_back(columns);
  return broadcast_to(one, full, {});
}

Tensors identity_n(const Tensors& x, Site site) {
  Tensors out;
  for (const Tensor& t : x) out.push_back(identity(t, site));
  return out;
}

Tensor repeat(const Tensor& x, int64_t repeats, std::optional<int64_t> axis,
              Site site) {
  set_site(site);
  if (repeats < 0) {
    refuse("repeat", fmt::format("{} repeats; expected 0 or more", repeats));
  }
  const Tensor of = axis ? x : reshape(x, {-1}, site);
  const int at = normalize_axis(axis.value_or(0), of.rank(), "repeat");
  Ints multiples(static_cast<size_t>(of.rank()) + 1, 1);
  multiples[static_cast<size_t>(at) + 1] = repeats;
  Shape merged = of.shape();
  if (merged[at] < 0) {
    merged[at] = kUnknownDim;
  } else if (__builtin_mul_overflow(merged[at], repeats, &merged[at])) {
    refuse("repeat", fmt::format("{} repeats of {} are too many", repeats,
                                 of.shape().str()));
  }
  return reshape(tile(expand_dims(of, at + 1, site), multiples, site), merged,
                 site);
}

Tensor repeat(const Tensor& x, const Ints& repeats, int64_t axis, Site site) {
  set_site(site);
  const int at = normalize_axis(axis, x.rank(), "repeat");
  const int64_t dim = x.shape()[at];
  if (dim >= 0 && dim != static_cast<int64_t>(repeats.size())) {
    refuse("repeat",
           fmt::format("{} numbers of repeats; expected {}, the length "
                       "of axis {} of {}",
                       repeats.size(), dim, at, x.shape().str()));
  }
  Ints places;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) {
      refuse("repeat",
             fmt::format("{} repeats; expected 0 or more", repeats[i]));
    }
    if (repeats[i] > INT32_MAX - static_cast<int64_t>(places.size())) {
      refuse("repeat", fmt::format("more than {} elements", INT32_MAX));
    }
    places.insert(places.end(), static_cast<size_t>(repeats[i]),
                  static_cast<int64_t>(i));
  }
  const Shape shape{static_cast<int64_t>(places.size())};
  return gather(x, constant(places, shape), at, site);
}

Tensors meshgrid(const Tensors& x, const std::string& indexing, Site site) {
  set_site(site);
  if (indexing != "xy" && indexing != "ij") {
    refuse("meshgrid",
           fmt::format("indexing is '{}'; expected 'xy' or 'ij'", indexing));
  }
  const int n = static_cast<int>(x.size());
  if (n > kMaxRank) {
    refuse("meshgrid",
           fmt::format("{} tensors; expected at most {}", n, kMaxRank));
  }
  const auto axis_of = [&](int i) {
    return indexing == "xy" && n >= 2 && i < 2 ? 1 - i : i;
  };
  // Broadcasting against the sum of zeros of all others gives the grid's
  // shape, known or not.
  Tensors along;
  for (int i = 0; i < n; ++i) {
    if (x[i].rank() != 1) {
      refuse("meshgrid", fmt::format("tensor {} is {}; expected rank 1", i,
                                     x[i].shape().str()));
    }
    Tensor t = x[i];
    for (int d = 0; d < n; ++d) {
      if (d != axis_of(i)) t = expand_dims(t, d, site);
    }
    along.push_back(t);
  }
  Shape full;
  for (int d = 0; d < n; ++d) full.push_back(0);
  for (int i = 0; i < n; ++i) full[axis_of(i)] = x[i].shape()[0];
  Tensors grids;
  for (const Tensor& t : along) grids.push_back(broadcast_to(t, full, site));
  return grids;
}

Tensor sequence_mask(const Tensor& lengths, std::optional<int64_t> maxlen,
                     Site site) {
  set_site(site);
  if (!maxlen && (lengths.is_symbolic() || tracing())) {
    refuse<Untraceable<errors::InvalidArgument>>(
        "sequence_mask",
        "the largest length is not known in a trace; expected maxlen");
  }
  int64_t n = 0;
  if (maxlen) {
    n = *maxlen;
  } else {
    for (const int64_t v : lengths.to_vector<int64_t>()) n = std::max(n, v);
  }
  const Tensor places = range(0, n, 1, lengths.dtype(), site);
  return math::less(places, expand_dims(lengths, -1, site), site);
}

namespace linalg {

Tensor diag(const Tensor& x, int64_t k, Site site) {
  set_site(site);
  const int rank = x.rank();
  const int64_t n = rank == 0 ? -1 : x.shape()[rank - 1];
  if (n < 0 || std::abs(k) > (int64_t{1} << 31)) {
    refuse("diag", fmt::format("the diagonals are {}, k is {}; expected rank 1 "
                               "or more and a known length",
                               x.shape().str(), k));
  }
  const int64_t all = n + std::abs(k);
  // Row r of diagonal k shows element r above the main one, r + k below it.
  Ints paddings(2 * static_cast<size_t>(rank), 0);
  paddings[paddings.size() - (k < 0 ? 2 : 1)] = std::abs(k);
  const Tensor rows = k == 0 ? x : pad(x, paddings, {}, site);
  return where(band(all, all, k, k), expand_dims(rows, -1, site), zero_of(x),
               site);
}

Tensor diag_part(const Tensor& x, int64_t k, Site site) {
  set_site(site);
  const auto [m, n] = sides_of(x, "diag_part");
  if ((k > 0 && k > n) || (k < 0 && -k > m)) {
    refuse("diag_part", fmt::format("k is {}; expected a diagonal of {}", k,
                                    x.shape().str()));
  }
  const int64_t length = std::max<int64_t>(
      0, std::min(m + std::min<int64_t>(k, 0), n - std::max<int64_t>(k, 0)));
  // Along the flat matrix a diagonal's elements are n + 1 apart.
  Shape flat = x.shape();
  const int last = flat.rank() - 2;
  flat.erase(last + 1);
  flat[last] = m * n;
  const int64_t begin = k >= 0 ? k : -k * n;
  Ints begins(static_cast<size_t>(last) + 1, 0), ends = begins;
  Ints strides(begins.size(), 1);
  begins.back() = length > 0 ? begin : 0;
  ends.back() = length > 0 ? begin + (length - 1) * (n + 1) + 1 : 0;
  strides.back() = n + 1;
  const int64_t whole = (int64_t{1} << last) - 1;
  return strided_slice(
      reshape(x, flat, site), begins, ends,
      {.strides = strides, .begin_mask = whole, .end_mask = whole}, site);
}

Tensor band_part(const Tensor& x, int64_t num_lower, int64_t num_upper,
                 Site site) {
  set_site(site);
  const auto [m, n] = sides_of(x, "band_part");
  const int64_t low = num_lower < 0 ? -m : -std::min(num_lower, m);
  const int64_t high = num_upper < 0 ? n : std::min(num_upper, n);
  return where(band(m, n, low, high), x, zero_of(x), site);
}

Tensor trace(const Tensor& x, Site site) {
  return math::reduce_sum(diag_part(x, 0, site),
                          {.axis = std::vector<int64_t>{-1}}, site);
}

Tensor matrix_transpose(const Tensor& x, Site site) {
  set_site(site);
  if (x.rank() < 2) {
    refuse("matrix_transpose", fmt::format("the tensor is {}; expected rank 2 "
                                           "or more",
                                           x.shape().str()));
  }
  Ints perm;
  for (int i = 0; i < x.rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm, site);
}

}  // namespace linalg
}  // namespace berth
