#include "graph/graph_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "berth/berth.h"
#include "berth/errors.h"

namespace berth {
namespace {

// Everything the format has, as print() writes it.
constexpr const char* kAll = R"(berth-graph 1
graph "a step"
op Mine (x: float32|float64, n: int32) -> (y, rest...) stateful metadata
op Take (v: resource read, w: resource write, all: any repeated) -> () stateful
op Flags (r: any ref, h: int32 host, o: any optional, all: any repeated optional ref host) -> (r ref, h host, rest... ref host) random commutative
local "/job:worker/task:0"
order Npu, GPU
kernel Mine on GPU, CPU priority 2 types float32 host (n, rest...)
kernel MatMul on CPU, "/job:worker/task:0/device:GPU"
kernel Flags on Npu priority -3
class fast on GPU flops 20000000.0 bandwidth 1500000.0 launch 4.5
class "a slow one" on CPU
device "/job:worker/task:0/device:CPU:0"
device "/job:worker/task:0/device:GPU:0" memory 1048576 class fast
device "/job:worker/task:0/device:GPU:1" memory 0 class fast copies receiving
device "/device:COMPOSITE:0" of "/job:worker/task:0/device:GPU:0", "/job:worker/task:0/device:GPU:1"
link "/job:worker/task:0/device:GPU:0" -> "/job:worker/task:0/device:GPU:1" latency 5.0 bandwidth 12000.0 shared 0
link "/job:worker/task:0/device:GPU:1" -> "/job:worker/task:0/device:GPU:0" latency 0.5 bandwidth 0.25
function handles (resource(float32)[2], resource[]) -> (resource(int32)[])
function body (float32[2,?]) -> (float32[?1], int32[])
node x = _Arg() {dtype = float32, index = 0, shape = shape[2,?1]} -> float32[2,?1]
node n = Const() {value = tensor(int32[], -7)} -> int32[] from n
node "a b\"\\\n\x01:" = Mine(x:0, n:0) {b = true, d = 2.0, e = -inf, f = nan, i = -3, l = ints[1, -1], m = doubles[0.5, 1e+300, -0.0], o = strings["", "q\""], p = int32, s = "str", u = shape[2,?,?7], z = shape[]} -> float32[2,?], int64[3] on "/device:GPU:0" at "/job:worker/replica:0/task:0/device:GPU:0" with n, grp follows n replica 3 collective part 1 of [8,?1] origin 6 slices 1 to 3 of 4 batch 9 from "l 1" (model.cc:41), other ("dir/a b.cc":2) time CPU 1.5, GPU 0.25 bytes 8, 24
node v = VarHandleOp() {dtype = float32, shape = shape[2], shared_name = "v"} -> resource(float32)[2]
node t = Take(v:0, v:0, n:0, x:0, ^x, ^"a b\"\\\n\x01:")
node c = PartitionedCall(x:0) {f = @body} -> float32[?1], int32[]
node f = Flags(x:0, n:0) -> float32[2], int32[] replica 0 part -1
return "a b\"\\\n\x01:":1, c:0
)";

TEST(GraphText, ParseOfPrintPrintsTheSameText) {
  EXPECT_EQ(print(parse_text(kAll)), kAll);
}

constexpr const char* kBodies = R"(berth-graph 1
graph step
function inner (float32[2]) -> (float32[2]) {
node a = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> float32[2]
node n = Neg(a:0) -> float32[2] on "/GPU:0" from n (model.cc:3)
return n:0
}
function keep (float32[2]) -> (float32[2]) {
node a = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> float32[2]
return a:0
}
function outer (float32[2], bool[]) -> (float32[2]) {
node a = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> float32[2]
node p = _Arg() {dtype = bool, index = 1, shape = shape[]} -> bool[]
node b = If(p:0, a:0) {else_branch = @keep, then_branch = @inner} -> float32[2]
return b:0
}
function nothing (float32[2], bool[]) -> (float32[2]) {
node a = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> float32[2]
node p = _Arg() {dtype = bool, index = 1, shape = shape[]} -> bool[]
return a:0
}
node p = _Arg() {dtype = bool, index = 0, shape = shape[]} -> bool[]
node x = _Arg() {dtype = float32, index = 1, shape = shape[2]} -> float32[2]
node b = If(p:0, x:0, p:0) {else_branch = @nothing, then_branch = @outer} -> float32[2]
return b:0
)";

TEST(GraphText, BodiesOfFunctionsAreInTheText) {
  EXPECT_EQ(print(parse_text(kBodies)), kBodies);
  const Graph g = parse_graph(kBodies);
  const auto f =
      g[2].op->attr<std::shared_ptr<Callable>>(g[2].attrs.get(), "then_branch");
  ASSERT_NE(f->body(), nullptr);
  EXPECT_EQ(f->body()->size(), 3);
  EXPECT_EQ((*f->body())[2].op->name(), "If");
}

// A function that makes a variable, called by one that reads and returns it.
constexpr const char* kCalls = R"(berth-graph 1
graph step
op Open (path: string) -> (table)
op Run (x: any repeated optional) -> (y...) stateful
function make () -> (resource(float32)[2], resource[]) {
node v = VarHandleOp() {dtype = float32, shape = shape[2], shared_name = "v"} -> resource(float32)[2] on "/GPU:1"
node p = Const() {value = tensor(string[], "a")} -> string[]
node t = Open(p:0) -> resource[]
return v:0, t:0
}
function use (resource(float32)[2]) -> (float32[2], resource(float32)[2]) {
node a = _Arg() {dtype = resource, index = 0, shape = shape[2]} -> resource(float32)[2]
node m = PartitionedCall() {f = @make} -> resource(float32)[2], resource[]
node r = ReadVariableOp(a:0) -> float32[2]
node s = ReadVariableOp(m:0) -> float32[2]
node y = AddV2(r:0, s:0) -> float32[2]
return y:0, m:0
}
node v = VarHandleOp() {dtype = float32, shape = shape[2], shared_name = "w"} -> resource(float32)[2]
node c = PartitionedCall(v:0) {f = @use} -> float32[2], resource(float32)[2]
node d = Run(c:0, v:0) {f = @use, g = @make} -> int32[]
return c:0
)";

TEST(GraphText, FunctionsReturnVariablesAndCallFunctions) {
  EXPECT_EQ(print(parse_text(kCalls)), kCalls);
  const Graph g = parse_graph(kCalls);
  verify(g);
  EXPECT_EQ(g[1].outputs[1].variable, float32);
  using F = std::shared_ptr<Callable>;
  const Graph& use = *g[1].op->attr<F>(g[1].attrs.get(), "f")->body();
  verify(use);
  const F make = use[1].op->attr<F>(use[1].attrs.get(), "f");
  EXPECT_EQ((*make->body())[0].requested, "/GPU:1");
  // All references share one function.
  EXPECT_EQ(std::get<F>(*g[2].attrs.get()->find("g")), make);
}

TEST(GraphText, EveryPartArrivesWhereItBelongs) {
  const GraphText text = parse_text(kAll);
  const Graph& g = text.graph;
  EXPECT_EQ(g.name, "a step");
  EXPECT_EQ(g.args, std::vector<int32_t>{0});
  EXPECT_EQ(g[0].outputs[0].shape, (Shape{2, kFirstSymbol}));
  const Node& mine = g[2];
  EXPECT_EQ(mine.name, "a b\"\\\n\x01:");
  EXPECT_EQ(mine.inputs, (std::vector<ValueRef>{{0, 0}, {1, 0}}));
  EXPECT_EQ(mine.requested, "/device:GPU:0");
  EXPECT_EQ(mine.follows, 1);
  EXPECT_EQ(mine.replica, 3);
  EXPECT_TRUE(mine.collective);
  ASSERT_TRUE(mine.part);
  EXPECT_EQ(*mine.part, (NodePart{{8, kFirstSymbol}, 6, 1, 1, 2, 4, 9}));
  EXPECT_EQ(g[0].replica, -1);
  EXPECT_FALSE(g[0].part);
  ASSERT_EQ(mine.sources.size(), 2u);
  EXPECT_STREQ(mine.sources[0].site.file, "model.cc");
  EXPECT_EQ(mine.sources[0].site.line, 41);
  EXPECT_TRUE(mine.op->stateful());
  EXPECT_TRUE(mine.op->metadata());
  EXPECT_EQ(mine.op->id(), kDetachedOp);
  EXPECT_EQ(std::get<Shape>(*mine.attrs.get()->find("u")),
            (Shape{2, kUnknownDim, kFirstSymbol - 6}));
  EXPECT_EQ(g[4].controls, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(g[4].op->input(0).access, Access::kReadsVariable);
  EXPECT_EQ(g[4].op->input(1).access, Access::kWritesVariable);
  EXPECT_EQ(g[3].outputs[0].variable, float32);
  ASSERT_EQ(text.kernels.size(), 3u);
  EXPECT_EQ(text.kernels[0].device_types,
            (std::vector<std::string>{"GPU", "CPU"}));
  EXPECT_EQ(text.kernels[0].priority, 2);
  EXPECT_EQ(text.kernels[0].host, (std::vector<std::string>{"n", "rest..."}));
  EXPECT_EQ(text.devices[0].name, "/job:worker/task:0/device:CPU:0");
  EXPECT_FALSE(text.devices[0].memory_limit);
  EXPECT_EQ(text.devices[1].memory_limit, 1 << 20);
  EXPECT_EQ(text.devices[1].device_class, "fast");
  EXPECT_EQ(text.devices[1].copies, "");
  EXPECT_EQ(text.devices[2].memory_limit, 0);
  EXPECT_EQ(text.devices[2].copies, "receiving");
  EXPECT_EQ(text.classes[0].type, "GPU");
  EXPECT_EQ(text.classes[0].flops_per_us, 2e7);
  EXPECT_EQ(text.classes[0].bytes_per_us, 1.5e6);
  EXPECT_EQ(text.classes[0].launch_us, 4.5);
  EXPECT_FALSE(text.classes[1].launch_us);
  ASSERT_EQ(text.links.size(), 2u);
  EXPECT_EQ(text.links[0].from, text.devices[1].name);
  EXPECT_EQ(text.links[0].to, text.devices[2].name);
  EXPECT_EQ(text.links[0].latency_us, 5);
  EXPECT_EQ(text.links[0].bytes_per_us, 12000);
  EXPECT_EQ(text.links[0].shared, 0);
  EXPECT_EQ(text.links[1].shared, -1);
  EXPECT_EQ(text.functions[1]->output_specs().size(), 2u);
  EXPECT_EQ(text.costs[2].time_us[1],
            (std::pair<std::string, double>{"GPU", 0.25}));
  EXPECT_EQ(text.costs[2].bytes, (std::vector<int64_t>{8, 24}));
  EXPECT_EQ(OpRegistry::get().find("Mine"), nullptr);
}

TEST(GraphText, ADeclaredOpHasItsFlags) {
  const Graph g = parse_graph(kAll);
  const OpDef& op = *g[6].op;
  ASSERT_EQ(op.name(), "Flags");
  EXPECT_EQ(op.min_inputs(), 2);
  EXPECT_TRUE(op.variadic());
  for (const int i : {0, 3, 9}) EXPECT_TRUE(op.input(i).ref) << i;
  for (const int i : {1, 2}) EXPECT_FALSE(op.input(i).ref) << i;
  for (const int i : {1, 3, 9}) EXPECT_TRUE(op.input(i).on_host) << i;
  for (const int i : {0, 2}) EXPECT_FALSE(op.input(i).on_host) << i;
  for (const int i : {0, 2, 9}) EXPECT_TRUE(op.output_is_ref(i)) << i;
  EXPECT_FALSE(op.output_is_ref(1));
  for (const int i : {1, 2, 9}) EXPECT_TRUE(op.output_on_host(i)) << i;
  EXPECT_FALSE(op.output_on_host(0));
  EXPECT_TRUE(op.random());
  EXPECT_TRUE(op.commutative());
  EXPECT_FALSE(op.stateful());
}

template <class T>
Tensor through_text(const std::vector<T>& values) {
  Graph g;
  Node node;
  node.name = "c";
  node.op = &op_named("Const");
  const Tensor t = constant(std::span<const T>(values),
                            Shape{static_cast<int64_t>(values.size())});
  node.attrs = AttrsRef({{"value", t}});
  node.outputs = {{t.dtype(), t.shape()}};
  g.add(std::move(node));
  const Graph back = parse_graph(print(g));
  return back[0].op->attr<Tensor>(back[0].attrs.get(), "value");
}

template <class T>
void expect_same_bits(const std::vector<T>& values) {
  const Tensor t = through_text(values);
  ASSERT_EQ(t.dtype(), dtype_of<T>);
  std::vector<T> back(values.size());
  t.copy_to(back.data());
  const auto bytes = [](const std::vector<T>& v) {
    return std::as_bytes(std::span(v));
  };
  EXPECT_TRUE(std::ranges::equal(bytes(back), bytes(values)));
}

TEST(GraphText, ConstantsKeepEveryBit) {
  using F = std::numeric_limits<float>;
  using D = std::numeric_limits<double>;
  expect_same_bits<float>({0.1f, -0.0f, 0.0f, 1e-45f, F::max(), F::lowest(),
                           F::infinity(), -F::infinity(), F::quiet_NaN(),
                           -F::quiet_NaN(), std::bit_cast<float>(0x7fc12345u),
                           16777217.f, 3.f});
  expect_same_bits<double>({0.1, -0.0, 5e-324, D::max(), D::quiet_NaN(),
                            std::bit_cast<double>(0xfff8000000000001ull)});
  expect_same_bits<int32_t>({0, -1, INT32_MAX, INT32_MIN});
  expect_same_bits<int64_t>({INT64_MAX, INT64_MIN});
  expect_same_bits<uint8_t>({0, 7, 255});
  expect_same_bits<float>({});
  expect_same_bits<int8_t>({0, -128, 127});
  expect_same_bits<std::complex<float>>(
      {{0.1f, -0.0f}, {F::quiet_NaN(), -F::infinity()}});
  expect_same_bits<std::complex<double>>({{0.1, 5e-324}, {D::max(), -1}});
}

template <class Half>
void expect_every_pattern() {
  for (uint32_t first = 0; first < 65536; first += 64) {
    std::vector<Half> values(64);
    for (uint32_t i = 0; i < 64; ++i) {
      values[i].bits = static_cast<uint16_t>(first + i);
    }
    expect_same_bits(values);
  }
}

TEST(GraphText, HalvesKeepEveryBit) {
  expect_every_pattern<bfloat16_t>();
  expect_every_pattern<float16_t>();
}

TEST(GraphText, StringsComeBackWhateverTheyHold) {
  std::vector<std::string> values = {"", "a \"b\" \\ c\n", "\xff\x01",
                                     std::string("x\0y", 3)};
  EXPECT_EQ(through_text(values).to_vector<std::string>(), values);
  values.resize(100, "many");  // no blobs of text
  EXPECT_EQ(through_text(values).to_vector<std::string>(), values);
}

TEST(GraphText, SixtyFourElementsStandInTheTextMoreDoNot) {
  auto text_of = [](size_t n) {
    Graph g;
    Node node;
    node.name = "c";
    node.op = &op_named("Const");
    const std::vector<float> values(n, 2.5f);
    const Tensor t = constant(std::span<const float>(values),
                              Shape{static_cast<int64_t>(n)});
    node.attrs = AttrsRef({{"value", t}});
    node.outputs = {{t.dtype(), t.shape()}};
    g.add(std::move(node));
    return print(g);
  };
  EXPECT_EQ(text_of(64).find("blob"), std::string::npos);
  const std::string blob = text_of(65);
  EXPECT_NE(blob.find("tensor(float32[65], blob "), std::string::npos) << blob;
  EXPECT_EQ(blob, text_of(65));  // by contents, not by address
  const Graph back = parse_graph(blob);
  EXPECT_EQ(
      back[0].op->attr<Tensor>(back[0].attrs.get(), "value").to_vector<float>(),
      std::vector<float>(65, 2.5f));
  EXPECT_EQ(print(back), blob);
}

TEST(GraphText, BlankLinesCommentsAndCarriageReturnsAreAllowed) {
  const Graph g = parse_graph(
      "# a comment\r\n\r\nberth-graph 1\r\n  # another\n"
      "node x = _Arg() {dtype=float32,index=0,shape=shape[]}->float32[]\r\n"
      "return x:0");
  EXPECT_EQ(g.size(), 1);
  EXPECT_EQ(g.outputs.size(), 1u);
}

TEST(GraphText, ADeclaredFunctionSaysThatItCannotRun) {
  const GraphText text = parse_text(kAll);
  EXPECT_THROW(text.functions[0]->call({}, {}), errors::FailedPrecondition);
}

TEST(GraphText, AGraphKeepsItsDeclaredOpsAlive) {
  const Graph g = parse_graph(kAll);
  EXPECT_EQ(g[2].op->name(), "Mine");
  EXPECT_EQ(print(parse_graph(print(g))), print(g));
}

TEST(GraphText, ATenThousandNodeGraphComesBackAsItWas) {
  std::string text =
      "berth-graph 1\ngraph g\n"
      "node n0 = _Arg() {dtype = float32, index = 0, shape = shape[]} -> "
      "float32[]\n";
  for (int i = 1; i < 10000; ++i) {
    text += fmt::format("node n{} = Neg(n{}:0) -> float32[] from n (a.cc:{})\n",
                        i, i - 1, i);
  }
  EXPECT_EQ(print(parse_graph(text)), text);
}

}  // namespace
}  // namespace berth
