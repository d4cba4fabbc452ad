// Reports of functions: what ran where, how often, how long, and why.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "function/sim_testing.h"
#include "place/cost_store.h"

namespace berth {
namespace {

using placement::DeviceRow;
using placement::Report;

constexpr const char* kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr const char* kGpu0 = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr const char* kGpu1 = "/job:localhost/replica:0/task:0/device:GPU:1";

const DeviceRow& row(const Report& r, const std::string& name) {
  for (const DeviceRow& d : r.devices) {
    if (d.device == name) return d;
  }
  throw errors::NotFound("no row of " + name);
}

// [64, 32] x [32, 8] on GPU:0, its square on GPU:1.
Tensor two_devices(const Tensor& x, const Variable& w) {
  Tensor y;
  {
    const auto on = device("/GPU:0");
    y = matmul(x, w);
  }
  const auto on = device("/GPU:1");
  return math::square(y);
}
constexpr int kAskedLine = __LINE__ - 3;

TEST(PlacementReport, CountsRunsOpsAndBytesOfWhatRan) {
  const Variable w(on_device("/GPU:0", {32, 8}));
  auto f = function([&](const Tensor& x) { return two_devices(x, w); },
                    {.name = "two"});
  const Tensor x = on_device("/GPU:0", {64, 32});
  for (int i = 0; i < 5; ++i) f(x);
  const Report r = f.placement();
  EXPECT_EQ(r.name, "two");
  EXPECT_EQ(r.steps, 5);
  EXPECT_EQ(r.device_of("MatMul"), kGpu0);
  EXPECT_EQ(r.device_of("Square"), kGpu1);
  ASSERT_EQ(r.transfers.size(), 1u);
  const placement::TransferRow& t = r.transfers[0];
  EXPECT_EQ(t.value, "MatMul:0");
  EXPECT_EQ(t.from, kGpu0);
  EXPECT_EQ(t.to, kGpu1);
  EXPECT_EQ(t.bytes, 64 * 8 * 4);
  EXPECT_EQ(t.runs_per_step, 1);
  EXPECT_EQ(t.readers, std::vector<std::string>{"Square"});
  EXPECT_NE(t.cause.find("read by \"Square\""), t.cause.npos) << t.cause;
  EXPECT_NE(t.cause.find("on GPU:1: asked for"), t.cause.npos) << t.cause;
  // The line that asked for GPU:1; not that of the square or of the product.
  EXPECT_EQ(t.site.line, kAskedLine);
  // The product and its copy in the arenas, the result, w and x.
  const DeviceRow& first = row(r, kGpu0);
  EXPECT_EQ(first.variable_bytes, 32 * 8 * 4);
  EXPECT_EQ(first.other_bytes, 64 * 32 * 4);
  if (!test::on_gpus_of_machine()) {  // their kernels need scratch, too
    EXPECT_EQ(first.arena_bytes, 64 * 8 * 4);
  }
  const DeviceRow& second = row(r, kGpu1);
  EXPECT_EQ(second.output_bytes, 64 * 8 * 4);
  EXPECT_EQ(second.ops, 1);
  EXPECT_TRUE(r.fallbacks.empty());
  EXPECT_EQ(r.summary(), "");
}

// A layer's request is that of the scope it was made in, a gradient's that of
// the call that pins it.
TEST(PlacementReport, TransfersCiteWhoAskedForLayersAndGradients) {
  const int scope_line = __LINE__ + 2;  // of the device() call
  const auto dense = [] {
    const auto on = device("/GPU:1");
    return keras::Dense(4);
  }();
  auto forward = function([&](const Tensor& x) {
    return dense(with_device("/GPU:0", [&] { return math::square(x); }));
  });
  const Tensor x = on_device("/GPU:0", {8, 16});
  forward(x);
  const auto cited = [](const Report& r, const std::string& value) {
    for (const placement::TransferRow& t : r.transfers) {
      if (t.value == value) return t.site.line;
    }
    return -1;
  };
  EXPECT_EQ(cited(forward.placement(), "Square:0"), scope_line)
      << forward.placement().str();

  const Variable w(on_device("/GPU:0", {8, 16}));
  int gradient_line = 0;
  auto backward = function([&](const Tensor& x) {
    GradientTape tape;
    Tensor y;
    {
      const auto on = device("/GPU:0");
      y = math::square(w.value() * x);
    }
    gradient_line = __LINE__ + 1;
    return tape.gradient(y, std::vector<Variable>{w}, {.device = "/GPU:1"})[0];
  });
  backward(x);
  int pinned = 0;
  for (const placement::TransferRow& t : backward.placement().transfers) {
    pinned += t.to == kGpu1 && t.site.line == gradient_line;
  }
  EXPECT_GT(pinned, 0) << backward.placement().str();
}

TEST(PlacementReport, TimesComeFromTheClockOfTheDevice) {
  SKIP_ON_GPUS_OF_MACHINE("it reads the virtual clock");
  const Variable w(on_device("/GPU:0", {32, 8}));
  auto f = function([&](const Tensor& x) { return two_devices(x, w); });
  const Tensor x = on_device("/GPU:0", {64, 32});
  f(x);
  EXPECT_EQ(f.placement().measured_step_us, -1) << "the first run is not timed";
  for (int i = 0; i < 3; ++i) f(x);
  const Report r = f.placement();
  // A simulated device takes 5 us, plus what follows from its declared speeds.
  EXPECT_GE(row(r, kGpu1).measured_busy_us, 5);
  EXPECT_LT(row(r, kGpu1).measured_busy_us, 6);
  EXPECT_GE(r.transfers[0].measured_us, 5);
  EXPECT_GE(r.measured_step_us, 15);  // three kernels in sequence
  // The simulation uses the declared costs.
  EXPECT_NEAR(r.estimated_step_us, r.measured_step_us, 1);
  EXPECT_NEAR(row(r, kGpu1).estimated_busy_us, 5, 1);
}

TEST(PlacementReport, ArgumentsFromElsewhereAreTransfers) {
  auto f = function([](const Tensor& x) {
    const auto on = device("/GPU:0");
    return math::square(x);
  });
  const Tensor near = on_device("/GPU:0", {100});
  const Tensor far = on_device("/CPU:0", {100});
  f(near);
  EXPECT_EQ(f.placement().transfer_bytes(), 0);
  f(far);
  const Report r = f.placement();
  ASSERT_EQ(r.transfers.size(), 1u);
  EXPECT_EQ(r.transfers[0].from, kCpu);
  EXPECT_EQ(r.transfers[0].to, kGpu0);
  EXPECT_EQ(r.transfers[0].runs_per_step, 0.5);  // one of two
  EXPECT_EQ(r.transfer_bytes("/CPU:0", "GPU"), 200);
  EXPECT_EQ(r.transfer_bytes("/GPU:0", ""), 0);
}

TEST(PlacementReport, LoopsCountTheirTurns) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    const auto on = device("/GPU:0");
    const Tensors r =
        while_loop([&](const Tensors& v) { return math::less(v[0], n); },
                   [](const Tensors& v) {
                     Tensor y;
                     {
                       const auto elsewhere = device("/GPU:1");
                       y = math::square(v[1]);
                     }
                     return Tensors{v[0] + 1, y + 1};
                   },
                   Tensors{constant(0), x});
    return r[1];
  });
  const Tensor x = on_device("/GPU:0", {25});
  for (int i = 0; i < 2; ++i) f(x, constant(3));
  const Report r = f.placement();
  int64_t there = 0;
  for (const auto& t : r.transfers) {
    if (t.to != kGpu1 || t.bytes != 100) continue;
    EXPECT_EQ(t.runs_per_step, 3);
    ++there;
  }
  EXPECT_EQ(there, 1);
  EXPECT_EQ(r.transfer_bytes("GPU:0", "GPU:1"), 300);
  EXPECT_EQ(r.device_of("While/body/Square"), kGpu1);
}

TEST(PlacementReport, TellsWhatAVariableMoved) {
  Variable v(on_device("/GPU:0", {25}));
  auto f = function([&](const Tensor& x) {
    const auto on = device("/GPU:1");
    v.assign_add(x);
    return math::square(x);
  });
  f(on_device("/GPU:1", {25}));
  const Report r = f.placement();
  ASSERT_EQ(r.moved.size(), 1u);
  EXPECT_EQ(r.moved[0].op, "AssignAddVariableOp");
  EXPECT_EQ(r.moved[0].requested, "/device:GPU:1");
  EXPECT_EQ(r.moved[0].device, kGpu0);
  EXPECT_EQ(r.moved[0].bytes, 100);
  EXPECT_NE(r.moved[0].reason.find("variable"), std::string::npos);
  EXPECT_TRUE(r.fallbacks.empty());
}

TEST(PlacementReport, JsonAndTablesHoldTheRows) {
  const Variable w(on_device("/GPU:0", {32, 8}));
  auto f = function([&](const Tensor& x) { return two_devices(x, w); },
                    {.name = "two"});
  f(on_device("/GPU:0", {64, 32}));
  const Report r = f.placement();
  const auto j = nlohmann::json::parse(r.json());
  EXPECT_EQ(j["name"], "two");
  EXPECT_EQ(j["steps"], 1);
  EXPECT_TRUE(j["measured_step_us"].is_null());
  EXPECT_EQ(j["transfers"][0]["bytes"], 2048);
  EXPECT_EQ(j["transfers"][0]["from"], kGpu0);
  EXPECT_EQ(j["ops"].size(), 2u);
  const std::string s = r.str();
  EXPECT_NE(s.find("GPU:1"), s.npos);
  EXPECT_NE(s.find("MatMul:0"), s.npos) << s;
  EXPECT_NE(s.find("2 KiB"), s.npos) << s;
}

TEST(PlacementReport, SaysThatAnArgumentOfSeveralDevicesWaitsOnTheHost) {
  auto f = function([](const Tensor& x) {
    const Tensor a = with_device("/GPU:0", [&] { return math::exp(x); });
    const Tensor b = with_device("/GPU:1", [&] { return math::tanh(x); });
    return math::reduce_sum(a) + math::reduce_sum(b);
  });
  f(on_device("/GPU:0", {64, 32}));
  int waits = 0;
  for (const auto& t : f.placement().transfers) {
    waits +=
        t.from == kGpu0 && t.cause.find("waits on the host") != t.cause.npos;
    EXPECT_EQ(t.cause.find("an argument; a result"), t.cause.npos) << t.cause;
  }
  EXPECT_EQ(waits, 1);
}

TEST(PlacementReport, KeepsTheErrorOfItsEstimate) {
  auto f = function([](const Tensor& x) {
    const auto on = device("/CPU:0");
    return math::exp(matmul(x, x));
  });
  const Tensor x = on_device("/CPU:0", {64, 64}, 0.01f);
  for (int i = 0; i < 4; ++i) f(x);
  const Report r = f.placement();
  EXPECT_GT(r.measured_step_us, 0);
  EXPECT_GT(r.estimated_step_us, 0);
  EXPECT_GE(CostStore::get().error(), 0);
}

TEST(PlacementReport, MayBeAskedForWhileTheFunctionRuns) {
  const Variable w(on_device("/GPU:0", {32, 8}));
  auto f = function([&](const Tensor& x) { return two_devices(x, w); },
                    {.contract = placement::Contract{
                         .transfers = {{"GPU:0", "GPU:1", 2048}}}});
  const Tensor x = on_device("/GPU:0", {64, 32});
  f(x);
  constexpr int kThreads = 3, kCalls = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) f(x);
    });
  }
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_LE(f.placement().steps, 1 + kThreads * kCalls);
  }
  for (std::thread& t : threads) t.join();
  const Report r = f.placement();
  EXPECT_EQ(r.steps, 1 + kThreads * kCalls);
  EXPECT_EQ(r.transfers.at(0).runs_per_step, 1);
  EXPECT_GT(r.measured_step_us, 0);
}

TEST(PlacementReport, BeforeTheFirstCallIsAnError) {
  auto f = function([](const Tensor& x) { return math::square(x); });
  EXPECT_THROW(f.placement(), errors::FailedPrecondition);
}

TEST(Explain, KnowsEveryRowOfAReport) {
  auto f = function([](const Tensor& x, const Tensor& y) {
    return cond(
        math::greater(math::reduce_max(x), constant(0.0f)),
        [&] {
          const Tensor z = math::square(x);
          return Tensors{z, z, y};  // copies: one value, and an argument
        },
        [&] {
          return Tensors{y, x, math::square(y)};
        });
  });
  const Tensor x = on_device("/GPU:0", {25});
  f(x, x);
  const Report r = f.placement();
  int copies = 0;
  for (const auto& row : r.ops) {
    EXPECT_NO_THROW(f.explain(row.op)) << row.op;
    copies += row.type == "DeepCopy";
  }
  EXPECT_GT(copies, 0);
  EXPECT_EQ(f.explain("If/then_branch/result").op, "Square");
}

TEST(Explain, SaysWhatBecameOfAnOpThatPassesTookAway) {
  auto f = function([&](const Tensor& x) {
    const Tensor six = constant(3.0f) * constant(2.0f);  // Mul: a constant
    const Tensor y = (x + x) * 1.0f;                     // Mul_1: y is the sum
    const Tensor z = math::square(y) * six, same = math::square(y);
    return Tensors{z, same};  // Mul_2 stays; Square_1 is Square
  });
  f(on_device("/GPU:0", {8}));
  const auto first = [&](const char* op) {
    return f.explain(op).chain[0].text;
  };
  EXPECT_EQ(first("Mul"),
            "Mul \"Mul\" is not in the compiled step: it was computed in "
            "advance, as Const \"Mul\"");
  EXPECT_EQ(first("Mul_1"),
            "Mul \"Mul_1\" is not in the compiled step: it was folded into "
            "AddV2 \"AddV2\"");
  EXPECT_EQ(first("Square_1"),
            "Square \"Square_1\" is not in the compiled step: it was folded "
            "into Square \"Square\"");
  for (const char* op : {"Mul_2", "Square"}) {
    EXPECT_EQ(f.explain(op).op, op);
    EXPECT_EQ(first(op).find("is not in"), std::string::npos) << first(op);
  }
}

TEST(Explain, FindsOpsByTheirNamesAndNamesTheNearest) {
  const Variable w(on_device("/GPU:0", {32, 8}));
  auto f = function([&](const Tensor& x) { return two_devices(x, w); });
  f(on_device("/GPU:0", {64, 32}));
  EXPECT_EQ(f.explain("Square").op, "Square");
  EXPECT_EQ(f.explain("Square").device, kGpu1);
  const placement::Explanation e = f.explain("Square");
  EXPECT_EQ(e.rule, "request");
  ASSERT_EQ(e.alternatives.size(), 2u);  // GPU:0 and CPU:0
  for (const placement::Alternative& a : e.alternatives) {
    if (a.device != kGpu0) continue;
    EXPECT_TRUE(a.possible);
    EXPECT_EQ(a.delta_bytes, -2048);  // the product stays where it is
    EXPECT_LT(a.delta_us, 0);
  }
  try {
    f.explain("Sqare");
    FAIL();
  } catch (const errors::NotFound& e) {
    EXPECT_NE(std::string(e.what()).find("\"Square\""), std::string::npos)
        << e.what();
  }
}

TEST(PlacementReport, MarksTimesOfAVirtualClock) {
  SKIP_ON_GPUS_OF_MACHINE("it reads the virtual clock");
  Report r;
  r.name = "step";
  r.steps = 1;
  r.measured_step_us = 7;
  r.devices = {{.device = kCpu, .ops = 1}};
  EXPECT_EQ(r.brief().find("simulated"), std::string::npos) << r.brief();
  r.devices.push_back({.device = kGpu0, .ops = 1});
  Report planned = r;
  planned.steps = 0;
  planned.measured_step_us = -1;
  planned.estimated_step_us = 5;
  EXPECT_NE(planned.brief().find("(estimated 5.0 us, simulated)"),
            std::string::npos)
      << planned.brief();
  EXPECT_NE(r.brief().find(" us a step, simulated"), std::string::npos)
      << r.brief();
  EXPECT_NE(r.brief().find("GPU:0 (simulated)"), std::string::npos);
  EXPECT_EQ(r.brief().find("CPU:0 (simulated)"), std::string::npos);
  // A measured step has one clock's time, an estimate that of both.
  r.estimated_step_us = 99;
  EXPECT_NE(r.brief().find(" 7.0 us a step, simulated; the wall time of other "
                           "devices is not in it\n"),
            std::string::npos)
      << r.brief();
  EXPECT_EQ(r.brief().find("99"), std::string::npos) << r.brief();
  // Shares refer to one clock: the host's 100 us are not part of the GPU's 4.
  r.ops = {{.op = "a", .type = "Mul", .device = kCpu, .runs_per_step = 1},
           {.op = "b", .type = "Mul", .device = kGpu0, .runs_per_step = 1},
           {.op = "c", .type = "Mul", .device = kGpu0, .runs_per_step = 1}};
  r.ops[0].measured_us = 100;
  r.ops[1].measured_us = 3;
  r.ops[2].measured_us = 1;
  const std::string s = r.str();
  for (const char* part :
       {"of 3, which took 100 us a step and 4.0 us a step, simulated\n",
        "100 100.0 %", "3.0 75.0 %", "1.0 25.0 %"}) {
    EXPECT_NE(s.find(part), std::string::npos) << part << "\n" << s;
  }
}

// The host works for a long time; the step takes the simulated GPU's time.
TEST(PlacementReport, AStepOnAVirtualClockHasNoneOfTheHostsTime) {
  SKIP_ON_GPUS_OF_MACHINE("it reads the virtual clock");
  auto f = function([](const Tensor& x, const Tensor& y) {
    Tensor z;
    {
      const auto on = device("/CPU:0");
      z = matmul(x, x);
    }
    const auto on = device("/GPU:0");
    return Tensors{math::reduce_sum(math::square(y)), z};
  });
  const Tensor x = on_device("/CPU:0", {700, 700});
  const Tensor y = on_device("/GPU:0", {8});
  for (int i = 0; i < 4; ++i) f(x, y);
  const Report r = f.placement();
  ASSERT_GT(r.measured_step_us, 0);
  const DeviceRow& gpu = row(r, kGpu0);
  ASSERT_GT(gpu.measured_busy_us, 0);
  // The host cannot compute 686 million products faster than the GPU its two
  // ops of 8 numbers, and no waits lie between those.
  EXPECT_NEAR(r.measured_step_us, gpu.measured_busy_us,
              0.5 * gpu.measured_busy_us);
  // Errors of the cost model are errors of wall time.
  const placement::Explanation e = f.explain("Square");
  EXPECT_EQ(e.estimate_error, -1);
  EXPECT_NE(e.str().find("\nsteps are estimated, simulated devices by their "
                         "simulated clock\n"),
            std::string::npos)
      << e.str();
}

}  // namespace
}  // namespace berth
