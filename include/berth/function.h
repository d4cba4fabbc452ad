// function: traces a C++ callable into a graph and runs it as a compiled plan
// (tf.function).
//
// The callable runs once per signature (shapes and dtypes of its tensors,
// values of its other arguments, device scope) with symbolic tensors; its
// computation becomes a graph, which is optimised, placed and compiled. Later
// calls run the plan. Inside another trace the callable is inlined; under a
// GradientTape the call is one differentiable operation. Thread-safe: calls may
// overlap.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_FUNCTION_H_
#define BERTH_FUNCTION_H_

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/placement.h"
#include "berth/placement_policy.h"
#include "berth/tensor.h"
#include "berth/tree.h"

namespace berth {

class GraphRewrite;  // function/graph_rewrite.h

struct FunctionOptions {
  std::string name = "function";
  // Specs of the tensor leaves in order; -1 in a shape accepts any length and
  // traces once for all of them. Empty: each shape is traced by itself.
  std::vector<TensorSpec> input_signature = {};
  // Parts that parallel work is split into: results depend on this number only,
  // not on the number of cores. 0: the number of cores.
  int slices = 0;
  // Constant folding, merging, algebra, dead code.
  bool optimize = true;
  // Checked before the first step and against each run; a violation throws
  // errors::FailedPrecondition: .contract = placement::Contract{...}.
  berth::placement::Contracts contract = {};
  // The policy that places the ops: .placement = placement::Auto{...}, or
  // "auto", or "rules". Empty: config::set_placement_policy().
  berth::placement::Policy placement = {};
  // Rewrites each graph before it is placed; used by strategies.
  std::shared_ptr<const GraphRewrite> rewrite = {};
};

// Figures of one compiled signature.
struct FunctionPlanInfo {
  int ops_traced = 0;  // nodes as the callable made them
  int ops = 0;         // after optimisation
  int regions = 0;     // instructions of the plan
  int transfers = 0;   // between devices, per run
  size_t copied_bytes = 0;
  size_t peak_bytes = 0;   // arenas and outputs
  size_t bound_bytes = 0;  // a lower bound for any plan of these values
  double trace_seconds = 0;
  double compile_seconds = 0;
};

// The part of a Function that does not depend on C++ types.
class FunctionCore {
 public:
  // Callbacks into the typed part.
  struct Body {
    void* context;
    // Runs the callable on `leaves` in place of the arguments' tensors; returns
    // the leaves of its result and keeps its structure in `result`.
    Tensors (*trace)(void* context, const Tensors& leaves, std::any* result);
    // How many times the input_signature occurs in the leaves (replicas).
    int copies = 1;
  };

  // Inputs and results of one call. Each thread keeps one, so that a warm call
  // allocates nothing; a call inside a trace finds it in use.
  struct Scratch {
    FlattenTree flat;
    Tensors results;
    bool busy = false;
  };
  static Scratch& scratch_of_this_thread();

  explicit FunctionCore(FunctionOptions options);
  ~FunctionCore();
  FunctionCore(const FunctionCore&) = delete;
  FunctionCore& operator=(const FunctionCore&) = delete;

  // Calls with the tensor leaves and the signature text of the other
  // arguments. Sets `results` to the leaves of the result and `structure` to
  // the structure that Body::trace kept.
  void call(const Tensors& leaves, const std::string& fixed, const Body& body,
            Tensors* results, std::shared_ptr<const std::any>* structure,
            Site site);

  // Text of the last signature called: stage "trace", "optimize", "place" or
  // "plan". Throws errors::FailedPrecondition before the first call.
  std::string text(const std::string& stage) const;
  FunctionPlanInfo plan_info() const;
  berth::placement::Report placement() const;
  std::vector<berth::placement::Report> placements() const;
  berth::placement::Explanation explain(const std::string& op) const;
  int num_traces() const;

  // The state that decides the random numbers of future calls, as text for
  // checkpoints: for each signature the numbers of its random calls, and how
  // often it ran.
  std::string random_state() const;
  // Continues from that state, with signatures that are traced already and
  // later ones. Throws errors::InvalidArgument for an invalid text.
  void set_random_state(const std::string& text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Signature>
class Function;

template <class R, class... Args>
class Function<R(Args...)> {
 public:
  Function(std::function<R(Args...)> fn, FunctionOptions options)
      : shared_(std::make_shared<Shared>(std::move(fn), std::move(options))) {}

  // Calls the function. Throws the errors of tracing, compiling and running,
  // which name the user's line.
  R operator()(Args... args, Site site = Site::here()) const {
    Values values(std::forward<Args>(args)...);
    Scratch& kept = FunctionCore::scratch_of_this_thread();
    Scratch fresh;
    Scratch& s = kept.busy ? fresh : kept;
    const Use use(&s);
    visit_tree(values, s.flat);
    Call call{&shared_->fn, &values};
    std::shared_ptr<const std::any> structure;
    shared_->core.call(s.flat.leaves, s.flat.text, {&call, &Call::trace},
                       &s.results, &structure, site);
    if constexpr (!std::is_void_v<R>) {
      Result result = *std::any_cast<Result>(structure.get());
      RebuildTree rebuild(s.results);
      visit_tree(result, rebuild);
      return result;
    }
  }

  // Text of the last signature called: "trace", "optimize", "place", "plan".
  std::string text(const std::string& stage) const {
    return shared_->core.text(stage);
  }
  FunctionPlanInfo plan_info() const { return shared_->core.plan_info(); }
  int num_traces() const { return shared_->core.num_traces(); }
  FunctionCore& core() const { return shared_->core; }

  // What ran where, for the last signature called. Throws
  // errors::FailedPrecondition before the first call.
  berth::placement::Report placement() const {
    return shared_->core.placement();
  }
  // Returns one report per kept signature, the last called first; calls under a
  // tape and their gradients have separate reports.
  std::vector<berth::placement::Report> placements() const {
    return shared_->core.placements();
  }
  // Why an op of the last signature is where it is, and what would move it.
  //   op  its name as traced or compiled, or a layer or op that it lies under:
  //       "dense/MatMul". Throws errors::NotFound with the nearest names.
  berth::placement::Explanation explain(const std::string& op) const {
    return shared_->core.explain(op);
  }

 private:
  using Values = std::tuple<std::decay_t<Args>...>;
  using Result = std::conditional_t<std::is_void_v<R>, bool, std::decay_t<R>>;

  struct Shared {
    Shared(std::function<R(Args...)> f, FunctionOptions options)
        : fn(std::move(f)), core(std::move(options)) {}
    std::function<R(Args...)> fn;
    FunctionCore core;
  };

  using Scratch = FunctionCore::Scratch;

  struct Use {
    explicit Use(Scratch* s) : scratch(s) { scratch->busy = true; }
    ~Use() {
      scratch->flat.leaves.clear();
      scratch->flat.text.clear();
      scratch->results.clear();
      scratch->busy = false;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Scratch* scratch;
  };

  struct Call {
    const std::function<R(Args...)>* fn;
    Values* values;

    static Tensors trace(void* context, const Tensors& leaves,
                         std::any* result) {
      Call& call = *static_cast<Call*>(context);
      Values symbolic = *call.values;
      RebuildTree put(leaves);
      visit_tree(symbolic, put);
      FlattenTree flat;
      if constexpr (std::is_void_v<R>) {
        std::apply(*call.fn, symbolic);
        *result = true;
      } else {
        Result r = std::apply(*call.fn, symbolic);
        visit_tree(r, flat);
        *result = std::move(r);
      }
      return flat.leaves;
    }
  };

  std::shared_ptr<Shared> shared_;
};

namespace internal {
template <class F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct SignatureOf<R(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...)> {
  using type = R(A...);
};
template <class F>
inline constexpr bool has_one_signature = false;
template <class F>
requires requires {
  &F::operator();
} || std::is_function_v<F> || std::is_function_v<std::remove_pointer_t<F>> ||
    std::is_member_function_pointer_v<F>
inline constexpr bool has_one_signature<F> = true;
}  // namespace internal

// Makes a Function of a callable that is not overloaded.
//   auto step = berth::function([&](const Tensor& x) { return model(x); });
template <class F>
auto function(F&& fn, FunctionOptions options = {}) {
  using Plain = std::remove_cvref_t<F>;
  static_assert(internal::has_one_signature<Plain>,
                "berth::function takes a callable with one signature: a "
                "function, or a lambda whose parameters are not `auto`");
  if constexpr (internal::has_one_signature<Plain>) {
    using Signature = typename internal::SignatureOf<Plain>::type;
    return Function<Signature>(std::forward<F>(fn), std::move(options));
  }
}

}  // namespace berth

#endif  // BERTH_FUNCTION_H_
