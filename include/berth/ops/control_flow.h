// Control flow on tensors: cond, while_loop, switch_case, case_.
//
// Eagerly the predicate is read and C++ runs the selected code; a GradientTape
// records what ran. Inside a trace the branches and bodies are traced once each
// into graphs of one If or While op: outer values that they use become
// operands, variables may be read and written, device scopes inside them apply.
// Branches return nested structures of tensors (berth/tree.h). Any thread.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_CONTROL_FLOW_H_
#define BERTH_OPS_CONTROL_FLOW_H_

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/tree.h"

namespace berth {

struct WhileOptions {
  // The loop ends after at most this many iterations; -1: when cond is false. A
  // gradient through a loop inside a trace needs it: the values that the
  // gradient reads are kept for that many iterations.
  int64_t max_iterations = -1;
};

namespace internal {

// A branch as the engine sees it: tensors in, tensors out, and the text of all
// else in the structure it returns.
struct Leaves {
  Tensors tensors;
  std::string fixed;
};
using TracedFn = std::function<Leaves(const Tensors& args)>;

bool read_predicate(const Tensor& pred, const char* op, Site site);
// Whether the branches must be traced: in a trace, if pred is part of it.
bool traces_cond(const Tensor& pred);
bool traces_loop();
Tensors trace_cond(const Tensor& pred, const TracedFn& true_fn,
                   const TracedFn& false_fn, Site site);
Tensors trace_while(const std::function<Tensor(const Tensors&)>& cond,
                    const TracedFn& body, const Leaves& vars,
                    const WhileOptions& options, Site site);
// Throws errors::InvalidArgument unless an iteration kept dtypes and shapes.
void check_turn(const Leaves& before, const Leaves& after, Site site);
int64_t read_index(const Tensor& index, size_t branches, Site site);
// In a trace an index that is out of range selects the last branch.
Tensor branch_index(const Tensor& index, size_t branches, Site site);
Tensor index_below(const Tensor& index, size_t value, Site site);
// The number of the first true predicate, or the number of predicates.
Tensor first_true(const Tensors& predicates, Site site);

template <class T>
Leaves flatten(T value) {
  FlattenTree flat;
  visit_tree(value, flat);
  return {std::move(flat.leaves), std::move(flat.text)};
}

template <class T>
T rebuild(T value, const Tensors& leaves) {
  RebuildTree put(leaves);
  visit_tree(value, put);
  return value;
}

// Calls fn(a, b, ...) for a tuple that fn takes apart, else fn(value).
template <class F, class T>
auto call_with(const F& fn, const T& value) {
  if constexpr (std::is_invocable_v<const F&, const T&>) {
    return fn(value);
  } else {
    return std::apply(fn, value);
  }
}

}  // namespace internal

// Returns true_fn() if `pred` (bool []) is true, else false_fn(): two callables
// without arguments that return the same structure with the same dtypes and
// shapes; either may return nothing. Throws errors::InvalidArgument, naming the
// output, if the branches disagree. tf.cond.
template <class True, class False>
auto cond(const Tensor& pred, const True& true_fn, const False& false_fn,
          Site site = Site::here()) {
  using R = std::decay_t<std::invoke_result_t<const True&>>;
  if constexpr (std::is_void_v<R>) {
    const auto nothing = [](const auto& fn) {
      return [&fn](const Tensors&) {
        fn();
        return internal::Leaves{};
      };
    };
    if (internal::traces_cond(pred)) {
      internal::trace_cond(pred, nothing(true_fn), nothing(false_fn), site);
    } else if (internal::read_predicate(pred, "cond", site)) {
      true_fn();
    } else {
      false_fn();
    }
  } else {
    static_assert(std::is_convertible_v<std::invoke_result_t<const False&>, R>,
                  "cond: both branches return the same type");
    if (!internal::traces_cond(pred)) {
      if (internal::read_predicate(pred, "cond", site)) return R(true_fn());
      return R(false_fn());
    }
    std::vector<R> structure;  // of the true branch
    const auto traced = [&](const auto& fn) {
      return [&](const Tensors&) {
        R result = fn();
        if (structure.empty()) structure.push_back(result);
        return internal::flatten(std::move(result));
      };
    };
    const Tensors results =
        internal::trace_cond(pred, traced(true_fn), traced(false_fn), site);
    return internal::rebuild(std::move(structure.front()), results);
  }
}

// For a condition that is known when the program runs this line.
template <class True, class False>
auto cond(bool pred, const True& true_fn, const False& false_fn) {
  return pred ? true_fn() : false_fn();
}

// Repeats vars = body(vars) as long as cond(vars), a bool [], is true; returns
// the last vars. `vars` is a tensor or a structure of tensors; the elements of
// a tuple are passed one by one if the callables take them so. Throws
// errors::InvalidArgument, naming the variable, if an iteration changes a dtype
// or shape. tf.while_loop.
template <class Cond, class Body, class Vars>
Vars while_loop(const Cond& cond, const Body& body, Vars vars,
                WhileOptions options = {}, Site site = Site::here()) {
  internal::Leaves leaves = internal::flatten(vars);
  if (internal::traces_loop()) {
    const Vars structure = vars;
    const Tensors results = internal::trace_while(
        [&](const Tensors& args) -> Tensor {
          return internal::call_with(cond, internal::rebuild(structure, args));
        },
        [&](const Tensors& args) {
          Vars next =
              internal::call_with(body, internal::rebuild(structure, args));
          return internal::flatten(std::move(next));
        },
        leaves, options, site);
    return internal::rebuild(std::move(vars), results);
  }
  for (int64_t i = 0; i != options.max_iterations; ++i) {
    if (!internal::read_predicate(internal::call_with(cond, vars),
                                  "while_loop: cond", site)) {
      break;
    }
    vars = internal::call_with(body, vars);
    internal::Leaves now = internal::flatten(vars);
    internal::check_turn(leaves, now, site);
  }
  return vars;
}

namespace internal {

// The result of fns[at], in a trace; `at` is in range. Nested conds halve the
// range, so their depth is the logarithm of the number of branches.
template <class R>
R call_branch(const Tensor& at, const std::vector<std::function<R()>>& fns,
              Site site) {
  std::function<R(size_t, size_t)> among = [&](size_t begin, size_t end) -> R {
    if (end - begin == 1) return fns[begin]();
    const size_t middle = begin + (end - begin) / 2;
    return cond(
        index_below(at, middle, site),
        [&, begin, middle] { return among(begin, middle); },
        [&, middle, end] { return among(middle, end); }, site);
  };
  return among(0, fns.size());
}

}  // namespace internal

// Returns the result of branches[index] (an integer []), or of the last one if
// the index is out of range. tf.switch_case.
template <class R>
R switch_case(const Tensor& index, const std::vector<std::function<R()>>& fns,
              Site site = Site::here()) {
  if (!internal::traces_cond(index)) {
    return fns[static_cast<size_t>(
        internal::read_index(index, fns.size(), site))]();
  }
  return internal::call_branch<R>(
      internal::branch_index(index, fns.size(), site), fns, site);
}

// Returns the result of the first function whose predicate is true, else of
// `otherwise`. tf.case.
template <class R>
R case_(const std::vector<std::pair<Tensor, std::function<R()>>>& pairs,
        const std::function<R()>& otherwise, Site site = Site::here()) {
  Tensors predicates;  // of the traced cases
  std::vector<std::function<R()>> fns;
  const std::function<R()>* last = &otherwise;
  for (const auto& [predicate, fn] : pairs) {
    if (internal::traces_cond(predicate)) {
      predicates.push_back(predicate);
      fns.push_back(fn);
    } else if (internal::read_predicate(predicate, "case_", site)) {
      last = &fn;
      break;
    }
  }
  if (fns.empty()) return (*last)();
  fns.push_back(*last);
  return internal::call_branch<R>(internal::first_true(predicates, site), fns,
                                  site);
}

}  // namespace berth

#endif  // BERTH_OPS_CONTROL_FLOW_H_
