// The Fourier transform by KissFFT: BSD licence, in Debian, headers alone and
// any length (FFTW is GPL; pocketfft is not packaged). In double precision,
// since its float tables lose digits with the length. Lengths with a large
// prime factor, which it computes in n^2 steps, are convolutions of a power of
// 2 here (Bluestein).

#include <complex>
#include <kissfft/kissfft.hh>
#include <memory>
#include <numbers>

#include "backends/cpu/kernels.h"
#include "backends/reference/scratch.h"
#include "base/immortal.h"

namespace berth::cpu {

namespace {

using Complex = std::complex<double>;
using ComplexRow = reference::Scratch<Complex>;

constexpr int64_t kLargePrime = 64;

bool has_large_factor(int64_t n) {
  for (int64_t p = 2; p <= kLargePrime && n > 1; ++p) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

// The transform of one length and direction.
class Fourier {
 public:
  Fourier(int64_t n, bool inverse)
      : n_(n), inverse_(inverse), chirped_(has_large_factor(n)) {
    if (!chirped_) {
      direct_.emplace(static_cast<size_t>(n), inverse);
      return;
    }
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    direct_.emplace(static_cast<size_t>(m), false);
    back_.emplace(static_cast<size_t>(m), true);
    chirp_.resize(static_cast<size_t>(n));
    std::vector<Complex> around(static_cast<size_t>(m));
    filter_.resize(around.size());
    for (int64_t k = 0; k < n; ++k) {
      // k^2 mod 2 n keeps the angle exact.
      const auto square = static_cast<double>(
          static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
          static_cast<uint64_t>(2 * n));
      const double angle = (inverse ? 1 : -1) * std::numbers::pi * square /
                           static_cast<double>(n);
      chirp_[static_cast<size_t>(k)] = std::polar(1.0, angle);
      around[static_cast<size_t>(k)] = std::polar(1.0, -angle);
      if (k > 0) {
        around[static_cast<size_t>(m - k)] = around[static_cast<size_t>(k)];
      }
    }
    direct_->transform(around.data(), filter_.data());
  }

  bool is(int64_t n, bool inverse) const {
    return n == n_ && inverse == inverse_;
  }

  void run(const Complex* x, Complex* y) const {
    if (!chirped_) return direct_->transform(x, y);
    const size_t m = filter_.size();
    ComplexRow a(m), b(m);
    for (size_t k = 0; k < chirp_.size(); ++k) a[k] = x[k] * chirp_[k];
    direct_->transform(a.data(), b.data());
    for (size_t k = 0; k < m; ++k) b[k] *= filter_[k];
    back_->transform(b.data(), a.data());
    const double scale = 1 / static_cast<double>(m);
    for (size_t k = 0; k < chirp_.size(); ++k) y[k] = a[k] * chirp_[k] * scale;
  }

 private:
  int64_t n_;
  bool inverse_, chirped_;
  std::optional<kissfft<double>> direct_, back_;
  std::vector<Complex> chirp_, filter_;
};

// A thread keeps the last few: KissFFT's buffers are not shared.
const Fourier& fourier_of(int64_t n, bool inverse) {
  struct Kept {
    std::unique_ptr<Fourier> all[4];
    size_t next = 0;
  };
  auto& kept = of_this_thread<Kept>();
  for (const auto& f : kept.all) {
    if (f && f->is(n, inverse)) return *f;
  }
  auto& place = kept.all[kept.next++ % std::size(kept.all)];
  place = std::make_unique<Fourier>(n, inverse);
  return *place;
}

template <class Z>
void transform_rows(const KernelCall& c, int64_t n) {
  const Fourier& f = fourier_of(n, c.attr<bool>("inverse"));
  const double scale =
      c.attr<bool>("normalize") ? 1 / static_cast<double>(n) : 1;
  ComplexRow in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
  for (int64_t row = 0; row < c.in[0].size(); row += n) {
    std::copy_n(c.in[0].as<Z>() + row, n, in.begin());
    f.run(in.data(), out.data());
    Z* y = c.out[0].as<Z>() + row;
    for (size_t k = 0; k < out.size(); ++k) y[k] = Z(out[k] * scale);
  }
}

void transform(const KernelCall& c) {
  const int64_t n = c.in[0].dim(c.in[0].shape->rank() - 1);
  if (c.in[0].size() == 0) return;
  if (c.in[0].dtype == complex64)
    return transform_rows<std::complex<float>>(c, n);
  transform_rows<Complex>(c, n);
}

}  // namespace

void add_fourier(KernelTable& t) {
  t.direct("FFT", kComplexTypes, &transform, "kissfft");
}

}  // namespace berth::cpu
