#include "rpc/exchange/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "berth/errors.h"
#include "berth/half.h"
#include "tensor/visit_dtype.h"

namespace berth::exchange {

namespace {

using cluster::Reduction;

constexpr int64_t kStretch = 2048;  // elements

template <class Fn>
void of_type(DType dtype, Fn&& fn) {
  if (size_of(dtype) == 0 || is_complex(dtype)) {
    throw errors::InvalidArgument(fmt::format(
        "tensors of {} are not added between tasks", name_of(dtype)));
  }
  visit_dtype(dtype == bool_ ? uint8 : dtype, "sums", [&]<class T>(T v) {
    if constexpr (!is_complex_type<T> && !std::is_same_v<T, bool>) fn(v);
  });
}

// Integers wrap around; a NaN wins both minimum and maximum.
template <Reduction kHow, class T>
inline T two(T a, T b) {
  if constexpr (kHow == Reduction::kSum) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(
          static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  } else if constexpr (kHow == Reduction::kMin) {
    return b < a || b != b ? b : a;
  } else {
    return b > a || b != b ? b : a;
  }
}

template <Reduction kHow, class T>
void both(T* out, const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = two<kHow>(a[i], b[i]);
}

template <Reduction kHow, class T>
void chain_of(std::span<const void* const> in, void* to, int64_t count) {
  const auto at = [&](size_t k, int64_t i) {
    return static_cast<const T*>(in[k]) + i;
  };
  auto* out = static_cast<T*>(to);
  using Wide = std::conditional_t<is_half_type<T>, float, T>;
  Wide sum[kStretch];
  for (int64_t i = 0; i < count; i += kStretch) {
    const int64_t n = std::min(kStretch, count - i);
    if constexpr (is_half_type<T>) {
      const T* a = at(0, i);
      for (int64_t j = 0; j < n; ++j) sum[j] = static_cast<float>(a[j]);
      for (size_t k = 1; k < in.size(); ++k) {
        const T* b = at(k, i);
        for (int64_t j = 0; j < n; ++j) {
          sum[j] = two<kHow>(sum[j], static_cast<float>(b[j]));
        }
      }
      for (int64_t j = 0; j < n; ++j) out[i + j] = T(sum[j]);
    } else if (in.size() == 2) {
      both<kHow>(out + i, at(0, i), at(1, i), n);
    } else {
      const T* a = at(0, i);
      for (size_t k = 1; k + 1 < in.size(); ++k) {
        both<kHow>(sum, a, at(k, i), n);
        a = sum;
      }
      both<kHow>(out + i, a, at(in.size() - 1, i), n);
    }
  }
}

template <class T>
void add_rounded(void* out, const void* a, const void* b, int64_t n) {
  auto* to = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  if constexpr (is_half_type<T>) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = T(static_cast<float>(x[i]) + static_cast<float>(y[i]));
    }
  } else {
    both<Reduction::kSum>(to, x, y, n);
  }
}

}  // namespace

void check_dtype(DType dtype, Reduction reduction) {
  of_type(dtype, [](auto) {});
  if (dtype == DType::kBool && reduction == Reduction::kSum) {
    throw errors::InvalidArgument(
        "bool is not added: reduce by min (all) or max (any)");
  }
}

void widen(const void* from, DType dtype, float* to, int64_t count) {
  of_type(dtype, [&]<class T>(T) {
    const auto* x = static_cast<const T*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(x[i]);
  });
}

void narrow(const float* from, void* to, DType dtype, int64_t count) {
  of_type(dtype, [&]<class T>(T) {
    auto* x = static_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i) x[i] = static_cast<T>(from[i]);
  });
}

std::string check_slices(std::span<const Slices> parts, Slices root,
                         int32_t slices) {
  std::vector<Slices> sorted(parts.begin(), parts.end());
  std::sort(sorted.begin(), sorted.end(),
            [](Slices a, Slices b) { return a.first < b.first; });
  int64_t next = root.first;
  const int64_t end = int64_t{root.first} + root.count;
  for (const Slices p : sorted) {
    if (p.count < 1 || p.first != next) {
      return fmt::format("slice {} of {} is {}",
                         std::min<int64_t>(next, p.first), slices,
                         p.first > next ? "nobody's" : "there twice");
    }
    int64_t width = 1;
    while (width < p.count) width *= 2;
    next = int64_t{p.first} + p.count;
    const bool subtree =
        p.first % width == 0 && (p.count == width || next == slices);
    if (!subtree || next > end) {
      return fmt::format(
          "slices {} to {} of {} are no subtree: a part has 2^k slices and "
          "begins at a multiple of 2^k",
          p.first, next - 1, slices);
    }
  }
  if (next == end) return "";
  return fmt::format("slice {} of {} is nobody's", next, slices);
}

void SliceCheck::operator()(Peers& peers, const ExchangeCall& call,
                            std::span<const Slices> parts, Slices root,
                            int32_t slices) {
  const auto same = [](Slices a, Slices b) {
    return a.first == b.first && a.count == b.count;
  };
  if (slices == slices_ && same(root, root_) &&
      std::equal(parts.begin(), parts.end(), good_.begin(), good_.end(),
                 same)) {
    return;
  }
  const std::string wrong = check_slices(parts, root, slices);
  if (!wrong.empty()) peers.invalid("ordered_sum: " + wrong, call);
  good_.assign(parts.begin(), parts.end());
  root_ = root;
  slices_ = slices;
}

std::vector<Slices> roots_of(std::span<const Slices> parts, int32_t slices) {
  std::vector<int32_t> counts(slices, 0);
  for (const Slices p : parts) counts[p.first] = p.count;
  for (int64_t w = 1; w < slices; w *= 2) {
    for (int64_t s = 0; s + w < slices; s += 2 * w) {
      if (counts[s] == w && counts[s + w] == std::min(w, slices - s - w)) {
        counts[s] += std::exchange(counts[s + w], 0);
      }
    }
  }
  std::vector<Slices> roots;
  for (int32_t s = 0; s < slices; ++s) {
    if (counts[s] > 0) roots.push_back({s, counts[s]});
  }
  return roots;
}

void Sums::chain(std::span<const void* const> in, void* out, int64_t count,
                 DType dtype, Reduction reduction) {
  of_type(dtype, [&]<class T>(T) {
    if (in.size() == 1) {
      if (out != in[0] && count > 0) {
        std::memmove(out, in[0], count * sizeof(T));
      }
    } else if (reduction == Reduction::kSum) {
      chain_of<Reduction::kSum, T>(in, out, count);
    } else if (reduction == Reduction::kMin) {
      chain_of<Reduction::kMin, T>(in, out, count);
    } else {
      chain_of<Reduction::kMax, T>(in, out, count);
    }
  });
}

void Sums::tree(std::span<const void* const> in, std::span<const Slices> parts,
                int32_t slices, void* out, int64_t count, DType dtype) {
  // order_[s]: the input that begins at slice s; -1: none.
  order_.assign(slices, -1);
  for (size_t k = 0; k < parts.size(); ++k) {
    order_[parts[k].first] = static_cast<int>(k);
  }
  steps_.clear();
  for (int64_t w = 1; w < slices; w *= 2) {
    for (int64_t s = 0; s + w < slices; s += 2 * w) {
      if (order_[s] < 0 || order_[s + w] < 0) continue;
      steps_.push_back({order_[s], order_[s + w]});
      order_[s + w] = -1;
    }
  }
  const int64_t size = static_cast<int64_t>(size_of(dtype));
  if (steps_.empty()) {
    if (out != in[0] && count > 0) std::memmove(out, in[0], count * size);
    return;
  }
  const size_t stretch = kStretch * size;
  if (scratch_.size() < in.size() * stretch) {
    scratch_.resize(in.size() * stretch);
  }
  now_.resize(in.size());
  of_type(dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < count; i += kStretch) {
      const int64_t n = std::min(kStretch, count - i);
      for (size_t k = 0; k < in.size(); ++k) {
        now_[k] = static_cast<const std::byte*>(in[k]) + i * size;
      }
      for (size_t k = 0; k < steps_.size(); ++k) {
        const auto [a, b] = steps_[k];
        std::byte* to = k + 1 == steps_.size()
                            ? static_cast<std::byte*>(out) + i * size
                            : scratch_.data() + a * stretch;
        add_rounded<T>(to, now_[a], now_[b], n);
        now_[a] = to;
      }
    }
  });
}

}  // namespace berth::exchange
