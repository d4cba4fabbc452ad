// Callable: a function as an attribute value (PartitionedCall, cond, while).
//
// The interface lives here so that ops and tapes can hold one; graphs implement
// it. Thread-safe: calls may run at the same time.

#ifndef BERTH_OP_CALLABLE_H_
#define BERTH_OP_CALLABLE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/shape.h"
#include "berth/tensor.h"

namespace berth {

class Attrs;
class Graph;  // graph/graph.h
class OpDef;

class Callable {
 public:
  virtual ~Callable() = default;

  virtual const std::string& name() const = 0;
  virtual const std::vector<TensorSpec>& input_specs() const = 0;
  virtual const std::vector<TensorSpec>& output_specs() const = 0;

  // The graph of the function; null when only its specs are known.
  virtual const Graph* body() const { return nullptr; }

  // Runs the function: in -> out, both in the order of the specs.
  virtual void call(std::span<const Tensor* const> in,
                    std::span<Tensor> out) = 0;

  // Returns d(outputs)/d(inputs) applied to `grads` (an empty tensor: zero);
  // `in` and `out` are those of the call. An input that no output depends on
  // gets an empty tensor. Throws errors::Unimplemented when an op inside has
  // no gradient.
  virtual Tensors gradient(std::span<const Tensor> in,
                           std::span<const Tensor> out, const Tensors& grads,
                           const std::vector<bool>& needed) = 0;
};

}  // namespace berth

#endif  // BERTH_OP_CALLABLE_H_
