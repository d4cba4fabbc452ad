// Placing rules: graph texts in, one "node device" line each out. Expected
// devices follow from the rules in place.h.

#include "place/place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "berth/berth.h"
#include "berth/errors.h"
#include "berth/variable.h"
#include "graph/graph_text.h"
#include "op/kernel.h"
#include "place/graphs_testing.h"
#include "tensor/variable_state.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT

TEST(Place, WithoutRequestTakesTheFirstDeviceWithAKernel) {
  EXPECT_EQ(placed(arg("x") + node("a", "One(x:0)") +
                   node("b", "NotGpu0(a:0)") + node("c", "CpuOnly(b:0)"))
                .text,
            "x GPU:0\na GPU:0\nb GPU:1\nc CPU:0\n");
}

TEST(Place, ObeysFullPartialAndShortRequests) {
  EXPECT_EQ(
      placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\"") +
             node("b", "One(a:0)", "on CPU") + node("c", "One(b:0)", "on GPU") +
             node("d", "One(c:0)", "on \"/job:localhost\"") +
             node("e", "One(d:0)",
                  "on \"/job:localhost/replica:0/task:0/"
                  "device:gpu:1\""))
          .text,
      "x GPU:1\na GPU:1\nb CPU:0\nc GPU:0\nd GPU:0\ne GPU:1\n");
}

TEST(Place, APartialRequestTakesTheFirstFittingDeviceThatCanRunTheOp) {
  EXPECT_EQ(placed(arg("x") + node("a", "NotGpu0(x:0)", "on GPU")).text,
            "x GPU:1\na GPU:1\n");
}

TEST(Place, AMissingKernelIsANamedErrorWithTheAlternatives) {
  const std::string e = error_of<errors::Unimplemented>(
      arg("x") +
      node("a", "NotGpu0(x:0)", "on \"/GPU:0\" from a (model.cc:41)"));
  EXPECT_PRED2(has, e, "NotGpu0 \"a\" (model.cc:41)");
  EXPECT_PRED2(has, e, "float32 on GPU:0");
  EXPECT_PRED2(has, e, "asked for by \"/GPU:0\"");
  EXPECT_PRED2(has, e, "have one: GPU:1 CPU:0");
  EXPECT_PRED2(
      has,
      error_of<errors::Unimplemented>(arg("x") + node("a", "Nowhere(x:0)")),
      "no device has one");
}

TEST(Place, ARequestForNoDeviceListsTheDevices) {
  const std::string e = error_of<errors::InvalidArgument>(
      arg("x") + node("a", "One(x:0)", "on \"/GPU:7\""));
  EXPECT_PRED2(has, e, "One \"a\"");
  EXPECT_PRED2(has, e, "\"/GPU:7\"");
  EXPECT_PRED2(has, e, "expected one of GPU:0, GPU:1, CPU:0;");
  EXPECT_PRED2(has,
               error_of<errors::InvalidArgument>(
                   arg("x") + node("a", "One(x:0)", "on \"/GPU:x\"")),
               "One \"a\"");
}

TEST(Place, GradientsFollowTheirForwardOpAlsoThroughChains) {
  EXPECT_EQ(placed(arg("x") + node("f", "One(x:0)", "on \"/GPU:1\"") +
                   node("g", "Two(f:0, x:0)", "follows f") +
                   node("gg", "One(g:0)", "follows g") +
                   node("p", "One(g:0)", "on CPU follows f"))
                .text,
            "x GPU:1\nf GPU:1\ng GPU:1\ngg GPU:1\np CPU:0\n");
}

TEST(Place, AColocationWithoutKernelFallsBackAndSaysSo) {
  const Result r = placed(arg("x") + node("f", "One(x:0)", "on \"/GPU:1\"") +
                          node("g", "CpuOnly(f:0)", "follows f"));
  EXPECT_EQ(r.text, "x GPU:1\nf GPU:1\ng CPU:0\n");
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_EQ(r.placement.notes[0].id, "colocation-ignored");
  EXPECT_EQ(r.placement.notes[0].node, 2);
}

TEST(Place, AGroupOfOneIsSaid) {
  const Result r = placed(arg("x") + node("f", "One(x:0)") +
                          node("g", "One(f:0)", "with f") +
                          node("h", "One(g:0)", "with TYPO"));
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_EQ(r.placement.notes[0].id, "colocation-alone");
  EXPECT_EQ(r.placement.notes[0].node, 3);
  EXPECT_PRED2(has, r.placement.notes[0].text, "\"TYPO\"");
}

TEST(Place, SumsOfGradientsOfAnArgumentFollowTheArgument) {
  // x is used only on GPU:1, so it goes there, and `sum` with it.
  EXPECT_EQ(placed(arg("x") + node("f", "One(x:0)", "on \"/GPU:1\"") +
                   node("g", "One(f:0)", "follows f") +
                   node("sum", "Two(g:0, g:0)", "follows x"))
                .text,
            "x GPU:1\nf GPU:1\ng GPU:1\nsum GPU:1\n");
}

TEST(Place, GeneratorsFollowTheirOnlyConsumerDevice) {
  EXPECT_EQ(
      placed(node("c", "Make()") + node("d", "Make()") + node("r", "Draw()") +
             node("a", "Two(c:0, d:0)", "on \"/GPU:1\"") +
             node("b", "Two(d:0, r:0)", "on CPU"))
          .text,
      // d has two devices, r is random: both where the default is.
      "c GPU:1\nd GPU:0\nr GPU:0\na GPU:1\nb CPU:0\n");
}

TEST(Place, ArgumentsOfSeveralDevicesWaitOnTheHost) {
  EXPECT_EQ(placed(arg("x") + arg("y", "", 1) + arg("z", "", 2) +
                   arg("w", "on \"/GPU:0\"", 3) +
                   node("a", "Two(x:0, y:0)", "on \"/GPU:1\"") +
                   node("b", "Two(x:0, w:0)", "on \"/GPU:0\""))
                .text,
            "x CPU:0\ny GPU:1\nz CPU:0\nw GPU:0\na GPU:1\nb GPU:0\n");
}

TEST(Place, AliasesAndMetadataFollowTheirInput) {
  EXPECT_EQ(placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\"") +
                   node("r", "Reshape(a:0) {shape = shape[4]}") +
                   node("s", "Size2(r:0)") + node("t", "Size2(r:0)", "on CPU"))
                .text,
            "x GPU:1\na GPU:1\nr GPU:1\ns GPU:1\nt CPU:0\n");
}

TEST(Place, AliasesOfGeneratorsFloatWithThem) {
  EXPECT_EQ(placed(node("c", "Make()") +
                   node("r", "Reshape(c:0) {shape = shape[4]}") +
                   node("a", "One(r:0)", "on \"/GPU:1\""))
                .text,
            "c GPU:1\nr GPU:1\na GPU:1\n");
}

TEST(Place, OpsRunWhereTheirVariableLives) {
  const Result r = placed(handle("v", "on \"/GPU:1\"") + arg("x") +
                          node("read", "ReadVariableOp(v:0)", "on \"/GPU:0\"") +
                          node("a", "Two(read:0, x:0)") +
                          effect("w", "AssignAddVariableOp(v:0, a:0, ^read)"));
  EXPECT_EQ(r.text, "v GPU:1\nx GPU:0\nread GPU:1\na GPU:0\nw GPU:1\n");
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_EQ(r.placement.notes[0].id, "request-ignored");
  EXPECT_PRED2(has, r.placement.notes[0].text, "ReadVariableOp \"read\"");
  EXPECT_PRED2(has, r.placement.notes[0].text, "on GPU:1");
}

TEST(Place, AHandleWithoutRequestGoesToTheDefaultThatRunsAllItsOps) {
  EXPECT_EQ(placed(handle("v") + node("read", "ReadVariableOp(v:0)")).text,
            "v GPU:0\nread GPU:0\n");
  PlaceOptions options = gpus_and_cpu();
  options.devices[0].runs = [](const OpDef& op, DType) {
    return op.name() != "Slot";
  };
  EXPECT_EQ(placed(handle("v") + handle("m") + arg("g") +
                       effect("u", "Slot(v:0, m:0, g:0)"),
                   options)
                .text,
            "v GPU:1\nm GPU:1\ng GPU:1\nu GPU:1\n");
}

PlaceOptions two_cpus_and_a_gpu() {
  const auto all = [](const OpDef&, DType) { return true; };
  PlaceOptions options;
  for (const char* d : {"CPU:0", "CPU:1", "GPU:0"}) {
    options.devices.push_back(
        {std::string("/job:localhost/replica:0/task:0/device:") + d, nullptr,
         all});
  }
  return options;
}

std::string range(const std::string& name, const std::string& more) {
  return fmt::format(
      "node {} = _VariableRange(v:0) {{begin = 2, count = 2}} -> "
      "resource(float32)[2] {}\n",
      name, more);
}

// The argument goes to its only reader.
TEST(Place, ARangeOfAVariableIsUpdatedOnAnyDeviceOfTheSameMemory) {
  const std::string grad =
      arg("g") + "node h = _Rows(g:0) {begin = 0, count = 2} -> float32[2]\n";
  EXPECT_EQ(
      placed(handle("v", "on \"/CPU:0\"") + grad + range("r", "on \"/CPU:1\"") +
                 effect("u", "AssignAddVariableOp(r:0, h:0)"),
             two_cpus_and_a_gpu())
          .text,
      "v CPU:0\ng CPU:1\nh CPU:1\nr CPU:1\nu CPU:1\n");
  // Another memory, or no request: placed with the variable.
  for (const char* wish : {"on \"/GPU:0\"", ""}) {
    EXPECT_EQ(placed(handle("v", "on \"/CPU:1\"") + grad + range("r", wish) +
                         effect("u", "AssignAddVariableOp(r:0, h:0)"),
                     two_cpus_and_a_gpu())
                  .text,
              "v CPU:1\ng CPU:1\nh CPU:1\nr CPU:1\nu CPU:1\n");
  }
  // The variable is on a GPU, and a CPU cannot compute with it.
  EXPECT_EQ(
      placed(handle("v", "on \"/GPU:0\"") + grad + range("r", "on \"/CPU:1\"") +
                 effect("u", "AssignAddVariableOp(r:0, h:0)"),
             two_cpus_and_a_gpu())
          .text,
      "v GPU:0\ng GPU:0\nh GPU:0\nr GPU:0\nu GPU:0\n");
}

TEST(Place, ARealVariableDecidesAgainstEveryRequest) {
  const Variable variable(constant(1.0f));
  Graph g = parse_graph(
      "berth-graph 1\n"
      "node v = VarHandleOp() {shared_name = \"v\", dtype = float32, shape = "
      "shape[]} -> resource(float32)[] on \"/GPU:1\"\n"
      "node read = ReadVariableOp(v:0) -> float32[] on \"/GPU:1\"\n");
  g[0].variable = variable.handle();
  const Placement p = place(g, gpus_and_cpu());
  EXPECT_EQ(short_device(g[0].assigned), "CPU:0");
  EXPECT_EQ(short_device(g[1].assigned), "CPU:0");
  EXPECT_EQ(p.notes.size(), 2u);
  PlaceOptions elsewhere = gpus_and_cpu();
  elsewhere.devices.pop_back();
  EXPECT_THROW(place(g, elsewhere), errors::InvalidArgument);
}

TEST(Place, SlotsFollowTheirVariable) {
  EXPECT_EQ(placed(handle("v", "on \"/GPU:1\"") + handle("m", "follows v") +
                   node("read", "ReadVariableOp(m:0)"))
                .text,
            "v GPU:1\nm GPU:1\nread GPU:1\n");
}

TEST(Place, ConflictingVariablesAreAnErrorThatNamesBoth) {
  const std::string e = error_of<errors::InvalidArgument>(
      handle("v", "on \"/GPU:1\"") + handle("m", "on \"/GPU:0\"") +
      effect("u", "Both(v:0, m:0)"));
  EXPECT_PRED2(has, e, "Both \"u\"");
  EXPECT_PRED2(has, e, "\"v\" was asked for on \"/GPU:1\"");
  EXPECT_PRED2(has, e, "\"m\" was asked for on \"/GPU:0\"");
  // Partial requests with a common device are not a conflict.
  EXPECT_EQ(placed(handle("v", "on \"/GPU:1\"") + handle("m", "on GPU") +
                   effect("u", "Both(v:0, m:0)"))
                .text,
            "v GPU:1\nm GPU:1\nu GPU:1\n");
}

TEST(Place, CyclesOfColocationAreAnError) {
  Graph g = parse_graph(kHead + arg("x") + node("a", "One(x:0)") +
                        node("b", "One(a:0)", "follows a"));
  g[1].follows = 2;
  EXPECT_THROW(place(g, gpus_and_cpu()), errors::InvalidArgument);
  g[1].follows = 1;  // its own group: no constraint
  place(g, gpus_and_cpu());
  EXPECT_EQ(short_device(g[2].assigned), "GPU:0");
}

TEST(Place, AsksKernelTablesAndCountsDecompositions) {
  KernelTable table;
  table.add("MatMul", {"test", kFloatingTypes, nullptr, nullptr});
  PlaceOptions options;
  options.devices = {{"/device:GPU:0", &table}, {"/device:CPU:0", nullptr}};
  Graph g = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {index = 0, dtype = float32, shape = shape[4,4]} -> "
      "float32[4,4]\n"
      "node m = MatMul(x:0, x:0) -> float32[4,4]\n"
      "node t = Tanh(m:0) -> float32[4,4]\n");
  place(g, options);
  EXPECT_EQ(g[1].assigned, "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(g[2].assigned, "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST(Place, ExplainsEveryDecision) {
  const Result r =
      placed(handle("v", "on \"/GPU:1\"") + arg("x") +
             node("read", "ReadVariableOp(v:0)") + node("a", "One(x:0)") +
             node("g", "One(read:0)", "follows read"));
  EXPECT_EQ(explain(r.graph, r.placement, 0),
            "on GPU:1: the variable lives there");
  EXPECT_EQ(explain(r.graph, r.placement, 1),
            "on GPU:0: where \"a\" and all other consumers are");
  EXPECT_EQ(explain(r.graph, r.placement, 2),
            "on GPU:1: touches variable \"v\"");
  EXPECT_EQ(explain(r.graph, r.placement, 3),
            "on GPU:0: the first device that can run it");
  EXPECT_EQ(explain(r.graph, r.placement, 4),
            "on GPU:1: colocated with \"read\"");
}

TEST(Place, RefusesListsOfDevicesThatMakeNoSense) {
  const std::string body = arg("x");
  PlaceOptions options;
  EXPECT_PRED2(has, error_of<errors::InvalidArgument>(body, options), "empty");
  options.devices = {{"/device:CPU:0"}, {"CPU:0"}};
  EXPECT_PRED2(has, error_of<errors::InvalidArgument>(body, options), "twice");
  options.devices = {{"/job:worker"}};
  EXPECT_PRED2(has, error_of<errors::InvalidArgument>(body, options),
               "no type");
}

// Random requests, colocations (forward and backward), variables, generators
// and aliases.
std::string random_body(std::mt19937& rng, int n) {
  auto pick = [&](int k) { return static_cast<int>(rng() % k); };
  const char* devices[] = {"\"/GPU:0\"", "\"/GPU:1\"", "CPU", "GPU"};
  std::string body = handle("n0") + arg("n1") + node("n2", "Make()");
  for (int i = 3; i < n; ++i) {
    auto value = [&] { return fmt::format("n{}:0", 1 + pick(i - 1)); };
    const char* ops[] = {"Make()",
                         "One({})",
                         "Size2({})",
                         "CpuOnly({})",
                         "Reshape({}) {{shape = shape[4]}}",
                         "NotGpu0({})",
                         "ReadVariableOp(n0:0)"};
    const int op = pick(7);
    std::string more;
    // CpuOnly under a request for a GPU is an error, tested elsewhere.
    if (pick(3) == 0 && op != 3 && op != 5) {
      more += std::string(" on ") + devices[pick(4)];
    }
    if (pick(2) == 0) more += fmt::format(" follows n{}", pick(i));
    body += node(fmt::format("n{}", i),
                 fmt::format(fmt::runtime(ops[op]), value()), more);
  }
  return body;
}

TEST(Place, RulesHoldOnRandomGraphs) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    Result r = placed(random_body(rng, 30));
    std::set<int> noted;
    for (const PlaceNote& n : r.placement.notes) noted.insert(n.node);
    for (int i = 0; i < r.graph.size(); ++i) {
      const Node& n = r.graph[i];
      ASSERT_FALSE(n.assigned.empty()) << n.name;
      const DeviceName at = n.assigned.name();
      const std::string& op = n.op->name();
      if (op == "ReadVariableOp") {
        EXPECT_EQ(n.assigned, r.graph[0].assigned);
      } else if (!n.requested.empty()) {
        EXPECT_TRUE(n.requested.name().matches(at)) << r.text;
      } else if (n.follows >= 0 && !noted.contains(i)) {
        EXPECT_EQ(n.assigned, r.graph[n.follows].assigned)
            << n.name << "\n"
            << r.text << print(r.graph);
      }
      if (op == "CpuOnly") {
        EXPECT_EQ(*at.type, "CPU");
      } else if (op == "NotGpu0") {
        EXPECT_NE(short_device(n.assigned), "GPU:0");
      }
    }
    Graph again = r.graph;
    place(again, gpus_and_cpu());
    for (int i = 0; i < again.size(); ++i) {
      EXPECT_EQ(again[i].assigned, r.graph[i].assigned);
    }
    // Colocations may also point forward: nothing hangs, all get a device.
    for (Node& n : again.nodes) {
      if (n.follows >= 0) n.follows = static_cast<int>(rng() % 30);
    }
    try {
      place(again, gpus_and_cpu());
      for (const Node& n : again.nodes) EXPECT_FALSE(n.assigned.empty());
    } catch (const errors::InvalidArgument& e) {
      EXPECT_PRED2(has, e.what(), "follows itself");
    }
  }
}

}  // namespace
}  // namespace berth
