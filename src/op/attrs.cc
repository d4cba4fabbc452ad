#include "op/attrs.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "base/immortal.h"

namespace berth {

namespace {

size_t mix(size_t h, size_t v) {
  return h ^ (v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2));
}

// Zeros of both signs are two values, and not-a-number is one.
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

template <class T>
size_t hash_list(const std::vector<T>& list) {
  size_t h = list.size();
  for (const T& v : list) h = mix(h, std::hash<T>()(v));
  return h;
}

size_t hash_list(const std::vector<double>& list) {
  size_t h = list.size();
  for (double v : list) h = mix(h, std::hash<uint64_t>()(bits(v)));
  return h;
}

size_t hash_pairs(const std::vector<Attrs::Pair>& pairs) {
  size_t h = pairs.size();
  for (const auto& [name, value] : pairs) {
    h = mix(mix(h, std::hash<std::string>()(name)), hash_value(value));
  }
  return h;
}

}  // namespace

bool equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>) {
          return x.impl() == y.impl();
        } else if constexpr (std::is_same_v<T, double>) {
          return bits(x) == bits(y);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return std::ranges::equal(x, y, {}, bits, bits);
        } else {
          return x == y;
        }
      },
      a);
}

size_t hash_value(const AttrValue& v) {
  const size_t h = std::visit(
      [](const auto& x) -> size_t {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return std::hash<const void*>()(x.impl());
        } else if constexpr (std::is_same_v<T, Shape>) {
          size_t h = 7;
          for (int64_t d : x) h = mix(h, std::hash<int64_t>()(d));
          return h;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                             std::is_same_v<T, std::vector<double>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return hash_list(x);
        } else if constexpr (std::is_same_v<T, DType>) {
          return static_cast<size_t>(x);
        } else if constexpr (std::is_same_v<T, double>) {
          return std::hash<uint64_t>()(bits(x));
        } else {
          return std::hash<T>()(x);
        }
      },
      v);
  return mix(v.index(), h);
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : pairs_) {
    if (key == name) return &value;
  }
  return nullptr;
}

class AttrsTable {
 public:
  static AttrsTable& get() {
    static auto& t = immortal<AttrsTable>();
    return t;
  }

  const Attrs* intern(std::vector<Attrs::Pair> pairs) {
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    const size_t hash = hash_pairs(pairs);
    std::lock_guard lock(mutex_);
    const auto [lo, hi] = table_.equal_range(hash);
    for (auto it = lo; it != hi; ++it) {
      if (same(it->second->pairs_, pairs)) {
        it->second->references_.fetch_add(1);
        return it->second.get();
      }
    }
    auto attrs = std::make_unique<Attrs>();
    attrs->pairs_ = std::move(pairs);
    attrs->hash_ = hash;
    attrs->references_ = 1;
    return table_.emplace(hash, std::move(attrs))->second.get();
  }

  // Drops a reference; returns the attributes when it was the last one, so
  // that the caller destroys them outside the lock (they may hold others).
  std::unique_ptr<Attrs> release(const Attrs* attrs) {
    // Interning may revive the last reference, so only that one needs the
    // lock.
    int32_t n = attrs->references_.load();
    while (n > 1) {
      if (attrs->references_.compare_exchange_weak(n, n - 1)) return nullptr;
    }
    std::lock_guard lock(mutex_);
    if (attrs->references_.fetch_sub(1) != 1) return nullptr;
    const auto [lo, hi] = table_.equal_range(attrs->hash_);
    for (auto it = lo; it != hi; ++it) {
      if (it->second.get() != attrs) continue;
      std::unique_ptr<Attrs> dead = std::move(it->second);
      table_.erase(it);
      return dead;
    }
    return nullptr;
  }

  size_t size() {
    std::lock_guard lock(mutex_);
    return table_.size();
  }

 private:
  static bool same(const std::vector<Attrs::Pair>& a,
                   const std::vector<Attrs::Pair>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) {
                        return x.first == y.first && equal(x.second, y.second);
                      });
  }

  std::mutex mutex_;
  std::unordered_multimap<size_t, std::unique_ptr<Attrs>> table_;
};

AttrsRef::AttrsRef(std::vector<Attrs::Pair> pairs) {
  if (!pairs.empty()) attrs_ = AttrsTable::get().intern(std::move(pairs));
}

AttrsRef AttrsRef::share(const Attrs* attrs) {
  AttrsRef r;
  if (attrs) attrs->references_.fetch_add(1, std::memory_order_relaxed);
  r.attrs_ = attrs;
  return r;
}

AttrsRef::~AttrsRef() {
  if (attrs_ == nullptr) return;
  AttrsTable::get().release(attrs_);
}

size_t interned_attrs() { return AttrsTable::get().size(); }

}  // namespace berth
