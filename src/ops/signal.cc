// Windows, frames and short-time Fourier transforms, made of other ops.

#include "berth/ops/signal.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/op_call.h"

namespace berth::signal {

namespace {

constexpr double kPi = std::numbers::pi;

[[noreturn]] void bad_signal(const char* what, const std::string& message) {
  throw errors::InvalidArgument(
      fmt::format("{}: {}{}", what, message, where_text()));
}

// fn(k) for each element.
template <class Fn>
Tensor window_of(int64_t length, DType dtype, Site site, Fn&& fn) {
  set_site(site);
  if (length < 1) {
    bad_signal("window",
               fmt::format("the length is {}; expected 1 or more", length));
  }
  std::vector<double> values;
  for (int64_t k = 0; k < length; ++k) {
    values.push_back(length == 1 ? 1 : fn(static_cast<double>(k)));
  }
  return math::cast(constant(values, {length}, site), dtype, site);
}

Tensor raised_cosine(int64_t length, bool periodic, DType dtype, double a,
                     double b, Site site) {
  const auto period =
      static_cast<double>(length - (periodic && length % 2 == 0 ? 0 : 1));
  return window_of(length, dtype, site, [&](double k) {
    return a - b * std::cos(2 * kPi * k / period);
  });
}

// The modified Bessel function I0, by its power series.
double bessel_0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 500 && term > 1e-18 * sum; ++k) {
    term *= x * x / 4 / (static_cast<double>(k) * k);
    sum += term;
  }
  return sum;
}

double kaiser(double k, int64_t length, double beta) {
  const double at = 2 * k / static_cast<double>(length - 1) - 1;
  return bessel_0(beta * std::sqrt(std::max(0.0, 1 - at * at))) /
         bessel_0(beta);
}

// The length of an axis, which must be known.
int64_t known_length(const char* what, const Tensor& x, int axis) {
  const int64_t n = x.shape()[axis];
  if (n < 0) {
    bad_signal(what, fmt::format("axis {} of {} is not known; expected a known "
                                 "length",
                                 axis, x.shape().str()));
  }
  return n;
}

void check_positive(const char* what, int64_t length, int64_t step) {
  if (length < 1 || step < 1) {
    bad_signal(what, fmt::format("frame_length is {}, frame_step is {}; "
                                 "expected 1 or more",
                                 length, step));
  }
}

int64_t transform_length(int64_t frame_length, const StftOptions& o) {
  if (o.fft_length) return *o.fft_length;
  int64_t n = 1;
  while (n < frame_length) n *= 2;
  return n;
}

Tensor last_axis_to(const Tensor& x, int64_t length) {
  const int last = x.rank() - 1;
  const int64_t n = x.shape()[last];
  std::vector<int64_t> list(static_cast<size_t>(x.rank()), 0);
  if (n >= length) {
    std::vector<int64_t> size(list.size(), -1);
    size.back() = length;
    return n == length ? x : slice(x, list, size, {});
  }
  list.resize(2 * list.size(), 0);
  list.back() = length - n;
  return pad(x, list, {}, {});
}

}  // namespace

Tensor hann_window(int64_t length, bool periodic, DType dtype, Site site) {
  return raised_cosine(length, periodic, dtype, 0.5, 0.5, site);
}
Tensor hamming_window(int64_t length, bool periodic, DType dtype, Site site) {
  return raised_cosine(length, periodic, dtype, 0.54, 0.46, site);
}
Tensor kaiser_window(int64_t length, double beta, DType dtype, Site site) {
  return window_of(length, dtype, site,
                   [&](double k) { return kaiser(k, length, beta); });
}
Tensor kaiser_bessel_derived_window(int64_t length, double beta, DType dtype,
                                    Site site) {
  const int64_t half = length / 2;
  std::vector<double> sums;
  for (int64_t k = 0; k <= half; ++k) {
    sums.push_back((k == 0 ? 0 : sums.back()) +
                   kaiser(static_cast<double>(k), half + 1, beta));
  }
  return window_of(length, dtype, site, [&](double k) {
    const auto i = static_cast<int64_t>(k);
    const int64_t at = std::min(i, length - 1 - i);
    return std::sqrt(sums[static_cast<size_t>(at)] / sums.back());
  });
}
Tensor vorbis_window(int64_t length, DType dtype, Site site) {
  return window_of(length, dtype, site, [&](double k) {
    const double sine = std::sin(kPi * (k + 0.5) / static_cast<double>(length));
    return std::sin(kPi / 2 * sine * sine);
  });
}

Tensor frame(const Tensor& signal, int64_t frame_length, int64_t frame_step,
             const FrameOptions& o, Site site) {
  set_site(site);
  check_positive("frame", frame_length, frame_step);
  const int axis = normalize_axis(o.axis, signal.rank(), "frame");
  const int64_t n = known_length("frame", signal, axis);
  const int64_t frames =
      o.pad_end ? (n + frame_step - 1) / frame_step
                : std::max<int64_t>(0, 1 + (n - frame_length) / frame_step);
  const bool none = !o.pad_end && n < frame_length;
  const int64_t all = none ? 0 : frames;
  Tensor x = signal;
  const int64_t needed = (all - 1) * frame_step + frame_length;
  if (all > 0 && needed > n) {
    std::vector<int64_t> paddings(2 * static_cast<size_t>(x.rank()), 0);
    paddings[2 * static_cast<size_t>(axis) + 1] = needed - n;
    x = pad(x, paddings, {.constant_values = o.pad_value}, site);
  }
  const Tensor begins = range(0, all * frame_step, frame_step, int32, site);
  const Tensor places =
      expand_dims(begins, 1, site) + range(0, frame_length, 1, int32, site);
  return gather(x, places, axis, site);
}

// Each frame in segments of a step: segment s of frame f belongs at f + s.
Tensor overlap_and_add(const Tensor& signal, int64_t frame_step, Site site) {
  set_site(site);
  check_positive("overlap_and_add", 1, frame_step);
  const int rank = signal.rank();
  if (rank < 2) {
    bad_signal("overlap_and_add",
               fmt::format("the frames are {}; expected [..., frames, length]",
                           signal.shape().str()));
  }
  const int64_t frames = known_length("overlap_and_add", signal, rank - 2);
  const int64_t length = known_length("overlap_and_add", signal, rank - 1);
  const int64_t segments =
      std::max<int64_t>(1, (length + frame_step - 1) / frame_step);
  Shape batch = signal.shape();
  batch.erase(rank - 1);
  batch.erase(rank - 2);
  const auto shaped = [&](const Tensor& t,
                          std::initializer_list<int64_t> ends) {
    Shape s = batch;
    for (const int64_t n : ends) s.push_back(n);
    return reshape(t, s, site);
  };
  Tensor x = last_axis_to(signal, segments * frame_step);
  x = shaped(x, {frames, segments, frame_step});
  std::vector<int64_t> perm;
  for (int i = 0; i <= rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(rank) - 2],
            perm[static_cast<size_t>(rank) - 1]);
  x = transpose(x, perm, site);  // [segments, frames, step]
  // Rows that are one too long move each segment one place further.
  std::vector<int64_t> paddings(2 * static_cast<size_t>(rank) + 2, 0);
  paddings[paddings.size() - 3] = segments;
  x = pad(x, paddings, {}, site);
  x = shaped(x, {segments * (frames + segments) * frame_step});
  x = last_axis_to(x, segments * (frames + segments - 1) * frame_step);
  x = shaped(x, {segments, (frames + segments - 1) * frame_step});
  x = math::reduce_sum(x, {.axis = std::vector<int64_t>{-2}}, site);
  return last_axis_to(x, std::max<int64_t>(0, frames - 1) * frame_step +
                             (frames > 0 ? length : 0));
}

Tensor stft(const Tensor& signals, int64_t frame_length, int64_t frame_step,
            const StftOptions& o, Site site) {
  const Tensor frames =
      frame(signals, frame_length, frame_step, {.pad_end = o.pad_end}, site);
  const Tensor window = o.window.defined() ? o.window
                                           : hann_window(frame_length, true,
                                                         frames.dtype(), site);
  return rfft(frames * window, {transform_length(frame_length, o)}, site);
}

Tensor inverse_stft(const Tensor& stfts, int64_t frame_length,
                    int64_t frame_step, const StftOptions& o, Site site) {
  set_site(site);
  check_positive("inverse_stft", frame_length, frame_step);
  const Tensor frames = last_axis_to(
      irfft(stfts, {transform_length(frame_length, o)}, site), frame_length);
  const Tensor window = o.window.defined() ? o.window
                                           : hann_window(frame_length, true,
                                                         frames.dtype(), site);
  return overlap_and_add(frames * window, frame_step, site);
}

// The squares of the window, added up as frames overlap, are what a sample was
// multiplied by.
Tensor inverse_stft_window(const Tensor& window, int64_t frame_step,
                           Site site) {
  set_site(site);
  const int64_t length = known_length("inverse_stft_window", window, 0);
  check_positive("inverse_stft_window", length, frame_step);
  const int64_t overlaps = (length + frame_step - 1) / frame_step;
  const Tensor squares =
      reshape(last_axis_to(math::square(window, site), overlaps * frame_step),
              {overlaps, frame_step}, site);
  const Tensor sums =
      math::reduce_sum(squares, {.axis = 0, .keepdims = true}, site);
  const Tensor all =
      reshape(tile(sums, {overlaps, 1}, site), {overlaps * frame_step}, site);
  return window / last_axis_to(all, length);
}

}  // namespace berth::signal
