// Reductions, norms, softmax, running sums and sorts of arrays large enough for
// several pieces and launches.

#include <cmath>
#include <functional>

#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "op/device_scope.h"
#include "ops/op_call.h"

namespace berth::opencl {
namespace {

using Rows = OpenClTest;
using Axes = std::vector<int64_t>;
using Op = std::function<Tensors(const Tensors&)>;

Tensor numbers(const Shape& shape, DType dtype = float32, double low = -1,
               double high = 1) {
  static int64_t seed = 0;  // differs each time
  const auto on = berth::device("/CPU:0");
  const Tensor x = random::stateless_uniform(shape, {3, ++seed},
                                             {.minval = low, .maxval = high});
  return dtype == float32 ? x : math::cast(x, dtype);
}

std::vector<double> values_of(const Tensor& x) {
  const auto on = berth::device("/CPU:0");
  return math::cast(x, float64).to_vector<double>();
}

Tensors on(const char* name, const Op& op, const Tensors& in) {
  const auto scope = berth::device(name);
  Tensors r = op(in);
  for (const Tensor& t : r) {
    EXPECT_NE(t.device().find(name + 1), std::string::npos) << t.device();
  }
  return r;
}

// Expects results on the GPU within `tolerance` of the processor's, relative to
// the largest of them.
void expect_close(const char* what, double tolerance, const Tensors& in,
                  const Op& op) {
  const Tensors want = on("/CPU:0", op, in), got = on("/GPU:0", op, in);
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < got.size(); ++o) {
    const std::vector<double> a = values_of(want[o]), b = values_of(got[o]);
    ASSERT_EQ(a.size(), b.size()) << what;
    double largest = 0;
    for (const double v : a) {
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    }
    size_t far = 0, first = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool near = std::fabs(a[i] - b[i]) <= tolerance * largest ||
                        a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]);
      if (!near && far++ == 0) first = i;
    }
    EXPECT_EQ(far, 0u) << what << ", output " << o << ": element " << first
                       << " is " << b[first] << ", want " << a[first];
  }
}

Op sum_over(Axes axes) {
  return [axes](const Tensors& x) {
    return Tensors{math::reduce_sum(x[0], {.axis = axes})};
  };
}

TEST_F(Rows, SumsOfManyPieces) {
  expect_close("all", 1e-5, {numbers({1000003})}, sum_over({0}));
  expect_close("rows", 1e-5, {numbers({7, 30001})}, sum_over({1}));
  expect_close("columns", 1e-5, {numbers({30001, 37})}, sum_over({0}));
  expect_close("middle", 1e-5, {numbers({3, 2049, 17})}, sum_over({1}));
  expect_close("outer and inner", 1e-5, {numbers({41, 19, 533})},
               sum_over({0, 2}));
  expect_close("every other", 1e-5, {numbers({13, 5, 70, 3})},
               sum_over({0, 2}));
  expect_close("halves", 1e-2, {numbers({5, 40007}, bfloat16)}, sum_over({1}));
  expect_close("half columns", 1e-2, {numbers({2001, 33}, float16)},
               sum_over({0}));
  expect_close("whole", 0, {numbers({300, 999}, int64, -1e9, 1e9)},
               sum_over({0}));
}

TEST_F(Rows, ExtremesOfManyPieces) {
  for (const Shape& shape : {Shape{3, 100003}, Shape{10007, 5}}) {
    const Tensor x = numbers(shape);
    expect_close("max", 0, {x}, [](const Tensors& t) {
      return Tensors{math::reduce_max(t[0], {.axis = Axes{0}}),
                     math::reduce_max(t[0], {.axis = Axes{1}})};
    });
    expect_close("argmax", 0, {x}, [](const Tensors& t) {
      return Tensors{math::argmax(t[0], 0), math::argmax(t[0], 1),
                     math::argmin(t[0], 0), math::argmin(t[0], 1)};
    });
  }
}

TEST_F(Rows, SoftmaxOfLongRows) {
  for (const Shape& shape : {Shape{9, 5003}, Shape{1001, 10}, Shape{65, 100}}) {
    const Tensor x = numbers(shape, float32, -20, 20);
    const Tensor labels =
        numbers({shape[0]}, int32, 0, static_cast<double>(shape[1]));
    expect_close("softmax", 1e-5, {x, labels}, [](const Tensors& t) {
      static const OpDef& sparse =
          op_named("SparseSoftmaxCrossEntropyWithLogits");
      Tensors r = call_many(sparse, {&t[0], &t[1]}, nullptr);
      r.push_back(nn::softmax(t[0]));
      r.push_back(nn::log_softmax(t[0]));
      return r;
    });
  }
  expect_close("causal", 1e-5, {numbers({3, 70, 70}), numbers({3, 1, 70})},
               [](const Tensors& t) {
                 return Tensors{nn::masked_softmax(
                     t[0], t[1], {.scale = 0.3, .is_causal = true})};
               });
}

TEST_F(Rows, LabelsOutOfRangeAreNamed) {
  const auto on = berth::device("/GPU:0");
  const Tensor x = numbers({70, 10});
  std::vector<int64_t> labels(70, 3);
  labels[66] = 10;
  try {
    nn::sparse_softmax_cross_entropy_with_logits(
        constant<int64_t>(labels, Shape{70}), x)
        .to_vector<float>();
    ADD_FAILURE() << "no error";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("label 10 in row 66; expected 0 <= "
                                         "label < 10, the number of classes"),
              std::string::npos)
        << e.what();
  }
  config::reset_device_error("GPU:0");
}

Op batch_norm(int64_t groups) {
  return [groups](const Tensors& t) {
    static const OpDef& forward = op_named("FusedBatchNormV3");
    static const OpDef& backward = op_named("FusedBatchNormGradV3");
    const AttrsRef attrs({{"statistics_groups", groups}});
    Tensors y = call_many(forward, {&t[0], &t[1], &t[2]}, attrs.get());
    const Tensors d =
        call_many(backward, {&t[3], &t[0], &t[1], &y[3], &y[4]}, attrs.get());
    y.insert(y.end(), d.begin(), d.end());
    return y;
  };
}

TEST_F(Rows, NormsOfManyRows) {
  const Shape image{12, 31, 17, 19};
  const Tensors in{numbers(image, float32, 3, 5), numbers({19}), numbers({19}),
                   numbers(image)};
  expect_close("batch norm", 1e-4, in, batch_norm(1));
  expect_close("of groups", 1e-4, in, batch_norm(3));
  const Shape rows{3001, 131};
  expect_close("layer norm", 1e-4,
               {numbers(rows, float32, 3, 5), numbers({131}), numbers({131}),
                numbers(rows)},
               [](const Tensors& t) {
                 static const OpDef& forward = op_named("LayerNorm");
                 static const OpDef& backward = op_named("LayerNormGrad");
                 Tensors y = call_many(forward, {&t[0], &t[1], &t[2]}, nullptr);
                 const Tensors d = call_many(
                     backward, {&t[3], &t[0], &t[1], &y[1], &y[2]}, nullptr);
                 y.insert(y.end(), d.begin(), d.end());
                 return y;
               });
}

TEST_F(Rows, LongRunningSums) {
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      const auto sums = [&](int64_t axis) {
        return [=](const Tensors& t) {
          const math::ScanOptions o{
              .axis = axis, .exclusive = exclusive, .reverse = reverse};
          return Tensors{math::cumsum(t[0], o),
                         math::cumulative_logsumexp(t[0], o)};
        };
      };
      expect_close("rows", 1e-5, {numbers({3, 5003})}, sums(1));
      expect_close("columns", 1e-5, {numbers({3000, 3})}, sums(0));
      expect_close("pieces", 1e-4, {numbers({2, 70001})}, sums(1));
      expect_close(
          "whole", 0, {numbers({2, 70001}, int32, -99, 99)},
          [&](const Tensors& t) {
            return Tensors{math::cumsum(
                t[0], {.axis = 1, .exclusive = exclusive, .reverse = reverse})};
          });
    }
  }
}

TEST_F(Rows, LongRowsInOrder) {
  static const OpDef& op = op_named("ArgSort");
  for (const int64_t n : {63, 129, 513, 1000, 5000}) {
    for (const bool down : {false, true}) {
      // Many ties: equal elements keep their order.
      const Tensor x = math::floor(numbers({7, n}, float32, 0, 50));
      expect_close("sorted", 0, {x}, [&](const Tensors& t) {
        return Tensors{call1(op, t[0], AttrsRef({{"descending", down}}).get())};
      });
    }
    expect_close("top", 0, {numbers({5, n})}, [&](const Tensors& t) {
      const TopK top = top_k(t[0], 20);
      return Tensors{top.values, top.indices};
    });
  }
}

TEST_F(Rows, PermutationsMustBeOnes) {
  const auto on = berth::device("/GPU:0");
  const auto expect_words = [](const std::vector<int32_t>& x,
                               const char* words) {
    try {
      invert_permutation(constant<int32_t>(x, Shape{4})).to_vector<int32_t>();
      ADD_FAILURE() << "no error";
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos)
          << e.what();
    }
    config::reset_device_error("GPU:0");
  };
  expect_words({0, 2, 2, 1},
               "2 appears twice, also at place 2; expected each "
               "of 0 to 3 once");
  expect_words({0, 4, 2, 1},
               "index 4 at place 1 of the indices is out of "
               "range for axis 0 of [4]; expected one in [0, 4)");
}

}  // namespace
}  // namespace berth::opencl
