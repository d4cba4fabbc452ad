#include "backends/cuda/lt_testing.h"
#include "berth/half.h"
#include "device/device.h"

namespace berth::cuda {

namespace {

Numbers small_numbers(int64_t count, DType dtype, uint32_t seed) {
  Numbers v(static_cast<size_t>(count));
  const auto next = [&seed] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<double>(static_cast<int>((seed >> 24) % 5) - 2);
  };
  const bool is_complex = dtype == complex64 || dtype == complex128;
  for (auto& x : v) {
    const double re = next();
    x = {re, is_complex ? next() : 0};
  }
  return v;
}

int64_t extent(const gpu::MatrixProduct& p, int64_t each, int64_t stride) {
  return each + stride * (p.batches - 1);
}

// Calls fn(T()) with the C++ type of a dtype.
template <class Fn>
auto with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case float16:
      return fn(float16_t());
    case bfloat16:
      return fn(bfloat16_t());
    case float64:
      return fn(double());
    case complex64:
      return fn(std::complex<float>());
    case complex128:
      return fn(std::complex<double>());
    default:
      return fn(float());
  }
}

template <class T>
T narrowed(std::complex<double> x) {
  if constexpr (requires(T t) { t.imag(); }) {
    return T(x);
  } else {
    return T(static_cast<float>(x.real()));
  }
}

template <class T>
std::complex<double> widened(T x) {
  if constexpr (requires { x.imag(); }) {
    return {x.real(), x.imag()};
  } else {
    return static_cast<double>(x);
  }
}

// Device memory with these numbers, `shift` bytes into a block.
struct Placed {
  BlockRef block;
  std::byte* data = nullptr;
};

Placed placed(gpu::GpuDevice& d, DType dtype, const Numbers& v, size_t shift) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<T> host;
    for (const auto& x : v) host.push_back(narrowed<T>(x));
    const size_t bytes = host.size() * sizeof(T);
    Placed p{BlockRef::adopt(d.allocator().allocate(bytes + shift)), nullptr};
    p.data = p.block->data + shift;
    d.copy_from_host(p.data, host.data(), bytes);
    return p;
  });
}

Numbers fetched(gpu::GpuDevice& d, DType dtype, const Placed& p, size_t count) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<T> host(count);
    d.copy_to_host(host.data(), p.data, count * sizeof(T));
    Numbers v;
    for (const T x : host) v.push_back(widened(x));
    return v;
  });
}

}  // namespace

LtOperands operands_of(const gpu::MatrixProduct& p) {
  return {small_numbers(extent(p, p.m * p.k, p.stride_a), p.dtype, 1),
          small_numbers(extent(p, p.k * p.n, p.stride_b), p.dtype, 2),
          small_numbers(p.bias ? p.n : 0, p.dtype, 3),
          small_numbers(extent(p, p.m * p.n, p.stride_c), p.dtype, 4)};
}

double gelu_of(double x) {
  // x times the logistic function of twice the argument of tanh.
  return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

double gelu_slope_of(double x) {
  constexpr double kStep = 1e-5;
  return (gelu_of(x + kStep) - gelu_of(x - kStep)) / (2 * kStep);
}

Numbers expected_of(const gpu::MatrixProduct& p, const LtOperands& o) {
  Numbers c(static_cast<size_t>(extent(p, p.m * p.n, p.stride_c)));
  Numbers kept = c, sums;
  const auto a = [&](int64_t z, int64_t r, int64_t q) {
    const int64_t at = p.transpose_a ? q * p.m + r : r * p.k + q;
    return o.a[static_cast<size_t>(z * p.stride_a + at)];
  };
  const auto b = [&](int64_t z, int64_t q, int64_t col) {
    const int64_t at = p.transpose_b ? col * p.k + q : q * p.n + col;
    return o.b[static_cast<size_t>(z * p.stride_b + at)];
  };
  for (int64_t z = 0; z < p.batches; ++z) {
    for (int64_t r = 0; r < p.m; ++r) {
      for (int64_t col = 0; col < p.n; ++col) {
        std::complex<double> sum = 0;
        for (int64_t q = 0; q < p.k; ++q) sum += a(z, r, q) * b(z, q, col);
        if (p.bias) sum += o.bias[static_cast<size_t>(col)];
        const auto at = static_cast<size_t>(z * p.stride_c + r * p.n + col);
        kept[at] = sum;
        if (p.activation == gpu::ProductActivation::kRelu) {
          sum = std::max(sum.real(), 0.0);
        } else if (p.activation == gpu::ProductActivation::kGeluTanh) {
          sum = gelu_of(sum.real());
        } else if (p.activation == gpu::ProductActivation::kGeluTanhSlope) {
          sum *= gelu_slope_of(o.aux[at].real());
        }
        c[at] = sum;
      }
    }
  }
  if (p.keeps) c.insert(c.end(), kept.begin(), kept.end());
  for (int64_t col = 0; p.sums_b && col < p.n; ++col) {
    std::complex<double> sum = 0;
    for (int64_t q = 0; q < p.k; ++q) sum += b(0, q, col);
    c.push_back(sum);
  }
  return c;
}

std::optional<Numbers> computed_by(CudaCard& card, gpu::GpuDevice& d,
                                   const gpu::MatrixProduct& p,
                                   const LtOperands& o, size_t shift) {
  const auto count = static_cast<size_t>(extent(p, p.m * p.n, p.stride_c));
  const Placed a = placed(d, p.dtype, o.a, shift);
  const Placed b = placed(d, p.dtype, o.b, 0);
  const Placed c = placed(d, p.dtype, Numbers(count, -77), 0);
  const Placed bias = placed(d, p.dtype, p.bias ? o.bias : Numbers(1), 0);
  const Placed aux =
      placed(d, p.dtype, p.keeps ? Numbers(count, -77) : o.aux, 0);
  const auto columns = static_cast<size_t>(p.n);
  const Placed sums = placed(d, p.dtype, Numbers(columns, -77), 0);
  size_t scratch_bytes = 0;
  const std::shared_ptr<gpu::Kernel> kernel = card.product(p, &scratch_bytes);
  if (!kernel) return std::nullopt;
  const BlockRef scratch =
      BlockRef::adopt(d.allocator().allocate(scratch_bytes + 64));
  bool done = false;
  launch_on(d.compute_stream(), [&](Stream& s) {
    std::vector<void*> addresses = {a.data, b.data, c.data};
    if (p.bias) addresses.push_back(bias.data);
    if (p.has_aux()) addresses.push_back(aux.data);
    if (p.sums_b) addresses.push_back(sums.data);
    if (scratch_bytes > 0) addresses.push_back(scratch->data + 64);
    std::vector<gpu::KernelArg> args;
    for (void*& address : addresses) args.push_back({&address, 0});
    auto& queue = static_cast<gpu::QueueStream&>(s).queue();
    done = kernel->try_launch(queue, {}, args.data(),
                              static_cast<int>(args.size()));
  });
  synchronize(d.compute_stream().record());
  if (!done) return std::nullopt;
  Numbers all = fetched(d, p.dtype, c, count);
  const auto append = [&](const Placed& more, size_t n) {
    const Numbers v = fetched(d, p.dtype, more, n);
    all.insert(all.end(), v.begin(), v.end());
  };
  if (p.keeps) append(aux, count);
  if (p.sums_b) append(sums, columns);
  return all;
}

}  // namespace berth::cuda
