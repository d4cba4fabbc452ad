// An op that a program registers itself behaves like one of the catalogue.

#include "berth/custom_op.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "berth/berth.h"

namespace berth {
namespace {

const bool kSimulated = setenv("BERTH_SIM", "GPUx2", 1) == 0;

template <class T>
void cube(const KernelCall& call) {
  const T* x = call.in[0].as<T>();
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    call.out[0].as<T>()[i] = x[i] * x[i] * x[i];
  }
}

// Before any device exists: kernels are refused later.
const bool kRegistered = [] {
  register_op("TestCube")
      .input("x", kFloatingTypes)
      .output("y")
      .infer(&infer_same_as_0)
      .split(&split_elementwise)
      .gradient([](const GradCall& g) {
        return Tensors{3.0 * g.dy() * g.x(0) * g.x(0)};
      });
  for (const char* type : {"CPU", "GPU"}) {
    register_kernels(type, [](KernelTable& table) {
      table.direct("TestCube", dtype_bit(float64), &cube<double>, "test");
    });
  }
  return true;
}();

Tensor cube(const Tensor& x) { return call_op("TestCube", {x})[0]; }

TEST(CustomOp, RunsOnEveryDeviceEagerlyTracedAndInControlFlow) {
  for (const char* where : {"/CPU:0", "/GPU:0", "/GPU:1"}) {
    const auto on = device(where);
    const Tensor x = constant(2.0);
    EXPECT_EQ(cube(x).item<double>(), 8) << where;
    auto f = function([](const Tensor& x) {
      GradientTape outer;
      outer.watch(x);
      GradientTape tape;
      tape.watch(x);
      const Tensor y = cond(
          x > 0.0, [&] { return cube(x); }, [&] { return x; });
      const Tensor d = tape.gradient(y, x);
      return Tensors{y, d, outer.gradient(d, x)};
    });
    const Tensors r = f(x);
    EXPECT_EQ(r[0].item<double>(), 8) << where;
    EXPECT_EQ(r[1].item<double>(), 12) << where;
    EXPECT_EQ(r[2].item<double>(), 12) << where;
  }
}

TEST(CustomOp, MisuseIsANamedError) {
  EXPECT_THROW(call_op("NoSuchOp", {constant(1.0)}), errors::NotFound);
  EXPECT_THROW(call_op("TestCube", {}), errors::InvalidArgument);
  EXPECT_THROW(call_op("TestCube", {Tensor()}), errors::InvalidArgument);
  EXPECT_THROW(call_op("TestCube", {constant(1.0)}, {{"what", 1.0}}),
               errors::InvalidArgument);
  EXPECT_THROW(register_op("TestCube").not_differentiable(), errors::Error);
  EXPECT_THROW(cube(constant(2.0f)), errors::Unimplemented);
}

}  // namespace
}  // namespace berth
