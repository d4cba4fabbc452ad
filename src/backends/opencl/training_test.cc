// Updates by a GPU leave the bits that the processor's leave.

#include "ops/training.h"

#include <functional>

#include "backends/opencl/opencl_testing.h"
#include "backends/opencl/processor_loops.h"
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
    // More than the square of what comes before, for a deviation.
    v.push_back(Variable(numbers(n, 3, dtype, true) +
                         math::cast(constant(30.f), dtype)));
    v.push_back(Variable(numbers(n, 4, dtype)));
  }
  const Tensor& operator[](size_t i) const { return v[i].handle(); }
};

using Update = std::function<void(const Trained&, DType)>;

Tensor scalar(double x, DType dtype) { return math::cast(constant(x), dtype); }

training::AdamScalars adam_scalars(DType d) {
  return {scalar(0.729, d), scalar(0.997002999, d), scalar(0.01, d),
          scalar(0.9, d),   scalar(0.999, d),       scalar(1e-7, d)};
}
training::RmsPropScalars rms_scalars(DType d) {
  return {scalar(0.01, d), scalar(0.9, d), scalar(0.7, d), scalar(1e-7, d)};
}

struct Named {
  const char* name;
  Update update;
};
const std::vector<Named>& updates() {
  static const auto& all = *new std::vector<Named>{
      {"gradient descent",
       [](const Trained& t, DType d) {
         training::apply_gradient_descent(t[0], scalar(0.1, d), t.grad);
       }},
      {"momentum",
       [](const Trained& t, DType d) {
         training::apply_momentum(t[0], t[1], scalar(0.1, d), t.grad,
                                  scalar(0.9, d), false);
       }},
      {"Nesterov's momentum",
       [](const Trained& t, DType d) {
         training::apply_momentum(t[0], t[1], scalar(0.1, d), t.grad,
                                  scalar(0.9, d), true);
       }},
      {"Keras' momentum",
       [](const Trained& t, DType d) {
         training::apply_keras_momentum(t[0], t[1], scalar(0.1, d), t.grad,
                                        scalar(0.9, d), true);
       }},
      {"Adam",
       [](const Trained& t, DType d) {
         training::apply_adam(t[0], t[1], t[2], adam_scalars(d), t.grad, false);
       }},
      {"NAdam",
       [](const Trained& t, DType d) {
         training::apply_adam(t[0], t[1], t[2], adam_scalars(d), t.grad, true);
       }},
      {"AdamW",
       [](const Trained& t, DType d) {
         training::apply_adam_with_weight_decay(
             t[0], t[1], t[2], adam_scalars(d), scalar(0.004, d), t.grad,
             false);
       }},
      {"RMSProp",
       [](const Trained& t, DType d) {
         training::apply_rms_prop(t[0], t[2], t[3], rms_scalars(d), t.grad);
       }},
      {"centered RMSProp",
       [](const Trained& t, DType d) {
         training::apply_centered_rms_prop(t[0], t[1], t[2], t[3],
                                           rms_scalars(d), t.grad);
       }},
      {"Adagrad",
       [](const Trained& t, DType d) {
         training::apply_adagrad(t[0], t[2], scalar(0.1, d), scalar(1e-7, d),
                                 t.grad);
       }},
  };
  return all;
}

Values after(const char* device, const Update& update, DType dtype) {
  const auto on = berth::device(device);
  const Trained t(10007, dtype);
  for (int step = 0; step < 3; ++step) update(t, dtype);
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

TEST_F(Training, MergedUpdatesAreThoseOfEach) {
  Values of_cpu;
  for (const char* name : {"/CPU:0", "/GPU:0"}) {
    const auto on = berth::device(name);
    std::vector<Trained> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(100 + i, float64);
    auto step = function([&](const Tensor& rate) {
      const auto s = adam_scalars(float64);
      for (const Trained& t : all) {
        training::apply_adam(
            t[0], t[1], t[2],
            {s.beta1_power, s.beta2_power, rate, s.beta1, s.beta2, s.epsilon},
            t.grad, true);
      }
      return rate;
    });
    for (int i = 0; i < 2; ++i) step(constant(0.01));
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<double> w = all[i].v[0].value().to_vector<double>();
      if (name[1] == 'C') {
        of_cpu.push_back(w);
      } else {
        EXPECT_EQ(w, of_cpu[i]) << i;
      }
    }
  }
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
