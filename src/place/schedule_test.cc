// Partitioner and schedule: graph texts in, text out; and properties of random
// graphs, compared with an independent happens-before relation.

#include "place/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bitset>
#include <map>
#include <random>
#include <set>

#include "berth/berth.h"
#include "berth/errors.h"
#include "place/placer.h"

namespace berth {
namespace {

std::string full(const std::string& device) {
  return "/job:localhost/replica:0/task:0/device:" + device;
}

// Builds placed graphs from short lines: "name = Op(in, in^control) GPU:0".
// "arg", "big" and "small" (constants), "var", "read" and "add" (writes its
// first input) are ops of the catalogue; others are declared, one output.
class Build {
 public:
  std::string body;
  std::set<std::string> ops;
  int args = 0;

  static std::string at(const std::string& device) {
    return " at \"" + full(device) + "\"\n";
  }
  Build& arg(const std::string& n, const std::string& d) {
    body += fmt::format(
        "node {} = _Arg() {{index = {}, dtype = float32, shape = shape[4]}} "
        "-> float32[4]{}",
        n, args++, at(d));
    return *this;
  }
  Build& var(const std::string& n, const std::string& d) {
    body += fmt::format(
        "node {0} = VarHandleOp() {{shared_name = \"{0}\", dtype = float32, "
        "shape = shape[4]}} -> resource(float32)[4]{1}",
        n, at(d));
    return *this;
  }
  Build& op(const std::string& n, const std::string& call,
            const std::string& d) {
    body += fmt::format("node {} = {} -> float32[4]{}", n, call, at(d));
    return *this;
  }
  Build& update(const std::string& n, const std::string& call,
                const std::string& d) {
    body += fmt::format("node {} = {}{}", n, call, at(d));
    return *this;
  }
  Graph graph(const std::string& returned = "") const {
    Graph g = parse_graph(
        "berth-graph 1\n"
        "op F () -> (y)\n"
        "op One (x: any) -> (y)\n"
        "op Two (a: any, b: any) -> (y)\n"
        "op Both (v: resource write, a: any) -> ()\n"
        "op Sized (a: any, n: any host) -> (y)\n"
        "op Counted (a: any) -> (n host, y)\n" +
        body + (returned.empty() ? "" : "return " + returned + "\n"));
    return g;
  }
};

// One line per node: "b GPU:1 <- a/to_GPU:1 ^c".
std::string edges(const Graph& g) {
  std::string s;
  for (const Node& n : g.nodes) {
    s += n.name + " " + short_device(n.assigned);
    if (!n.inputs.empty()) s += " <-";
    for (const ValueRef& v : n.inputs) s += " " + g[v.node].name;
    for (int32_t c : n.controls) s += " ^" + g[c].name;
    s += "\n";
  }
  return s;
}

bool crosses(const Node& n) {
  return n.op->name() == "_Transfer" || n.op->name() == "_HandOver";
}

Graph cut(const Build& b, const std::string& returned = "") {
  Graph g = b.graph(returned);
  partition(g);
  verify(g);
  return g;
}

TEST(Partition, OneTransferPerValueAndDestination) {
  Build b;
  b.arg("x", "CPU:0")
      .op("a", "One(x:0)", "GPU:0")
      .op("b", "Two(a:0, x:0)", "GPU:1")
      .op("c", "Two(a:0, b:0)", "GPU:1")
      .op("d", "Two(a:0, c:0)", "CPU:0");
  const Graph g = cut(b, "d:0");
  EXPECT_EQ(edges(g),
            "x CPU:0\n"
            "x/to_GPU:0 GPU:0 <- x\n"
            "x/to_GPU:1 GPU:1 <- x\n"
            "a GPU:0 <- x/to_GPU:0\n"
            "a/to_GPU:1 GPU:1 <- a\n"
            "a/to_CPU:0 CPU:0 <- a\n"
            "b GPU:1 <- a/to_GPU:1 x/to_GPU:1\n"
            "c GPU:1 <- a/to_GPU:1 b\n"
            "c/to_CPU:0 CPU:0 <- c\n"
            "d CPU:0 <- a/to_CPU:0 c/to_CPU:0\n");
  EXPECT_EQ(g[1].op->name(), "_Transfer");
  EXPECT_EQ(g.args, std::vector<int32_t>{0});
  EXPECT_EQ(g[g.outputs[0].node].name, "d");
}

TEST(Partition, LeavesAGraphOfOneDeviceAlone) {
  Build b;
  b.arg("x", "GPU:0").op("a", "One(x:0)", "GPU:0");
  Graph g = b.graph("a:0");
  const std::string before = print(g);
  partition(g);
  EXPECT_EQ(print(g), before);
}

TEST(Partition, ControlEdgesAndHandlesAreNotCut) {
  Build b;
  b.var("v", "GPU:1")
      .op("a", "F()", "GPU:0")
      .op("r", "ReadVariableOp(v:0, ^a)", "GPU:1")
      .op("b", "One(v:0)", "CPU:0");
  EXPECT_EQ(edges(cut(b)), "v GPU:1\na GPU:0\nr GPU:1 <- v ^a\nb CPU:0 <- v\n");
}

TEST(Partition, KeepsSourcesAndDistinctNames) {
  Build b;
  b.arg("x", "CPU:0").op("\"x/to_GPU:0\"", "One(x:0)", "GPU:0");
  Graph g = b.graph();
  g[0].sources = {{"mine", {"model.cc", 7, nullptr}}};
  partition(g);
  verify(g);
  EXPECT_EQ(g[1].name, "x/to_GPU:0_1");
  EXPECT_EQ(g[1].sources, g[0].sources);
}

Graph with_constant(int64_t elements, const std::string& more,
                    const std::string& requested = "") {
  Graph g;
  Node c;
  c.name = "c";
  c.op = &op_named("Const");
  c.attrs = AttrsRef({{"value", ones({elements})}});
  c.outputs = {{float32, Shape{elements}}};
  c.assigned = full("CPU:0");
  c.requested = requested;
  g.add(c);
  for (char d : more) {
    Node n;
    n.name = fmt::format("{}{}", d, g.size());
    n.op = &op_named("Neg");
    n.inputs = {{0, 0}};
    n.outputs = c.outputs;
    n.assigned = d == 'c' ? full("CPU:0") : full(fmt::format("GPU:{}", d));
    g.add(n);
  }
  partition(g);
  verify(g);
  return g;
}

TEST(Partition, SmallConstantsAreDuplicatedInsteadOfSent) {
  const Graph g = with_constant(16 << 10, "c01");  // 64 KB
  EXPECT_EQ(edges(g),
            "c CPU:0\nc/to_GPU:0 GPU:0\nc/to_GPU:1 GPU:1\nc1 CPU:0 <- c\n"
            "02 GPU:0 <- c/to_GPU:0\n13 GPU:1 <- c/to_GPU:1\n");
  EXPECT_EQ(g[1].op->name(), "Const");
  EXPECT_EQ(g[1].attrs, g[0].attrs);
}

TEST(Partition, LargeConstantsAreSent) {
  const Graph g = with_constant((16 << 10) + 1, "1");
  EXPECT_EQ(edges(g),
            "c CPU:0\nc/to_GPU:1 GPU:1 <- c\n11 GPU:1 <- c/to_GPU:1\n");
  EXPECT_EQ(g[1].op->name(), "_Transfer");
}

TEST(Partition, AConstantThatNobodyUsesAtHomeMovesUnlessAskedFor) {
  EXPECT_EQ(edges(with_constant(4, "0")), "c GPU:0\n01 GPU:0 <- c\n");
  EXPECT_EQ(edges(with_constant(4, "0", "/CPU:0")),
            "c CPU:0\nc/to_GPU:0 GPU:0\n01 GPU:0 <- c/to_GPU:0\n");
}

TEST(Partition, CpuDevicesOfOneProcessHandValuesOver) {
  Build b;
  b.arg("x", "CPU:0")
      .op("a", "One(x:0)", "CPU:1")
      .op("b", "One(a:0)", "CPU:0")
      .op("c", "One(a:0)", "GPU:0");
  const Graph g = cut(b, "b:0, c:0");
  EXPECT_EQ(edges(g),
            "x CPU:0\n"
            "x/to_CPU:1 CPU:1 <- x\n"
            "a CPU:1 <- x/to_CPU:1\n"
            "a/to_CPU:0 CPU:0 <- a\n"
            "a/to_GPU:0 GPU:0 <- a\n"
            "b CPU:0 <- a/to_CPU:0\n"
            "c GPU:0 <- a/to_GPU:0\n");
  EXPECT_EQ(g[1].op->name(), "_HandOver");
  EXPECT_EQ(g[3].op->name(), "_HandOver");
  EXPECT_EQ(g[4].op->name(), "_Transfer");
}

TEST(Partition, CpusOfOtherTasksHaveMemoryOfTheirOwn) {
  Build b;
  b.arg("x", "CPU:0").op("a", "One(x:0)", "CPU:0");
  Graph g = b.graph("a:0");
  g[1].assigned = "/job:localhost/replica:0/task:1/device:CPU:0";
  partition(g);
  verify(g);
  EXPECT_EQ(g[1].op->name(), "_Transfer");
}

// A result is on the requested device, so it must not share another device's
// bytes.
TEST(Partition, AnAliasThatIsAResultGetsACopy) {
  Build b;
  b.arg("x", "CPU:0")
      .op("a", "One(x:0)", "CPU:0")
      .op("i", "Identity(a:0)", "CPU:1")
      .op("j", "Identity(x:0)", "CPU:1")
      .op("k", "One(j:0)", "CPU:1");
  const Graph g = cut(b, "i:0, k:0");
  EXPECT_EQ(edges(g),
            "x CPU:0\nx/to_CPU:1 CPU:1 <- x\na CPU:0 <- x\n"
            "a/to_CPU:1 CPU:1 <- a\ni CPU:1 <- a/to_CPU:1\n"
            "j CPU:1 <- x/to_CPU:1\nk CPU:1 <- j\n");
  EXPECT_EQ(g[1].op->name(), "_HandOver");
  EXPECT_EQ(g[3].op->name(), "_Transfer");
}

TEST(Partition, TransfersWhoseReadersAreGoneGoToo) {
  Build b;
  b.arg("x", "GPU:0")
      .op("a", "One(x:0)", "GPU:0")
      .op("b", "One(a:0)", "GPU:1")
      .op("c", "Two(a:0, x:0)", "GPU:1");
  Graph g = cut(b, "b:0");
  ASSERT_EQ(g[1].name, "x/to_GPU:1");
  const std::string before = edges(g);
  partition(g);
  EXPECT_EQ(edges(g), before) << "a cut graph is not cut again";
  g.nodes.pop_back();  // "c": a pass found it unused
  partition(g);
  verify(g);
  EXPECT_EQ(edges(g),
            "x GPU:0\na GPU:0 <- x\na/to_GPU:1 GPU:1 <- a\n"
            "b GPU:1 <- a/to_GPU:1\n");
}

// Operands in host memory are values of /CPU:0, whatever their op's device.
TEST(Partition, HostOperandsAreSentToTheHost) {
  Build b;
  b.arg("x", "GPU:0")
      .op("n", "One(x:0)", "GPU:0")
      .op("a", "Sized(x:0, n:0)", "GPU:0")
      .op("b", "Sized(a:0, n:0)", "GPU:1")
      .op("c", "One(n:0)", "GPU:1");
  EXPECT_EQ(edges(cut(b, "b:0, c:0")),
            "x GPU:0\n"
            "n GPU:0 <- x\n"
            // Once for both devices: they share one host.
            "n/to_CPU:0 CPU:0 <- n\n"
            // Device memory is separate from the host's.
            "n/to_GPU:1 GPU:1 <- n\n"
            "a GPU:0 <- x n/to_CPU:0\n"
            "a/to_GPU:1 GPU:1 <- a\n"
            "b GPU:1 <- a/to_GPU:1 n/to_CPU:0\n"
            "c GPU:1 <- n/to_GPU:1\n");
}

TEST(Partition, AResultInHostMemoryStaysThere) {
  Build b;
  b.arg("x", "GPU:0");
  b.body +=
      "node s = Counted(x:0) -> float32[4], float32[4]" + Build::at("GPU:0");
  b.op("a", "Sized(x:0, s:0)", "GPU:0")   // read where it is
      .op("b", "One(s:0)", "CPU:0")       // and by the host
      .op("c", "One(s:0)", "GPU:0")       // needed in device memory
      .op("d", "Two(s:1, x:0)", "GPU:0")  // never was on the host
      .op("e", "One(s:0)", "CPU:1");
  const Graph g = cut(b, "a:0, b:0, c:0, d:0, e:0");
  EXPECT_EQ(edges(g),
            "x GPU:0\n"
            "s GPU:0 <- x\n"
            "s/to_GPU:0 GPU:0 <- s\n"
            "s/to_CPU:1 CPU:1 <- s\n"
            "a GPU:0 <- x s\n"
            "b CPU:0 <- s\n"
            "c GPU:0 <- s/to_GPU:0\n"
            "d GPU:0 <- s x\n"
            "e CPU:1 <- s/to_CPU:1\n");
  EXPECT_EQ(g[2].op->name(), "_Transfer");
  EXPECT_EQ(g[3].op->name(), "_HandOver");
}

TEST(Partition, OnACpuHostOperandsAreOrdinaryOnes) {
  Build b;
  b.arg("x", "CPU:1").op("a", "Sized(x:0, x:0)", "CPU:1");
  EXPECT_EQ(edges(cut(b, "a:0")), "x CPU:1\na CPU:1 <- x x\n");
}

TEST(Partition, WantsAPlacedGraph) {
  Graph g =
      parse_graph("berth-graph 1\nop F () -> (y)\nnode a = F() -> float32[]\n");
  EXPECT_THROW(partition(g), errors::FailedPrecondition);
  EXPECT_THROW(make_schedule(g), errors::FailedPrecondition);
}

std::string scheduled(const Build& b, const std::string& returned = "") {
  const Graph g = cut(b, returned);
  return print(make_schedule(g), g);
}

TEST(Schedule, OneDeviceNeedsNoWaits) {
  Build b;
  b.arg("x", "GPU:0").op("a", "One(x:0)", "GPU:0").op("b", "One(a:0)", "GPU:0");
  EXPECT_EQ(scheduled(b), "0 GPU:0 a\n1 GPU:0 b\n");
}

TEST(Schedule, TransfersRunEarlyOnTheCopyStreamOfTheirDestination) {
  Build b;
  b.arg("x", "GPU:0")
      .op("a", "One(x:0)", "GPU:0")
      .op("b", "One(a:0)", "GPU:0")
      .op("c", "Two(a:0, b:0)", "GPU:1");
  EXPECT_EQ(scheduled(b),
            "0 GPU:0 a\n"
            "1 GPU:1/copy a/to_GPU:1 wait 0\n"
            "2 GPU:0 b\n"
            "3 GPU:1/copy b/to_GPU:1 wait 2\n"
            // The second transfer implies the first, which precedes it.
            "4 GPU:1 c wait 3\n"
            // GPU:0's memory is read by the transfers.
            "end GPU:0 wait 3\n");
}

TEST(Schedule, TransfersOfArgumentsComeFirst) {
  Build b;
  b.arg("x", "CPU:0").op("a", "F()", "GPU:0").op("b", "Two(a:0, x:0)", "GPU:0");
  const Graph g = cut(b);
  const Schedule s = make_schedule(g);
  EXPECT_EQ(print(s, g),
            "0 GPU:0/copy x/to_GPU:0\n"
            "1 GPU:0 a\n"
            "2 GPU:0 b wait 0\n"
            // The host's memory was read by the copy stream; b, after the copy,
            // has already joined it to GPU:0.
            "end CPU:0 wait 0\n");
  // The copy stream writes GPU:0's memory and reads the argument.
  ASSERT_EQ(s.streams.size(), 3u);
  EXPECT_TRUE(s.streams[2].copy);
  EXPECT_EQ(s.start_waits[2], (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(s.start_waits[0].empty());
}

// CPU:1 updates the second half of what CPU:0 reads, and must wait for that
// alone; CPU:0 ends after it.
TEST(Schedule, RangesOfAVariableAreUpdatedBehindItsReaders) {
  Build b;
  const auto range = [&](const char* name, int begin, const char* device) {
    b.body += fmt::format(
        "node {} = _VariableRange(v:0) {{begin = {}, count = 2}} -> "
        "resource(float32)[2]{}",
        name, begin, Build::at(device));
  };
  const auto rows = [&](const char* name, int begin, const char* device) {
    b.body += fmt::format(
        "node {} = _Rows(g:0) {{begin = {}, count = 2}} -> float32[2]{}", name,
        begin, Build::at(device));
  };
  b.var("v", "CPU:0")
      .arg("g", "CPU:0")
      .op("here", "One(g:0)", "CPU:0")
      .op("r", "ReadVariableOp(v:0)", "CPU:0")
      .op("h", "One(r:0)", "CPU:0")
      .op("u", "One(r:0)", "CPU:1");
  range("v0", 0, "CPU:0");
  range("v1", 2, "CPU:1");
  rows("g0", 0, "CPU:0");
  rows("g1", 2, "CPU:1");
  b.update("a0", "AssignAddVariableOp(v0:0, g0:0, ^h, ^u)", "CPU:0")
      .update("a1", "AssignAddVariableOp(v1:0, g1:0, ^h, ^u)", "CPU:1");
  const Graph g = cut(b);
  const Schedule s = make_schedule(g);
  EXPECT_EQ(print(s, g),
            "0 CPU:0 here\n"
            "1 CPU:0 r\n"
            "2 CPU:1 r/to_CPU:1\n"
            "3 CPU:0 h\n"
            "4 CPU:1 u\n"
            "5 CPU:0 g0\n"
            "6 CPU:0 a0 wait 4\n"
            "7 CPU:1 g1\n"
            "8 CPU:1 a1 wait 3\n"
            "end CPU:0 wait 8\n");
  // Nor may CPU:1 begin before CPU:0's earlier work on the variable is done.
  EXPECT_EQ(s.start_waits[1], std::vector<int32_t>{0});
}

TEST(Schedule, UpdatesRunAsSoonAsTheirGradientExists) {
  Build b;
  b.var("v", "GPU:0")
      .arg("x", "GPU:0")
      .op("r", "ReadVariableOp(v:0)", "GPU:0")
      .op("g", "Two(r:0, x:0)", "GPU:0")
      .op("h", "One(g:0)", "GPU:0")
      .op("i", "One(h:0)", "GPU:0")
      .update("u", "AssignSubVariableOp(v:0, g:0, ^g)", "GPU:0");
  EXPECT_EQ(scheduled(b, "i:0"),
            "0 GPU:0 r\n1 GPU:0 g\n2 GPU:0 u\n3 GPU:0 h\n4 GPU:0 i\n");
}

TEST(Schedule, AnUpdateDoesNotPassAnotherAccessOfItsVariable) {
  Build b;
  b.var("v", "GPU:0")
      .arg("x", "GPU:0")
      .op("g", "One(x:0)", "GPU:0")
      .op("h", "One(g:0)", "GPU:0")
      .op("r", "ReadVariableOp(v:0, ^h)", "GPU:0")
      .op("i", "One(r:0)", "GPU:0")
      .update("u", "AssignSubVariableOp(v:0, g:0)", "GPU:0")
      .op("r2", "ReadVariableOp(v:0)", "GPU:0");
  EXPECT_EQ(scheduled(b, "i:0, r2:0"),
            "0 GPU:0 g\n1 GPU:0 h\n2 GPU:0 r\n3 GPU:0 u\n4 GPU:0 i\n"
            "5 GPU:0 r2\n");
}

TEST(Schedule, AnUpdateWaitsForItsControlsAcrossDevices) {
  Build b;
  b.var("v", "GPU:0")
      .arg("x", "GPU:0")
      .op("r", "ReadVariableOp(v:0)", "GPU:0")
      .op("g", "One(x:0)", "GPU:0")
      .op("far", "One(r:0)", "GPU:1")
      .update("u", "AssignSubVariableOp(v:0, g:0, ^far)", "GPU:0");
  EXPECT_EQ(scheduled(b),
            "0 GPU:0 r\n"
            "1 GPU:1/copy r/to_GPU:1 wait 0\n"
            "2 GPU:0 g\n"
            "3 GPU:1 far wait 1\n"
            // Known by then: far comes after the copy.
            "4 GPU:0 u wait 3\n");
}

TEST(Schedule, SeesControlsThroughNodesThatDoNotRun) {
  Build b;
  b.op("a", "F()", "GPU:0");
  b.body += "node k = Const(^a) {value = tensor(float32[], 1.0)} -> float32[]" +
            Build::at("GPU:1");
  b.body += "node c = One(k:0) -> float32[]" + Build::at("GPU:1");
  EXPECT_EQ(scheduled(b), "0 GPU:0 a\n1 GPU:1 c wait 0\n");
}

TEST(Schedule, AHandOverIsAWaitOfItsReaderAlone) {
  Build b;
  b.arg("x", "CPU:0")
      .op("a", "One(x:0)", "CPU:0")
      .op("b", "F()", "CPU:1")
      .op("c", "Two(a:0, b:0)", "CPU:1")
      .op("d", "One(b:0)", "CPU:1");
  EXPECT_EQ(scheduled(b, "c:0, d:0"),
            "0 CPU:0 a\n"
            "1 CPU:1 b\n"
            "2 CPU:1 c wait 0\n"
            "3 CPU:1 d\n"
            // c reads the memory of CPU:0, d only that of CPU:1.
            "end CPU:0 wait 2\n");
}

TEST(Schedule, AnAliasOfWhatWasHandedOverIsInTheGiversMemory) {
  Build b;
  b.arg("x", "CPU:0")
      .op("a", "One(x:0)", "CPU:0")
      .op("i", "Identity(a:0)", "CPU:1")
      .op("b", "One(i:0)", "CPU:1");
  EXPECT_EQ(scheduled(b, "b:0"),
            "0 CPU:0 a\n1 CPU:1 i wait 0\n2 CPU:1 b\nend CPU:0 wait 2\n");
}

// --- Properties of random graphs -------------------------------------------

constexpr int kMost = 256;
using Set = std::bitset<kMost>;

// Per step, the steps that end before it starts: by stream order and waits,
// found by plain closure. Step n + s stands for the end of stream s. Leaves out
// one wait (drop_step, drop_wait).
std::vector<Set> before(const Schedule& s, int drop_step, int drop_wait) {
  const int n = static_cast<int>(s.steps.size());
  const int m = static_cast<int>(s.streams.size());
  std::vector<Set> sets(n + m);
  std::vector<int> last(m, -1);
  for (int i = 0; i < n + m; ++i) {
    const int stream = i < n ? s.steps[i].stream : i - n;
    const auto& waits = i < n ? s.steps[i].waits : s.final_waits[i - n];
    auto join = [&](int step) {
      sets[i] |= sets[step];
      sets[i].set(step);
    };
    if (last[stream] >= 0) join(last[stream]);
    for (int w = 0; w < static_cast<int>(waits.size()); ++w) {
      if (i != drop_step || w != drop_wait) join(waits[w]);
    }
    if (i < n) last[stream] = i;
  }
  return sets;
}

using Edges = std::vector<std::pair<int, int>>;

bool is_cpu(const Node& n) { return n.assigned.is_cpu(); }

// What must be ordered: data and control edges between nodes that run, seen
// through those that do not, and at the end of each compute stream every step
// that touched its device's memory.
Edges required(const Graph& g, const Schedule& s) {
  std::map<int, int> step_of;
  for (size_t i = 0; i < s.steps.size(); ++i) step_of[s.steps[i].node] = i;
  Edges edges;
  for (size_t i = 0; i < s.steps.size(); ++i) {
    std::vector<int> open{s.steps[i].node};
    while (!open.empty()) {
      const Node& n = g[open.back()];
      open.pop_back();
      auto visit = [&](int from) {
        if (step_of.contains(from)) {
          edges.push_back({step_of[from], static_cast<int>(i)});
        } else {
          open.push_back(from);
        }
      };
      for (const ValueRef& v : n.inputs) visit(v.node);
      for (int c : n.controls) visit(c);
    }
  }
  for (size_t d = 0; d < s.streams.size(); ++d) {
    if (s.streams[d].copy) continue;
    for (size_t i = 0; i < s.steps.size(); ++i) {
      const Node& n = g[s.steps[i].node];
      bool touches = n.assigned == s.streams[d].device;
      for (const ValueRef& v : n.inputs) {
        int from = v.node;
        while (g[from].op->kind() == OpKind::kAlias ||
               g[from].op->kind() == OpKind::kReadVariable) {
          from = g[from].inputs[0].node;
        }
        touches |= g[from].assigned == s.streams[d].device;
      }
      if (touches) {
        edges.push_back(
            {static_cast<int>(i), static_cast<int>(s.steps.size() + d)});
      }
    }
  }
  return edges;
}

bool covered(const Edges& edges, const std::vector<Set>& sets) {
  for (const auto& [from, to] : edges) {
    if (!sets[to].test(from)) return false;
  }
  return true;
}

// A placed graph of `n` ops on the host and `devices` devices, GPUs or other
// CPUs, with arguments, constants,
// variables that are read and written, and controls across devices.
Graph random_graph(std::mt19937& rng, int n, int devices, bool gpus) {
  auto far = [&](int i) {
    return gpus ? fmt::format("GPU:{}", i) : fmt::format("CPU:{}", i + 1);
  };
  auto pick = [&](int k) { return static_cast<int>(rng() % k); };
  Build b;
  b.arg("x0", "CPU:0").arg("x1", far(0)).var("v0", far(0)).var("v1", far(1));
  std::vector<std::string> values{"x0:0", "x1:0"}, names;
  auto controls = [&] {
    std::string s;
    while (!names.empty() && pick(3) == 0) {
      s += ", ^" + names[pick(static_cast<int>(names.size()))];
    }
    return s;
  };
  for (int i = 0; i < n; ++i) {
    const std::string name = fmt::format("n{}", i);
    const std::string device = pick(4) == 0 ? "CPU:0" : far(pick(devices));
    // Mostly recent values, so that chains grow.
    auto value = [&] {
      const int k = static_cast<int>(values.size());
      return values[k - 1 - pick(std::min(k, pick(3) ? 4 : k))];
    };
    const int v = pick(2);
    switch (pick(8)) {
      case 0:
        b.op(name, fmt::format("ReadVariableOp(v{}:0{})", v, controls()),
             far(v));
        values.push_back(name + ":0");
        break;
      case 1:
        b.update(name,
                 fmt::format("AssignAddVariableOp(v{}:0, {}{})", v, value(),
                             controls()),
                 far(v));
        break;
      case 2:
        b.body += fmt::format(
            "node {} = Const() {{value = tensor(float32[4], 1, 2, 3, 4)}} -> "
            "float32[4]{}",
            name, Build::at(device));
        values.push_back(name + ":0");
        break;
      case 3:
      case 4:
        b.op(name,
             fmt::format("{}({}{})", pick(3) ? "One" : "Identity", value(),
                         controls()),
             device);
        values.push_back(name + ":0");
        break;
      default:
        b.op(name, fmt::format("Two({}, {}{})", value(), value(), controls()),
             device);
        values.push_back(name + ":0");
    }
    names.push_back(name);
  }
  return b.graph(values.back());
}

TEST(Schedule, RandomGraphsAreCutOncePerValueAndDestination) {
  std::mt19937 rng(1);
  for (int round = 0; round < 200; ++round) {
    Graph g = random_graph(rng, 40, 1 + round % 4, round % 8 < 4);
    std::set<std::pair<std::string, std::string>> want;
    for (const Node& n : g.nodes) {
      for (const ValueRef& v : n.inputs) {
        const Node& p = g[v.node];
        if (p.assigned == n.assigned || p.op->name() == "Const") continue;
        if (g.spec(v).dtype == resource) continue;
        // Variables in the same memory are read where they are wanted.
        const bool cpus = is_cpu(p) && is_cpu(n);
        if (cpus && p.op->kind() == OpKind::kReadVariable) continue;
        want.insert({p.name, n.assigned.text()});
      }
    }
    partition(g);
    verify(g);
    std::multiset<std::pair<std::string, std::string>> made;
    for (const Node& n : g.nodes) {
      const bool transfer = crosses(n);
      for (const ValueRef& v : n.inputs) {
        if (transfer) {
          EXPECT_NE(g[v.node].assigned, n.assigned);
          made.insert({g[v.node].name, n.assigned.text()});
        } else if (g.spec(v).dtype != resource) {
          EXPECT_EQ(g[v.node].assigned, n.assigned) << n.name;
        }
      }
    }
    EXPECT_EQ(made.size(), want.size());
    for (const auto& w : want) EXPECT_EQ(made.count(w), 1u) << w.first;
  }
}

TEST(Schedule, WaitsCoverEveryEdgeAndNoneIsSuperfluous) {
  std::mt19937 rng(2);
  size_t waits = 0, joins = 0;
  for (int round = 0; round < 200; ++round) {
    Graph g = random_graph(rng, 50, 1 + round % 4, round % 8 < 4);
    partition(g);
    const Schedule s = make_schedule(g);
    ASSERT_LT(s.steps.size() + s.streams.size(), size_t{kMost});
    const Edges edges = required(g, s);
    ASSERT_TRUE(covered(edges, before(s, -1, -1))) << print(s, g);
    const int n = static_cast<int>(s.steps.size());
    for (int i = 0; i < n + static_cast<int>(s.streams.size()); ++i) {
      const auto& list = i < n ? s.steps[i].waits : s.final_waits[i - n];
      for (int w = 0; w < static_cast<int>(list.size()); ++w) {
        EXPECT_FALSE(covered(edges, before(s, i, w)))
            << "wait " << w << " of " << i << "\n"
            << print(s, g);
        ++(i < n ? waits : joins);
      }
    }
  }
  // The test is not vacuous.
  EXPECT_GT(waits, 1000u);
  EXPECT_GT(joins, 100u);
}

TEST(Schedule, EveryNodeThatRunsIsOneStepAndLaterThanWhatItNeeds) {
  std::mt19937 rng(3);
  for (int round = 0; round < 100; ++round) {
    Graph g = random_graph(rng, 50, 3, round % 2 == 0);
    partition(g);
    const Schedule s = make_schedule(g);
    std::set<int> nodes;
    for (const ScheduleStep& step : s.steps) {
      EXPECT_TRUE(nodes.insert(step.node).second);
      const Node& n = g[step.node];
      EXPECT_EQ(s.streams[step.stream].device, n.assigned);
      EXPECT_EQ(s.streams[step.stream].copy, n.op->name() == "_Transfer");
    }
    for (int i = 0; i < g.size(); ++i) {
      const std::string& op = g[i].op->name();
      const bool source = op == "_Arg" || op == "Const" ||
                          op == "VarHandleOp" || op == "_HandOver";
      EXPECT_EQ(nodes.contains(i), !source) << g[i].name;
    }
    const size_t n = s.steps.size();
    for (const auto& [from, to] : required(g, s)) {
      if (static_cast<size_t>(to) >= n) continue;
      EXPECT_LT(from, to);
    }
    // Accesses of one variable keep their order.
    std::map<int, int> last_write;
    for (const ScheduleStep& step : s.steps) {
      for (size_t k = 0; k < g[step.node].inputs.size(); ++k) {
        const ValueRef v = g[step.node].inputs[k];
        if (g.spec(v).dtype != resource) continue;
        int& last = last_write[v.node];
        EXPECT_GE(step.node, last) << g[step.node].name;
        if (writes(g[step.node].op->input(static_cast<int>(k)).access)) {
          last = step.node;
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth
