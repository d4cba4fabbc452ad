// An op that a program registers behaves like one of the catalogue.

#include "berth/custom_op.h"

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "function/sim_testing.h"
#include "graph/graph.h"

namespace berth {
namespace {

template <class T>
void cube(const KernelCall& call) {
  const T* x = call.in[0].as<T>();
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    call.out[0].as<T>()[i] = x[i] * x[i] * x[i];
  }
}

// var = keep var - rate grad
void decay(const KernelCall& call) {
  const auto keep = static_cast<float>(call.attr<double>("keep"));
  const float rate = *call.in[1].as<float>(), *grad = call.in[2].as<float>();
  float* var = call.in[0].as<float>();
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    var[i] = keep * var[i] - rate * grad[i];
  }
}

// Before any device exists: later registrations are refused.
const bool kCubeRegistered = [] {
  register_op("TestCube")
      .input("x", kFloatingTypes)
      .output("y")
      .infer(&infer_same_as_0)
      .split(&split_elementwise)
      .gradient([](const GradCall& g) {
        return Tensors{3.0 * g.dy() * g.x(0) * g.x(0)};
      });
  register_op("TestDecay")
      .writes_variable("var")
      .input("rate", kFloatingTypes)
      .input("grad", kFloatingTypes)
      .attr("keep", 1.0)
      .update("grad")
      .not_differentiable();
  register_kernels("CPU", [](KernelTable& table) {
    table.direct("TestDecay", dtype_bit(float32), &decay, "test");
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

TEST(CustomOp, SmallUpdatesOfItsOwnAreMerged) {
  const auto on = device("/CPU:0");
  const Variable a(constant({1.0f, 2.0f})), b(constant(8.0f));
  auto step = function([&](const Tensor& rate) {
    for (const Variable& v : {a, b}) {
      call_op("TestDecay", {v.handle(), rate, v.value() * 0.5f},
              {{"keep", 0.5}});
    }
    return rate;
  });
  step(constant(0.5f));
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{0.25f, 0.5f}));
  EXPECT_EQ(b.value().item<float>(), 2);  // 8 / 2 - 0.5 * 4
  const std::string text = step.text("place");
  EXPECT_EQ(text.find("= TestDecay"), std::string::npos) << text;
  EXPECT_NE(text.find("_MultiApply"), std::string::npos) << text;
  EXPECT_EQ(print(parse_graph(text)), text);
}

TEST(CustomOp, AnUpdateMustNameItsGradient) {
  EXPECT_THROW(register_op("TestNoGrad")
                   .writes_variable("var")
                   .input("rate")
                   .update("grad")
                   .not_differentiable(),
               errors::InvalidArgument);
  EXPECT_THROW(register_op("TestNoVariable")
                   .input("grad")
                   .update("grad")
                   .not_differentiable(),
               errors::InvalidArgument);
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
