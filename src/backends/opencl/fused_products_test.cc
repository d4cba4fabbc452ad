// Products with epilogues that fuse_products finds: equal bit for bit to the
// same ops one by one.

#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "device/device_manager.h"
#include "op/kernel.h"

namespace berth::opencl {
namespace {

class FusedProducts : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (testing::Test::IsSkipped()) return;
    const Device* gpu = DeviceManager::get().find(DeviceName::parse("/GPU:0"));
    if (!gpu->kernels().supports(op_named("_FusedMatMul"), float32)) {
      GTEST_SKIP() << "products are CLBlast's here, which have no ends";
    }
  }
};

Tensor some(const Shape& shape, int64_t seed) {
  const auto on = berth::device("/GPU:0");
  return random::uniform(shape, {.minval = -1, .maxval = 1, .seed = seed});
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

// Runs `body` op by op and as a function; expects that many products with
// epilogues in its plan.
void check(const std::function<Tensors(const Tensors&)>& body,
           const Tensors& in, int fused, bool bits = true) {
  const auto on = berth::device("/GPU:0");
  auto step = function(body);
  const Tensors want = body(in), got = step(in);
  const std::string plan = step.text("place");
  EXPECT_EQ(count_of(plan, " = _FusedMatMul("), fused) << plan;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto x = want[i].to_vector<float>(), y = got[i].to_vector<float>();
    ASSERT_EQ(x.size(), y.size());
    for (size_t k = 0; k < x.size(); ++k) {
      if (bits) {
        ASSERT_EQ(x[k], y[k]) << i << ", " << k;
      } else {
        ASSERT_NEAR(x[k], y[k], 1e-4) << i << ", " << k;
      }
    }
  }
}

Tensors gradients_of(const Tensors& in,
                     const std::function<Tensor(const Tensors&)>& forward) {
  GradientTape tape;
  for (const Tensor& t : in) tape.watch(t);
  const Tensor y = forward(in);
  const Tensor loss = math::reduce_sum(y * y);
  Tensors out = tape.gradient(loss, std::vector<Source>(in.begin(), in.end()));
  out.push_back(y);
  return out;
}

TEST_F(FusedProducts, OfAnMlpAndItsGradientsSlow) {
  // Forward: two. Backward: the gradients of two weights with their biases'.
  check(
      [](const Tensors& in) {
        return gradients_of(in, [](const Tensors& x) {
          const Tensor h = nn::relu(nn::bias_add(matmul(x[0], x[1]), x[2]));
          return nn::bias_add(matmul(h, x[3]), x[4]);
        });
      },
      {some({37, 30}, 1), some({30, 50}, 2), some({50}, 3), some({50, 10}, 4),
       some({10}, 5)},
      4);
}

TEST_F(FusedProducts, OfGeluInItsTanhFormSlow) {
  // The gradient of gelu, too, is fused into the product before it.
  check(
      [](const Tensors& in) {
        return gradients_of(in, [](const Tensors& x) {
          const Tensor h = nn::gelu(nn::bias_add(matmul(x[0], x[1]), x[2]),
                                    {.approximate = true});
          return nn::bias_add(matmul(h, x[3]), x[4]);
        });
      },
      {some({37, 30}, 1), some({30, 50}, 2), some({50}, 3), some({50, 10}, 4),
       some({10}, 5)},
      5);
}

TEST_F(FusedProducts, OfManySizesWithALongInnerDimensionSlow) {
  for (const Shape& a : {Shape{1, 7}, Shape{5, 9000}, Shape{100, 300},
                         Shape{64, 64}, Shape{700, 3}}) {
    for (const int64_t n : {1, 33, 70}) {
      SCOPED_TRACE(a.str() + " by " + std::to_string(n));
      check(
          [](const Tensors& x) -> Tensors {
            return {nn::relu(nn::bias_add(matmul(x[0], x[1]), x[2]))};
          },
          {some(a, 1), some({a[1], n}, 2), some({n}, 3)}, 1);
    }
  }
}

// The order of the sum differs in this case.
TEST_F(FusedProducts, OfSequencesAddUpOverTheirBatches) {
  check(
      [](const Tensors& in) {
        return gradients_of(in, [](const Tensors& x) {
          return nn::bias_add(matmul(x[0], x[1]), x[2]);
        });
      },
      {some({4, 9, 20}, 1), some({20, 30}, 2), some({30}, 3)}, 2, false);
}

TEST_F(FusedProducts, AreNotMadeOnCpus) {
  const auto on = berth::device("/CPU:0");
  auto step = function([](const Tensor& x, const Tensor& w, const Tensor& b) {
    return nn::relu(nn::bias_add(matmul(x, w), b));
  });
  step(ones({30, 20}), ones({20, 40}), ones({40}));
  EXPECT_EQ(count_of(step.text("place"), "_FusedMatMul"), 0);
}

}  // namespace
}  // namespace berth::opencl
