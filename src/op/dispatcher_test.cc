// The seam: which dispatcher gets a call.

#include "op/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <thread>

#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "op/device_scope.h"

namespace berth {
namespace {

// Notes its number and passes the call on.
class Noting final : public Dispatcher {
 public:
  Noting(int number, std::vector<int>* seen) : number_(number), seen_(seen) {
    push();
  }
  ~Noting() override { pop(); }

  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override {
    seen_->push_back(number_);
    next(op, in, attrs, out);
  }

 private:
  int number_;
  std::vector<int>* seen_;
};

TEST(Dispatcher, TheInnermostSeesACallFirst) {
  std::vector<int> seen;
  const Tensor x = constant({1.f, 2.f});
  seen.clear();
  {
    const Noting a(1, &seen);
    const Noting b(2, &seen);
    EXPECT_EQ(math::add(x, x).to_vector<float>(), (std::vector<float>{2, 4}));
  }
  EXPECT_EQ(seen, (std::vector<int>{2, 1}));
  math::add(x, x);
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(t_state.top, nullptr);
}

TEST(Dispatcher, TheListClosesInAnyOrder) {
  const Tensor x = constant({1.f});
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> seen;
    std::vector<std::unique_ptr<Noting>> open;
    std::vector<int> numbers;  // of those open, innermost first
    for (int i = 0; i < 5; ++i) {
      open.push_back(std::make_unique<Noting>(i, &seen));
      numbers.insert(numbers.begin(), i);
    }
    std::vector<int> order = {0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.end(), random);
    for (int i : order) {
      open[i].reset();
      std::erase(numbers, i);
      seen.clear();
      math::add(x, x);
      ASSERT_EQ(seen, numbers);
    }
    ASSERT_EQ(t_state.top, nullptr);
  }
}

TEST(Dispatcher, EachThreadHasItsOwnList) {
  std::vector<int> seen;
  const Tensor x = constant({1.f});
  const Noting mine(1, &seen);
  std::thread([&] { math::add(x, x); }).join();
  EXPECT_TRUE(seen.empty());
}

TEST(Dispatcher, AnExceptionBelowLeavesTheListAsItWas) {
  std::vector<int> seen;
  const Tensor x = constant({1.f, 2.f}), y = constant({1.f, 2.f, 3.f});
  const Noting a(1, &seen);
  const Noting b(2, &seen);
  seen.clear();
  EXPECT_THROW(math::add(x, y), errors::InvalidArgument);
  EXPECT_EQ(t_state.top, &b);
  math::add(x, x);
  EXPECT_EQ(seen, (std::vector<int>{2, 1, 2, 1}));
}

std::string scope_now() {
  return t_state.scope ? t_state.scope->name.str() : "-";
}

TEST(DeviceScope, InnerPartsWinAndTheOuterOneComesBack) {
  EXPECT_EQ(scope_now(), "-");
  {
    const auto outer = device("/job:localhost/GPU:1");
    EXPECT_EQ(scope_now(), "/job:localhost/device:GPU:1");
    {
      const auto inner = device("/CPU:0");
      EXPECT_EQ(scope_now(), "/job:localhost/device:CPU:0");
      EXPECT_EQ(t_state.scope_device, &DeviceManager::get().host());
    }
    EXPECT_EQ(scope_now(), "/job:localhost/device:GPU:1");
  }
  EXPECT_EQ(scope_now(), "-");
  EXPECT_EQ(t_state.scope_device, nullptr);
}

TEST(DeviceScope, AnEmptyNameInsideKeepsTheOuterOne) {
  const auto outer = device("/CPU:0");
  const auto inner = device("");
  EXPECT_EQ(scope_now(), "/device:CPU:0");
}

TEST(DeviceScope, ScopesCloseInAnyOrder) {
  std::mt19937 random(2);
  const std::vector<std::string> names = {"/CPU:0", "/GPU:7", "/CPU:3"};
  for (int round = 0; round < 100; ++round) {
    std::vector<std::optional<DeviceGuard>> open(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      open[i].emplace(names[i], Site::here());
    }
    std::vector<size_t> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (size_t closed = 0; closed < order.size(); ++closed) {
      open[order[closed]].reset();
      // The innermost that is still open.
      std::string expected = "-";
      for (size_t i = 0; i < names.size(); ++i) {
        if (open[i]) expected = DeviceName::parse(names[i]).str();
      }
      ASSERT_EQ(scope_now(), expected);
    }
  }
}

TEST(DeviceScope, AMalformedNameOpensNothing) {
  EXPECT_THROW((void)device("/GPU:x"), errors::InvalidArgument);
  EXPECT_EQ(scope_now(), "-");
}

TEST(DeviceScope, WithoutSoftPlacementAnUnknownDeviceIsAnErrorAtTheFirstOp) {
  config::set_soft_device_placement(false);
  const struct Restore {
    ~Restore() { config::set_soft_device_placement(true); }
  } restore;
  const auto on = device("/GPU:5");
  try {
    constant({1.f});
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("no device matches \"/device:GPU:5\""), m.npos) << m;
    EXPECT_NE(m.find("expected one of CPU:0"), m.npos) << m;
  }
}

TEST(DeviceScope, AFunctionRunsInItAndItsResultComesOut) {
  EXPECT_EQ(with_device("/CPU:0", [] { return scope_now(); }), "/device:CPU:0");
  EXPECT_THROW(
      with_device("/CPU:0", []() -> int { throw std::runtime_error("x"); }),
      std::runtime_error);
  EXPECT_EQ(scope_now(), "-");
}

TEST(DeviceScope, ErrorsNameTheLayerAndTheLine) {
  EXPECT_EQ(where_text("dense_1", Site{"/src/model.cc", 41}),
            " (layer \"dense_1\", model.cc:41)");
  EXPECT_EQ(where_text(nullptr, Site{"model.cc", 41}), " (model.cc:41)");
  EXPECT_EQ(where_text(nullptr, Site{}), "");
}

}  // namespace
}  // namespace berth
