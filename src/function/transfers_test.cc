// Small values of a step that are sent to the same device share one launch;
// large ones, and those ready later, are sent alone.

#include <gtest/gtest.h>

#include "backends/sim/sim.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "function/sim_testing.h"

namespace berth {
namespace {

struct Sent {
  int transfers = 0, batches = 0;
  size_t bytes = 0;
  std::vector<float> result;
};

// x [2 n] in halves on GPU:0, which meet on GPU:1.
Sent send_halves(int64_t n) {
  auto f = function([](const Tensor& x) {
    Tensors halves;
    {
      const auto on = device("/GPU:0");
      halves = split(x * 2.f, 2);
    }
    const auto on = device("/GPU:1");
    return halves[0] - halves[1];
  });
  std::vector<float> values(static_cast<size_t>(2 * n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 97) * static_cast<float>(i % 5);
  }
  const Tensor x =
      with_device("/GPU:0", [&] { return constant(values, {2 * n}); });
  Sent sent;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    seed_gpus(seed);
    sent.result = f(x).to_vector<float>();
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(sent.result[static_cast<size_t>(i)],
                2 * (values[static_cast<size_t>(i)] -
                     values[static_cast<size_t>(i + n)]));
    }
  }
  sent.transfers = f.plan_info().transfers;
  sent.bytes = f.plan_info().copied_bytes;
  const std::string plan = f.text("plan");
  for (size_t at = plan.find(" transfers 2 in "); at != plan.npos;
       at = plan.find(" transfers 2 in ", at + 1)) {
    ++sent.batches;
  }
  EXPECT_EQ(f.placement().transfers.size(), 2u);
  return sent;
}

TEST(Transfers, SmallValuesThatExistTogetherAreOneLaunch) {
  const Sent sent = send_halves(100);
  EXPECT_EQ(sent.transfers, 2);
  EXPECT_EQ(sent.bytes, 800u);
  EXPECT_EQ(sent.batches, 1);
}

TEST(Transfers, LargeOnesAreNot) {
  const Sent sent = send_halves(20000);
  EXPECT_EQ(sent.transfers, 2);
  EXPECT_EQ(sent.batches, 0);
}

TEST(Transfers, ValuesThatExistLaterGoByThemselves) {
  auto f = function([](const Tensor& x) {
    Tensor a, b;
    {
      const auto on = device("/GPU:0");
      a = x * 2.f;
      b = matmul(a, a);
    }
    const auto on = device("/GPU:1");
    return a + b;
  });
  const Tensor x = with_device("/GPU:0", [] {
    return constant({{1.f, 2.f}, {3.f, 4.f}});
  });
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{30, 44, 66, 96}));
  EXPECT_EQ(f.plan_info().transfers, 2);
  EXPECT_EQ(f.text("plan").find(" transfers 2 in "), std::string::npos);
}

}  // namespace
}  // namespace berth
