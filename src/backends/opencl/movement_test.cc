// Moves, selects and sums elements by index on a GPU, in sizes that small cases
// do not reach.

#include <functional>

#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"

namespace berth::opencl {
namespace {

using Movement = OpenClTest;
using Indexing = OpenClTest;

template <class T>
void expect_moved(const char* what, const std::function<Tensor()>& make) {
  std::vector<T> want, got;
  {
    const auto on = berth::device("/CPU:0");
    want = make().to_vector<T>();
  }
  const auto on = berth::device("/GPU:0");
  got = make().to_vector<T>();
  EXPECT_TRUE(got == want) << what;
}

// Whole numbers, so that sums are exact.
Tensor whole(const Shape& shape, double below, DType dtype, int64_t seed = 1) {
  return random::stateless_uniform(
      shape, {seed, 2}, {.minval = 0, .maxval = below, .dtype = dtype});
}

TEST_F(Movement, TransposesByTiles) {
  for (const DType dtype : {int32, uint8, int64}) {
    for (const Shape& s : {Shape{100, 70, 1}, Shape{3, 33, 64},
                           Shape{65, 2, 90}, Shape{40, 9, 31}}) {
      for (const std::vector<int64_t>& perm :
           {std::vector<int64_t>{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}}) {
        expect_moved<float>("transpose", [&] {
          return math::cast(transpose(whole(s, 200, dtype), perm), float32);
        });
      }
    }
  }
  const Tensor z =
      random::stateless_normal({70, 40}, {1, 2}, {.dtype = float64});
  expect_moved<double>("16 bytes", [&] {
    return math::real(transpose(math::complex(z, z), {1, 0}));
  });
}

TEST_F(Movement, LongRunsAreWhole) {
  const Tensor x = whole({3, 1000}, 1e6, int32);
  expect_moved<int32_t>("pad", [&] { return pad(x, {1, 0, 300, 700}); });
  expect_moved<int32_t>("tile", [&] { return tile(x, {2, 3}); });
  expect_moved<int32_t>("concat", [&] { return concat({x, x}, 1); });
  expect_moved<int32_t>("reverse", [&] { return reverse(x, {1}); });
  expect_moved<int32_t>("roll", [&] { return roll(x, {-333}, {1}); });
  expect_moved<int32_t>("steps", [&] {
    return strided_slice(x, {0, 998}, {3, 3}, {.strides = {2, -3}});
  });
}

TEST_F(Indexing, SumsManyRowsByIndex) {
  const Tensor data = math::cast(whole({20000, 5}, 100, int32), float32);
  const Tensor ids = whole({20000}, 700, int32, 3);
  expect_moved<float>("few segments",
                      [&] { return unsorted_segment_sum(data, ids, 701); });
  const Tensor far = whole({20000}, 1e6, int64, 4);
  expect_moved<float>("many segments",
                      [&] { return unsorted_segment_max(data, far, 1000000); });
  const Tensor x = whole({3000, 4}, 100, float32),
               rows = whole({9000}, 3000, int32, 5);
  expect_moved<float>("gradient of gather", [&] {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = gather(x, rows);
    return tape.gradient(y, x);
  });
}

TEST_F(Indexing, FindsManyPlacesAndValues) {
  const Tensor x = whole({7, 3001}, 3, int32);
  expect_moved<int64_t>("where", [&] { return where(x); });
  const Tensor values = whole({30000}, 5000, int64, 6);
  expect_moved<int64_t>("unique", [&] { return unique(values).y; });
  expect_moved<int32_t>("idx", [&] { return unique(values).idx; });
  expect_moved<int32_t>("count",
                        [&] { return unique_with_counts(values).count; });
}

void expect_fails(const std::function<Tensor()>& make, const char* text) {
  const auto on = berth::device("/GPU:0");
  try {
    math::cast(make(), float32).to_vector<float>();
    ADD_FAILURE() << "expected: " << text;
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
  config::reset_device_error("/GPU:0");
}

// The kernel was appended and failed later.
TEST_F(Indexing, AVariableIsNotReadAfterAFailedWrite) {
  const auto on = berth::device("/GPU:0");
  Variable v(zeros({3}));
  const auto step = function([&](const Tensor& at) {
    v.assign(gather(constant({1.f, 2.f, 3.f}), at));
    return at;
  });
  for (int i = 0; i < 5; ++i) step(constant({0, 1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 2, 3}));
  step(constant({0, 1, 7}));
  EXPECT_THROW(v.value().to_vector<float>(), errors::InvalidArgument);
  config::reset_device_error("/GPU:0");
  EXPECT_THROW(v.value(), errors::FailedPrecondition);
  v.assign(constant({4.f, 5.f, 6.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{4, 5, 6}));
}

TEST_F(Indexing, FailsForIndicesOutOfRange) {
  const Tensor x = zeros({3, 4});
  expect_fails(
      [&] {
        return gather(x, constant({0, 2, 3}));
      },
      "index 3 at place 2 of the indices is out of range for axis 0 "
      "of [3,4]; expected one in [0, 3)");
  expect_fails(
      [&] {
        return gather_nd(x, constant({{1, 1}, {0, -4}}));
      },
      "coordinate 1 of index 1 is -4, out of range for [3,4]; "
      "expected one in [0, 4)");
  expect_fails(
      [&] {
        return unsorted_segment_sum(x, constant({0, 1, 7}), 5);
      },
      "segment 7 at place 2 of the ids is out of range; expected one below "
      "num_segments, 5");
  expect_fails(
      [&] {
        return invert_permutation(constant({2, 0, 2}));
      },
      "2 appears twice, also at place 2; expected each of 0 to 2 once");
  expect_fails(
      [&] {
        return where(constant({1.f, 0.f, 3.f}), MaxSize{1}).values;
      },
      "there are more true elements than max_size, 1");
}

}  // namespace
}  // namespace berth::opencl
