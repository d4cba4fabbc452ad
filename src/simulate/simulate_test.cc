// The simulator's rules one by one: schedules worked out by hand. Times are
// microseconds; links move 1 byte per microsecond after 1 us.

#include "simulate/simulate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/errors.h"
#include "graph/graph_text.h"
#include "op/op_registry.h"
#include "place/schedule.h"

namespace berth {
namespace {

const char kHead[] =
    "berth-graph 1\n"
    "op Make () -> (y)\n"
    "op Fn (x: any repeated) -> (y)\n"
    "op Pair (x: any) -> (y, z)\n";

std::string gpu(int i) {
  return fmt::format("/job:localhost/replica:0/task:0/device:GPU:{}", i);
}

// A line of text: a node of `bytes` bytes on GPU:`device` that takes `us`.
std::string node(const std::string& name, const std::string& call, int device,
                 int us, int bytes = 4) {
  return fmt::format(
      "node {} = {} -> float32[{}] at \"{}\" time GPU {} bytes {}\n", name,
      call, bytes / 4, gpu(device), us, bytes);
}

std::string arg(const std::string& name, int device, int bytes = 4) {
  return fmt::format(
      "node {} = _Arg() {{index = 0, dtype = float32, shape = shape[{}]}} -> "
      "float32[{}] at \"{}\"\n",
      name, bytes / 4, bytes / 4, gpu(device));
}

struct Case {
  explicit Case(const std::string& body, int devices = 2,
                CopyRule rule = CopyRule::kOverlap)
      : text(parse_text(kHead + body)), graph(text.graph) {
    std::vector<std::string> names;
    for (int d = 0; d < devices; ++d) names.push_back(gpu(d));
    Machine m = assumed_machine(names);
    for (DeviceCost& d : m.devices) d.copies = rule;
    for (LinkCost& l : m.links) l = {1, 1, -1, CostOrigin::kDeclared};
    costs = estimate_costs(text.graph, m, {nullptr, &text.costs});
    plan = plan_of(text.graph, costs);
  }

  int32_t id(const std::string& name) const {
    for (int32_t i = 0; i < text.graph.size(); ++i) {
      if (text.graph[i].name == name) return i;
    }
    return -1;
  }
  std::vector<int32_t> ids(const std::vector<std::string>& names) const {
    std::vector<int32_t> ids;
    for (const std::string& name : names) ids.push_back(id(name));
    return ids;
  }
  Simulation run() { return simulate(graph, costs, plan); }
  // "start-end" of a node.
  static std::string span(double a, double b) {
    return fmt::format("{}-{}", a, b);
  }
  std::string when(const Simulation& s, const std::string& name) const {
    return span(s.start_us[id(name)], s.end_us[id(name)]);
  }
  // "value>to start-end ..." in order.
  std::string copies(const Simulation& s) const {
    std::string out;
    for (const SimulatedTransfer& t : s.transfers) {
      out += fmt::format("{}>{} {} ", text.graph[t.value.node].name, t.to,
                         span(t.start_us, t.end_us));
    }
    return out;
  }

  GraphText text;
  SimulatedGraph graph;
  CostTable costs;
  PlacePlan plan;
};

// a and b on device 0; c on device 1 reads a.
std::string fork_over_devices() {
  return node("a", "Make()", 0, 10) + node("b", "Fn(a:0)", 0, 7) +
         node("c", "Fn(a:0)", 1, 3) + "return b:0, c:0\n";
}

TEST(Simulate, ACopyRunsBesideComputeWhenDevicesOverlap) {
  Case t(fork_over_devices());
  const Simulation s = t.run();
  EXPECT_EQ(t.when(s, "a"), "0-10");
  EXPECT_EQ(t.when(s, "b"), "10-17");
  EXPECT_EQ(t.copies(s), "a>1 10-15 ");  // 1 + 4 bytes
  EXPECT_EQ(t.when(s, "c"), "15-18");
  EXPECT_EQ(s.step_us, 18);
  EXPECT_EQ(s.busy_us, (std::vector<double>{17, 3}));
  EXPECT_EQ(s.copy_busy_us, (std::vector<double>{0, 5}));
  EXPECT_EQ(s.sent_bytes, 4);
}

TEST(Simulate, ACopyKeepsBothDevicesBusyUnderTheSumRule) {
  Case t(fork_over_devices(), 2, CopyRule::kBoth);
  Simulation s = t.run();
  EXPECT_EQ(t.when(s, "b"), "10-17");
  EXPECT_EQ(t.copies(s), "a>1 17-22 ");  // right before c, which comes after b
  EXPECT_EQ(t.when(s, "c"), "22-25");
  EXPECT_EQ(s.step_us, 25);
  t.plan.sequence = t.ids({"a", "c", "b"});
  s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 10-15 ");
  EXPECT_EQ(t.when(s, "b"), "15-22");  // not before the copy has left
  EXPECT_EQ(t.when(s, "c"), "15-18");
  EXPECT_EQ(s.step_us, 22);
}

TEST(Simulate, AReceivingDeviceComputesNothingMeanwhile) {
  const std::string busy = node("d", "Make()", 1, 12);
  Case t(node("a", "Make()", 0, 10) + node("b", "Fn(a:0)", 0, 7) + busy +
             node("c", "Fn(a:0)", 1, 3) + node("e", "Make()", 1, 9),
         2, CopyRule::kReceiving);
  const Simulation s = t.run();
  EXPECT_EQ(t.when(s, "b"), "10-17");  // the sender goes on
  EXPECT_EQ(t.when(s, "d"), "0-12");
  EXPECT_EQ(t.copies(s), "a>1 12-17 ");
  EXPECT_EQ(t.when(s, "c"), "17-20");
  EXPECT_EQ(t.when(s, "e"), "20-29");
}

TEST(Simulate, ACopyThatWaitsForItsSenderKeepsItsDestination) {
  // Device 1 is free at 6, but device 0 is busy until 20: under the sum rule
  // the next item of device 1 waits with the copy.
  Case t(node("a", "Make()", 0, 5) + node("b", "Make()", 0, 15) +
             node("c", "Make()", 1, 6) + node("d", "Fn(a:0)", 1, 1) +
             node("e", "Make()", 1, 2),
         2, CopyRule::kBoth);
  Simulation s = t.run();
  EXPECT_EQ(t.when(s, "b"), "5-20");
  EXPECT_EQ(t.copies(s), "a>1 20-25 ");  // right before d
  EXPECT_EQ(t.when(s, "d"), "25-26");
  EXPECT_EQ(t.when(s, "e"), "26-28");
  // With e before d the copy comes after e.
  t.plan.sequence = t.ids({"a", "b", "c", "e", "d"});
  s = t.run();
  EXPECT_EQ(t.when(s, "e"), "6-8");
  EXPECT_EQ(t.copies(s), "a>1 20-25 ");
  // With d before b the copy takes device 0 before b.
  t.plan.sequence = t.ids({"a", "c", "d", "b", "e"});
  s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 6-11 ");
  EXPECT_EQ(t.when(s, "b"), "11-26");
}

TEST(Simulate, AReceivedCopyStandsInFrontOfItsFirstReader) {
  const std::string body = node("a", "Make()", 0, 10) +
                           node("x", "Make()", 1, 30) +
                           node("b", "Fn(a:0)", 1, 3);
  Case t(body, 2, CopyRule::kReceiving);
  // Device 1 runs x first in the plan: the copy comes after it, though it could
  // run at 10.
  EXPECT_EQ(t.copies(t.run()), "a>1 30-35 ");
  t.plan.sequence = t.ids({"a", "b", "x"});
  const Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 10-15 ");
  EXPECT_EQ(t.when(s, "x"), "18-48");
}

TEST(Simulate, FreeCopiesWaitForNobody) {
  Case t(node("a", "Make()", 0, 10) + node("b", "Make()", 0, 2) +
             node("x", "Make()", 1, 12) + node("c", "Fn(a:0, b:0)", 1, 3),
         2, CopyRule::kFree);
  for (LinkCost& l : t.costs.links) l.shared = 0;
  const Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 10-15 b>1 12-17 ");  // concurrently
  EXPECT_EQ(t.when(s, "x"), "0-12");
  EXPECT_EQ(t.when(s, "c"), "17-20");
}

TEST(Simulate, OneTransferPerValueAndDestination) {
  Case t(node("a", "Make()", 0, 10) + node("c", "Fn(a:0, a:0)", 1, 3) +
             node("d", "Fn(a:0, c:0)", 1, 3) + node("e", "Fn(a:0)", 2, 3),
         3);
  const Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 10-15 a>2 10-15 ");
  EXPECT_EQ(s.sent_bytes, 8);
  EXPECT_EQ(t.when(s, "d"), "18-21");
}

TEST(Simulate, CopiesToOneDeviceGoOneAtATimeInTheOrderOfThePlan) {
  const std::string two = fmt::format(
      "node p = Pair(a:0) -> float32[2], float32[1] at \"{}\" "
      "time GPU 4 bytes 8, 4\n",
      gpu(0));
  // b is ready at 6 on device 2; both outputs of p at 14 on device 0.
  Case t(node("b", "Make()", 2, 6, 20) + node("a", "Make()", 0, 10) + two +
             node("c", "Fn(b:0, p:1, p:0)", 1, 1),
         3);
  Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "b>1 6-27 p>1 27-36 p>1 36-41 ");
  EXPECT_EQ(s.transfers[1].value.output, 0);  // from one op, by number
  // With b after p in the plan, b waits for its copies, though ready first.
  t.plan.sequence = t.ids({"a", "p", "b", "c"});
  s = t.run();
  EXPECT_EQ(t.copies(s), "p>1 14-23 p>1 23-28 b>1 28-49 ");
}

TEST(Simulate, ASharedLinkIsUsedByOneTransferAtATime) {
  const std::string body = node("a", "Make()", 0, 10) +
                           node("c", "Fn(a:0)", 1, 1) +
                           node("d", "Fn(a:0)", 2, 1);
  Case alone(body, 3);
  EXPECT_EQ(alone.copies(alone.run()), "a>1 10-15 a>2 10-15 ");
  Case t(body, 3);
  t.costs.link_of(0, 1).shared = 0;
  t.costs.link_of(0, 2).shared = 0;
  EXPECT_EQ(t.copies(t.run()), "a>1 10-15 a>2 15-20 ");
}

// Five transfers of 5 us, ready at 10. The first goes over two or three shared
// links, each of which one of the others needs; the last needs another.
TEST(Simulate, ATransferOccupiesEverySharedLinkOfItsPath) {
  std::string body;
  for (int k = 0; k < 5; ++k)
    body += node(fmt::format("s{}", k), "Make()", k, 10);
  for (int k = 0; k < 5; ++k) {
    body += node(fmt::format("r{}", k), fmt::format("Fn(s{}:0)", k), 5 + k, 1);
  }
  for (const int devices : {10, 200}) {  // routes in a table, and not
    for (const int on_path : {2, 3}) {
      Case t(body, devices);
      for (int n = 0; n < on_path; ++n) t.costs.link_of(0, 5).shared.add(7 * n);
      for (int k = 1; k < 4; ++k) {
        t.costs.link_of(k, 5 + k).shared = 7 * (k - 1);
      }
      t.costs.link_of(4, 9).shared = 1;
      const Simulation s = t.run();
      for (int k = 0; k < 5; ++k) {
        const bool waits = k > 0 && k <= on_path;
        EXPECT_EQ(t.when(s, fmt::format("r{}", k)), waits ? "20-21" : "15-16")
            << k << " of " << on_path;
      }
    }
  }
}

TEST(Simulate, AControlAcrossDevicesCostsNothing) {
  Case t(node("a", "Make()", 0, 10) + node("c", "Make(^a)", 1, 3));
  const Simulation s = t.run();
  EXPECT_EQ(t.when(s, "c"), "10-13");
  EXPECT_TRUE(s.transfers.empty());
}

TEST(Simulate, ArgumentsWaitForNobody) {
  const std::string x = fmt::format(
      "node x = _Arg(^a) {{index = 0, dtype = float32, shape = shape[1]}} -> "
      "float32[1] at \"{}\"\n",
      gpu(1));
  Case t(node("a", "Make()", 0, 10) + x + node("b", "Fn(x:0)", 1, 5));
  const Simulation s = t.run();
  EXPECT_EQ(t.when(s, "x"), "0-0");
  EXPECT_EQ(t.when(s, "b"), "0-5");
}

TEST(Simulate, TheOrderOfThePlanIsKept) {
  Case t(node("a", "Make()", 0, 10) + node("b", "Fn(a:0)", 1, 5) +
         node("c", "Make()", 1, 2));
  EXPECT_EQ(t.when(t.run(), "c"), "20-22");  // after b, though it could run
  t.plan.sequence = t.ids({"a", "c", "b"});
  EXPECT_EQ(t.when(t.run(), "c"), "0-2");
}

TEST(Simulate, SmallConstantsAndHandlesAreEverywhere) {
  Case t(fmt::format(
             "node k = Const() {{value = tensor(float32[1], 1)}} -> float32[1] "
             "at \"{0}\"\n"
             "node v = VarHandleOp() {{shared_name = \"v\", dtype = float32, "
             "shape = shape[3]}} -> resource(float32)[3] at \"{0}\"\n",
             gpu(0)) +
         node("a", "Fn(k:0)", 1, 2) +
         fmt::format("node r = ReadVariableOp(v:0) -> float32[3] at \"{}\" "
                     "bytes 12\n",
                     gpu(0)) +
         node("b", "Fn(r:0)", 1, 2) + "return b:0\n");
  const Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "r>1 0-13 ");
  EXPECT_EQ(t.when(s, "a"), "0-2");
  EXPECT_EQ(t.when(s, "r"), "0-0");  // shares the bytes of the variable
  EXPECT_EQ(t.when(s, "b"), "13-15");
  // On device 0 the constant and the variable; on device 1 the constant, then
  // the copy, and b with it. (a has been freed.)
  EXPECT_EQ(s.peak_bytes, (std::vector<int64_t>{4 + 12, 4 + 12 + 4}));
}

TEST(Simulate, PeakBytesFollowLifetimes) {
  // x is an argument; a is freed when b and the copy are done; b is a result.
  const std::string alias = fmt::format(
      "node s = Identity(a:0) -> float32[25] at \"{}\" bytes 100\n", gpu(0));
  Case t(arg("x", 0, 40) + node("a", "Fn(x:0)", 0, 10, 100) + alias +
         node("b", "Fn(s:0)", 0, 5, 8) + node("c", "Fn(b:0)", 0, 5, 16) +
         node("d", "Fn(c:0)", 0, 200, 60) + "return b:0\n");
  Simulation s = t.run();
  // 40; a: 140; b: 148; c: 40 + 8 + 16; d: 40 + 8 + 16 + 60.
  EXPECT_EQ(s.peak_bytes[0], 148);
  // As above, but the alias is read on device 1 at the end of the copy (101).
  Case far(arg("x", 0, 40) + node("a", "Fn(x:0)", 0, 10, 100) + alias +
           node("b", "Fn(s:0)", 0, 5, 8) + node("c", "Fn(b:0)", 0, 5, 16) +
           node("d", "Fn(c:0)", 0, 200, 60) + node("e", "Fn(s:0)", 1, 1, 4) +
           "return b:0\n");
  s = far.run();
  EXPECT_EQ(s.peak_bytes[0], 40 + 100 + 8 + 16 + 60);
  EXPECT_EQ(s.peak_bytes[1], 104);
}

TEST(Simulate, WorkspaceCountsWhileItsOpRuns) {
  Case t(node("a", "Make()", 0, 10, 100) + node("b", "Fn(a:0)", 0, 5, 8));
  t.costs.workspace[t.id("a")] = 1000;
  EXPECT_EQ(t.run().peak_bytes[0], 1100);
}

TEST(Simulate, APartitionedGraphBehavesAsTheWholeOne) {
  const std::string body =
      arg("x", 0, 40) + node("a", "Fn(x:0)", 0, 10, 100) +
      node("b", "Fn(a:0, x:0)", 1, 5, 8) + node("c", "Fn(b:0, a:0)", 0, 5, 16) +
      node("d", "Fn(c:0, b:0, a:0)", 1, 5, 16) + "return d:0\n";
  Case whole(body);
  const Simulation expected = whole.run();
  Case t(body);
  Graph cut = t.text.graph;
  partition(cut);
  ASSERT_EQ(cut.size(), whole.text.graph.size() + 4);
  // Nodes keep the order of the whole graph, with transfers between them.
  GraphText text;
  for (int32_t i = 0, k = 0; i < cut.size(); ++i) {
    const bool fresh = cut[i].op->name() == "_Transfer";
    text.costs.push_back(fresh ? NodeCost{} : t.text.costs[k++]);
  }
  const CostTable costs = estimate_costs(cut, t.costs, {nullptr, &text.costs});
  const Simulation s =
      simulate(SimulatedGraph(cut), costs, plan_of(cut, costs));
  EXPECT_EQ(s.step_us, expected.step_us);
  EXPECT_EQ(s.peak_bytes, expected.peak_bytes);
  EXPECT_EQ(s.sent_bytes, expected.sent_bytes);
  ASSERT_EQ(s.transfers.size(), 4u);
  for (size_t i = 0; i < s.transfers.size(); ++i) {
    EXPECT_EQ(s.transfers[i].start_us, expected.transfers[i].start_us);
  }
  for (int32_t i = 0; i < cut.size(); ++i) {  // the nodes of transfers, too
    if (cut[i].name == "a/to_GPU:1") {
      EXPECT_EQ(s.start_us[i], 41);  // after x
    }
  }
}

TEST(Simulate, AControlOnATransferWaitsForWhatItBrings) {
  Case t(
      node("a", "Make()", 0, 10) +
      fmt::format("node t = _Transfer(a:0) -> float32[1] at \"{}\"\n", gpu(1)) +
      node("b", "Make(^t)", 0, 3) + node("c", "Fn(t:0)", 1, 2));
  const Simulation s = t.run();
  EXPECT_EQ(t.when(s, "b"), "10-13");
  EXPECT_EQ(t.when(s, "t"), "10-15");
  EXPECT_EQ(t.when(s, "c"), "15-17");
}

std::string error_of(Case& t) {
  try {
    t.run();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(Simulate, RefusesPlansThatCannotBe) {
  const std::string body = arg("x", 0) + node("a", "Fn(x:0)", 0, 1) +
                           node("i", "Identity(a:0)", 0, 0) +
                           node("b", "Fn(i:0)", 1, 1) +
                           node("c", "Make(^b)", 1, 1);
  const auto refuses = [&](const char* text, auto&& change) {
    Case t(body);
    change(t);
    const std::string e = error_of(t);
    EXPECT_NE(e.find(text), std::string::npos) << text << "\n" << e;
  };
  const auto order = [](std::vector<std::string> names) {
    return [=](Case& t) { t.plan.sequence = t.ids(names); };
  };
  refuses("\"c\" is missing in the sequence", order({"a", "b"}));
  refuses("\"a\" stands twice", order({"a", "b", "c", "a"}));
  refuses("Fn \"b\" stands in front of Fn \"a\", which it needs",
          order({"b", "a", "c"}));  // through an alias
  refuses("Make \"c\" stands in front of Fn \"b\", which it needs",
          order({"a", "c", "b"}));
  refuses("_Arg \"x\" stands in the sequence, and takes no time",
          order({"x", "a", "b", "c"}));
  refuses("has node 7", [](Case& t) { t.plan.sequence.push_back(7); });
  refuses("is on device 5", [](Case& t) { t.plan.device[0] = 5; });
  refuses("a plan of 4 nodes", [](Case& t) { t.plan.device.pop_back(); });
  refuses("no kernel",
          [](Case& t) { t.costs.times[t.id("a")].us = kNoKernel; });
  refuses("no kernel", [](Case& t) { t.costs.times[t.id("a")].us = -1; });
  refuses("another graph", [](Case& t) { t.costs.times.pop_back(); });
  refuses("another graph", [](Case& t) { t.costs.links.pop_back(); });
  refuses("another graph", [](Case& t) { t.costs.workspace.pop_back(); });
  refuses("is of class 3",
          [](Case& t) { t.costs.devices[1].device_class = 3; });
  refuses("is on bus 0", [](Case& t) { t.costs.devices[1].bus = 0; });
}

TEST(Simulate, AliasesOnOtherDevicesHaveCopies) {
  // i on device 1 renames what device 0 makes; device 0 reads it back.
  Case t(node("a", "Make()", 0, 10) + node("i", "Identity(a:0)", 1, 0) +
         node("b", "Fn(i:0)", 0, 3));
  const Simulation s = t.run();
  EXPECT_EQ(t.copies(s), "a>1 10-15 i>0 15-20 ");
  EXPECT_EQ(t.when(s, "i"), "15-15");
  EXPECT_EQ(t.when(s, "b"), "20-23");
}

TEST(PriceMove, IsTheStepWithTheOpThere) {
  Case t(fork_over_devices());  // 18 us, 4 bytes
  const int32_t c = t.id("c");
  const Price home = price_move(t.graph, t.costs, t.plan, {{c}}, 0);
  // All on device 0. c follows b, as in the plan.
  EXPECT_EQ(home.step_us, 20);
  EXPECT_EQ(home.delta_us, 2);
  EXPECT_EQ(home.delta_bytes, -4);
  const Price away = price_move(t.graph, t.costs, t.plan, {{t.id("b")}}, 1);
  EXPECT_EQ(away.step_us, 10 + 5 + 7 + 3);
  EXPECT_EQ(away.delta_bytes, 0);
  const Price same = price_move(t.graph, t.costs, t.plan, {{c}}, 1);
  EXPECT_EQ(same.delta_us, 0);
  t.costs.classes.push_back(t.costs.classes[0]);
  t.costs.devices[1].device_class = 1;
  std::vector<OpTime> times;
  for (const OpTime& time : t.costs.times) {
    times.push_back(time);
    times.push_back({});
  }
  t.costs.times = times;
  t.costs.workspace.clear();
  t.plan.device.assign(t.plan.device.size(), 0);
  EXPECT_EQ(price_move(t.graph, t.costs, t.plan, {{c}}, 1).step_us, -1);
}

// Two devices on a bus that moves 10 bytes per microsecond.
struct BusCase : Case {
  explicit BusCase(const std::string& body) : Case(body, 3) {
    costs.buses = {{10, CostOrigin::kDeclared}};
    for (DeviceCost& d : costs.devices) d.bus = 0;
    costs.bus_bytes.assign(static_cast<size_t>(graph.num_nodes()), 0);
  }
  void moves(const std::string& name, double bytes) {
    costs.bus_bytes[static_cast<size_t>(id(name))] = bytes;
  }
};

TEST(SimulateBus, IsSharedInProportion) {
  BusCase c(node("a", "Make()", 0, 30) + node("b", "Make()", 1, 10));
  c.moves("a", 300);  // 10 bytes per microsecond, the whole bus
  c.moves("b", 100);
  const Simulation s = c.run();
  // At half speed until b ends; a has then moved 10 of its 30.
  EXPECT_EQ(c.when(s, "b"), "0-20");
  EXPECT_EQ(c.when(s, "a"), "0-40");
  EXPECT_EQ(s.busy_us[0], 40);
}

TEST(SimulateBus, HurtsNobodyWhileThereIsEnough) {
  BusCase c(node("a", "Make()", 0, 30) + node("b", "Make()", 1, 10) +
            node("c", "Make()", 1, 10));
  c.moves("a", 150);
  c.moves("b", 50);
  const Simulation s = c.run();  // c moves nothing
  EXPECT_EQ(c.when(s, "a"), "0-30");
  EXPECT_EQ(c.when(s, "b"), "0-10");
  EXPECT_EQ(c.when(s, "c"), "10-20");
}

TEST(SimulateBus, LateUsersSlowDownThoseWhoAreThere) {
  BusCase c(node("a", "Make()", 0, 30) + node("b", "Make()", 1, 10) +
            node("c", "Make()", 1, 10));
  c.moves("a", 300);
  c.moves("c", 300);
  const Simulation s = c.run();
  // From 10 on they want 10 + 30, so each runs at a quarter of the speed. c
  // then takes 40, and a has 10 of its 30 left.
  EXPECT_EQ(c.when(s, "c"), "10-50");
  EXPECT_EQ(c.when(s, "a"), "0-60");
}

TEST(SimulateBus, CopiesKeepTheirPlacesInThePlan) {
  BusCase c(node("a", "Make()", 0, 10) + node("b", "Make()", 1, 10) +
            node("c", "Fn(a:0, b:0)", 2, 1));
  c.moves("a", 100);
  c.moves("b", 100);
  const Simulation s = c.run();  // both end at 20, then one copy at a time
  EXPECT_EQ(c.copies(s), "a>2 20-25 b>2 25-30 ");
  EXPECT_EQ(c.when(s, "c"), "30-31");
  EXPECT_EQ(s.step_us, 31);
}

}  // namespace
}  // namespace berth
