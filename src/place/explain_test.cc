// Explanations: why a node is where it is, and that the changes they print do
// move it.

#include "place/explain.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/variable.h"
#include "place/graphs_testing.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT
using placement::Change;
using placement::Explanation;

const char kExplainOps[] = R"(op Touch (v: resource write) -> (y)
op CpuTouch (v: resource write) -> (y)
op NumbersDataset () -> (d)
op Words () -> (d host)
op MapDatasetV2 (d: variant) -> (d)
op Identity2 (d: any) -> (d)
)";

struct ExplainCase {
  const char* what;
  std::string body;
  std::string node;
  std::string to;
  std::string changes;  // joined by "; "
  config::SoftPlacement soft = config::SoftPlacement::kWarn;
  PlacePolicy policy = PlacePolicy::kBerth;
};

PlaceOptions options_of(const ExplainCase& c) {
  PlaceOptions options = gpus_and_cpu();
  options.soft = c.soft;
  options.policy = c.policy;
  for (PlaceDevice& d : options.devices) {
    if (!has(d.name.text(), "GPU")) continue;
    d.runs = [runs = d.runs](const OpDef& op, DType t) {
      return op.name() != "CpuTouch" && runs(op, t);
    };
  }
  return options;
}

int32_t number_of(const Graph& g, const std::string& name) {
  for (int32_t i = 0; i < g.size(); ++i) {
    if (g[i].name == name) return i;
  }
  return -1;
}

std::string joined(const std::vector<Change>& changes) {
  std::string s;
  for (const Change& c : changes) {
    s += (s.empty() ? "" : "; ") + placement::to_string(c);
  }
  return s;
}

// The device of `node` after these changes.
std::string after(const Graph& unplaced, const PlaceOptions& options,
                  const std::string& node, const std::vector<Change>& changes) {
  Graph g = unplaced;
  PlaceOptions changed = options;
  for (const Change& c : changes) apply_change(g, c, changed);
  try {
    place(g, changed);
  } catch (const errors::Error& e) {
    return e.what();
  }
  return short_device(g[number_of(g, node)].assigned);
}

const std::string kX = arg("x");
const std::string kOn1 = "on \"/GPU:1\"";

std::vector<ExplainCase> cases() {
  return {
      {"default", kX + node("a", "One(x:0)"), "a", "GPU:1",
       "ask for \"/GPU:1\" at \"a\""},
      {"default, to the CPU", kX + node("a", "One(x:0)", "from a (m.cc:4)"),
       "a", "CPU:0", "ask for \"/CPU:0\" at \"a\" (m.cc:4)"},
      {"request", kX + node("a", "One(x:0)", kOn1), "a", "GPU:0",
       "ask for \"/GPU:0\" at \"a\""},
      {"request that is partial", kX + node("a", "One(x:0)", "on GPU"), "a",
       "GPU:1", "ask for \"/GPU:1\" at \"a\""},
      {"follower",
       kX + node("f", "One(x:0)", kOn1) + node("g", "One(f:0)", "follows f"),
       "g", "CPU:0", "ask for \"/CPU:0\" at \"g\""},
      {"follower of a follower",
       kX + node("f", "One(x:0)", kOn1) + node("g", "One(f:0)", "follows f") +
           node("h", "One(g:0)", "follows g"),
       "h", "GPU:0", "ask for \"/GPU:0\" at \"h\""},
      {"argument", kX + node("a", "One(x:0)", kOn1), "x", "GPU:0",
       "ask for \"/GPU:0\" at \"x\""},
      {"argument on the host",
       kX + node("a", "One(x:0)", kOn1) + node("b", "One(x:0)"), "x", "GPU:1",
       "ask for \"/GPU:1\" at \"x\""},
      {"constant with consumers",
       node("c", "Make()") + node("a", "One(c:0)", kOn1), "c", "GPU:0",
       "ask for \"/GPU:0\" at \"c\""},
      {"metadata", kX + node("a", "One(x:0)", kOn1) + node("s", "Size2(a:0)"),
       "s", "CPU:0", "ask for \"/CPU:0\" at \"s\""},
      {"alias",
       kX + node("a", "One(x:0)", kOn1) +
           node("r", "Reshape(a:0) {shape = shape[4]}"),
       "r", "GPU:0", "ask for \"/GPU:0\" at \"r\""},
      {"variable without a request", handle("v") + node("t", "Touch(v:0)"), "v",
       "GPU:1", "create variable \"v\" on \"/GPU:1\""},
      {"variable", handle("v", kOn1) + node("t", "Touch(v:0)"), "v", "CPU:0",
       "create variable \"v\" on \"/CPU:0\""},
      {"op that touches a variable",
       handle("v", kOn1 + " from v (m.cc:1)") + node("t", "Touch(v:0)"), "t",
       "GPU:0", "create variable \"v\" on \"/GPU:0\" (m.cc:1)"},
      {"variable with a name of its own",
       "node n = VarHandleOp() {dtype = float32, shape = shape[4], shared_name "
       "= \"k\"} -> resource(float32)[4] on \"/GPU:1\" from \"dense/kernel\" "
       "(m.cc:1)\n" +
           node("t", "Touch(n:0)"),
       "t", "GPU:0", "create variable \"dense/kernel\" on \"/GPU:0\" (m.cc:1)"},
      {"op between two variables",
       handle("v", kOn1) + handle("m", kOn1) + effect("u", "Both(v:0, m:0)"),
       "u", "GPU:0",
       "create variable \"v\" on \"/GPU:0\"; create variable \"m\" on "
       "\"/GPU:0\""},
      {"one of two variables that an op connects",
       handle("v", kOn1) + handle("m", kOn1) + effect("u", "Both(v:0, m:0)"),
       "m", "CPU:0",
       "create variable \"v\" on \"/CPU:0\"; create variable \"m\" on "
       "\"/CPU:0\""},
      {"missing kernel", kX + node("a", "NotGpu0(x:0)"), "a", "GPU:0",
       "register a GPU kernel for the op of \"a\""},
      {"missing kernel of a request", kX + node("a", "CpuOnly(x:0)", kOn1), "a",
       "GPU:1", "register a GPU kernel for the op of \"a\""},
      {"missing kernel, elsewhere", kX + node("a", "CpuOnly(x:0)"), "a",
       "GPU:1",
       "ask for \"/GPU:1\" at \"a\"; register a GPU kernel for the op of "
       "\"a\""},
      {"missing kernel of another op of the variable",
       handle("v") + node("t", "Touch(v:0)") + node("c", "CpuTouch(v:0)"), "t",
       "GPU:0", "register a GPU kernel for the op of \"c\""},
      {"group",
       kX + node("a", "One(x:0)", "with g") + node("b", "One(x:0)", "with g"),
       "b", "GPU:1", "ask for \"/GPU:1\" at \"b\""},
      {"group with an earlier request",
       kX + node("a", "One(x:0)", kOn1 + " with g") +
           node("b", "One(x:0)", "with g"),
       "b", "GPU:0", "ask for \"/GPU:0\" at \"a\""},
      {"group, hard",
       kX + node("a", "One(x:0)", kOn1 + " with g") +
           node("b", "One(x:0)", "with g"),
       "b", "CPU:0", "ask for \"/CPU:0\" at \"a\"",
       config::SoftPlacement::kError},
      {"group of the own name",
       kX + node("a", "One(x:0)", kOn1) + node("b", "One(x:0)", "with a"), "b",
       "GPU:0", "ask for \"/GPU:0\" at \"a\""},
      {"group with an op of the CPU",
       kX + node("a", "CpuOnly(x:0)", "with g") +
           node("b", "One(x:0)", "with g"),
       "b", "GPU:0", "register a GPU kernel for the op of \"a\""},
      {"group that is pinned",
       kX +
           node("a", "One(x:0)",
                "at \"/job:localhost/replica:0/task:0/device:CPU:0\" with g") +
           node("b", "One(x:0)", "with g"),
       "b", "GPU:0", "take \"b\" out of colocation group \"g\""},
      {"group that is pinned, to another device",
       kX +
           node("a", "One(x:0)",
                "at \"/job:localhost/replica:0/task:0/device:CPU:0\" with g") +
           node("b", "One(x:0)", "with g"),
       "b", "GPU:1",
       "ask for \"/GPU:1\" at \"b\"; take \"b\" out of colocation group "
       "\"g\""},
      {"variant chain",
       "node d = NumbersDataset() -> variant[]\n"
       "node m = MapDatasetV2(d:0) -> variant[] on \"/GPU:1\"\n",
       "d", "CPU:0", "ask for \"/CPU:0\" at \"d\""},
      {"TensorFlow: default", kX + node("a", "One(x:0)"), "a", "CPU:0",
       "ask for \"/CPU:0\" at \"a\"", config::SoftPlacement::kError,
       PlacePolicy::kTensorFlow},
      {"TensorFlow: variable",
       handle("v", kOn1) + node("t", "Touch(v:0)", "on CPU"), "t", "GPU:0",
       "create variable \"v\" on \"/GPU:0\"", config::SoftPlacement::kWarn,
       PlacePolicy::kTensorFlow},
      {"TensorFlow: generator",
       node("c", "Make()") + node("a", "One(c:0)", kOn1), "c", "CPU:0",
       "ask for \"/CPU:0\" at \"c\"", config::SoftPlacement::kWarn,
       PlacePolicy::kTensorFlow},
  };
}

TEST(Explain, ThePrintedChangesMoveTheOpAndEachIsNeeded) {
  for (const ExplainCase& c : cases()) {
    SCOPED_TRACE(c.what);
    const PlaceOptions options = options_of(c);
    const Graph unplaced =
        parse_graph(std::string(kHead) + kExplainOps + c.body);
    Graph g = unplaced;
    const Placement p = place(g, options);
    const int32_t node = number_of(g, c.node);
    ASSERT_NE(short_device(g[node].assigned), c.to);
    const Explanation e = explain_placement(g, p, options, node);
    EXPECT_EQ(e.op, c.node);
    EXPECT_EQ(e.device, g[node].assigned);
    bool found = false;
    for (const placement::Move& m : e.moves) {
      if (short_device(m.device) != c.to) continue;
      found = true;
      EXPECT_EQ(joined(m.changes), c.changes) << e.str();
    }
    EXPECT_TRUE(found) << e.str();
    // Whatever it prints for a device is true, and no longer than needed.
    for (const placement::Move& m : e.moves) {
      const std::string to = short_device(m.device);
      EXPECT_EQ(after(unplaced, options, c.node, m.changes), to)
          << joined(m.changes);
      for (size_t skip = 0; skip < m.changes.size(); ++skip) {
        std::vector<Change> less = m.changes;
        less.erase(less.begin() + static_cast<std::ptrdiff_t>(skip));
        EXPECT_NE(after(unplaced, options, c.node, less), to)
            << joined(m.changes);
      }
    }
    // Every other device is an alternative; the possible ones have a move.
    EXPECT_EQ(e.alternatives.size(), 2u);
    for (const placement::Alternative& a : e.alternatives) {
      const bool moves = std::any_of(
          e.moves.begin(), e.moves.end(),
          [&](const placement::Move& m) { return m.device == a.device; });
      EXPECT_TRUE(moves || !a.possible) << a.device;
      EXPECT_EQ(a.possible, a.why_not.empty()) << a.why_not;
    }
  }
}

Explanation explained(const Result& r, const std::string& name,
                      const PlaceOptions& options = gpus_and_cpu()) {
  return explain_placement(r.graph, r.placement, options,
                           number_of(r.graph, name));
}

std::string chain_of(const Explanation& e) {
  std::string s;
  for (const auto& b : e.chain) {
    s += (s.empty() ? "" : "; ") + b.text;
    if (b.site.line > 0) s += fmt::format(" [{}]", b.site.line);
  }
  return s;
}

TEST(Explain, TheChainLeadsToWhatDecided) {
  const Result r =
      placed(handle("v", "on \"/GPU:1\" from v (m.cc:1)") + arg("x") +
             node("read", "ReadVariableOp(v:0)", "from read (m.cc:2)") +
             node("g", "One(read:0)", "follows read from g (m.cc:3)") +
             node("s", "Size2(g:0)", "from s (m.cc:4)") +
             node("c", "Make()", "from c (m.cc:5)") +
             node("k", "Two(c:0, x:0)", "on \"/GPU:1\" from k (m.cc:6)"));
  EXPECT_EQ(chain_of(explained(r, "v")),
            "variable \"v\" was asked for on \"/GPU:1\" [1]");
  EXPECT_EQ(chain_of(explained(r, "s")),
            "Size2 \"s\" goes with its input \"g\" [4]; One \"g\" follows "
            "\"read\": gradients run where their forward op runs [3]; "
            "ReadVariableOp \"read\" touches variable \"v\" [2]; variable "
            "\"v\" was asked for on \"/GPU:1\" [1]");
  EXPECT_EQ(explained(r, "s").rule, "input");
  EXPECT_EQ(explained(r, "g").rule, "colocation");
  EXPECT_EQ(explained(r, "read").rule, "variable");
  EXPECT_EQ(chain_of(explained(r, "c")),
            "all consumers of Make \"c\" are on GPU:1, \"k\" among them [5]; "
            "Two \"k\" was asked for on \"/GPU:1\" [6]");
}

TEST(Explain, TheChainBeginsWithTheReplica) {
  const Result r = placed(arg("x") + node("a", "One(x:0)",
                                          "on \"/GPU:1\" replica 2 from a "
                                          "(m.cc:1)"));
  EXPECT_EQ(chain_of(explained(r, "a")),
            "it belongs to replica 2; One \"a\" was asked for on \"/GPU:1\" "
            "[1]");
}

TEST(Explain, TheChainOfADefaultNamesTheMissingKernel) {
  const Result r = placed(arg("x") + node("a", "NotGpu0(x:0)"));
  EXPECT_EQ(chain_of(explained(r, "a")),
            "NotGpu0 \"a\" has a kernel for float32 on GPU:1 CPU:0 alone; "
            "nobody asked for a device of NotGpu0 \"a\": GPU:1 is the first, "
            "in order of preference, that can run it");
  const Explanation e = explained(r, "a");
  ASSERT_EQ(e.alternatives.size(), 2u);
  EXPECT_FALSE(e.alternatives[0].possible);
  EXPECT_EQ(e.alternatives[0].why_not,
            "NotGpu0 \"a\" has no kernel for float32 there");
  EXPECT_TRUE(e.alternatives[1].possible);
}

TEST(Explain, AFallbackSaysWhatWasAskedFor) {
  const Result r = placed(arg("x") + node("a", "CpuOnly(x:0)", "on GPU"));
  EXPECT_EQ(chain_of(explained(r, "a")),
            "CpuOnly \"a\" was asked for on \"GPU\", and fell back to CPU:0: "
            "no kernel for float32 on GPU:0");
}

TEST(Explain, HostDataCannotBeMoved) {
  const Result r = placed(
      "op Words () -> (d host)\nop MapDatasetV2 (d: variant) -> (d)\n"
      "node d = Words() -> variant[]\n" +
      node("m", "MapDatasetV2(d:0)"));
  const Explanation e = explained(r, "m");
  EXPECT_EQ(short_device(e.device), "CPU:0");
  EXPECT_TRUE(e.moves.empty()) << e.str();
  for (const auto& a : e.alternatives) {
    EXPECT_PRED2(has, a.why_not, "only the host can");
  }
}

TEST(Explain, PricesPossibleAlternatives) {
  const Result r = placed(arg("x") + node("a", "NotGpu0(x:0)"));
  const PlaceOptions options = gpus_and_cpu();
  const Explanation e = explain_placement(r.graph, r.placement, options, 1,
                                          [](int32_t node, int32_t device) {
                                            EXPECT_EQ(node, 1);
                                            EXPECT_EQ(device, 2);
                                            return Price{3000, 400, 1 << 20};
                                          });
  EXPECT_EQ(e.alternatives[0].step_us, -1);
  EXPECT_EQ(e.alternatives[1].step_us, 3000);
  EXPECT_EQ(e.alternatives[1].delta_bytes, 1 << 20);
  EXPECT_PRED2(has, e.str(),
               "on CPU:0: possible, step 3.00 ms (+400.0 us), +1 MiB sent");
}

TEST(Explain, PrintsTextAndJson) {
  const Result r =
      placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\" from a (m.cc:7)"));
  const Explanation e = explained(r, "a");
  EXPECT_EQ(e.str(),
            "\"a\" is on GPU:1: request\n"
            "  because One \"a\" was asked for on \"/GPU:1\" (m.cc:7)\n"
            "on GPU:0: possible\n"
            "  to move it there, ask for \"/GPU:0\" at \"a\" (m.cc:7)\n"
            "on CPU:0: possible\n"
            "  to move it there, ask for \"/CPU:0\" at \"a\" (m.cc:7)\n");
  const auto json = nlohmann::json::parse(e.json());
  EXPECT_EQ(json["op"], "a");
  EXPECT_EQ(json["rule"], "request");
  EXPECT_EQ(json["chain"][0]["line"], 7);
  EXPECT_EQ(json["alternatives"].size(), 2u);
  EXPECT_EQ(json["moves"][1]["changes"][0]["kind"], "request");
  EXPECT_EQ(json["moves"][1]["changes"][0]["to"], "/CPU:0");
}

TEST(Explain, RefusesNodesAndChangesThatAreNotThere) {
  Result r = placed(arg("x") + node("a", "One(x:0)"));
  PlaceOptions options = gpus_and_cpu();
  EXPECT_THROW(explain_placement(r.graph, r.placement, options, 2),
               errors::InvalidArgument);
  EXPECT_THROW(explain_placement(r.graph, r.placement, options, -1),
               errors::InvalidArgument);
  using Kind = Change::Kind;
  EXPECT_THROW(apply_change(r.graph, {Kind::kRequest, "no", "/CPU:0"}, options),
               errors::InvalidArgument);
  EXPECT_THROW(apply_change(r.graph, {Kind::kWithdrawGroup, "a", "g"}, options),
               errors::InvalidArgument);
  EXPECT_THROW(apply_change(r.graph, {Kind::kAddKernel, "a", "NPU"}, options),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
