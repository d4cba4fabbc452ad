#include "berth/ops/signal.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "berth/gradient_tape.h"
#include "berth/ops/math.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

constexpr double kPi = std::numbers::pi;
using Complex = std::complex<double>;

Tensor wave(const Shape& shape) {
  Doubles v;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    v.push_back(std::sin(static_cast<double>(3 + 7 * i * i)));
  }
  return constant(v, shape);
}
void expect_same(const Tensor& got, const Tensor& want, double within = 1e-9) {
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_LT(math::reduce_max(math::abs(got - want)).item<double>(), within);
}

// A pure tone has one frequency, whatever the length: also primes that are
// computed as a convolution.
TEST(Fft, OfAToneIsOneElement) {
  for (const int64_t n : {4, 15, 61, 97, 1009, 2018}) {
    std::vector<Complex> tone;
    for (int64_t i = 0; i < n; ++i) {
      tone.push_back(std::polar(
          1.0, 2 * kPi * 3 * static_cast<double>(i) / static_cast<double>(n)));
    }
    const auto y = signal::fft(constant(tone)).to_vector<Complex>();
    for (int64_t k = 0; k < n; ++k) {
      const double want = k == 3 ? static_cast<double>(n) : 0;
      ASSERT_NEAR(std::abs(y[static_cast<size_t>(k)] - want), 0, 1e-9)
          << n << ", " << k;
    }
  }
}

TEST(Fft, InversesUndoIt) {
  const Tensor x = math::complex(wave({2, 3, 5, 6}), wave({2, 3, 5, 6}) * 2);
  expect_same(signal::ifft(signal::fft(x)), x);
  expect_same(signal::ifft2d(signal::fft2d(x)), x);
  expect_same(signal::ifft3d(signal::fft3d(x)), x);
  expect_same(
      signal::ifftnd(signal::fftnd(x, {.axes = {0, 2}}), {.axes = {0, 2}}), x);
  expect_same(signal::fftnd(x, {.axes = {2, 3}}), signal::fft2d(x));
  expect_same(signal::ifftshift(signal::fftshift(x)), x, 1e-300);
  expect_invalid([] { signal::fft(zeros({2})); }, "complex");
}

TEST(Rfft, IsHalfOfTheTransform) {
  for (const int64_t n : {5, 6}) {
    const Tensor x = wave({2, n});
    const Tensor all = signal::fft(math::complex(x, zeros_like(x)));
    expect_same(signal::rfft(x), slice(all, {0, 0}, {-1, n / 2 + 1}));
    expect_same(signal::irfft(signal::rfft(x), {n}), x);
    const Tensor image = wave({4, n});
    expect_same(signal::irfft2d(signal::rfft2d(image), {4, n}), image);
  }
  // Cut, or filled with zeros.
  const Tensor x = wave({6});
  expect_same(signal::rfft(x, {4}), signal::rfft(slice(x, {0}, {4})));
  expect_same(signal::rfft(x, {9}), signal::rfft(pad(x, {0, 3})));
}

// sum |rfft(x)|^2 counts the inner frequencies once, the whole signal's energy
// twice: by Parseval the gradient is n x + (what the ends add).
TEST(Rfft, GradientByDifferences) {
  const auto value = [](const Tensor& t) {
    return math::reduce_sum(math::square(math::abs(signal::rfft(t, {7})))) +
           math::reduce_sum(
               signal::irfft(math::complex(t, math::square(t)), {9}) *
               wave({9}));
  };
  const Tensor x = wave({5});
  GradientTape tape;
  tape.watch(x);
  const Doubles g = tape.gradient(value(x), {x})[0].to_vector<double>();
  for (size_t i = 0; i < 5; ++i) {
    Doubles up = x.to_vector<double>(), down = up;
    up[i] += 1e-6, down[i] -= 1e-6;
    EXPECT_NEAR(g[i],
                (value(constant(up)).item<double>() -
                 value(constant(down)).item<double>()) /
                    2e-6,
                1e-6);
  }
}

TEST(Window, HasTheValuesOfItsFormula) {
  const auto near = [](const Tensor& w, const Doubles& want) {
    expect_same(math::cast(w, float64), constant(want), 1e-6);
  };
  near(signal::hann_window(4), {0, .5, 1, .5});
  near(signal::hann_window(5, false), {0, .5, 1, .5, 0});
  near(signal::hann_window(1), {1});
  near(signal::hamming_window(4), {.08, .54, 1, .54});
  near(signal::kaiser_window(3, 0), {1, 1, 1});
  // I0(12) = 18948.925...
  near(signal::kaiser_window(3, 12), {1 / 18948.9253, 1, 1 / 18948.9253});
  const Tensor w = signal::vorbis_window(8, float64);
  const Tensor k = signal::kaiser_bessel_derived_window(8, 4, float64);
  for (const Tensor& t : {w, k}) {  // squares half a window apart add up to 1
    const Tensor s = math::square(t);
    expect_same(slice(s, {0}, {4}) + slice(s, {4}, {4}), ones({4}, float64));
  }
}

TEST(Frame, CutsAndAddsUp) {
  const Tensor x = range(0, 7, 1, float64);
  expect_same(signal::frame(x, 3, 2),
              constant(Doubles{0, 1, 2, 2, 3, 4, 4, 5, 6}, {3, 3}));
  expect_same(signal::frame(x, 3, 3, {.pad_end = true, .pad_value = 9}),
              constant(Doubles{0, 1, 2, 3, 4, 5, 6, 9, 9}, {3, 3}));
  EXPECT_EQ(signal::frame(wave({2, 5, 3}), 2, 2, {.axis = 1}).shape(),
            (Shape{2, 2, 2, 3}));
  EXPECT_EQ(signal::frame(x, 8, 2).shape(), (Shape{0, 8}));
  expect_same(signal::overlap_and_add(ones({3, 3}, float64), 2),
              constant(Doubles{1, 1, 2, 1, 2, 1, 1}));
  expect_same(signal::overlap_and_add(ones({2, 2, 2}, float64), 3),
              constant(Doubles{1, 1, 0, 1, 1, 1, 1, 0, 1, 1}, {2, 5}));
}

TEST(Stft, TheInverseGivesTheSignalBack) {
  const Tensor x = wave({2, 64});
  const Tensor window = signal::hann_window(16, true, float64);
  const Tensor y = signal::stft(x, 16, 4);
  EXPECT_EQ(y.shape(), (Shape{2, 13, 9}));
  const Tensor back = signal::inverse_stft(
      y, 16, 4, {.window = signal::inverse_stft_window(window, 4)});
  // Samples at the ends lie in fewer windows.
  expect_same(slice(back, {0, 12}, {-1, 40}), slice(x, {0, 12}, {-1, 40}));
}

}  // namespace
}  // namespace berth::test
