// Every malformed form of a graph text, with the place that its error names.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/berth.h"
#include "berth/errors.h"
#include "graph/graph_text.h"
#include "graph/parse_decl.h"

namespace berth {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_text(text);
  } catch (const errors::InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

struct Wrong {
  const char* text;      // after the head; | marks where the error is
  const char* expected;  // what the message says
};

// Line 2 of the head is an argument x of two floats.
void expect_errors(std::initializer_list<Wrong> all) {
  const std::string head =
      "berth-graph 1\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> "
      "float32[2]\n";
  for (const Wrong& wrong : all) {
    std::string text = wrong.text;
    const size_t mark = text.rfind('|');
    ASSERT_NE(mark, text.npos) << text;
    text.erase(mark, 1);
    const size_t lines = static_cast<size_t>(
        std::count(text.begin(), text.begin() + mark, '\n'));
    const size_t begin = lines == 0 ? 0 : text.rfind('\n', mark - 1) + 1;
    const std::string message = error_of(head + text + "\n");
    EXPECT_TRUE(message.starts_with(
        fmt::format("line {}, column {}: ", 3 + lines, mark - begin + 1)))
        << wrong.text << "\n  gives \"" << message << '"';
    EXPECT_NE(message.find(wrong.expected), std::string::npos)
        << wrong.text << "\n  gives \"" << message << "\"\n  expected \""
        << wrong.expected << '"';
    EXPECT_NE(message.find("xpected"), std::string::npos) << message;
  }
}

TEST(GraphTextErrors, OfNodes) {
  expect_errors({
      {"node y = |Negg(x:0) -> float32[2]", "op 'Negg' is unknown"},
      {"node y = Neg(|z:0) -> float32[2]", "node 'z' is not there"},
      {"node y = Neg(x:|1) -> float32[2]", "output 1 of 'x', expected 0 to 0"},
      {"node y = Neg(x:0) -> |float32[3]", "output 0 of 'y' is"},
      {"node y = Neg(x:0) -> |float31[2]", "dtype 'float31'"},
      {"node y = |Neg(x:0)", "0 outputs, expected 1"},
      {"node y = Neg(x:0) -> |float32[2], float32[2]", "2 outputs"},
      {"node y = |AddV2(x:0) -> float32[2]", "AddV2: 1 inputs"},
      {"node |x = Neg(x:0) -> float32[2]", "node 'x' again"},
      {"node |\"\" = Neg(x:0) -> float32[2]", "a node without name"},
      {"node y |Neg(x:0) -> float32[2]", "found \"Neg(x:0)"},
      {"node |", "found the end of the line, expected the name of a node"},
      {"node y = Neg(x:0 |-> float32[2]", "found"},
      {"node y = Neg(^x, |x:0) -> float32[2]", "controls stand behind"},
      {"node y = Sum(x:0) {|axes = ints[0]} -> float32[]", "no attribute"},
      {"node y = Sum(x:0) {|axis = 0} -> float32[]", "expected ints[...]"},
      {"node y = |Sum(x:0) {axis = ints[5]} -> float32[]", "Sum"},
      {"node y = Sum(x:0) {axis = ints[0], |axis = ints[0]} -> float32[]",
       "attribute 'axis' again"},
      {"node y = Sum(x:0) {axis = ints[0|.5]} -> float32[]", "expected ','"},
      {"node y = Sum(x:0) {axis = ints[|a]} -> float32[]", "an integer"},
      {"node y = Sum(x:0) {axis = |} -> float32[]",
       "expected the value of an attribute"},
      {"node y = Sum(x:0) {axis = |(} -> float32[]",
       "expected the value of an attribute"},
      {"node y = Sum(x:0) {axis = |9223372036854775808} -> float32[]",
       "64 bits"},
      {"node y = |Reshape(x:0) -> float32[2]",
       "Reshape without attribute 'shape', expected shape[...]"},
      {"node y = PartitionedCall(x:0) {f = @|g} -> float32[2]",
       "function 'g' is not declared"},
      {"node y = Neg(x:0) -> float32[2] |near x", "expected '->', on, at"},
      {"node y = Neg(x:0) -> float32[2] on a |on b", "expected '->', on, at"},
      {"node y = Neg(x:0) -> float32[2] on |/GPU:0",
       "device name /GPU:... without quotes"},
      {"node y = Neg(x:0) -> float32[2] at |job:x", "without quotes"},
      {"node y = Neg(x:0) -> float32[2] follows |z", "node 'z'"},
      {"node y = Neg(x:0) -> float32[2] follows |y", "follows itself"},
      {"node y = Neg(x:0) -> float32[2] follows x |follows x", "each once"},
      {"node y = Neg(x:0) -> float32[2] with |,", "a node or group"},
      {"node y = Neg(x:0) -> float32[2] from a (b:|-1)", "source line -1"},
      {"node y = Neg(x:0) -> float32[2] from a (b|)", "expected ':'"},
      {"node y = Neg(x:0) -> float32[2] time CPU |-1", "time -1, expected"},
      {"node y = Neg(x:0) -> float32[2] time CPU |nan", "time nan, expected"},
      {"node y = Neg(x:0) -> float32[2] bytes |-1", "-1 bytes, expected"},
      {"node y = Neg(x:0) -> float32[2] bytes 1|.5", "expected '->', on"},
      {"node |\"y = Neg(x:0)", "a quote that does not end"},
      {"node \"a|\\q\" = Neg(x:0)", "an escape that is unknown"},
      {"return x:0\n|return x:0", "'return' again"},
      {"return |y:0", "node 'y' is not there"},
      {"node |y = _Arg() {dtype = float32, index = 2, shape = shape[]} -> "
       "float32[]",
       "the _Arg nodes have index 2 in place 1"},
      {"|edge x", "'edge' begins no statement"},
      {"local |\"/GPU:0\"", "'/GPU:0' is no task, expected for example"},
      {"local \"/job:a/task:0\"\n|local \"/job:a/task:1\"", "'local' again"},
      {"order GPU, NPU, |GPU", "device type 'GPU' again"},
      {"device \"/device:COMPOSITE:0\"|", "'of' and the devices"},
      {"device GPU\ndevice CPU |of GPU", "expected type COMPOSITE"},
      {"device |\"/device:COMPOSITE:0\" of GPU", "'GPU' is not declared"},
      {"kernel MatMul on |\"/job:worker/task:0\"", "has no type"},
      {"|}", "expected a statement"},
      {"graph a |b", "expected the end of the line"},
  });
}

TEST(GraphTextErrors, OfReplicasAndParts) {
  expect_errors({
      {"node y = Neg(x:0) -> float32[2] replica |-1", "replica -1, expected"},
      {"node y = Neg(x:0) -> float32[2] replica |40000", "replica 40000"},
      {"node y = Neg(x:0) -> float32[2] replica |a", "the number of a replica"},
      {"node y = Neg(x:0) -> float32[2] replica 1 |replica 1", "(each once)"},
      {"node y = Neg(x:0) -> float32[2] part |", "expected signature"},
      {"node y = Neg(x:0) -> float32[2] part |-2", "signature -2, expected"},
      {"node y = Neg(x:0) -> float32[2] part 0 of |4", "expected '['"},
      {"node y = Neg(x:0) -> float32[2] part 0 of [|]", "shape [], expected"},
      {"node y = Neg(x:0) -> float32[2] part 0 origin |-4", "origin -4"},
      {"node y = Neg(x:0) -> float32[2] part 0 |part 0", "(each once)"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 1 |of 4", "'to' and"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 1 to |1 of 4 batch 8",
       "end of the slices 1, expected one in [2, 32]"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 1 to 2 |batch 8",
       "'of' and the total"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 1 to 3 of |2 batch 8",
       "total of slices 2, expected one in [3, 32]"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 0 to 3 of |33 batch 8",
       "total of slices 33"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 0 to 2 of 4 |",
       "'batch' and its examples"},
      {"node y = Neg(x:0) -> float32[2] part 0 slices 0 to 2 of 4 batch |3",
       "batch 3, expected one in [4,"},
  });
}

TEST(GraphTextErrors, OfValues) {
  expect_errors({
      {"node y = Const() {value = tensor(float32[2], |1)} -> float32[2]",
       "1 elements, expected 2"},
      {"node y = Const() {value = tensor(float32[65], blob |12)} -> "
       "float32[65]",
       "blob 12 is unknown"},
      {"node y = Const() {value = tensor(float32[65], |1)} -> float32[65]",
       "expected 'blob' and a hash"},
      {"node y = |Const() {value = tensor()} -> float32[]", ""},
      {"node y = Const() {value = tensor(uint8[], |256)} -> uint8[]",
       "number '256'"},
      {"node y = Const() {value = tensor(int8[], |128)} -> int8[]",
       "number '128'"},
      {"node y = Const() {value = tensor(float16[], |0.1)} -> float16[]",
       "number '0.1', expected one that float16 holds"},
      {"node y = Const() {value = tensor(complex64[], |1)} -> complex64[]",
       "expected '('"},
      {"node y = Const() {value = tensor(string[2], |\"a\")} -> string[2]",
       "1 elements, expected 2"},
      {"node y = Const() {value = tensor(string[1], |a)} -> string[1]",
       "expected a string in quotes"},
      {"node y = Const() {value = tensor(resource[1|], 1)} -> resource[1]",
       "expected numbers, bools or strings"},
      {"node y = Const() {value = tensor(float32[?|])} -> float32[?]",
       "expected known dimensions"},
      {"node y = Neg(x:0) -> float32[1,1,1,1,1,1,1,1|,1]", "dimensions"},
      {"node y = Neg(x:0) -> float32[4294967296,4294967296|]", "2^40"},
      {"node y = Neg(x:0) -> float32[|-2]", "dimension -2"},
      {"node y = Neg(x:0) -> float32[?|0]", "symbol ?0"},
      {"node y = Neg(x:0) -> float32|", "expected '['"},
      {"node y = Neg(x:0) -> resource(|x)[2]", "dtype 'x'"},
  });
}

TEST(GraphTextErrors, OfOpsAndKernels) {
  expect_errors({
      {"op |Neg (x: any) -> (y)", "op 'Neg' is in the catalogue"},
      {"op A () -> (y)\nop |A () -> (y)", "op 'A' again"},
      {"op |\"\" () -> ()", "an op without name"},
      {"op A (x: any repeated, |y: any) -> ()", "behind a repeated one"},
      {"op A (x: any optional, |y: any) -> ()", "behind an optional one"},
      {"op A (x: any host |ref) -> ()", "expected ','"},
      {"op A (x: resource read |repeated) -> ()", "expected ','"},
      {"op A (x: float32 |read) -> ()", "expected ','"},
      {"op A (x: |) -> ()", "expected a dtype"},
      {"op A (x|) -> ()", "expected ':'"},
      {"op A () -> (y..., |z)", "behind a repeated one"},
      {"op A () -> (y host |ref)", "expected ','"},
      {"op A () -> () |quick", "stateful, random"},
      {"op A () |", "expected '->'"},
      {"kernel |Nope on CPU", "op 'Nope' is unknown"},
      {"kernel Neg |CPU", "expected 'on'"},
      {"kernel Neg on |", "expected a device type"},
      {"kernel Neg on CPU priority |2147483648", "2147483648, expected a"},
      {"kernel Neg on CPU types |float", "dtype 'float'"},
      {"kernel Neg on CPU host (|b)", "Neg has no operand 'b'"},
      {"kernel Neg on CPU host (|)", "no operands"},
      {"kernel Neg on CPU types int32 |priority 1", "in this order"},
  });
}

TEST(GraphTextErrors, OfCallsOfDeclaredOps) {
  expect_errors({
      {"op A (a: int32, b: any) -> (y)\nnode y = |A(x:0) -> float32[2]",
       "1 inputs, expected 2 of A"},
      {"op A (a: any, b: any optional) -> (y)\nnode y = |A() -> float32[2]",
       "0 inputs, expected 1 to 2 of A"},
      {"op A (a: any repeated) -> (y)\nnode y = |A() -> float32[2]",
       "0 inputs, expected 1 or more of A"},
      {"op A (a: any, b: int32) -> ()\nnode y = A(x:0, |x:0)",
       "input 1 is float32, expected one of int32 for 'b' of A"},
      {"op A (a: any) -> ()\nnode y = A(x:0) -> |int32[]", "1 outputs"},
      {"op A (a: any) -> (y, z...)\nnode y = |A(x:0)",
       "0 outputs, expected 1 or more"},
  });
}

TEST(GraphTextErrors, OfDevicesAndLinks) {
  expect_errors({
      {"device |\"GPU:x\"", "malformed device name"},
      {"device |\"/job:worker\"", "has no type"},
      {"device |", "the name of a device"},
      {"device CPU\ndevice |CPU", "'CPU' again"},
      {"device CPU memory |-1", "-1 bytes"},
      {"device CPU memory |x", "a number of bytes"},
      {"device CPU class |", "a class of devices"},
      {"device CPU |fast", "memory, class, copies"},
      {"device CPU copies |never", "copies 'never', expected overlap"},
      {"device CPU copies |", "found the end of the line, expected overlap"},
      {"device CPU class a |memory 1", "in this order"},
      {"class a |CPU", "'on' and a device type"},
      {"class a on CPU flops |0", "flops 0, expected a finite number above 0"},
      {"class a on CPU bandwidth |inf", "bandwidth inf, expected a finite"},
      {"class a on CPU launch |-0.5", "launch -0.5, expected a finite number"},
      {"class a on CPU\nclass |a on CPU", "'a' again"},
      {"class a on CPU |slow", "in this order"},
      {"class a on gpu\ndevice |CPU class a", "'CPU' is no gpu"},
      {"device CPU\nlink |CPU -> GPU latency 1 bandwidth 1",
       "device 'GPU' is not declared"},
      {"device CPU\nlink CPU |CPU latency 1 bandwidth 1", "expected '->'"},
      {"device CPU\nlink CPU -> CPU |bandwidth 1", "'latency'"},
      {"device CPU\nlink CPU -> CPU latency |-1 bandwidth 1", "latency -1"},
      {"device CPU\nlink CPU -> CPU latency 1 |", "'bandwidth'"},
      {"device CPU\nlink CPU -> CPU latency 1 bandwidth |0", "bandwidth 0"},
      {"device CPU\nlink CPU -> CPU latency 1 bandwidth 1 shared |-1",
       "-1, expected the number of a shared link"},
      {"device CPU\nlink CPU -> CPU latency 1 bandwidth 1 |by 1", "shared"},
      {"device CPU\nlink CPU -> CPU latency 1 bandwidth 1\n"
       "link |CPU -> CPU latency 1 bandwidth 1",
       "again"},
  });
}

TEST(GraphTextErrors, OfFunctions) {
  const std::string f =
      "function f (float32[2]) -> (float32[2]) {\n"
      "node a = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> "
      "float32[2]\n";
  const std::string ends = f + "return a:0\n}\n";
  const auto text = [&](const char* rest) { return f + rest; };
  const std::string c[] = {
      text("|}"),
      text("|function g () -> () {"),
      text("return a:0\n}\nreturn |a:0"),
      text("return a:0\n}\n|}"),
      text("node b = Neg(|x:0) -> float32[2]"),
      ends + "function |f () -> ()",
      ends + "node y = |PartitionedCall() {f = @f} -> float32[2]",
      ends +
          "node n = Const() {value = tensor(int32[], 1)} -> int32[]\n"
          "node y = PartitionedCall(|n:0) {f = @f} -> float32[2]",
      ends + "node y = PartitionedCall(x:0) {f = @f} -> |float32[3]",
      ends + "node y = PartitionedCall(x:0) {f = @|h} -> float32[2]",
      text("node b = Neg(a:0) -> float32[2] time CPU 1\nreturn b:0\n|}"),
      text("node b = Neg(a:0) -> float32[2] follows |x\nreturn b:0\n}"),
      "function |\"\" () -> ()",
      text("node b = PartitionedCall(a:0) {f = @|f} -> float32[2]"),
      "function f () |{",
  };
  expect_errors({
      {c[0].c_str(), "the arguments or results of function 'f'"},
      {c[1].c_str(), "'function' begins no statement of a function"},
      {c[2].c_str(), "node 'a' is not there"},
      {c[3].c_str(), "expected a statement"},
      {c[4].c_str(), "node 'x' is not there"},
      {c[5].c_str(), "function 'f' again"},
      {c[6].c_str(), "0 inputs, expected 1 of function 'f'"},
      {c[7].c_str(), "input 0 is int32[], expected float32[2]"},
      {c[8].c_str(), "output 0 of 'y' is float32[3]"},
      {c[9].c_str(), "function 'h' is not declared"},
      {c[10].c_str(), "time or bytes in a function"},
      {c[11].c_str(), "node 'x' is not there"},
      {c[12].c_str(), "a function without name"},
      {c[13].c_str(), "function 'f' calls itself"},
      {c[14].c_str(), "expected '->'"},
  });
  EXPECT_EQ(error_of("berth-graph 1\n" + f),
            "line 4, column 1: the body of function 'f' does not end, "
            "expected '}'");
}

TEST(GraphTextErrors, OfTheVersion) {
  EXPECT_EQ(error_of(""),
            "line 1, column 1: found the end of the line, expected "
            "'berth-graph 1'");
  EXPECT_EQ(error_of("\n  berth-graph 2\n"),
            "line 2, column 15: graph format 2, expected 1");
  EXPECT_EQ(error_of("berth-graph 1 x\n"),
            "line 1, column 15: found \"x\", expected the end of the line");
}

// Each function calls the one above twice: 2^n nodes when walked through.
TEST(GraphTextErrors, FunctionsThatGrowBeyondAllBoundsAreRefused) {
  std::string text =
      "berth-graph 1\n"
      "op Run () -> ()\n"
      "function f0 () -> () {\nnode a = Run()\n}\n";
  for (int i = 1; i < 40; ++i) {
    text += fmt::format(
        "function f{} () -> () {{\nnode a = Run() {{f = @f{}}}\n"
        "node b = Run() {{f = @f{}}}\n}}\n",
        i, i - 1, i - 1);
  }
  const std::string message = error_of(text);
  EXPECT_NE(message.find("nodes with those of callees"), message.npos)
      << message;
}

TEST(GraphTextErrors, FunctionsAreNestedSoDeepAndNotDeeper) {
  const auto nested = [](int depth) {
    std::string text =
        "berth-graph 1\nop Run () -> ()\n"
        "function f0 () -> () {\nnode a = Run()\n}\n";
    for (int i = 1; i < depth; ++i) {
      text += fmt::format(
          "function f{} () -> () {{\nnode a = Run() {{f = @f{}}}\n}}\n", i,
          i - 1);
    }
    return text;
  };
  EXPECT_EQ(error_of(nested(kMaxNesting)), "no error");
  EXPECT_NE(error_of(nested(kMaxNesting + 1)).find("65 deep"),
            std::string::npos);
}

TEST(GraphTextErrors, HugeListsOfOneKindAreRefused) {
  std::string attrs = "berth-graph 1\nop A () -> ()\nnode a = A() {a0 = 1";
  for (int i = 1; i <= 256; ++i) attrs += fmt::format(", a{} = 1", i);
  EXPECT_NE(error_of(attrs + "}").find("more than 256 attributes"),
            std::string::npos);
  std::string inputs = "berth-graph 1\nop A (a: any", outputs;
  for (int i = 0; i < 1000; ++i) inputs += ", a: any";
  EXPECT_NE(error_of(inputs + ") -> ()").find("more than 1000 inputs"),
            std::string::npos);
  for (int i = 0; i < 64; ++i) outputs += "y, ";
  EXPECT_NE(error_of("berth-graph 1\nop A () -> (" + outputs + "y)")
                .find("more than 64 outputs"),
            std::string::npos);
}

}  // namespace
}  // namespace berth
