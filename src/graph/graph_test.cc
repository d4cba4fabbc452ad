#include "graph/graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/errors.h"
#include "op/op_registry.h"

namespace berth {
namespace {

Node node_of(const char* op, std::string name, std::vector<ValueRef> inputs,
             AttrsRef attrs = {}) {
  Node node;
  node.name = std::move(name);
  node.op = &op_named(op);
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.outputs.resize(1);
  return node;
}

int32_t add_arg(Graph& g, const Shape& shape) {
  const auto index = static_cast<int64_t>(g.args.size());
  const int32_t id = g.add(node_of(
      "_Arg", "x" + std::to_string(index), {},
      AttrsRef({{"index", index}, {"dtype", float32}, {"shape", shape}})));
  g.args.push_back(id);
  return id;
}

// x -> a -> b -> c, each a Neg.
Graph chain() {
  Graph g;
  ValueRef last{add_arg(g, {2}), 0};
  for (const char* name : {"a", "b", "c"}) {
    last = {g.add(node_of("Neg", name, {last})), 0};
  }
  g.outputs = {last};
  g.infer();
  return g;
}

std::string message_of(const Graph& g) {
  try {
    verify(g);
  } catch (const errors::Internal& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, UsersAreReadersAndWaitersOnceEach) {
  Graph g;
  const int32_t x = add_arg(g, {2});
  const int32_t twice = g.add(node_of("AddV2", "t", {{x, 0}, {x, 0}}));
  const int32_t waits = g.add(node_of("Neg", "w", {{x, 0}}));
  g[waits].controls = {x, twice};
  EXPECT_EQ(g.users(),
            (std::vector<std::vector<int32_t>>{{twice, waits}, {waits}, {}}));
}

TEST(Graph, CompactRenumbersEverythingThatRefersToNodes) {
  Graph g = chain();
  const int32_t dead = g.add(node_of("Abs", "dead", {{0, 0}}));
  const int32_t last = g.add(node_of("Exp", "last", {{3, 0}}));
  g[last].controls = {dead};
  g[dead].controls = {2};
  g[last].follows = 3;
  g.outputs = {{last, 0}};
  g.infer();
  std::vector<bool> keep(6, true);
  keep[dead] = false;
  g.compact(keep);
  ASSERT_EQ(g.size(), 5);
  EXPECT_EQ(g[4].name, "last");
  EXPECT_EQ(g[4].controls, std::vector<int32_t>{2});  // those of `dead`
  EXPECT_EQ(g[4].follows, 3);
  EXPECT_EQ(g.outputs[0], (ValueRef{4, 0}));
  EXPECT_EQ(message_of(g), "");
}

TEST(Graph, ControlsOfManyRemovedNodesAreInherited) {
  Graph g = chain();
  for (int32_t i = 1; i < 4; ++i) g[i].controls = {i - 1};
  const int32_t last = g.add(node_of("Exp", "last", {{0, 0}}));
  g[last].controls = {3};
  g.outputs = {{last, 0}};
  g.infer();
  g.compact({true, false, false, false, true});
  EXPECT_EQ(g[1].controls, std::vector<int32_t>{0});
}

TEST(Graph, ColocationFollowsRemovedTargetsAndTheirRequests) {
  Graph g = chain();
  const int32_t last = g.add(node_of("Exp", "last", {{0, 0}}));
  g[last].follows = 3;
  g[3].follows = 2;
  g[2].requested = "/device:GPU:0";
  g.outputs = {{last, 0}};
  g.infer();
  g.compact({true, true, false, false, true});
  EXPECT_EQ(g[2].follows, -1);
  EXPECT_EQ(g[2].requested, "/device:GPU:0");
}

TEST(Graph, InferNamesTheUsersLineWhenShapesDisagree) {
  Graph g;
  const int32_t a = add_arg(g, {2}), b = add_arg(g, {3});
  Node add = node_of("AddV2", "sum", {{a, 0}, {b, 0}});
  add.sources = {{"sum", Site{"model.cc", 41}}};
  g.add(std::move(add));
  try {
    g.infer();
    FAIL() << "expected an error";
  } catch (const errors::InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("AddV2"), std::string::npos) << message;
    EXPECT_NE(message.find("model.cc:41"), std::string::npos) << message;
  }
}

TEST(Graph, InferRunsTheShapeRulesFromTheArgumentsOn) {
  Graph g;
  const int32_t a = add_arg(g, {-2, 1}), b = add_arg(g, {3});
  const int32_t s = g.add(node_of("AddV2", "sum", {{a, 0}, {b, 0}}));
  g.infer();
  EXPECT_EQ(g[s].outputs[0].shape, (Shape{-2, 3}));
}

TEST(Graph, UniqueNamesCountUpAndSeeNamesThatAreThereAlready) {
  Graph g;
  add_arg(g, {});
  EXPECT_EQ(unique_name(g, "Neg"), "Neg");
  g.add(node_of("Neg", "Neg", {{0, 0}}));
  g.add(node_of("Neg", "Neg_1", {{0, 0}}));
  EXPECT_EQ(unique_name(g, "Neg"), "Neg_2");
  g.add(node_of("Neg", "Neg_2", {{0, 0}}));
  EXPECT_EQ(unique_name(g, "Neg"), "Neg_3");
  const Graph copy = g;
  EXPECT_EQ(unique_name(copy, "Neg"), "Neg_3");
  g.compact({true, false, false, false});
  EXPECT_EQ(unique_name(g, "Neg"), "Neg");
}

TEST(Graph, AHundredThousandNodesGetDistinctNames) {
  Graph g;
  add_arg(g, {});
  for (int i = 0; i < 100000; ++i) {
    g.add(node_of("Neg", unique_name(g, "Neg"), {{i, 0}}));
  }
  g.infer();
  EXPECT_EQ(message_of(g), "");
  EXPECT_EQ(g[100000].name, "Neg_99999");
}

TEST(Verify, AcceptsAConsistentGraph) { EXPECT_EQ(message_of(chain()), ""); }

TEST(Verify, NamesEveryKindOfDamage) {
  struct Damage {
    const char* expected;
    void (*apply)(Graph& g);
  };
  const Damage kDamages[] = {
      {"node 2 'b': reads node 3", [](Graph& g) { g[2].inputs[0].node = 3; }},
      {"node 2 'b': reads node -1", [](Graph& g) { g[2].inputs[0].node = -1; }},
      {"reads output 1 of 'a'", [](Graph& g) { g[2].inputs[0].output = 1; }},
      {"has the name of node 1", [](Graph& g) { g[2].name = "a"; }},
      {"has no name", [](Graph& g) { g[2].name = ""; }},
      {"waits for node 2", [](Graph& g) { g[2].controls = {2}; }},
      {"not sorted and distinct",
       [](Graph& g) {
         g[3].controls = {1, 1};
       }},
      {"has 0 inputs; expected 1", [](Graph& g) { g[2].inputs.clear(); }},
      {"has 2 outputs", [](Graph& g) { g[3].outputs.resize(2); }},
      {"without dtype",
       [](Graph& g) { g[3].outputs[0].dtype = DType::kInvalid; }},
      {"follows node 2", [](Graph& g) { g[2].follows = 2; }},
      {"reads node 9", [](Graph& g) { g.outputs[0].node = 9; }},
      {"1 _Arg nodes but lists 0", [](Graph& g) { g.args.clear(); }},
      {"expected an _Arg", [](Graph& g) { g.args[0] = 1; }},
      {"has no op", [](Graph& g) { g[2].op = nullptr; }},
  };
  for (const Damage& damage : kDamages) {
    Graph g = chain();
    damage.apply(g);
    const std::string message = message_of(g);
    EXPECT_NE(message.find(damage.expected), std::string::npos)
        << "expected \"" << damage.expected << "\" in \"" << message << '"';
  }
}

}  // namespace
}  // namespace berth
