// Attention as one op: in plans where a device has a kernel of it, which may
// refuse shapes, and where none has.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "function/sim_testing.h"
#include "op/kernel.h"

namespace berth {
namespace {

std::atomic<int> kernel_runs{0};

// Attention over all leading axes by plain loops, causal or not.
class AttendedRows final : public Prepared {
 public:
  void run(const KernelCall& call) const override {
    ++kernel_runs;
    const bool causal = call.attr<bool>("is_causal");
    const double scale = call.attr<double>("scale");
    const auto* q = call.in[0].as<float>();
    const auto* k = call.in[1].as<float>();
    const auto* v = call.in[2].as<float>();
    const int rank = call.in[0].shape->rank();
    const int64_t s = call.in[0].dim(rank - 2), d = call.in[0].dim(rank - 1),
                  t = call.in[1].dim(rank - 2), e = call.in[2].dim(rank - 1);
    for (int64_t r = 0; r < call.out[1].size(); ++r) {
      const int64_t n = r / s, seen = causal ? std::min(r % s + 1, t) : t;
      double sum = 0;
      std::vector<double> y(static_cast<size_t>(e), 0.0);
      for (int64_t j = 0; j < seen; ++j) {
        double score = 0;
        for (int64_t x = 0; x < d; ++x) {
          score += double{q[r * d + x]} * double{k[(n * t + j) * d + x]};
        }
        const double w = std::exp(score * scale);
        sum += w;
        for (int64_t x = 0; x < e; ++x) {
          y[static_cast<size_t>(x)] += w * double{v[(n * t + j) * e + x]};
        }
      }
      for (int64_t x = 0; x < e; ++x) {
        call.out[0].as<float>()[r * e + x] =
            static_cast<float>(y[static_cast<size_t>(x)] / sum);
      }
      call.out[1].as<float>()[r] = static_cast<float>(std::log(sum));
    }
  }
};

// Before any device exists: simulated GPUs have a kernel, which takes no mask.
const bool kRegistered = [] {
  register_kernels("GPU", [](KernelTable& table) {
    KernelDef def;
    def.label = "test";
    def.dtypes = dtype_bit(float32);
    def.partial = true;
    def.prepare = [](const PrepareArgs& args) -> std::unique_ptr<Prepared> {
      if (args.in.size() > 3) return nullptr;
      return std::make_unique<AttendedRows>();
    };
    table.add("ScaledDotProductAttention", std::move(def));
  });
  return true;
}();

int times(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}
template <class F>
int nodes(const F& f, const std::string& op) {
  return times(f.text("place"), " = " + op + "(");
}

Tensors sequences(const char* where) {
  const auto on = device(where);
  Tensors all;
  uint32_t state = 1;
  for (int i = 0; i < 4; ++i) {
    std::vector<float> x(2 * 3 * 8 * 4);
    for (float& v : x) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(state >> 8) * 0x1p-23f - 1;
    }
    all.push_back(constant(x, {2, 3, 8, 4}));
  }
  return all;
}

// The result, and the gradients of all three, weighted by the fourth.
Tensors attended_gradients(const Tensors& x,
                           const nn::AttentionOptions& options) {
  GradientTape tape;
  for (int i = 0; i < 3; ++i) tape.watch(x[i]);
  const Tensor y = nn::scaled_dot_product_attention(x[0], x[1], x[2], options);
  Tensors all = tape.gradient(math::reduce_sum(y * x[3]), {x[0], x[1], x[2]});
  all.push_back(y);
  return all;
}

void expect_all_near(const Tensor& a, const Tensor& b, double tolerance) {
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << i;
}

// Its gradient computes the weights again, and so does the forward op: one of
// the two is enough. Logarithms that nobody reads are not computed.
TEST(AttentionPlan, IsTheChainOfItsPartsWhereNoKernelIs) {
  const Tensors x = sequences("/CPU:0");
  auto step = function([](const Tensors& in) {
    const auto on = device("/CPU:0");
    return attended_gradients(in, {.is_causal = true});
  });
  const Tensors got = step(x);
  EXPECT_EQ(nodes(step, "MatMul"), 6);
  EXPECT_EQ(nodes(step, "MaskedSoftmax"), 1);
  EXPECT_EQ(nodes(step, "Log"), 0);
  EXPECT_EQ(nodes(step, "ScaledDotProductAttention"), 0);
  // A tape that runs eagerly sees the parts.
  const Tensors want = attended_gradients(x, {.is_causal = true});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>());
  }
}

TEST(AttentionPlan, IsOneOpWhereAKernelTakesIt) {
  const Tensors x = sequences("/GPU:0"), on_cpu = sequences("/CPU:0");
  auto attend = function([](const Tensors& in) {
    return Tensors{nn::scaled_dot_product_attention(in[0], in[1], in[2])};
  });
  const int before = kernel_runs;
  const Tensor y = attend(x)[0];
  EXPECT_TRUE(y.device().ends_with("GPU:0")) << y.device();
  expect_all_near(
      y, nn::scaled_dot_product_attention(on_cpu[0], on_cpu[1], on_cpu[2]),
      1e-6);
  EXPECT_EQ(kernel_runs, before + 1);
  EXPECT_EQ(nodes(attend, "ScaledDotProductAttention"), 1);
  EXPECT_EQ(nodes(attend, "MatMul"), 0);
}

TEST(AttentionPlan, IsItsPartsWhereTheKernelRefuses) {
  Tensors x = sequences("/GPU:0"), on_cpu = sequences("/CPU:0");
  auto attend = function([](const Tensors& in) {
    return Tensors{nn::scaled_dot_product_attention(
        in[0], in[1], in[2],
        {.mask = matmul(in[3], in[3], {.transpose_b = true})})};
  });
  const int before = kernel_runs;
  const Tensor y = attend(x)[0];
  const Tensor mask = matmul(on_cpu[3], on_cpu[3], {.transpose_b = true});
  expect_all_near(y,
                  nn::scaled_dot_product_attention(on_cpu[0], on_cpu[1],
                                                   on_cpu[2], {.mask = mask}),
                  1e-6);
  EXPECT_EQ(kernel_runs, before);
  EXPECT_EQ(nodes(attend, "ScaledDotProductAttention"), 0);
  EXPECT_EQ(nodes(attend, "MaskedSoftmax"), 1);
}

// Only the forward op has a kernel here.
TEST(AttentionPlan, GradientsFollowWhatRanForwards) {
  const Tensors x = sequences("/GPU:0"), on_cpu = sequences("/CPU:0");
  auto step = function([](const Tensors& in) {
    return attended_gradients(in, {.is_causal = true});
  });
  const Tensors want = attended_gradients(on_cpu, {.is_causal = true});
  const Tensors traced = step(x),
                eager = attended_gradients(x, {.is_causal = true});
  for (size_t i = 0; i < 4; ++i) {
    expect_all_near(traced[i], want[i], 1e-6);
    expect_all_near(eager[i], want[i], 1e-6);
  }
  EXPECT_EQ(nodes(step, "ScaledDotProductAttention"), 1);
  EXPECT_EQ(nodes(step, "MaskedSoftmax"), 1);
}

}  // namespace
}  // namespace berth
