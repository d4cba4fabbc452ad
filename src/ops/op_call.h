// Helpers with which public functions and gradient rules call ops.
//
// Each builds the argument list and goes through the seam (op/dispatcher.h).

#ifndef BERTH_OPS_OP_CALL_H_
#define BERTH_OPS_OP_CALL_H_

#include <initializer_list>
#include <span>
#include <vector>

#include "op/dispatcher.h"
#include "op/op_registry.h"
#include "tensor/tensor_impl.h"

namespace berth {

// Calls an op with one output.
inline Tensor call1(const OpDef& op, const Tensor& a,
                    const Attrs* attrs = nullptr) {
  const Tensor* in[] = {&a};
  Tensor out;
  apply(op, in, attrs, {&out, 1});
  return out;
}
inline Tensor call1(const OpDef& op, const Tensor& a, const Tensor& b,
                    const Attrs* attrs = nullptr) {
  const Tensor* in[] = {&a, &b};
  Tensor out;
  apply(op, in, attrs, {&out, 1});
  return out;
}
inline Tensor call1(const OpDef& op, std::initializer_list<const Tensor*> in,
                    const Attrs* attrs = nullptr) {
  Tensor out;
  apply(op, {in.begin(), in.size()}, attrs, {&out, 1});
  return out;
}

// Calls an op with any number of inputs and outputs.
Tensors call_many(const OpDef& op, std::initializer_list<const Tensor*> in,
                  const Attrs* attrs = nullptr);
Tensors call_list(const OpDef& op, const Tensors& in,
                  const Attrs* attrs = nullptr);

// Returns a scalar of `like`'s dtype for a C++ number. Throws
// errors::InvalidArgument when the dtype cannot hold it (2.5 as int32).
Tensor scalar_like(const Tensor& like, double value);

// Returns `dy` summed over the axes along which `x` was broadcast to get
// dy's shape: [shape of x]. The gradient of broadcasting.
Tensor sum_to(const Tensor& dy, const Tensor& x);

// Returns `v` broadcast to the shape of `like`.
Tensor broadcast_like(const Tensor& v, const Tensor& like);

// Returns numel(a) / numel(b) as a scalar of a's dtype.
Tensor size_ratio(const Tensor& a, const Tensor& b);

}  // namespace berth

#endif  // BERTH_OPS_OP_CALL_H_
