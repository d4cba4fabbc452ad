// Rules that show only when something runs. A suite is named after its rule.

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "berth/berth.h"
#include "berth/config.h"
#include "berth/debugging.h"
#include "conformance/place/outcome.h"
#include "graph/graph_text.h"
#include "place/place_text.h"
#include "place/schedule.h"

namespace berth::conformance {

namespace {

// Two GPUs, simulated when the machine has none.
class TwoGpus : public testing::Environment {
 public:
  void SetUp() override {
    if (config::list_physical_devices("GPU").size() < 2) {
      config::set_simulated_devices("GPUx2");
    }
  }
};
const testing::Environment* const kTwoGpus =
    testing::AddGlobalTestEnvironment(std::make_unique<TwoGpus>().release());

// Keeps what the engine says while it lives.
class Listener {
 public:
  Listener() {
    before_ = debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) {
          const std::lock_guard lock(mutex_);
          said_.push_back(d);
        });
  }
  ~Listener() { debugging::set_diagnostic_handler(before_); }

  std::vector<std::string> texts(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> list;
    for (const auto& d : said_) {
      if (d.id == id) list.push_back(d.text);
    }
    return list;
  }

 private:
  std::mutex mutex_;
  std::vector<debugging::Diagnostic> said_;
  debugging::DiagnosticHandler before_;
};

std::string ran_on(const Tensor& t) { return short_name(t.device()); }

Tensor on(const std::string& name, float value) {
  const auto scope = device(name);
  return constant(value) + constant(1.0F);
}

TEST(B1_5, ScopesNestPartByPart) {
  const auto outer = device("/job:localhost/GPU:1");
  EXPECT_EQ(ran_on(on("/task:0", 1)), "GPU:1");
  EXPECT_EQ(ran_on(on("/CPU:0", 1)), "CPU:0");
  EXPECT_EQ(ran_on(constant(1.0F) + constant(1.0F)), "GPU:1");
}

TEST(B2_6, InputsElsewhereAreCopiedAndNothingIsSaid) {
  Listener listener;
  const Tensor a = on("/GPU:1", 2), b = on("/CPU:0", 3);
  const auto scope = device("/GPU:0");
  const Tensor c = a * b;
  EXPECT_EQ(ran_on(c), "GPU:0");
  EXPECT_EQ(c.item<float>(), 12);
  EXPECT_EQ(ran_on(a), "GPU:1");
  EXPECT_EQ(ran_on(b), "CPU:0");
  EXPECT_TRUE(listener.texts("input-copied").empty());
}

// Restores what inputs elsewhere mean.
class WithPolicy {
 public:
  explicit WithPolicy(const std::string& name) {
    config::set_device_policy(name);
  }
  ~WithPolicy() { config::set_device_policy("silent"); }
};

TEST(B2_6, WarnSaysThatAnInputIsCopied) {
  const Tensor a = on("/GPU:1", 2);
  const WithPolicy policy("warn");
  Listener listener;
  const auto scope = device("/GPU:0");
  EXPECT_EQ((a - a).item<float>(), 0);
  const std::vector<std::string> said = listener.texts("input-copied");
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("GPU:1"), said[0].npos) << said[0];
  EXPECT_NE(said[0].find("GPU:0"), said[0].npos) << said[0];
}

TEST(B2_6, ExplicitRefusesButIdentityCopies) {
  const Tensor a = on("/GPU:1", 2);
  const WithPolicy policy("explicit");
  const auto scope = device("/GPU:0");
  try {
    a + a;
    ADD_FAILURE() << "no error";
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("GPU:1"), m.npos) << m;
    EXPECT_NE(m.find("GPU:0"), m.npos) << m;
    EXPECT_NE(m.find("Add"), m.npos) << m;
  }
  const Tensor b = identity(a);
  EXPECT_EQ(ran_on(b), "GPU:0");
  EXPECT_EQ((b + b).item<float>(), 6);
}

TEST(B2_6, SilentForInt32CopiesThatTypeAlone) {
  const Tensor a = on("/GPU:1", 2);
  const Tensor n =
      with_device("/GPU:1", [] { return constant(3) + constant(4); });
  ASSERT_EQ(n.dtype(), int32);
  const WithPolicy policy("silent_for_int32");
  const auto scope = device("/GPU:0");
  EXPECT_EQ((n + n).item<int32_t>(), 14);
  EXPECT_THROW(a + a, errors::InvalidArgument);
}

TEST(B2_7, WhatIsKnownOnTheHostLiesThere) {
  const Tensor a = on("/GPU:1", 2);
  const Tensor s = shape(a);
  EXPECT_EQ(ran_on(s), "GPU:1");
  EXPECT_EQ(short_name(s.backing_device()), "CPU:0");
  EXPECT_EQ(short_name(a.backing_device()), "GPU:1");
}

TEST(B2_8, SoftPlacementWarnsToBeginWith) {
  EXPECT_EQ(config::soft_device_placement(), config::SoftPlacement::kWarn);
  EXPECT_TRUE(config::get_soft_device_placement());
}

TEST(B2_8, ABoolIsTensorFlows) {
  const Listener quiet;
  const config::SoftPlacement before = config::soft_device_placement();
  config::set_soft_device_placement(false);
  EXPECT_EQ(config::soft_device_placement(), config::SoftPlacement::kError);
  EXPECT_THROW(on("/GPU:7", 1), errors::InvalidArgument);
  config::set_soft_device_placement(true);
  EXPECT_EQ(config::soft_device_placement(), config::SoftPlacement::kWarn);
  EXPECT_EQ(ran_on(on("/GPU:7", 1)), "GPU:0");
  config::set_soft_device_placement(before);
}

TEST(B2_8, FunctionsArePlacedSoftlyAsWell) {
  const Listener quiet;
  auto f = function([](const Tensor& x) {
    const auto scope = device("/GPU:7");
    return x + x;
  });
  EXPECT_EQ(f(constant(2.0F)).item<float>(), 4);
  config::set_soft_device_placement(false);
  auto g = function([](const Tensor& x) {
    const auto scope = device("/GPU:7");
    return x - x;
  });
  EXPECT_THROW(g(constant(2.0F)), errors::InvalidArgument);
  config::set_soft_device_placement(true);
}

TEST(B4_12, APlacedGraphIsLoggedLineByLine) {
  GraphText text = parse_text(
      "berth-graph 1\n"
      "op Pair () -> (y, z) stateful\nkernel Pair on GPU, CPU\n"
      "op One (x: any) -> (y)\nkernel One on GPU, CPU\n"
      "node p = Pair() -> float32[4], float32[4]\n"
      "node a = One(p:0) -> float32[4] on \"/CPU:0\"\n");
  place(text.graph, place_options(text, devices_of_list("CPUx1,GPUx2")));
  Listener listener;
  log_placement(text.graph);
  const std::vector<std::string> wanted = {"p: (Pair): GPU:0",
                                           "a: (One): CPU:0"};
  EXPECT_EQ(listener.texts("placement"), wanted);
}

TEST(B4_12, AnEagerCallIsLoggedWithItsDevice) {
  Listener listener;
  debugging::set_log_device_placement(true);
  on("/GPU:1", 1);
  debugging::set_log_device_placement(false);
  on("/GPU:0", 1);
  const std::vector<std::string> said = listener.texts("placement");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("Add"), said[0].npos) << said[0];
  EXPECT_NE(said[0].find(" in device GPU:1"), said[0].npos) << said[0];
}

// Turns of one loop over two GPUs and the host, with the predicate on a third.
TEST(B5_9, ALoopRunsAcrossDevices) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    const auto [i, y] = while_loop(
        [&](const Tensor& i, const Tensor&) {
          const auto scope = device("/CPU:0");
          return math::less(i, n);
        },
        [&](const Tensor& i, const Tensor& y) {
          const Tensor doubled =
              with_device("/GPU:0", [&] { return y * 2.0F; });
          const Tensor more =
              with_device("/GPU:1", [&] { return doubled + 1.0F; });
          return std::tuple(i + 1, more);
        },
        std::tuple(constant(int64_t{0}), x));
    return y;
  });
  // y -> 2 y + 1, n times, from 1: 2^(n + 1) - 1.
  for (const int n : {0, 1, 5, 10}) {
    EXPECT_EQ(f(constant(1.0F), constant(int64_t{n})).item<float>(),
              static_cast<float>((1 << (n + 1)) - 1))
        << n;
  }
}

TEST(B5_10, ATransferStartsAsSoonAsItsValueIsThere) {
  GraphText text = parse_text(
      "berth-graph 1\n"
      "op Pair () -> (y, z) stateful\nkernel Pair on GPU\n"
      "op One (x: any) -> (y)\nkernel One on GPU\n"
      "op Two (a: any, b: any) -> (y)\nkernel Two on GPU\n"
      "node p = Pair() -> float32[4], float32[4] on \"/GPU:0\"\n"
      "node a = One(p:0) -> float32[4] on \"/GPU:0\"\n"
      "node b = One(a:0) -> float32[4] on \"/GPU:0\"\n"
      "node c = One(b:0) -> float32[4] on \"/GPU:0\"\n"
      "node d = Two(p:0, a:0) -> float32[4] on \"/GPU:1\"\n"
      "return c:0, d:0\n");
  Graph& graph = text.graph;
  place(graph, place_options(text, devices_of_list("GPUx2")));
  partition(graph);
  const Schedule schedule = make_schedule(graph);
  std::string order;
  for (const ScheduleStep& s : schedule.steps) {
    const Node& n = graph[s.node];
    order += n.op->name() == "_Transfer" ? ">" + graph[n.inputs[0].node].name
                                         : n.name;
    order += ' ';
  }
  EXPECT_EQ(order, "p >p a >a b c d ");
}

}  // namespace
}  // namespace berth::conformance
