// Apart from ops/testing.h, because the tape is in another module.

#include "berth/gradient_tape.h"
#include "ops/testing.h"

namespace berth::test {

Tensor adjoint(const Tensor& x, const Tensor& weights,
               const std::function<Tensor(const Tensor&)>& fn) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = fn(x);
  return tape.gradient(y, x, {.output_grad = weights});
}

}  // namespace berth::test
