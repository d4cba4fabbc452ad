// Functions as a graph text declares them: by their signature, perhaps without
// a body. Immutable values; thread-safe.

#ifndef BERTH_GRAPH_DECLARED_FUNCTION_H_
#define BERTH_GRAPH_DECLARED_FUNCTION_H_

#include <string>
#include <vector>

#include "op/callable.h"
#include "op/infer.h"

namespace berth {

// What a function takes and returns, handles of variables with the dtypes of
// those.
struct Signature {
  std::vector<OutSpec> inputs, outputs;
  bool operator==(const Signature&) const = default;
};

// Returns what the text says, else what the body does, else the specs.
Signature signature_of(const Callable& f);

// A function that a text names but does not contain. Calling it throws
// errors::FailedPrecondition.
class DeclaredFunction final : public Callable {
 public:
  DeclaredFunction(std::string name, Signature signature);

  const Signature& signature() const { return signature_; }
  const std::string& name() const override { return name_; }
  const std::vector<TensorSpec>& input_specs() const override {
    return inputs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return outputs_;
  }
  void call(std::span<const Tensor* const> in, std::span<Tensor> out) override;
  Tensors gradient(std::span<const Tensor> in, std::span<const Tensor> out,
                   const Tensors& grads,
                   const std::vector<bool>& needed) override;

 private:
  [[noreturn]] void refuse() const;

  std::string name_;
  Signature signature_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace berth

#endif  // BERTH_GRAPH_DECLARED_FUNCTION_H_
