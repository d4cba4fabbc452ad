// Ops of your own: schema, shape rule, gradient, split rule and kernels.
//
// register_op() describes an op with the calls that the catalogue uses;
// register_kernels() (berth/op/kernel.h) gives it a kernel per device type. It
// then runs eagerly and is traced, differentiated, split and placed like any
// other op. examples/custom_op is a complete program. Register before anything
// computes: kernels are refused once devices exist. Registering is not
// thread-safe; rules and kernels are called from any thread.
//
//   register_op("Cube")
//       .input("x", kFloatingTypes)
//       .output("y")
//       .infer(&infer_same_as_0)
//       .split(&split_elementwise)
//       .gradient([](const GradCall& g) {
//         return Tensors{3.0 * g.dy() * g.x(0) * g.x(0)};
//       });
//   register_kernels("CPU", [](KernelTable& table) {
//     table.direct("Cube", dtype_bit(float32), &cube_kernel, "mine");
//   });
//   Tensor y = call_op("Cube", {x})[0];

#ifndef BERTH_CUSTOM_OP_H_
#define BERTH_CUSTOM_OP_H_

#include <string>
#include <string_view>
#include <vector>

#include "berth/op/kernel.h"
#include "berth/op/op_def.h"
#include "berth/op/op_registry.h"
#include "berth/site.h"
#include "berth/tensor.h"

namespace berth {

// Starts the description of an op; it is registered at the end of the
// statement. Throws errors::InvalidArgument for a name that exists, and if the
// op lacks a gradient, a decomposition and not_differentiable().
OpBuilder register_op(std::string name);

// Calls an op by its name; omitted attributes have their defaults. Returns its
// outputs. Throws errors::NotFound, and the errors of the op.
Tensors call_op(std::string_view name, const Tensors& inputs,
                std::vector<Attrs::Pair> attrs = {}, Site site = Site::here());

}  // namespace berth

#endif  // BERTH_CUSTOM_OP_H_
