// The op FFT, and the transforms over several axes and of real numbers.

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/signal.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace signal {

namespace {

using Lengths = std::vector<int64_t>;

[[noreturn]] void refuse_signal(const char* what, const std::string& message) {
  throw errors::InvalidArgument(
      fmt::format("{}: {}{}", what, message, where_text()));
}

Tensor with_last_axis(const Tensor& x, int axis, Tensor (*fn)(const Tensor&)) {
  if (axis == x.rank() - 1) return fn(x);
  std::vector<int64_t> swap;
  for (int i = 0; i < x.rank(); ++i) swap.push_back(i);
  std::swap(swap[static_cast<size_t>(axis)], swap.back());
  return transpose(fn(transpose(x, swap, {})), swap, {});
}

Tensor forward(const Tensor& x) { return call1(op_of<"FFT">(), x); }
Tensor backward(const Tensor& x) {
  return call1(op_of<"FFT">(), x,
               AttrsRef({{"inverse", true}, {"normalize", true}}).get());
}

// Over the last `axes` axes.
Tensor over_last(const char* what, const Tensor& x, int axes,
                 Tensor (*fn)(const Tensor&), Site site) {
  set_site(site);
  if (x.rank() < axes) {
    refuse_signal(what, fmt::format("the tensor is {}; expected rank {} or "
                                    "more",
                                    x.shape().str(), axes));
  }
  Tensor y = x;
  for (int i = 1; i <= axes; ++i) y = with_last_axis(y, x.rank() - i, fn);
  return y;
}

// x with `length` elements along an axis: cut, or filled with zeros.
Tensor resized(const char* what, const Tensor& x, int axis, int64_t length) {
  const int64_t n = x.shape()[axis];
  if (n < 0 || length < 1) {
    refuse_signal(what, fmt::format("axis {} is {}, the length is {}; expected "
                                    "a known axis and a length of 1 or more",
                                    axis, n, length));
  }
  if (n == length) return x;
  const auto at = static_cast<size_t>(axis);
  if (n > length) {
    std::vector<int64_t> begin(static_cast<size_t>(x.rank()), 0);
    std::vector<int64_t> size(begin.size(), -1);
    size[at] = length;
    return slice(x, begin, size, {});
  }
  std::vector<int64_t> paddings(2 * static_cast<size_t>(x.rank()), 0);
  paddings[2 * at + 1] = length - n;
  return pad(x, paddings, {}, {});
}

Tensor over_axes(const char* what, const Tensor& x, const FourierOptions& o,
                 Tensor (*fn)(const Tensor&), Site site) {
  set_site(site);
  Lengths axes = o.axes;
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (!o.fft_length.empty() && o.fft_length.size() != axes.size()) {
    refuse_signal(what, fmt::format("{} lengths for {} axes; expected one each",
                                    o.fft_length.size(), axes.size()));
  }
  Tensor y = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank(), what);
    if (!o.fft_length.empty()) y = resized(what, y, axis, o.fft_length[i]);
    y = with_last_axis(y, axis, fn);
  }
  return y;
}

// x real, its last `lengths` axes resized to these.
Tensor resized_last(const char* what, Tensor x, const Lengths& lengths,
                    int axes) {
  if (!lengths.empty() && lengths.size() != static_cast<size_t>(axes)) {
    refuse_signal(what, fmt::format("fft_length has {} elements; expected {}",
                                    lengths.size(), axes));
  }
  if (x.rank() < axes) {
    refuse_signal(what, fmt::format("the tensor is {}; expected rank {} or "
                                    "more",
                                    x.shape().str(), axes));
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    x = resized(what, x, x.rank() - axes + static_cast<int>(i), lengths[i]);
  }
  return x;
}

Tensor of_real(const char* what, const Tensor& x, const Lengths& lengths,
               int axes, Site site) {
  set_site(site);
  if (!(kFloatingTypes & dtype_bit(x.dtype()))) {
    refuse_signal(what, fmt::format("the tensor is {}; expected float32 or "
                                    "float64",
                                    name_of(x.dtype())));
  }
  const Tensor real = resized_last(what, x, lengths, axes);
  const int last = x.rank() - 1;
  const int64_t n = real.shape()[last];
  const Tensor all = forward(math::complex(real, zeros_like(real, site), site));
  Tensor y = resized(what, all, last, n / 2 + 1);
  for (int i = 2; i <= axes; ++i) y = with_last_axis(y, x.rank() - i, &forward);
  return y;
}

// Elements n - k are the conjugates of elements k.
Tensor to_real(const char* what, const Tensor& x, Lengths lengths, int axes,
               Site site) {
  set_site(site);
  const int last = x.rank() - 1;
  if (last < 0 || !is_complex(x.dtype())) {
    refuse_signal(what, fmt::format("the tensor is {} {}; expected complex "
                                    "numbers of rank 1 or more",
                                    name_of(x.dtype()), x.shape().str()));
  }
  const int64_t n =
      lengths.empty() ? 2 * (x.shape()[last] - 1) : lengths.back();
  if (!lengths.empty()) lengths.back() = n / 2 + 1;
  Tensor half = resized_last(what, x, lengths, axes);
  for (int i = 2; i <= axes; ++i) {
    half = with_last_axis(half, x.rank() - i, &backward);
  }
  half = resized(what, half, last, n / 2 + 1);
  std::vector<int64_t> begin(static_cast<size_t>(x.rank()), 0);
  std::vector<int64_t> size(begin.size(), -1);
  begin.back() = 1;
  size.back() = n - n / 2 - 1;
  const Tensor others =
      math::conj(reverse(slice(half, begin, size, site), {last}, site), site);
  return math::real(backward(concat({half, others}, last, site)), site);
}

Tensor rolled(const Tensor& x, Lengths axes, bool back, Site site) {
  set_site(site);
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  std::vector<int64_t> shift;
  for (int64_t& axis : axes) {
    axis = normalize_axis(axis, x.rank(), "fftshift");
    const int64_t half = x.shape()[static_cast<int>(axis)] / 2;
    shift.push_back(back ? -half : half);
  }
  return roll(x, shift, axes, site);
}

}  // namespace

Tensor fft(const Tensor& x, Site s) {
  return over_last("fft", x, 1, &forward, s);
}
Tensor ifft(const Tensor& x, Site s) {
  return over_last("ifft", x, 1, &backward, s);
}
Tensor fft2d(const Tensor& x, Site s) {
  return over_last("fft2d", x, 2, &forward, s);
}
Tensor ifft2d(const Tensor& x, Site s) {
  return over_last("ifft2d", x, 2, &backward, s);
}
Tensor fft3d(const Tensor& x, Site s) {
  return over_last("fft3d", x, 3, &forward, s);
}
Tensor ifft3d(const Tensor& x, Site s) {
  return over_last("ifft3d", x, 3, &backward, s);
}
Tensor fftnd(const Tensor& x, const FourierOptions& o, Site s) {
  return over_axes("fftnd", x, o, &forward, s);
}
Tensor ifftnd(const Tensor& x, const FourierOptions& o, Site s) {
  return over_axes("ifftnd", x, o, &backward, s);
}
Tensor rfft(const Tensor& x, const Lengths& lengths, Site s) {
  return of_real("rfft", x, lengths, 1, s);
}
Tensor rfft2d(const Tensor& x, const Lengths& lengths, Site s) {
  return of_real("rfft2d", x, lengths, 2, s);
}
Tensor irfft(const Tensor& x, const Lengths& lengths, Site s) {
  return to_real("irfft", x, lengths, 1, s);
}
Tensor irfft2d(const Tensor& x, const Lengths& lengths, Site s) {
  return to_real("irfft2d", x, lengths, 2, s);
}
Tensor fftshift(const Tensor& x, const Lengths& axes, Site s) {
  return rolled(x, axes, false, s);
}
Tensor ifftshift(const Tensor& x, const Lengths& axes, Site s) {
  return rolled(x, axes, true, s);
}

}  // namespace signal

namespace {

void infer_fft(InferContext& c) {
  if (c.shape(0).rank() == 0) {
    c.fail("the tensor is a scalar; expected rank 1 or more");
  }
  infer_same_as_0(c);
}

Cost cost_fft(const InferContext& c) {
  Cost cost = cost_move(c);
  const Shape& s = c.shape(0);
  cost.flops = 5 * static_cast<double>(s.num_elements()) *
               std::log2(2 + static_cast<double>(s[s.rank() - 1]));
  return cost;
}

std::vector<SplitSignature> split_fft(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int i = 0; i + 1 < c.shape(0).rank(); ++i) {
    rules.push_back({{cut(i)}, {cut(i)}});
  }
  return rules;
}

// The matrix of the transform is symmetric: its adjoint turns the other way.
Tensors grad_fft(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call1(op_of<"FFT">(), dy,
                AttrsRef({{"inverse", !g.attr<bool>("inverse")},
                          {"normalize", g.attr<bool>("normalize")}})
                    .get())};
}

}  // namespace

void register_fourier_ops(OpRegistry& r) {
  r.op("FFT")
      .input("input", kComplexTypes)
      .output("output")
      .attr("inverse", false)
      .attr("normalize", false)
      .infer(&infer_fft)
      .cost(&cost_fft)
      .split(&split_fft)
      .gradient(&grad_fft)
      .doc(
          "The Fourier transform over the last axis; inverse: with positive "
          "exponents; normalize: divided by its length.");
}

}  // namespace berth
