#include <gtest/gtest.h>

#include <cstdlib>

#include "base/errors_testing.h"
#include "berth/berth.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "eager/kernel_cache.h"
#include "eager/testing.h"
#include "op/dispatcher.h"
#include "op/infer.h"
#include "op/kernel.h"
#include "ops/op_call.h"

namespace berth {
namespace {

// y = x * factor: an op of the user's own with a kernel everywhere.
void scale(const KernelCall& c) {
  const auto factor = static_cast<float>(c.attr<double>("factor"));
  for (int64_t i = 0; i < c.in[0].size(); ++i) {
    c.out[0].as<float>()[i] = c.in[0].as<float>()[i] * factor;
  }
}

// Its factor is fixed when it is prepared.
class Scaled final : public Prepared {
 public:
  explicit Scaled(double factor) : factor_(static_cast<float>(factor)) {}
  void run(const KernelCall& c) const override {
    for (int64_t i = 0; i < c.in[0].size(); ++i) {
      c.out[0].as<float>()[i] = c.in[0].as<float>()[i] * factor_;
    }
  }

 private:
  float factor_;
};

Tensor scaled(const Tensor& x, double factor, const char* name = "TestScale") {
  const AttrsRef attrs({{"factor", factor}});
  return call1(op_named(name), x, attrs.get());
}

Tensor cube(const Tensor& x) { return call1(op_named("TestCube"), x); }

Tensors cube_parts(std::span<const Tensor> in, const OpDef&, const Attrs*) {
  return {math::multiply(math::square(in[0]), in[0])};
}

Tensors host_parts(std::span<const Tensor> in, const OpDef&, const Attrs*) {
  return {math::square(scaled(in[0], 3, "TestHostOnly"))};
}

Tensors endless_parts(std::span<const Tensor> in, const OpDef& op,
                      const Attrs*) {
  return {call1(op, in[0])};
}

const bool kReady = [] {
  setenv("BERTH_SIM", "GPUx2", 1);
  OpRegistry& r = OpRegistry::get();
  for (const char* name : {"TestScale", "TestPrepared", "TestHostOnly"}) {
    r.op(name)
        .input("x", kFloatingTypes)
        .output("y")
        .attr("factor", 1.0)
        .infer(&infer_same_as_0)
        .gradient([](const GradCall& c) -> Tensors {
          return {
              scaled(c.dy(), c.attr<double>("factor"), c.op().name().c_str())};
        });
  }
  r.op("TestCube")
      .input("x", kFloatingTypes)
      .output("y")
      .infer(&infer_same_as_0)
      .decompose(&cube_parts);
  r.op("TestOverHost")
      .input("x", kFloatingTypes)
      .output("y")
      .infer(&infer_same_as_0)
      .decompose(&host_parts);
  r.op("TestEndless")
      .input("x")
      .output("y")
      .infer(&infer_same_as_0)
      .decompose(&endless_parts);
  r.op("TestNowhere")
      .input("x")
      .output("y")
      .infer(&infer_same_as_0)
      .not_differentiable();
  for (const char* type : {"CPU", "GPU"}) {
    register_kernels(type, [](KernelTable& t) {
      t.direct("TestScale", dtype_bit(float32), &scale, "user");
      t.prepared(
          "TestPrepared", dtype_bit(float32),
          [](const PrepareArgs& a) -> std::unique_ptr<Prepared> {
            return std::make_unique<Scaled>(a.attr<double>("factor"));
          },
          "user");
    });
  }
  register_kernels("CPU", [](KernelTable& t) {
    t.direct("TestHostOnly", dtype_bit(float32), &scale, "user");
  });
  return true;
}();

TEST(EagerDevice, WithoutAScopeItIsTheFirstAcceleratorWhereverInputsAre) {
  const Tensor x = values_on("/CPU:0", {1, 2});
  EXPECT_TRUE(says(x.device(), "CPU:0"));
  EXPECT_TRUE(says(math::add(x, x).device(), "GPU:0"));
  const Tensor y = values_on("/GPU:1", {1, 2});
  EXPECT_TRUE(says(math::add(y, y).device(), "GPU:0"));
}

TEST(EagerDevice, AScopeDecidesAndInputsComeOver) {
  const Tensor x = values_on("/GPU:0", {1, 2});
  const auto on = device("/GPU:1");
  Tensor y = math::add(x, values_on("/CPU:0", {3, 4}));
  EXPECT_TRUE(says(y.device(), "GPU:1"));
  EXPECT_EQ(y.to_vector<float>(), (Floats{4, 6}));
  // A name that leaves the number open takes the first that fits.
  EXPECT_TRUE(
      says(with_device("/device:CPU", [&] { return math::add(x, x).device(); }),
           "CPU:0"));
}

TEST(EagerDevice, AVariablePinsTheOpsThatTouchIt) {
  const Variable v = with_device("/GPU:1", [] {
    return Variable(constant({1.f, 2.f}));
  });
  const auto on = device("/CPU:0");
  v.assign_add(constant({10.f, 10.f}));
  EXPECT_TRUE(says(v.value().backing_device(), "GPU:1"));
  // What is computed from its value follows the scope again.
  const Tensor y = math::add(v, v);
  EXPECT_TRUE(says(y.device(), "CPU:0"));
  EXPECT_EQ(y.to_vector<float>(), (Floats{22, 24}));
}

TEST(EagerDevice, AMissingKernelNamesTheDevicesThatHaveOne) {
  const Tensor x = values_on("/GPU:0", {1, 2});
  // Nobody asked: the first device that can.
  const Tensor y = scaled(x, 3, "TestHostOnly");
  EXPECT_TRUE(says(y.device(), "CPU:0"));
  EXPECT_EQ(y.to_vector<float>(), (Floats{3, 6}));
  config::set_soft_device_placement(config::SoftPlacement::kError);
  const auto on = device("/GPU:1");
  const std::string m =
      message_of<errors::Unimplemented>([&] { scaled(x, 3, "TestHostOnly"); });
  config::set_soft_device_placement(true);
  EXPECT_TRUE(says(m, "TestHostOnly: no kernel for float32 on GPU:1"));
  EXPECT_TRUE(says(m, "asked for by device(\"/device:GPU:1\")"));
  EXPECT_TRUE(says(m, "these devices have one: CPU:0"));
}

TEST(EagerDevice, AnOpWithoutAnyKernelSaysSo) {
  const Tensor x = values_on("/CPU:0", {1});
  const std::string m = message_of<errors::Unimplemented>(
      [&] { call1(op_named("TestNowhere"), x); });
  EXPECT_TRUE(says(m, "TestNowhere"));
  EXPECT_TRUE(says(m, "no device has one"));
}

TEST(EagerCalls, AreCheckedAgainstTheSchema) {
  const Tensor x = values_on("/CPU:0", {1, 2}), none;
  const auto on = device("/CPU:0");
  const OpDef& add = op_named("AddV2");
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] { call1(add, x); }),
                   "AddV2: 1 inputs given; expected 2"));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] {
                     call1(add, {&x, &x, &x});
                   }),
                   "AddV2: 3 inputs given; expected 2"));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] {
                     call1(add, std::initializer_list<const Tensor*>{});
                   }),
                   "AddV2: 0 inputs given; expected 2"));
  EXPECT_TRUE(
      says(message_of<errors::FailedPrecondition>([&] { call1(add, x, none); }),
           "is an empty Tensor"));
  EXPECT_TRUE(says(
      message_of<errors::InvalidArgument>([&] { call1(op_named("_Arg"), x); }),
      "_Arg"));
}

TEST(EagerCalls, AShapeOfMoreBytesThanThereAreIsAnError) {
  const auto on = device("/CPU:0");
  const int64_t n = int64_t{1} << 40;
  EXPECT_THROW(zeros({n, n}), errors::InvalidArgument);
  EXPECT_THROW(zeros({n, n, n, 16}), errors::InvalidArgument);
  auto f = function([&](const Tensor& x) { return x + zeros({n, n}); });
  EXPECT_THROW(f(constant(1.f)), errors::InvalidArgument);
  EXPECT_EQ(zeros({n, 0, n}).num_elements(), 0);
}

TEST(KernelCache, IsBounded) {
  const Tensor x = values_on("/CPU:0", {1, 2});
  const auto on = device("/CPU:0");
  const size_t before = interned_attrs();
  for (int i = 0; i < 2000; ++i) scaled(x, i, "TestPrepared");
  // Each entry keeps its attributes alive.
  EXPECT_LE(interned_attrs(), before + 512);
}

// The kernel that an eager call binds for one random tensor.
std::shared_ptr<const BoundKernel> kernel_of_draw(int64_t op_id,
                                                  const Shape& shape) {
  const OpDef& op = op_named("RandomUniform");
  const AttrsRef attrs({{"shape", shape}, {"op_id", op_id}});
  const OutSpec out{float32, shape};
  Device& device = DeviceManager::get().default_device();
  return cached_kernel(device, {&op, attrs.get(), {}, {&out, 1}});
}

TEST(KernelCache, RandomCallsShareAnEntryThoughEachHasItsOwnNumber) {
  const auto first = kernel_of_draw(1, {3});
  EXPECT_EQ(kernel_of_draw(2, {3}), first);
  EXPECT_EQ(kernel_of_draw(3, {4, 5}), first);
}

TEST(KernelCache, TellsAttributesShapesDtypesAndDevicesApart) {
  for (const char* where : {"/CPU:0", "/GPU:0", "/CPU:0", "/GPU:1"}) {
    const auto on = device(where);
    const Tensor x = constant({1.f, 2.f}), z = constant({1.f, 2.f, 3.f});
    for (double factor : {2., 3., 2.}) {
      const auto f = static_cast<float>(factor);
      EXPECT_EQ(scaled(x, factor, "TestPrepared").to_vector<float>(),
                (Floats{f, 2 * f}));
      EXPECT_EQ(scaled(z, factor, "TestPrepared").to_vector<float>(),
                (Floats{f, 2 * f, 3 * f}));
    }
    EXPECT_THROW(scaled(math::cast(x, float64), 2, "TestPrepared"),
                 errors::Unimplemented);
  }
}

TEST(CustomOp, RunsEagerlyInFunctionsAndBackwardsOnEveryDevice) {
  for (const char* where : {"/CPU:0", "/GPU:0", "/GPU:1"}) {
    const auto on = device(where);
    const Tensor x = constant({1.f, -2.f});
    for (const char* name : {"TestScale", "TestPrepared"}) {
      EXPECT_EQ(scaled(x, 3, name).to_vector<float>(), (Floats{3, -6}));
      auto f =
          function([&](const Tensor& t) { return scaled(t + 1.0, 4, name); });
      EXPECT_EQ(f(x).to_vector<float>(), (Floats{8, -4})) << where;
      GradientTape tape;
      tape.watch(x);
      const Tensor y = math::square(scaled(x, 3, name));
      // d (3x)^2 = 18x
      EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (Floats{18, -36}));
    }
  }
}

TEST(CustomOp, ADecomposedOneNeedsNoKernel) {
  for (const char* where : {"/CPU:0", "/GPU:0", "/GPU:1"}) {
    const auto on = device(where);
    const Tensor x = constant({2.f, -3.f});
    const Tensor y = cube(x);
    EXPECT_TRUE(says(y.device(), where + 1));
    EXPECT_EQ(y.to_vector<float>(), (Floats{8, -27}));
    auto f = function([](const Tensor& t) { return cube(cube(t)); });
    EXPECT_EQ(f(constant({-1.f, 2.f})).to_vector<float>(), (Floats{-1, 512}))
        << where;
    GradientTape tape;
    tape.watch(x);
    EXPECT_EQ(tape.gradient(cube(x), x).to_vector<float>(), (Floats{12, 27}));
  }
}

TEST(CustomOp, ADecompositionThatDoesNotEndIsAnError) {
  const auto on = device("/CPU:0");
  const Tensor x = constant({1.f});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(says(message_of<errors::Internal>(
                         [&] { call1(op_named("TestEndless"), x); }),
                     "its decomposition does not end"));
  }
  EXPECT_EQ(t_state.depth, 0);
}

}  // namespace
}  // namespace berth
