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
kernel Mine on GPU, CPU priority 2 types float32
kernel MatMul on CPU
device "/job:worker/task:0/device:CPU:0"
function body (float32[2,?]) -> (float32[?1], int32[])
node x = _Arg() {dtype = float32, index = 0, shape = shape[2,?1]} -> float32[2,?1]
node n = Const() {value = tensor(int32[], -7)} -> int32[] from n
node "a b\"\\\n\x01:" = Mine(x:0, n:0) {b = true, d = 2.0, e = -inf, f = nan, i = -3, l = ints[1, -1], m = doubles[0.5, 1e+300, -0.0], o = strings["", "q\""], p = int32, s = "str", u = shape[2,?,?7], z = shape[]} -> float32[2,?], int64[3] on "/device:GPU:0" at "/job:worker/replica:0/task:0/device:GPU:0" with n, grp follows n from "l 1" (model.cc:41), other ("dir/a b.cc":2) time CPU 1.5, GPU 0.25 bytes 8, 24
node v = VarHandleOp() {dtype = float32, shape = shape[2], shared_name = "v"} -> resource(float32)[2]
node t = Take(v:0, v:0, n:0, x:0, ^x, ^"a b\"\\\n\x01:")
node c = PartitionedCall(x:0) {f = @body} -> float32[?1], int32[]
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

TEST(GraphText, BodiesThatAreWrongAreErrorsWithTheirLine) {
  const std::string head =
      "berth-graph 1\nfunction f (bool[]) -> (bool[]) {\n"
      "node a = _Arg() {dtype = bool, index = 0, shape = shape[]} -> bool[]\n";
  auto message = [&](const std::string& rest) -> std::string {
    try {
      parse_graph(head + rest);
    } catch (const errors::InvalidArgument& e) {
      return e.what();
    }
    return "(no error)";
  };
  EXPECT_EQ(message("return a:0\n}\n"), "(no error)");
  EXPECT_NE(message("return a:0\n").find("does not end"), std::string::npos);
  EXPECT_NE(message("}\n").find("line 4: the arguments or results"),
            std::string::npos);
  EXPECT_NE(message("function g () -> () {\n").find("line 4: 'function'"),
            std::string::npos);
  EXPECT_NE(message("return a:0\n}\nreturn a:0\n").find("line 6: node 'a'"),
            std::string::npos);
  EXPECT_NE(message("return a:0\n}\n}\n").find("line 6"), std::string::npos);
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
  ASSERT_EQ(text.kernels.size(), 2u);
  EXPECT_EQ(text.kernels[0].device_types,
            (std::vector<std::string>{"GPU", "CPU"}));
  EXPECT_EQ(text.kernels[0].priority, 2);
  EXPECT_EQ(text.devices[0].name, "/job:worker/task:0/device:CPU:0");
  EXPECT_EQ(text.functions[0]->output_specs().size(), 2u);
  EXPECT_EQ(text.costs[2].time_us[1],
            (std::pair<std::string, double>{"GPU", 0.25}));
  EXPECT_EQ(text.costs[2].bytes, (std::vector<int64_t>{8, 24}));
  EXPECT_EQ(OpRegistry::get().find("Mine"), nullptr);
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

std::string error_of(const std::string& text) {
  try {
    parse_text(text);
  } catch (const errors::InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(GraphText, EveryErrorNamesLineFindAndExpectation) {
  const std::string head =
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> "
      "float32[2]\n";
  struct Wrong {
    const char* line;
    const char* expected;
  };
  const Wrong kWrong[] = {
      {"node y = Negg(x:0) -> float32[2]", "line 3: op 'Negg' is unknown"},
      {"node y = Neg(z:0) -> float32[2]", "line 3: node 'z' is not there"},
      {"node y = Neg(x:1) -> float32[2]", "line 3: output 1 of 'x'"},
      {"node y = Neg(x:0) -> float32[3]", "line 3: output 0 of 'y' is"},
      {"node y = Neg(x:0) -> float31[2]", "line 3: dtype 'float31'"},
      {"node y = Neg(x:0)", "line 3: 0 outputs, expected 1"},
      {"node y = AddV2(x:0) -> float32[2]", "line 3: AddV2: 1 inputs"},
      {"node x = Neg(x:0) -> float32[2]", "line 3: node 'x' again"},
      {"node y = Neg(x:0 -> float32[2]", "line 3: found"},
      {"node y = Neg(^x, x:0) -> float32[2]", "controls stand behind"},
      {"node y = Sum(x:0) {axes = ints[0]} -> float32[]", "no attribute"},
      {"node y = Sum(x:0) {axis = 0} -> float32[]", "expected ints[...]"},
      {"node y = Sum(x:0) {axis = ints[5]} -> float32[]", "line 3: "},
      {"node y = Reshape(x:0) -> float32[2]",
       "Reshape without attribute 'shape', expected shape[...]"},
      {"node y = PartitionedCall(x:0) {f = @g} -> float32[2]",
       "function 'g' is not declared"},
      {"node y = Neg(x:0) -> float32[2] near x", "expected '->', on, at"},
      {"node y = Neg(x:0) -> float32[2] follows z", "line 3: node 'z'"},
      {"node y = Neg(x:0) -> float32[2] follows y", "follows itself"},
      {"node y = Const() {value = tensor(float32[2], 1)} -> float32[2]",
       "1 elements, expected 2"},
      {"node y = Const() {value = tensor(float32[65], blob 12)} -> "
       "float32[65]",
       "blob 12 is unknown"},
      {"node y = Const() {value = tensor()} -> float32[]", "line 3: "},
      {"node y = Const() {value = tensor(uint8[], 256)} -> uint8[]",
       "number '256'"},
      {"node y = Const() {value = tensor(int8[], 128)} -> int8[]",
       "number '128'"},
      {"node y = Const() {value = tensor(float16[], 0.1)} -> float16[]",
       "number '0.1', expected one that float16 holds"},
      {"node y = Const() {value = tensor(complex64[], 1)} -> complex64[]",
       "expected '('"},
      {"node y = Const() {value = tensor(string[2], \"a\")} -> string[2]",
       "1 elements, expected 2"},
      {"node y = Const() {value = tensor(string[1], a)} -> string[1]",
       "expected a string in quotes"},
      {"node y = Const() {value = tensor(resource[1], 1)} -> resource[1]",
       "expected numbers, bools or strings"},
      {"node y = Neg(x:0) -> float32[1,1,1,1,1,1,1,1,1]", "dimensions"},
      {"node y = Neg(x:0) -> float32[4294967296,4294967296]", "2^40"},
      {"node \"y = Neg(x:0)", "a quote that does not end"},
      {"edge x", "'edge' begins no statement"},
      {"op Neg (x: any) -> (y)", "op 'Neg' is in the catalogue"},
      {"op A () -> (y)\nop A () -> (y)", "line 4: op 'A' again"},
      {"op A (x: any repeated, y: any) -> ()", "behind a repeated one"},
      {"kernel Nope on CPU", "op 'Nope' is unknown"},
      {"return x:0\nreturn x:0", "line 4: 'return' again"},
      {"node y = _Arg() {dtype = float32, index = 2, shape = shape[]} -> "
       "float32[]",
       "the _Arg nodes have index 2 in place 1"},
  };
  for (const Wrong& wrong : kWrong) {
    const std::string message = error_of(head + wrong.line + "\n");
    EXPECT_NE(message.find(wrong.expected), std::string::npos)
        << wrong.line << "\n  gives \"" << message << "\"\n  expected \""
        << wrong.expected << '"';
    EXPECT_NE(message.find("xpected"), std::string::npos) << message;
  }
  EXPECT_EQ(error_of(""),
            "line 1: found the end of the line, expected 'berth-graph 1'");
  EXPECT_EQ(error_of("\nberth-graph 2\n"),
            "line 2: graph format 2, expected 1");
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
