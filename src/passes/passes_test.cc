// What passes must keep: every bit of the results. Random graphs run before
// and after; and the properties a text case cannot show.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "graph/graph.h"
#include "graph/replay.h"
#include "graph/tracer.h"
#include "passes/forward.h"
#include "passes/lower.h"
#include "passes/pipeline.h"

namespace berth {
namespace {

// Writes random graphs over float32[2,3] values and friends, full of what the
// passes look for.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  Graph make() {
    text_ = "berth-graph 1\ngraph random\n";
    for (int i = 0; i < 2; ++i) {
      text_ += fmt::format(
          "node x{} = _Arg() {{dtype = float32, index = {}, shape = "
          "shape[2,3]}} -> float32[2,3]\n",
          i, i);
      values_.push_back(fmt::format("x{}:0", i));
    }
    for (const char* value : {"0", "-0", "1", "2", "-3.5", "nan"}) {
      constant(fmt::format("tensor(float32[], {})", value), "float32[]");
    }
    constant("tensor(float32[2,3], 1, 1, 1, 1, 1, 1)", "float32[2,3]");
    constant("tensor(float32[2,3], 0, -0, 1, 2, 3, inf)", "float32[2,3]");
    for (int i = 0; i < 40; ++i) step();
    text_ += "return ";
    for (size_t i = 0; i < values_.size(); i += 3) {
      text_ += (i ? ", " : "") + values_[i];
    }
    return parse_graph(text_ + "\n");
  }

 private:
  void constant(const std::string& value, const std::string& spec) {
    const std::string name = fmt::format("c{}", constants_.size());
    text_ += fmt::format("node {} = Const() {{value = {}}} -> {}\n", name,
                         value, spec);
    constants_.push_back(name + ":0");
    if (spec != "float32[]") values_.push_back(name + ":0");
  }
  const std::string& pick(const std::vector<std::string>& from) {
    return from[random_() % from.size()];
  }
  // A value of shape [2,3]; most of the time a recent one.
  std::string value() { return pick(values_); }
  std::string operand() {
    return random_() % 3 == 0 ? pick(constants_) : value();
  }
  std::string add(const std::string& call, const std::string& spec) {
    const std::string name = fmt::format("n{}", count_++);
    text_ += fmt::format("node {} = {} -> {}\n", name, call, spec);
    return name + ":0";
  }

  void step() {
    constexpr const char* kS = "float32[2,3]";
    const std::string x = value();
    std::string y;
    switch (random_() % 10) {
      case 0:
      case 1: {
        constexpr const char* kOps[] = {"AddV2", "Sub", "Mul", "RealDiv",
                                        "Maximum"};
        const std::string other = operand();
        const bool swap = random_() % 2;
        y = add(fmt::format("{}({}, {})", kOps[random_() % 5], swap ? other : x,
                            swap ? x : other),
                kS);
        break;
      }
      case 2:
      case 3: {
        constexpr const char* kOps[] = {"Neg", "Abs", "Identity",
                                        "StopGradient", "Square"};
        y = add(fmt::format("{}({})", kOps[random_() % 5], x), kS);
        break;
      }
      case 4:
        y = add(fmt::format("Neg({})", add(fmt::format("Neg({})", x), kS)), kS);
        break;
      case 5: {
        const std::string t =
            add(fmt::format("Transpose({}) {{perm = ints[1, 0]}}", x),
                "float32[3,2]");
        y = add(fmt::format("Transpose({}) {{perm = ints[1, 0]}}", t), kS);
        break;
      }
      case 6: {
        const std::string t = add(
            fmt::format("Reshape({}) {{shape = shape[6]}}", x), "float32[6]");
        const std::string u =
            add(fmt::format("Reshape({}) {{shape = shape[3,?]}}", t),
                "float32[3,2]");
        y = add(fmt::format("Reshape({}) {{shape = shape[2,3]}}", u), kS);
        break;
      }
      case 7:
        y = add(
            fmt::format("{}({})", random_() % 2 ? "ZerosLike" : "OnesLike", x),
            kS);
        break;
      case 8: {
        const std::string s =
            add(fmt::format("Sum({}) {{axis = ints[0]}}", x), "float32[3]");
        y = add(fmt::format("BroadcastLike({}, {})", s, value()), kS);
        break;
      }
      default: {
        // Down to a scalar and back.
        const std::string s =
            add(fmt::format("SumLike({}, {})", x, constants_[0]), "float32[]");
        y = add(fmt::format("BroadcastTo({}) {{shape = shape[2,3]}}", s), kS);
      }
    }
    values_.push_back(y);
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<std::string> values_, constants_;
  int count_ = 0;
};

Tensors run(const Graph& graph) {
  const std::vector<float> a = {0.f, -0.f, 1.f, -2.f, 1e30f, NAN};
  const std::vector<float> b = {3.f, INFINITY, -0.f, 0.f, 1e-40f, 7.f};
  const Tensor args[] = {constant(std::span<const float>(a), Shape{2, 3}),
                         constant(std::span<const float>(b), Shape{2, 3})};
  return replay(graph, args);
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  std::vector<std::byte> x(a.num_elements() * size_of(a.dtype())), y(x.size());
  a.copy_to(x.data());
  b.copy_to(y.data());
  ASSERT_EQ(std::memcmp(x.data(), y.data(), x.size()), 0);
}

TEST(Passes, RandomGraphsKeepEveryBit) {
  int removed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph before = RandomGraph(seed).make();
    const Tensors expected = run(before);
    Graph after = before;
    run_device_free_passes(after, [&](const char*, const Graph& g) {
      verify(g);
      EXPECT_EQ(print(parse_graph(print(g))), print(g));
    });
    removed += before.size() - after.size();
    const Tensors got = run(after);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_same_bits(expected[i], got[i]);
      if (HasFatalFailure()) FAIL() << i << "\n" << print(before);
    }
  }
  EXPECT_GT(removed, 200 * 10);
}

TEST(Passes, ASecondRunOfThePipelineChangesNothing) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Graph graph = RandomGraph(seed).make();
    run_device_free_passes(graph);
    const std::string once = print(graph);
    run_device_free_passes(graph);
    ASSERT_EQ(print(graph), once) << seed;
  }
}

TEST(Passes, TheDumpNamesEveryPassInOrderOnce) {
  Graph graph = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[]} -> "
      "float32[]\nreturn x:0\n");
  std::vector<std::string> stages;
  run_device_free_passes(
      graph, [&](const char* stage, const Graph&) { stages.push_back(stage); });
  EXPECT_EQ(stages, (std::vector<std::string>{"fold", "cse", "algebra",
                                              "control", "dce"}));
}

TEST(Passes, AnErrorOfAFoldedOpIsLeftToTheRun) {
  // A declared function cannot be called; calls are not folded anyway. An op
  // whose kernel throws stays as it is.
  Graph graph = parse_graph(
      "berth-graph 1\n"
      "node a = Const() {value = tensor(float32[2], 1, 2)} -> float32[2]\n"
      "node i = Const() {value = tensor(int32[1], 5)} -> int32[1]\n"
      "node g = GatherV2(a:0, i:0) -> float32[1]\n"
      "return g:0\n");
  fold(graph);
  EXPECT_EQ(graph[2].op->name(), "GatherV2");
}

// A composite that is a part of a whole batch: what computes with the batch is
// cut as it was, what computes with weights is whole.
TEST(Passes, DecompositionsOfAPartArePartsOfTheSameSlices) {
  Graph graph = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[6,4,4]} -> "
      "float32[6,4,4]\n"
      "node s = _Arg() {dtype = float32, index = 1, shape = shape[4]} -> "
      "float32[4]\n"
      "node y = GroupNorm(x:0, s:0, s:0) {num_groups = 2} -> float32[6,4,4] "
      "replica 1 part 0 of [11,4,4] origin 80 slices 2 to 4 of 4 batch 11\n"
      "return y:0\n");
  ASSERT_TRUE(
      lower(graph, [](const Node& n) { return n.op->name() != "GroupNorm"; }));
  verify(graph);
  int parts = 0, whole = 0;
  for (const Node& n : graph.nodes) {
    if (n.op->graph_only()) continue;
    EXPECT_EQ(n.replica, 1) << n.name;
    const bool cut = n.outputs[0].shape[0] == 6;
    EXPECT_EQ(n.part != nullptr, cut) << n.name;
    ++(cut ? parts : whole);
    if (!cut) continue;
    EXPECT_GE(n.part->signature, 0) << n.name;
    EXPECT_EQ(n.part->first, 2);
    EXPECT_EQ(n.part->count, 2);
    EXPECT_EQ(n.part->total, 4);
    EXPECT_EQ(n.part->batch, 11);
  }
  EXPECT_GT(parts, 5);
}

TEST(Passes, AReplayedGraphKeepsReplicasAndParts) {
  const Graph inner = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[2,3]} -> "
      "float32[2,3]\n"
      "node c = Const() {value = tensor(float32[2,3], 1, 2, 3, 4, 5, 6)} -> "
      "float32[2,3]\n"
      "node a = AddV2(x:0, c:0) -> float32[2,3] replica 1\n"
      "node m = Mean(a:0) {axis = ints[0]} -> float32[3] replica 2 part 0 of "
      "[8,3]\n"
      "return m:0\n");
  Tracer tracer("outer");
  const Tensor x = tracer.add_arg({Shape{2, 3}, float32, {}});
  tracer.start();
  const Tensors results = replay(inner, Tensors{x});
  const Graph outer = tracer.finish(results);
  for (const Node& n : outer.nodes) {
    const std::string& op = n.op->name();
    EXPECT_EQ(n.replica, op == "AddV2" ? 1 : op == "Mean" ? 2 : -1) << op;
    EXPECT_EQ(n.part != nullptr, op == "Mean") << op;
    if (n.part) {
      EXPECT_EQ(n.part->unsplit, (Shape{8, 3}));
    }
  }
}

TEST(Passes, SourcesOfMergedNodesAreKeptUpToABound) {
  std::string text =
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[]} -> "
      "float32[]\n";
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format("node n{} = Exp(x:0) -> float32[] from s{} (a.cc:{})\n",
                        i, i, i);
  }
  Graph graph = parse_graph(text + "return n999:0\n");
  cse(graph);
  ASSERT_EQ(graph.size(), 2);
  EXPECT_EQ(graph[1].sources.size(), kMaxSources);
  EXPECT_EQ(graph[1].sources[1].name, "s1");
}

}  // namespace
}  // namespace berth
