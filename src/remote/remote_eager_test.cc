// Eager ops, variables and copies on devices of other tasks.

#include <gtest/gtest.h>

#include "berth/device/build_id.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "remote/mailbox.h"
#include "remote/message_codec.h"
#include "remote/protocol.h"
#include "remote/remote_testing.h"

namespace berth::remote {
namespace {

using Floats = std::vector<float>;

class RemoteEager : public testing::Test {
 protected:
  TestCluster& cluster_ = test_cluster();
};

template <class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const errors::Error& e) {
    return std::string(errors::code_name(e.code())) + " " + e.what();
  }
  return "";
}

TEST_F(RemoteEager, DevicesAreListedBehindThoseOfThisProcess) {
  const auto all = config::list_logical_devices();
  std::vector<std::string> names;
  for (const auto& d : all) names.push_back(d.name);
  const std::vector<std::string> far = {
      "/job:worker/replica:0/task:0/device:CPU:0",
      "/job:worker/replica:0/task:1/device:GPU:0",
      "/job:worker/replica:0/task:1/device:CPU:0"};
  ASSERT_EQ(names.size(), 7u);
  EXPECT_EQ(std::vector<std::string>(names.begin() + 4, names.end()), far);
  EXPECT_TRUE(all[5].simulated);
  // Unrequested ops stay here.
  EXPECT_EQ(constant(1.0f).device().find("worker"), std::string::npos);
  EXPECT_EQ(with_device("/CPU:0", [] { return constant(1.0f); }).device(),
            "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST_F(RemoteEager, ComputesWhereItIsAskedTo) {
  for (const char* where : {kWorker0, kWorker1, kWorkerGpu}) {
    const auto on = device(where);
    const Tensor a = constant({{1.f, 2.f}, {3.f, 4.f}});
    const Tensor b = linalg::matmul(a, a) + 1.0f;
    EXPECT_NE(b.device().find("/job:worker"), std::string::npos) << where;
    EXPECT_EQ(b.to_vector<float>(), (Floats{8, 11, 16, 23})) << where;
  }
}

TEST_F(RemoteEager, ValuesGoFromTaskToTask) {
  const Tensor a =
      with_device(kWorker0, [] { return fill({1000}, 2.0f) * 3.0f; });
  const Tensor b = with_device(kWorker1, [&] { return a + 1.0f; });
  const Tensor c = with_device(kWorkerGpu, [&] { return b * 2.0f; });
  const Tensor d = with_device(kWorker0, [&] { return c + a; });
  EXPECT_EQ(d.to_vector<float>(), Floats(1000, 20.0f));
  EXPECT_EQ((d + 1.0f).to_vector<float>()[999], 21.0f);
}

TEST_F(RemoteEager, RandomNumbersAreThoseOfThisProcess) {
  const auto draw = [](const char* where) {
    random::set_seed(11);
    const auto on = device(where);
    return random::normal({100}).to_vector<float>();
  };
  EXPECT_EQ(draw(kWorker1), draw("/CPU:0"));
}

TEST_F(RemoteEager, OpsGiveTheBitsOfThisProcess) {
  random::set_seed(4);
  const auto make = [](const Shape& shape) {
    const auto on = device("/CPU:0");
    return random::normal(shape);
  };
  const Tensor a = make({16, 24}), b = make({24, 8}), c = make({2, 9, 9, 3}),
               f = make({3, 3, 3, 4});
  const std::vector<std::function<Tensor()>> ops = {
      [&] { return linalg::matmul(a, b); },
      [&] { return math::reduce_mean(a, {.axis = {{0}}}); },
      [&] { return nn::softmax(a); },
      [&] { return nn::conv2d(c, f, {.padding = "SAME"}); },
      [&] {
        return nn::max_pool2d(c, {.ksize = {2, 2}});
      },
      [&] { return transpose(a) * 2.0f - math::exp(transpose(a)); },
      [&] {
        return concat({a, a}, 1);
      },
      [&] { return math::cumsum(a, {.axis = 1}); },
      [&] { return math::cast(a * 10.0f, int32); },
      [&] { return top_k(a, 3).values; },
      [&] {
        return slice(a, {1, 2}, {4, 5});
      },
      [&] { return where(a > 0.0f, a, math::square(a)); }};
  for (size_t i = 0; i < ops.size(); ++i) {
    const Tensor here = with_device("/CPU:0", ops[i]);
    const Tensor there = with_device(kWorker1, ops[i]);
    EXPECT_NE(there.device().find("worker"), std::string::npos) << i;
    EXPECT_EQ(there.to_vector<float>(), here.to_vector<float>()) << i;
  }
}

TEST_F(RemoteEager, GradientsRunWhereTheForwardOpRan) {
  Variable w = with_device(kWorker0, [] {
    return Variable(constant({{1.f, 2.f}, {3.f, 4.f}}));
  });
  GradientTape tape;
  const Tensor loss = with_device(
      kWorker0, [&] { return math::reduce_sum(math::square(w.value())); });
  const Tensor g = tape.gradient(loss, w);
  EXPECT_NE(g.device().find("worker/replica:0/task:0"), std::string::npos);
  EXPECT_EQ(g.to_vector<float>(), (Floats{2, 4, 6, 8}));
}

TEST_F(RemoteEager, VariablesLiveOnTheirTask) {
  Variable v = with_device(kWorker1, [] {
    return Variable(constant({1.f, 2.f}), {.name = "far"});
  });
  EXPECT_NE(v.device().find("worker/replica:0/task:1"), std::string::npos);
  const Tensor before = v.value();
  v.assign_add(constant({10.f, 20.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{11, 22}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2}));  // a snapshot
  v.assign(constant({5.f, 6.f}));
  EXPECT_EQ((v.value() * 2.0f).to_vector<float>(), (Floats{10, 12}));
}

TEST_F(RemoteEager, ErrorsNameOpLineAndTaskAndStayUntilReset) {
  const auto on = device(kWorker0);
  const Tensor a = fill({2, 3}, 1.0f);
  const Tensor at = constant({7});
  const Tensor bad = gather(a, at);  // out of range
  const std::string message = message_of([&] { bad.to_vector<float>(); });
  EXPECT_NE(message.find("GatherV2 failed on /job:worker/replica:0/task:0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("remote_eager_test.cc:"), std::string::npos)
      << message;
  const Tensor later = a + 1.0f;
  EXPECT_EQ(message_of([&] { later.to_vector<float>(); }), message);
  config::reset_device_error(kWorker0);
  EXPECT_EQ((a + 1.0f).to_vector<float>(), Floats(6, 2.0f));
  EXPECT_EQ(message_of([&] { bad.to_vector<float>(); }), message);
}

TEST_F(RemoteEager, ThePlannerKnowsTheirRatesAndTheNetworkBetween) {
  const Machine m = this_machine();
  const int32_t here = m.find("/job:localhost/replica:0/task:0/device:CPU:0");
  const int32_t there = m.find("/job:worker/replica:0/task:0/device:CPU:0");
  const int32_t other = m.find("/job:worker/replica:0/task:1/device:CPU:0");
  ASSERT_GE(there, 0);
  const int32_t served = m.find("/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(m.class_of(there).flops_per_us, m.class_of(served).flops_per_us);
  EXPECT_EQ(m.link(here, there).origin, CostOrigin::kMeasured);
  EXPECT_GT(m.link(here, there).latency_us, 0);
  // Memory is not shared: a megabyte takes time.
  EXPECT_GT(m.link(there, other).time_us(1 << 20), 100);
}

TEST_F(RemoteEager, AnOpThatTheTaskLacksIsRefusedByName) {
  config::set_soft_device_placement(config::SoftPlacement::kError);
  const std::string message = message_of([] {
    const auto on = device("/job:worker/task:1/device:GPU:7");
    fill({2}, 1.0f);
  });
  config::set_soft_device_placement(config::SoftPlacement::kWarn);
  EXPECT_NE(message.find("GPU:7"), std::string::npos) << message;
  EXPECT_NE(message.find("worker:1/GPU:0"), std::string::npos) << message;
}

TEST_F(RemoteEager, GarbageIsAnErrorAndNothingMore) {
  const auto member = cluster_.cluster.member({"chief", 0});
  EXPECT_THROW(member->call({"worker", 0}, kDevices, {}).get(), errors::Error);
  // A session of another task, with commands of random bytes.
  const auto other = cluster_.cluster.member({"worker", 1});
  cluster::Message hello{"hello", {tensor_of(Writer().text("x").bytes())}};
  EXPECT_THROW(other->call({"worker", 0}, kDevices, hello).get(),
               errors::FailedPrecondition);
  hello.tensors = {tensor_of(Writer().text(BERTH_BUILD_ID).bytes())};
  other->call({"worker", 0}, kDevices, hello).get();
  const auto box = Mailbox::of(cluster_.cluster.member({"worker", 0}));
  box->set_timeout(0.001);  // for values that never come
  uint64_t state = 7;
  for (int round = 0; round < 2000; ++round) {
    Writer inner;
    inner.number(state % 17);
    for (int k = 0; k < round % 9; ++k) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      inner.number(round % 3 ? state >> 60 : state);
    }
    Writer all;
    all.number(0).text(inner.bytes());
    all.number(0).text(
        Writer().number(static_cast<uint64_t>(Command::kReset)).bytes());
    try {
      other->call({"worker", 0}, kDevices, {"", {tensor_of(all.bytes())}})
          .get();
    } catch (const errors::Error&) {
    }
  }
  box->set_timeout(600);
  EXPECT_EQ(with_device(kWorker0, [] { return fill({2}, 3.0f) + 1.0f; })
                .to_vector<float>(),
            (Floats{4, 4}));
}

}  // namespace
}  // namespace berth::remote
