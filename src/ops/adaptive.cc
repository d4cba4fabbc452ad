// Adaptive pools, and blocks of pixels as channels, made of other ops.

#include "berth/ops/adaptive.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::nn {

namespace {

using Numbers = std::vector<int64_t>;

[[noreturn]] void refuse_call(const char* what, const std::string& message) {
  throw errors::InvalidArgument(
      fmt::format("{}: {}{}", what, message, where_text()));
}

int axes_of(const char* what, const Tensor& x) {
  if (x.rank() >= 3 && x.rank() <= 5) return x.rank() - 2;
  refuse_call(what,
              fmt::format("the input is {}; expected [n, ..., c] with one "
                          "to three axes between",
                          x.shape().str()));
}

// One number for each axis.
Numbers per_axis(const char* what, const Numbers& v, int axes) {
  if (v.size() == 1) return Numbers(static_cast<size_t>(axes), v[0]);
  if (v.size() == static_cast<size_t>(axes)) return v;
  refuse_call(what, fmt::format("{} numbers for {} axes; expected one each",
                                v.size(), axes));
}

// Gathers the windows of each output along an axis, [..., n, longest, ...],
// and reduces them. A window that is shorter repeats its last element, with no
// weight in a mean.
Tensor pooled_axis(const Tensor& x, int axis, int64_t n, bool most, Site site) {
  const int64_t m = x.shape()[axis];
  if (m < 1 || n < 1) {
    refuse_call("adaptive pool",
                fmt::format("axis {} is {}, the output {}; expected known "
                            "lengths of 1 or more",
                            axis, m, n));
  }
  int64_t longest = 0;
  const auto begin = [&](int64_t i) { return i * m / n; };
  const auto end = [&](int64_t i) { return ((i + 1) * m + n - 1) / n; };
  for (int64_t i = 0; i < n; ++i)
    longest = std::max(longest, end(i) - begin(i));
  std::vector<int64_t> places;
  std::vector<double> weights;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = end(i) - begin(i);
    for (int64_t k = 0; k < longest; ++k) {
      places.push_back(begin(i) + std::min(k, size - 1));
      weights.push_back(k < size ? 1 / static_cast<double>(size) : 0);
    }
  }
  const Tensor windows =
      gather(x, constant(places, {n, longest}, site), axis, site);
  const math::ReduceOptions over{.axis = std::vector<int64_t>{axis + 1}};
  if (most) return math::reduce_max(windows, over, site);
  Shape along{n, longest};
  for (int i = axis + 1; i < x.rank(); ++i) along.push_back(1);
  const Tensor by = math::cast(constant(weights, along, site), x.dtype(), site);
  return math::reduce_sum(windows * by, over, site);
}

Tensor adaptive(const char* what, const Tensor& x, const Numbers& size,
                const std::string& data_format, bool most, Site site) {
  set_site(site);
  const int axes = axes_of(what, x);
  const bool first = data_format.substr(0, 2) == "NC";
  const Numbers sizes = per_axis(what, size, axes);
  Tensor y = x;
  for (int i = 0; i < axes; ++i) {
    y = pooled_axis(y, i + (first ? 2 : 1), sizes[i], most, site);
  }
  return y;
}

// b of a call, and whether channels come first.
bool check_blocks(const char* what, const Tensor& x, int64_t b,
                  const std::string& format) {
  if (b < 1 || x.rank() != 4 || (format != "NHWC" && format != "NCHW")) {
    refuse_call(what, fmt::format("the input is {}, block_size {}, data_format "
                                  "\"{}\"; expected four axes, 1 or more, and "
                                  "\"NHWC\" or \"NCHW\"",
                                  x.shape().str(), b, format));
  }
  return format == "NCHW";
}

// A length in blocks, or in parts of a channel; unknown stays unknown.
int64_t in_blocks(const char* what, int64_t n, int64_t b) {
  if (n < 0) return -1;
  if (n % b == 0) return n / b;
  refuse_call(what, fmt::format("a length of {} is no multiple of {}", n, b));
}

int64_t times(int64_t n, int64_t by) { return n < 0 ? -1 : n * by; }

}  // namespace

Tensor adaptive_average_pool(const Tensor& x, const Numbers& size,
                             const std::string& format, Site site) {
  return adaptive("adaptive_average_pool", x, size, format, false, site);
}
Tensor adaptive_max_pool(const Tensor& x, const Numbers& size,
                         const std::string& format, Site site) {
  return adaptive("adaptive_max_pool", x, size, format, true, site);
}

Tensor space_to_depth(const Tensor& x, int64_t b, const std::string& format,
                      Site site) {
  set_site(site);
  const char* what = "space_to_depth";
  const bool first = check_blocks(what, x, b, format);
  const Shape& s = x.shape();
  if (first) {
    const int64_t h = in_blocks(what, s[2], b), w = in_blocks(what, s[3], b);
    return reshape(transpose(reshape(x, {s[0], s[1], h, b, w, b}, site),
                             {0, 3, 5, 1, 2, 4}, site),
                   {s[0], times(s[1], b * b), h, w}, site);
  }
  const int64_t h = in_blocks(what, s[1], b), w = in_blocks(what, s[2], b);
  return reshape(transpose(reshape(x, {s[0], h, b, w, b, s[3]}, site),
                           {0, 1, 3, 2, 4, 5}, site),
                 {s[0], h, w, times(s[3], b * b)}, site);
}

Tensor depth_to_space(const Tensor& x, int64_t b, const std::string& format,
                      Site site) {
  set_site(site);
  const char* what = "depth_to_space";
  const bool first = check_blocks(what, x, b, format);
  const Shape& s = x.shape();
  if (first) {
    const int64_t c = in_blocks(what, s[1], b * b);
    return reshape(transpose(reshape(x, {s[0], b, b, c, s[2], s[3]}, site),
                             {0, 3, 4, 1, 5, 2}, site),
                   {s[0], c, times(s[2], b), times(s[3], b)}, site);
  }
  const int64_t c = in_blocks(what, s[3], b * b);
  return reshape(transpose(reshape(x, {s[0], s[1], s[2], b, b, c}, site),
                           {0, 1, 3, 2, 4, 5}, site),
                 {s[0], times(s[1], b), times(s[2], b), c}, site);
}

}  // namespace berth::nn
