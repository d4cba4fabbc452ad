// Random numbers of a GPU must equal those of the processor.

#include "berth/ops/random.h"

#include <cstring>
#include <functional>

#include "backends/opencl/opencl_testing.h"
#include "backends/opencl/processor_loops_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"

namespace berth::opencl {
namespace {

using Random = OpenClTest;
using Draw = std::function<Tensor()>;

// Returns the third draw of `draw` there after set_seed(7); the third, to tell
// calls apart.
template <class T>
std::vector<T> drawn_on(const char* device, const Draw& draw) {
  const auto on = berth::device(device);
  random::set_seed(7);
  draw();
  draw();
  const Tensor x = draw();
  EXPECT_NE(x.device().find(device + 1), std::string::npos) << x.device();
  return x.to_vector<T>();
}

template <class T>
void expect_drawn(const char* what, const Draw& draw) {
  const std::vector<T> want = drawn_on<T>("/CPU:0", draw);
  const std::vector<T> got = drawn_on<T>("/GPU:0", draw);
  ASSERT_EQ(got.size(), want.size()) << what;
  size_t differ = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) ++differ;
  }
  EXPECT_EQ(differ, 0u) << what << ": of " << got.size();
}

const Shape kMany{100003};

TEST_F(Random, UniformNumbersAreTheProcessors) {
  expect_drawn<float>("float32", [] { return random::uniform(kMany); });
  expect_drawn<float>("a range", [] {
    return random::uniform(kMany, {.minval = -3, .maxval = 5.5});
  });
  expect_drawn<double>(
      "float64", [] { return random::uniform(kMany, {.dtype = float64}); });
  expect_drawn<float>("stateless", [] {
    return random::stateless_uniform(kMany, {3, 4});
  });
}

TEST_F(Random, NormalNumbersAreTheProcessors) {
  expect_drawn<float>("truncated",
                      [] { return random::truncated_normal(kMany); });
  if (!processor_loops_fuse()) {
    GTEST_SKIP() << "the processor's loops (v1) round normal numbers twice";
  }
  expect_drawn<float>("float32", [] { return random::normal(kMany); });
  expect_drawn<float>("mean and deviation", [] {
    return random::normal(kMany, {.mean = 2, .stddev = 0.3});
  });
  expect_drawn<double>(
      "float64", [] { return random::normal(kMany, {.dtype = float64}); });
}

TEST_F(Random, WholeNumbersAreTheProcessors) {
  const auto whole = [](double low, double high, DType dtype) {
    return [=] {
      return random::uniform(kMany,
                             {.minval = low, .maxval = high, .dtype = dtype});
    };
  };
  expect_drawn<int32_t>("int32", whole(-10, 1000, int32));
  expect_drawn<int64_t>("int64", whole(-0x1p62, 0x1p62, int64));
  expect_drawn<uint8_t>("uint8", whole(0, 256, uint8));
}

TEST_F(Random, ClassesAreTheProcessors) {
  const Tensor logits = random::stateless_normal({20, 1000}, {1, 2});
  expect_drawn<int64_t>("few rows",
                        [&] { return random::categorical(logits, 500); });
  const Tensor two = random::stateless_normal({300, 2}, {1, 2});
  expect_drawn<int32_t>("two classes", [&] {
    return random::categorical(two, 40, {.dtype = int32});
  });
}

TEST_F(Random, ALogitThatIsNotFiniteFails) {
  const auto on = berth::device("/GPU:0");
  try {
    random::categorical(constant({{0.f, 1.f}, {NAN, 2.f}}), 3)
        .to_vector<int64_t>();
    FAIL() << "expected an error";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("the largest logit of row 1 is nan"),
              std::string::npos)
        << e.what();
  }
  config::reset_device_error("/GPU:0");
}

TEST_F(Random, DropoutIsTheProcessors) {
  const Tensor x = random::stateless_normal(kMany, {1, 2});
  expect_drawn<float>("float32", [&] { return nn::dropout(x, 0.3); });
  const Tensor wide = math::cast(x, float64);
  expect_drawn<double>("float64", [&] { return nn::dropout(wide, 0.3); });
}

TEST_F(Random, EachRunOfAFunctionDrawsAgain) {
  std::vector<std::vector<float>> of_gpu;
  for (const char* name : {"/GPU:0", "/CPU:0"}) {
    const auto on = berth::device(name);
    random::set_seed(5);
    auto draw = function([](const Tensor& x) {
      return x + random::uniform({1001}) + random::uniform({1001});
    });
    const Tensor zero = constant(0.f);
    for (size_t run = 0; run < 4; ++run) {
      const std::vector<float> x = draw(zero).to_vector<float>();
      if (name[1] == 'G') {
        for (const auto& before : of_gpu) EXPECT_NE(x, before);
        of_gpu.push_back(x);
      } else {
        EXPECT_EQ(x, of_gpu[run]) << run;
      }
    }
  }
}

}  // namespace
}  // namespace berth::opencl
