// Updates by a GPU must equal the processor's bit for bit.

#include "ops/training.h"

#include <functional>
#include <map>

#include "backends/opencl/opencl_testing.h"
#include "backends/opencl/processor_loops_testing.h"
#include "berth/device.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "berth/variable.h"

namespace berth::opencl {
namespace {

using Values = std::vector<std::vector<double>>;

Tensor numbers(int64_t n, int64_t seed, DType dtype, bool positive = false) {
  const random::StatelessSeed by{seed, 1};
  return positive ? random::stateless_uniform({n}, by, {.dtype = dtype})
                  : random::stateless_normal({n}, by, {.dtype = dtype});
}

// Four variables and the gradient of the first.
struct Trained {
  std::vector<Variable> v;
  Tensor grad;

  Trained(int64_t n, DType dtype) : grad(numbers(n, 9, dtype)) {
    v.push_back(Variable(numbers(n, 1, dtype)));
    v.push_back(Variable(numbers(n, 2, dtype)));
    // Larger than the square of the mean before it, as a variance must be.
    v.push_back(Variable(numbers(n, 3, dtype, true) +
                         math::cast(constant(30.f), dtype)));
    v.push_back(Variable(numbers(n, 4, dtype)));
  }
  const Tensor& operator[](size_t i) const { return v[i].handle(); }
};

// Scalar operands, each made only once.
class Scalars {
 public:
  explicit Scalars(DType dtype) : dtype_(dtype) {}
  const Tensor& operator()(double x) {
    Tensor& t = made_[x];
    if (!t.defined()) t = math::cast(constant(x), dtype_);
    return t;
  }

 private:
  const DType dtype_;
  std::map<double, Tensor> made_;
};

using Update = std::function<void(const Trained&, Scalars&)>;

training::AdamScalars adam_scalars(Scalars& s) {
  return {s(0.729), s(0.997002999), s(0.01), s(0.9), s(0.999), s(1e-7)};
}
training::RmsPropScalars rms_scalars(Scalars& s) {
  return {s(0.01), s(0.9), s(0.7), s(1e-7)};
}

struct Named {
  const char* name;
  Update update;
};
const std::vector<Named>& updates() {
  static const auto& all = *new std::vector<Named>{
      {"gradient descent",
       [](const Trained& t, Scalars& s) {
         training::apply_gradient_descent(t[0], s(0.1), t.grad);
       }},
      {"momentum",
       [](const Trained& t, Scalars& s) {
         training::apply_momentum(t[0], t[1], s(0.1), t.grad, s(0.9), false);
       }},
      {"Nesterov's momentum",
       [](const Trained& t, Scalars& s) {
         training::apply_momentum(t[0], t[1], s(0.1), t.grad, s(0.9), true);
       }},
      {"Keras' momentum",
       [](const Trained& t, Scalars& s) {
         training::apply_keras_momentum(t[0], t[1], s(0.1), t.grad, s(0.9),
                                        true);
       }},
      {"Adam",
       [](const Trained& t, Scalars& s) {
         training::apply_adam(t[0], t[1], t[2], adam_scalars(s), t.grad, false);
       }},
      {"NAdam",
       [](const Trained& t, Scalars& s) {
         training::apply_adam(t[0], t[1], t[2], adam_scalars(s), t.grad, true);
       }},
      {"AdamW",
       [](const Trained& t, Scalars& s) {
         training::apply_adam_with_weight_decay(
             t[0], t[1], t[2], adam_scalars(s), s(0.004), t.grad, false);
       }},
      {"RMSProp",
       [](const Trained& t, Scalars& s) {
         training::apply_rms_prop(t[0], t[2], t[3], rms_scalars(s), t.grad);
       }},
      {"centered RMSProp",
       [](const Trained& t, Scalars& s) {
         training::apply_centered_rms_prop(t[0], t[1], t[2], t[3],
                                           rms_scalars(s), t.grad);
       }},
      {"Adagrad",
       [](const Trained& t, Scalars& s) {
         training::apply_adagrad(t[0], t[2], s(0.1), s(1e-7), t.grad);
       }},
  };
  return all;
}

Values after(const char* device, const Update& update, DType dtype) {
  const auto on = berth::device(device);
  const Trained t(10007, dtype);
  Scalars scalars(dtype);
  for (int step = 0; step < 3; ++step) update(t, scalars);
  Values values;
  for (const Variable& v : t.v) {
    values.push_back(math::cast(v.value(), float64).to_vector<double>());
  }
  return values;
}

class Training : public OpenClTest {
 protected:
  static void expect_same_bits(DType dtype) {
    for (const Named& u : updates()) {
      const Values want = after("/CPU:0", u.update, dtype);
      const Values got = after("/GPU:0", u.update, dtype);
      for (size_t i = 0; i < want.size(); ++i) {
        size_t differ = 0;
        for (size_t k = 0; k < want[i].size(); ++k) {
          differ += got[i][k] == want[i][k] ? 0 : 1;
        }
        EXPECT_EQ(differ, 0u) << u.name << ", variable " << i;
      }
    }
  }
};

TEST_F(Training, UpdatesOfFloat32HaveTheProcessorsBits) {
  if (!processor_loops_fuse()) {
    GTEST_SKIP() << "the processor's loops (v1) round products by themselves";
  }
  expect_same_bits(float32);
}

TEST_F(Training, UpdatesOfFloat64HaveTheProcessorsBits) {
  expect_same_bits(float64);
}

// Returns all variables of ten sets of small ones after two runs of a function
// in which the updates are merged.
Values after_merged(const char* device, const Update& update) {
  const auto on = berth::device(device);
  std::vector<Trained> all;
  for (int i = 0; i < 10; ++i) all.emplace_back(100 + 300 * i, float64);
  Scalars scalars(float64);
  update(all[0], scalars);  // creates them
  auto step = function([&](const Tensor& x) {
    for (const Trained& t : all) update(t, scalars);
    return x;
  });
  for (int i = 0; i < 2; ++i) step(constant(0.f));
  Values values;
  for (const Trained& t : all) {
    for (const Variable& v : t.v) {
      values.push_back(v.value().to_vector<double>());
    }
  }
  return values;
}

TEST_F(Training, MergedUpdatesAreThoseOfEach) {
  for (const Named& u : updates()) {
    EXPECT_TRUE(after_merged("/GPU:0", u.update) ==
                after_merged("/CPU:0", u.update))
        << u.name;
  }
}

// Returns the plan of `count` updates of `n` elements each on the device.
std::string plan_of_updates(const char* device, int count, int64_t n) {
  const auto on = berth::device(device);
  std::vector<Variable> all;
  for (int i = 0; i < count; ++i) all.push_back(Variable(ones({n})));
  auto step = function([&](const Tensor& rate, const Tensor& g) {
    for (const Variable& v : all) {
      training::apply_gradient_descent(v.handle(), rate, g);
    }
    return rate;
  });
  step(constant(0.5f), ones({n}));
  for (const Variable& v : all) {
    EXPECT_EQ(v.value().to_vector<float>().back(), 0.5f);
  }
  return step.text("plan");
}

TEST_F(Training, LargeUpdatesAreMergedOnACardAlone) {
  const auto has = [](const std::string& plan, const char* op) {
    return plan.find(op) != plan.npos;
  };
  const std::string there = plan_of_updates("/GPU:0", 12, 100'000);
  EXPECT_TRUE(has(there, "_MultiApply")) << there;
  EXPECT_FALSE(has(there, " ResourceApplyGradientDescent ")) << there;
  const std::string here = plan_of_updates("/CPU:0", 12, 100'000);
  EXPECT_FALSE(has(here, "_MultiApply")) << here;
  // Gradients that wait for the last of them must stay few.
  const std::string huge = plan_of_updates("/GPU:0", 2, 5'000'000);
  EXPECT_FALSE(has(huge, "_MultiApply")) << huge;
}

TEST_F(Training, AVariableTakesItsOwnValue) {
  const auto on = berth::device("/GPU:0");
  const Variable v(constant({1.f, 2.f, 3.f}));
  v.assign(v.value());
  v.assign_add(v.value());
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

}  // namespace
}  // namespace berth::opencl
