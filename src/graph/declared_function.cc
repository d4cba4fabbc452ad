#include "graph/declared_function.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "graph/graph.h"

namespace berth {

namespace {

std::vector<TensorSpec> specs_of(const std::vector<OutSpec>& list) {
  std::vector<TensorSpec> specs;
  for (const OutSpec& s : list) specs.push_back({s.shape, s.dtype, {}});
  return specs;
}

std::vector<OutSpec> out_specs_of(const std::vector<TensorSpec>& list) {
  std::vector<OutSpec> specs;
  for (const TensorSpec& s : list) specs.push_back({s.dtype, s.shape});
  return specs;
}

}  // namespace

Signature signature_of(const Callable& f) {
  if (const auto* declared = dynamic_cast<const DeclaredFunction*>(&f)) {
    return declared->signature();
  }
  Signature s;
  if (const Graph* body = f.body()) {
    for (const int32_t a : body->args) {
      s.inputs.push_back((*body)[a].outputs[0]);
    }
    for (const ValueRef v : body->outputs) s.outputs.push_back(body->spec(v));
    return s;
  }
  return {out_specs_of(f.input_specs()), out_specs_of(f.output_specs())};
}

DeclaredFunction::DeclaredFunction(std::string name, Signature signature)
    : name_(std::move(name)),
      signature_(std::move(signature)),
      inputs_(specs_of(signature_.inputs)),
      outputs_(specs_of(signature_.outputs)) {}

void DeclaredFunction::call(std::span<const Tensor* const>, std::span<Tensor>) {
  refuse();
}

Tensors DeclaredFunction::gradient(std::span<const Tensor>,
                                   std::span<const Tensor>, const Tensors&,
                                   const std::vector<bool>&) {
  refuse();
}

void DeclaredFunction::refuse() const {
  throw errors::FailedPrecondition(fmt::format(
      "function '{}' is only declared by the text of its graph; expected a "
      "traced function: trace it in this process",
      name_));
}

}  // namespace berth
