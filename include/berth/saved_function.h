// ConcreteFunction: the computation of a Function for arguments of given
// shapes, as a value that can be saved, loaded and called.
//
//   auto step = berth::function([&](const Tensor& x) { return model(x); });
//   get_concrete_function(step, x).save("step.safetensors");
//   Tensor y = load_function("step.safetensors")({x})[0];
// The file is a safetensors file: the graph's text (docs/graph-format.md) is in
// its metadata, variables and large constants are its tensors. `berth place`,
// `berth plan` and `berth run` take it.
// Value handles; calls may overlap.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_SAVED_FUNCTION_H_
#define BERTH_SAVED_FUNCTION_H_

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/function.h"
#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/tree.h"
#include "berth/variable.h"

namespace berth {

struct ConcreteFunctionOptions {
  std::string name = "function";
  // Specs of the tensor leaves in order; -1 in a shape accepts any length.
  // Empty: the shapes and dtypes of the arguments.
  std::vector<TensorSpec> input_signature = {};
};

struct SaveFunctionOptions {
  bool overwrite = true;  // false: an existing file is an error
};

class ConcreteFunction {
 public:
  // Calls it with the tensor leaves of the arguments, in order; returns those
  // of the result. Works under a tape and inside another trace, like a
  // Function. Throws errors::InvalidArgument unless they match input_specs().
  Tensors operator()(const Tensors& leaves, Site site = Site::here()) const;

  const std::string& name() const;
  const std::vector<TensorSpec>& input_specs() const;
  const std::vector<TensorSpec>& output_specs() const;
  // Variables of a loaded one; one traced here has variables of the program.
  const std::vector<Variable>& variables() const;
  // The graph as traced.
  std::string text() const;

  // Writes the graph and the values of its variables, atomically. Throws
  // errors::AlreadyExists, InvalidArgument (another format; constants of more
  // than 256 MB, which should be variables), and errors of files:
  // PermissionDenied, ResourceExhausted, Unavailable (another writer).
  void save(const std::string& filepath, const SaveFunctionOptions& = {},
            Site site = Site::here()) const;

  struct Impl;
  explicit ConcreteFunction(std::shared_ptr<const Impl> impl)
      : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

// Loads a file of ConcreteFunction::save(), with variables of its own that have
// the saved names and values. Throws errors::NotFound, PermissionDenied,
// DataLoss (truncated, damaged, or changed), InvalidArgument (another
// safetensors file; an invalid graph), Unimplemented.
ConcreteFunction load_function(const std::string& filepath,
                               Site site = Site::here());

namespace internal {
ConcreteFunction trace_concrete(
    const ConcreteFunctionOptions& options,
    const std::function<Tensors(const Tensors&)>& fn,
    std::vector<TensorSpec> leaves, Site site);
}  // namespace internal

// Traces a Function for arguments like these; runs nothing.
template <class R, class... Args>
ConcreteFunction get_concrete_function(
    const Function<R(Args...)>& f, const ConcreteFunctionOptions& options,
    const std::type_identity_t<std::decay_t<Args>>&... args) {
  std::tuple<std::decay_t<Args>...> values(args...);
  FlattenTree flat;
  visit_tree(values, flat);
  std::vector<TensorSpec> specs;
  for (const Tensor& t : flat.leaves) specs.push_back(t.spec());
  const auto trace = [&](const Tensors& leaves) {
    RebuildTree put(leaves);
    visit_tree(values, put);
    FlattenTree results;
    if constexpr (std::is_void_v<R>) {
      std::apply([&](auto&... a) { f(a...); }, values);
    } else {
      std::decay_t<R> result =
          std::apply([&](auto&... a) { return f(a...); }, values);
      visit_tree(result, results);
    }
    return results.leaves;
  };
  return internal::trace_concrete(options, trace, std::move(specs),
                                  Site::here());
}
template <class R, class... Args>
ConcreteFunction get_concrete_function(
    const Function<R(Args...)>& f,
    const std::type_identity_t<std::decay_t<Args>>&... args) {
  return get_concrete_function(f, ConcreteFunctionOptions{}, args...);
}

}  // namespace berth

#endif  // BERTH_SAVED_FUNCTION_H_
