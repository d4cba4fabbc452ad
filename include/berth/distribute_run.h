// The typed part of Strategy::run(); included by berth/distribute.h.
//
// PerReplica in the arguments, also inside vectors, arrays, pairs, tuples,
// optionals and string maps, becomes the replica's Tensor; Tensor in the result
// becomes PerReplica. Compile-time only.

#ifndef BERTH_DISTRIBUTE_RUN_H_
#define BERTH_DISTRIBUTE_RUN_H_

#include <any>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/distribute.h"

namespace berth::distribute::internal {

// The type T with every From in it replaced by a To, leaf(From), in the order
// in which Tree visits them.
template <class From, class To, class T>
struct Swap {
  using Type = T;
  template <class Leaf>
  static Type apply(const T& value, const Leaf&) {
    return value;
  }
};

template <class From, class To, class T, class Leaf>
auto map_leaves(const T& value, const Leaf& leaf) {
  return Swap<From, To, T>::apply(value, leaf);
}

template <class From, class To>
struct Swap<From, To, From> {
  using Type = To;
  template <class Leaf>
  static Type apply(const From& value, const Leaf& leaf) {
    return leaf(value);
  }
};

template <class From, class To, class T>
struct Swap<From, To, std::vector<T>> {
  using Type = std::vector<typename Swap<From, To, T>::Type>;
  template <class Leaf>
  static Type apply(const std::vector<T>& list, const Leaf& leaf) {
    Type result;
    for (const T& x : list) result.push_back(map_leaves<From, To>(x, leaf));
    return result;
  }
};

template <class From, class To, class T, size_t kSize>
struct Swap<From, To, std::array<T, kSize>> {
  using Type = std::array<typename Swap<From, To, T>::Type, kSize>;
  template <class Leaf>
  static Type apply(const std::array<T, kSize>& list, const Leaf& leaf) {
    Type result;
    for (size_t i = 0; i < kSize; ++i) {
      result[i] = map_leaves<From, To>(list[i], leaf);
    }
    return result;
  }
};

template <class From, class To, class A, class B>
struct Swap<From, To, std::pair<A, B>> {
  using Type = std::pair<typename Swap<From, To, A>::Type,
                         typename Swap<From, To, B>::Type>;
  template <class Leaf>
  static Type apply(const std::pair<A, B>& p, const Leaf& leaf) {
    return Type{map_leaves<From, To>(p.first, leaf),
                map_leaves<From, To>(p.second, leaf)};
  }
};

template <class From, class To, class... T>
struct Swap<From, To, std::tuple<T...>> {
  using Type = std::tuple<typename Swap<From, To, T>::Type...>;
  template <class Leaf>
  static Type apply(const std::tuple<T...>& t, const Leaf& leaf) {
    return std::apply(
        [&](const T&... x) { return Type{map_leaves<From, To>(x, leaf)...}; },
        t);
  }
};

template <class From, class To, class T>
struct Swap<From, To, std::optional<T>> {
  using Type = std::optional<typename Swap<From, To, T>::Type>;
  template <class Leaf>
  static Type apply(const std::optional<T>& o, const Leaf& leaf) {
    return o ? Type{map_leaves<From, To>(*o, leaf)} : Type{};
  }
};

template <class From, class To, class T>
struct Swap<From, To, std::map<std::string, T>> {
  using Type = std::map<std::string, typename Swap<From, To, T>::Type>;
  template <class Leaf>
  static Type apply(const std::map<std::string, T>& m, const Leaf& leaf) {
    Type result;
    for (const auto& [key, x] : m) {
      result.emplace(key, map_leaves<From, To>(x, leaf));
    }
    return result;
  }
};

template <class F>
struct TracesOf {
  static FunctionCore* get(const F&) { return nullptr; }
};
template <class Signature>
struct TracesOf<Function<Signature>> {
  static FunctionCore* get(const Function<Signature>& f) { return &f.core(); }
};

// Replicas of this task.
size_t replicas_here(const StrategyCore& core);
// Throws errors::InvalidArgument unless `value` has one tensor per replica.
const Tensor& value_of(const PerReplica& value, size_t replica,
                       size_t replicas);
// Throws errors::InvalidArgument unless all `made` tensors of a result were
// found in its structure.
void check_results(size_t found, size_t made);
// The argument of a replica that counts its examples; -1: none.
int split_argument(const Tensors& args, const Tensors& of_replicas);

}  // namespace berth::distribute::internal

namespace berth::distribute {

template <class F, class... Args>
auto Strategy::run(F&& fn, const Args&... args) const {
  constexpr bool kTakes = std::is_invocable_v<
      F&, typename internal::Swap<PerReplica, Tensor,
                                  std::decay_t<Args>>::Type&...>;
  static_assert(kTakes,
                "strategy.run(fn, args...): fn does not take these arguments, "
                "with a Tensor in the place of each PerReplica");
  if constexpr (kTakes) return run_in_replicas(fn, args...);
}

template <class F, class... Args>
auto Strategy::run_in_replicas(F& fn, const Args&... args) const {
  using namespace internal;  // NOLINT: of this header
  using Locals = std::tuple<
      typename Swap<PerReplica, Tensor, std::decay_t<Args>>::Type...>;
  using R = std::decay_t<decltype(std::apply(fn, std::declval<Locals&>()))>;
  constexpr bool kVoid = std::is_void_v<R>;
  using Result = std::conditional_t<kVoid, bool, R>;

  const size_t replicas = replicas_here(*core());
  ReplicaCall call;
  std::vector<Locals> locals;
  for (size_t r = 0; r < replicas; ++r) {
    Tensors split;
    [[maybe_unused]] const auto leaf = [&](const PerReplica& p) {
      split.push_back(value_of(p, r, replicas));
      return split.back();
    };
    locals.push_back(
        Locals{internal::map_leaves<PerReplica, Tensor, std::decay_t<Args>>(
            args, leaf)...});
    FlattenTree flat;
    visit_tree(locals.back(), flat);
    if (r == 0) {
      call.fixed = flat.text;
      call.split = split_argument(flat.leaves, split);
    }
    call.args.push_back(std::move(flat.leaves));
  }
  call.fn = [&](int r, const Tensors& leaves, std::any* structure) {
    Locals symbolic = locals[static_cast<size_t>(r)];
    RebuildTree put(leaves);
    visit_tree(symbolic, put);
    FlattenTree flat;
    if constexpr (kVoid) {
      std::apply(fn, symbolic);
      *structure = true;
    } else {
      Result result = std::apply(fn, symbolic);
      visit_tree(result, flat);
      *structure = std::move(result);
    }
    return flat.leaves;
  };
  static std::atomic<int> num_calls{0};
  call.traces = TracesOf<std::remove_cvref_t<F>>::get(fn);
  call.num_calls = &num_calls;
  std::shared_ptr<const std::any> structure;
  const std::vector<Tensors> values = run_replicas(core(), call, &structure);
  if constexpr (!kVoid) {
    size_t next = 0;
    auto result = internal::map_leaves<Tensor, PerReplica>(
        *std::any_cast<Result>(structure.get()), [&](const Tensor&) {
          Tensors list;
          for (const Tensors& v : values) list.push_back(v.at(next));
          ++next;
          return PerReplica(std::move(list));
        });
    check_results(next, values.at(0).size());
    return result;
  }
}

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_RUN_H_
