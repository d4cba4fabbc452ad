// Every conflict that place() reports is minimal: without any one constraint
// the others can be satisfied, but not all together.

#include "place/conflict.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "berth/berth.h"
#include "berth/variable.h"
#include "graph/body.h"
#include "place/explain.h"
#include "place/graphs_testing.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT
using Kind = PlaceConstraint::Kind;

const char kMore[] = R"(op Touch (v: resource write) -> (y)
op CpuTouch (v: resource write) -> (y)
op GpuTouch (v: resource write) -> (y)
op Ref () -> (r ref)
op TakeRef (r: any ref) -> (y)
op NumbersDataset () -> (d)
op Words () -> (d host)
op MapDatasetV2 (d: variant) -> (d)
)";

PlaceOptions options_of(config::SoftPlacement soft) {
  PlaceOptions options;
  const auto gpu = [](const OpDef& op, DType) {
    return !op.name().starts_with("Cpu");
  };
  const auto cpu = [](const OpDef& op, DType) {
    return !op.name().starts_with("Gpu");
  };
  const std::string task = "/job:localhost/replica:0/task:0/device:";
  options.devices = {{task + "GPU:0", nullptr, gpu},
                     {task + "GPU:1", nullptr, gpu},
                     {task + "CPU:0", nullptr, cpu}};
  options.soft = soft;
  return options;
}

std::string places(const Graph& graph, const PlaceOptions& options,
                   PlaceConflict* conflict = nullptr) {
  Graph copy = graph;
  try {
    place(copy, options);
  } catch (const PlaceFailure& f) {
    if (conflict) *conflict = f.conflict();
    return dynamic_cast<const errors::Error&>(f).what();
  }
  return "";
}

// Removes one constraint from the program. Node 0 is an unused handle.
void take_out(const PlaceConstraint& c, Graph& graph, PlaceOptions& options) {
  Node& n = graph[c.node];
  switch (c.kind) {
    case Kind::kResource:
    case Kind::kRequest:
      n.requested.clear();
      break;
    case Kind::kAssigned:
      n.assigned.clear();
      break;
    case Kind::kVariable:
      n.variable = Tensor();
      break;
    case Kind::kKernels:
      for (const char* type : {"CPU", "GPU"}) {
        using placement::Change;
        apply_change(graph, {Change::Kind::kAddKernel, n.name, type}, options);
      }
      break;
    case Kind::kGroup:
      for (Node* node : {&graph[c.node], &graph[c.other]}) {
        std::erase(node->colocated, c.what);
      }
      break;
    case Kind::kHost:
      n.inputs.clear();
      n.op = graph[0].op;
      break;
    default:
      for (ValueRef& v : n.inputs) {
        if (v.node == c.other) v = {0, 0};
      }
  }
}

// The constraints connect their nodes, and no device satisfies them all.
void expect_conflict(const Graph& graph, const PlaceConflict& conflict) {
  std::vector<int32_t> parent(graph.nodes.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](int32_t i) {
    while (parent[i] != i) i = parent[i];
    return i;
  };
  for (const PlaceConstraint& c : conflict.constraints) {
    if (c.binary()) parent[find(c.node)] = find(c.other);
  }
  DeviceSet left = 7;
  std::set<int32_t> roots;
  for (const PlaceConstraint& c : conflict.constraints) {
    roots.insert(find(c.node));
    if (!c.binary()) left &= c.mask;
  }
  EXPECT_EQ(left, 0u) << conflict.str();
  EXPECT_EQ(roots.size(), 1u) << conflict.str();
}

// And every subset that lacks one member can be placed.
void expect_minimal(const Graph& graph, const PlaceOptions& options,
                    const PlaceConflict& conflict) {
  expect_conflict(graph, conflict);
  for (const PlaceConstraint& c : conflict.constraints) {
    Graph less = graph;
    PlaceOptions changed = options;
    take_out(c, less, changed);
    EXPECT_EQ(places(less, changed), "")
        << "without: " << c.text << "\nof" << conflict.str();
  }
}

std::vector<std::string> texts(const PlaceConflict& conflict) {
  std::vector<std::string> t;
  for (const PlaceConstraint& c : conflict.constraints) t.push_back(c.text);
  return t;
}

Graph parsed(const std::string& body) {
  return parse_graph(std::string(kHead) + kMore + body);
}

TEST(Conflict, NamesTheShortestChainBetweenTwoVariables) {
  const Graph g =
      parsed(handle("spare") + handle("v", "on \"/GPU:1\" from v (m.cc:1)") +
             handle("m", "on \"/GPU:0\" from m (m.cc:2)") +
             node("other", "Touch(v:0)") + node("more", "Touch(m:0)") +
             effect("u", "Both(v:0, m:0)", "from u (m.cc:3)"));
  for (const auto soft :
       {config::SoftPlacement::kWarn, config::SoftPlacement::kError}) {
    PlaceConflict conflict;
    const std::string e = places(g, options_of(soft), &conflict);
    EXPECT_EQ(texts(conflict),
              (std::vector<std::string>{
                  "variable \"m\" was asked for on \"/GPU:0\"",
                  "Both \"u\" touches variable \"m\"",
                  "Both \"u\" touches variable \"v\"",
                  "variable \"v\" was asked for on \"/GPU:1\""}));
    EXPECT_PRED2(has, e, "Both \"u\" (m.cc:3) cannot be placed");
    EXPECT_PRED2(has, e, "\"/GPU:1\" (m.cc:1)\n");
    EXPECT_PRED2(has, e, "under the same device scope");
    EXPECT_PRED2(has, e, "available devices: GPU:0, GPU:1, CPU:0;");
    expect_minimal(g, options_of(soft), conflict);
  }
}

TEST(Conflict, OfManyConstraintsNamesThoseThatAreNeeded) {
  // Any two share a device. No0 and No1 are not needed among all five.
  PlaceOptions options = options_of(config::SoftPlacement::kError);
  options.devices.push_back({"/device:CPU:1"});
  std::string ops, nodes = handle("spare") + handle("v");
  for (const char* lacks : {"0", "1", "2", "3", "01"}) {
    ops += fmt::format("op No{} (v: resource write) -> (y)\n", lacks);
    nodes += node(fmt::format("n{}", lacks), fmt::format("No{}(v:0)", lacks));
  }
  for (size_t d = 0; d < 4; ++d) {
    options.devices[d].runs = [d](const OpDef& op, DType) {
      return !has(op.name(), std::to_string(d));
    };
  }
  const Graph g = parse_graph(std::string(kHead) + ops + nodes);
  PlaceConflict conflict;
  places(g, options, &conflict);
  std::string named;
  for (const auto& c : conflict.constraints) {
    if (!c.binary()) named += g[c.node].name + " ";
  }
  EXPECT_EQ(conflict.constraints.size(), 6u) << conflict.str();
  EXPECT_PRED2(has, named, "n2 ");
  EXPECT_PRED2(has, named, "n3 ");
  EXPECT_PRED2(has, named, "n01 ");
}

TEST(Conflict, OneNodeAloneIsAConflictOfItsRequestAndItsKernels) {
  const Graph g = parsed(handle("spare") + arg("x") +
                         node("a", "CpuOnly(x:0)", "on \"/GPU:0\""));
  const PlaceOptions options = options_of(config::SoftPlacement::kError);
  PlaceConflict conflict;
  const std::string e = places(g, options, &conflict);
  EXPECT_EQ(texts(conflict),
            (std::vector<std::string>{
                "CpuOnly \"a\" was asked for on \"/GPU:0\"",
                "CpuOnly \"a\" has a kernel for float32 on CPU:0 alone"}));
  EXPECT_PRED2(has, e, "ask for \"/CPU:0\"");
  expect_minimal(g, options, conflict);
}

TEST(Conflict, MasksAreInTheOrderOfTheCallersDevices) {
  PlaceOptions options = options_of(config::SoftPlacement::kError);
  options.policy = PlacePolicy::kTensorFlow;  // sorts GPUs before the CPU
  std::swap(options.devices[0], options.devices[2]);
  const Graph g = parsed(arg("x") + node("a", "CpuOnly(x:0)", "on \"/GPU:0\""));
  PlaceConflict conflict;
  places(g, options, &conflict);
  ASSERT_EQ(conflict.constraints.size(), 2u);
  for (const PlaceConstraint& c : conflict.constraints) {
    EXPECT_EQ(c.mask, c.kind == Kind::kKernels ? 1u : 4u) << c.text;
  }
}

TEST(Conflict, GroupsConflictWhenRequestsAreHard) {
  const Graph g =
      parsed(handle("spare") + arg("x") +
             node("a", "One(x:0)", "on \"/GPU:0\" with g") +
             node("b", "One(x:0)", "with g") +
             node("c", "One(x:0)", "on \"/GPU:1\" with g from c (m.cc:9)"));
  const PlaceOptions hard = options_of(config::SoftPlacement::kError);
  PlaceConflict conflict;
  const std::string e = places(g, hard, &conflict);
  EXPECT_EQ(texts(conflict),
            (std::vector<std::string>{
                "One \"a\" was asked for on \"/GPU:0\"",
                "One \"c\" is in colocation group \"g\" with \"a\"",
                "One \"c\" was asked for on \"/GPU:1\""}));
  EXPECT_PRED2(has, e, "take \"c\" out of group \"g\"");
  expect_minimal(g, hard, conflict);
  EXPECT_EQ(places(g, options_of(config::SoftPlacement::kWarn)), "");
}

TEST(Conflict, LeavesOutRequestsThatTheSourceOverruled) {
  const Graph g = parsed(
      handle("spare") + handle("v") + node("a", "Touch(v:0)", "on \"/GPU:0\"") +
      node("b", "Touch(v:0)", "on \"/GPU:1\"") + node("c", "CpuTouch(v:0)"));
  const PlaceOptions hard = options_of(config::SoftPlacement::kError);
  PlaceConflict conflict;
  places(g, hard, &conflict);
  EXPECT_EQ(texts(conflict).size(), 4u);
  EXPECT_PRED2(has, conflict.str(), "\"a\" was asked for");
  EXPECT_FALSE(has(conflict.str(), "\"b\"")) << conflict.str();
  expect_conflict(g, conflict);
}

TEST(Conflict, ReferencesVariantsAndHostDataBindToo) {
  const PlaceOptions soft = options_of(config::SoftPlacement::kWarn);
  PlaceConflict conflict;
  Graph g = parsed(handle("spare") + node("r", "Ref()", "on \"/GPU:0\"") +
                   node("t", "TakeRef(r:0)",
                        "at \"/job:localhost/replica:0/task:0/device:CPU:0\""));
  places(g, soft, &conflict);
  ASSERT_EQ(conflict.constraints.size(), 3u) << conflict.str();
  EXPECT_EQ(conflict.constraints[1].kind, Kind::kRefEdge);
  expect_minimal(g, soft, conflict);

  g = parsed(handle("spare") +
             "node d = NumbersDataset() -> variant[] at "
             "\"/job:localhost/replica:0/task:0/device:GPU:1\"\n"
             "node m = MapDatasetV2(d:0) -> variant[] at "
             "\"/job:localhost/replica:0/task:0/device:GPU:0\"\n");
  places(g, soft, &conflict);
  ASSERT_EQ(conflict.constraints.size(), 3u) << conflict.str();
  EXPECT_EQ(conflict.constraints[1].kind, Kind::kVariantEdge);
  expect_minimal(g, soft, conflict);

  // The variant holds strings, which only the host can hold; MapDatasetV2 has
  // kernels for GPUs only.
  PlaceOptions gpu_only = soft;
  gpu_only.devices[2].runs = [](const OpDef& op, DType) {
    return op.name() != "MapDatasetV2";
  };
  g = parsed(handle("spare") + "node d = Words() -> variant[]\n" +
             node("m", "MapDatasetV2(d:0)"));
  places(g, gpu_only, &conflict);
  ASSERT_EQ(conflict.constraints.size(), 2u) << conflict.str();
  EXPECT_EQ(conflict.constraints[1].kind == Kind::kHost ||
                conflict.constraints[0].kind == Kind::kHost,
            true);
  expect_minimal(g, gpu_only, conflict);
}

TEST(Conflict, ARealVariableIsNeverMoved) {
  const Variable variable(constant(1.0f));  // on CPU:0
  Graph g = parsed(handle("spare") + handle("v") + node("a", "GpuTouch(v:0)"));
  g[1].variable = variable.handle();
  const PlaceOptions soft = options_of(config::SoftPlacement::kWarn);
  PlaceConflict conflict;
  const std::string e = places(g, soft, &conflict);
  ASSERT_EQ(conflict.constraints.size(), 3u) << conflict.str();
  EXPECT_PRED2(has, e, "variable \"v\" lives on CPU:0");
  expect_minimal(g, soft, conflict);
}

// Trees of variables, ops and groups of two, with one path between any two
// nodes.
struct Forest {
  std::string text;
  std::vector<std::string> names, more;
  std::vector<int> parent;
  int find(int i) { return parent[i] == i ? i : find(parent[i]); }
};

Graph random_graph(std::mt19937& rng, int handles, int ops,
                   std::vector<int>* set) {
  auto pick = [&](int k) { return static_cast<int>(rng() % k); };
  Forest f;
  std::string text = kHead + std::string(kMore) + handle("n0");
  std::vector<std::string> calls = {""};
  for (int i = 0; i <= handles + ops; ++i) f.parent.push_back(i);
  std::vector<std::string> groups(static_cast<size_t>(handles + ops + 1));
  const auto join = [&](int a, int b) {
    if (f.find(a) == f.find(b)) return false;
    f.parent[f.find(a)] = f.find(b);
    return true;
  };
  std::vector<std::string> lines;
  for (int i = 1; i <= handles + ops; ++i) {
    std::string call;
    if (i > handles) {
      const int a = 1 + pick(handles), b = 1 + pick(handles);
      join(a, i);
      call = pick(3) == 0 && join(a, b)
                 ? fmt::format("Both(n{}:0, n{}:0)", a, b)
                 : fmt::format("Touch(n{}:0)", a);
    }
    calls.push_back(call);
  }
  for (int k = 0; k < (handles + ops) / 3; ++k) {
    const int a = 1 + pick(handles + ops), b = 1 + pick(handles + ops);
    if (!join(a, b)) continue;
    for (const int i : {a, b}) {
      groups[i] += fmt::format("{} g{}", groups[i].empty() ? "with" : ",", k);
    }
  }
  for (int i = 1; i <= handles + ops; ++i) {
    const std::string name = fmt::format("n{}", i);
    if (i <= handles) {
      text += handle(name, groups[i]);
    } else if (calls[i].starts_with("Both")) {
      text += effect(name, calls[i], groups[i]);
    } else {
      text += node(name, calls[i], groups[i]);
    }
  }
  for (int i = 0; i <= handles + ops; ++i) set->push_back(f.find(i));
  return parse_graph(text);
}

// Binds node `i` to the CPU or to a GPU in a way that nothing overrules.
void bind(Graph& g, std::mt19937& rng, int i, bool cpu) {
  const std::string device = cpu ? "CPU:0" : rng() % 2 ? "GPU:0" : "GPU:1";
  Node& n = g[i];
  if (n.op->name() == "Touch" && rng() % 2) {
    for (const auto& op : g.declared_ops) {
      if (op->name() == (cpu ? "CpuTouch" : "GpuTouch")) n.op = op.get();
    }
  } else if (n.inputs.empty() && rng() % 2) {
    n.requested = "/" + device;
  } else {
    n.assigned = "/job:localhost/replica:0/task:0/device:" + device;
  }
}

TEST(Conflict, APlantedOneIsFoundAndEachMemberIsNeeded) {
  std::mt19937 rng(11);
  int planted = 0;
  size_t longest = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<int> set;
    const int handles = 2 + static_cast<int>(rng() % 6);
    Graph g =
        random_graph(rng, handles, 3 + static_cast<int>(rng() % 20), &set);
    const PlaceOptions options = options_of(config::SoftPlacement::kError);
    ASSERT_EQ(places(g, options), "") << print(g);
    const int a = 1 + static_cast<int>(rng() % (g.nodes.size() - 1));
    const int b = 1 + static_cast<int>(rng() % (g.nodes.size() - 1));
    if (a == b) continue;
    bind(g, rng, a, true);
    bind(g, rng, b, false);
    PlaceConflict conflict;
    const std::string e = places(g, options, &conflict);
    // Groups are soft where requests are, but here they are hard.
    EXPECT_EQ(e.empty(), set[a] != set[b]) << e << print(g);
    if (e.empty()) continue;
    ++planted;
    longest = std::max(longest, conflict.constraints.size());
    expect_minimal(g, options, conflict);
  }
  EXPECT_GT(planted, 80);
  EXPECT_GT(longest, 6u);
}

TEST(Conflict, OfALargeGroupIsFoundAmongTenThousandMembers) {
  std::string body = handle("spare") + arg("x");
  for (int i = 0; i < 10000; ++i) {
    body += node(fmt::format("n{}", i), "One(x:0)",
                 i == 17     ? "on \"/GPU:0\" with g"
                 : i == 9000 ? "on \"/GPU:1\" with g"
                             : "with g");
  }
  const Graph g = parsed(body);
  const PlaceOptions hard = options_of(config::SoftPlacement::kError);
  PlaceConflict conflict;
  places(g, hard, &conflict);
  EXPECT_EQ(conflict.constraints.size(), 4u);
}

// The conflict's nodes belong to the body: the graph's names would be wrong.
TEST(Conflict, InABodyNamesTheFunctionAndItsNodes) {
  const Graph graph =
      parse_graph(std::string(kHead) + kMore +
                  "function f () -> (resource(float32)[4]) {\n" +
                  handle("v", "on \"/GPU:1\"") + handle("m", "on CPU") +
                  effect("u", "Both(v:0, m:0)") +
                  "return v:0\n}\nop Call () -> (r)\n"
                  "node c = Call() {f = @f} -> resource(float32)[4]\n");
  PlaceConflict conflict;
  const std::string message =
      places(graph, options_of(config::SoftPlacement::kError), &conflict);
  EXPECT_NE(message.find("Call \"c\": inside function \"f\": "),
            std::string::npos)
      << message;
  ASSERT_EQ(conflict.constraints.size(), 4);
  for (const PlaceConstraint& c : conflict.constraints) {
    EXPECT_EQ(c.function, "f");
    EXPECT_NE(std::string("vmu").find(c.node_name), std::string::npos)
        << c.node_name;
  }
}

}  // namespace
}  // namespace berth
