// Lints of placed graphs. Expected bytes are counted by hand: 4 MiB is a
// float32[1024,1024].

#include "place/lints.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/graph_text.h"

namespace berth {
namespace {

const char kLintOps[] = R"(berth-graph 1
op Make () -> (y)
op One (x: any) -> (y)
op Two (a: any, b: any) -> (y)
op CpuOnly (x: any) -> (y)
)";

PlaceOptions two_gpus() {
  const auto gpu = [](const OpDef& op, DType) {
    return op.name() != "CpuOnly";
  };
  PlaceOptions o;
  o.devices = {{"/job:localhost/replica:0/task:0/device:GPU:0", nullptr, gpu},
               {"/job:localhost/replica:0/task:0/device:GPU:1", nullptr, gpu},
               {"/job:localhost/replica:0/task:0/device:CPU:0"}};
  return o;
}

constexpr const char* kBig = "float32[1024,1024]";
constexpr const char* kSmall = "float32[]";

std::string lint_node(const std::string& name, const std::string& call,
                      const char* spec, const std::string& more = "") {
  return "node " + name + " = " + call + " -> " + spec + " " + more + "\n";
}
std::string on(const std::string& device) { return "on \"/" + device + "\""; }

std::vector<PlaceLint> lints_of(const std::string& body) {
  Graph g = parse_graph(kLintOps + body);
  const PlaceOptions o = two_gpus();
  place(g, o);
  return lint_placement(g, o);
}

std::string ids(const std::string& body) {
  std::string s;
  for (const PlaceLint& l : lints_of(body)) s += l.id + " ";
  return s;
}

// A large value on GPU:0 that everything below starts from.
std::string big() { return lint_node("big", "Make()", kBig, on("GPU:0")); }

TEST(Lints, AReductionAwayFromItsBigInputMovesFourMebibytesForFourBytes) {
  const auto lints =
      lints_of(big() + lint_node("sum", "One(big:0)", kSmall, on("CPU:0")) +
               "return sum:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "reduce-placement");
  EXPECT_EQ(lints[0].bytes, 4 << 20);
  EXPECT_EQ(lints[0].bytes_there, 4);
  EXPECT_NE(lints[0].device.text().find("GPU:0"), std::string::npos);
  EXPECT_NE(lints[0].text.find("sends 4 MiB"), std::string::npos);
  EXPECT_NE(lints[0].text.find("would send 4 B"), std::string::npos);
}

TEST(Lints, AReductionBesideItsInputIsLeftAlone) {
  EXPECT_EQ(ids(big() + lint_node("sum", "One(big:0)", kSmall, on("GPU:0")) +
                "return sum:0\n"),
            "");
}

TEST(Lints, AReductionThatNobodyAskedForIsLeftAlone) {
  EXPECT_EQ(
      ids(big() +
          lint_node("sum", "One(big:0)", kSmall,
                    "at \"/job:localhost/replica:0/task:0/device:CPU:0\"") +
          "return sum:0\n"),
      "");
}

TEST(Lints, AReductionThatOnlyItsDeviceCanComputeIsLeftAlone) {
  EXPECT_EQ(
      ids(big() + lint_node("sum", "CpuOnly(big:0)", kSmall, on("CPU:0")) +
          "return sum:0\n"),
      "");
}

TEST(Lints, AReductionOfWhatIsNeededThereAnywayIsLeftAlone) {
  EXPECT_EQ(
      ids(big() + lint_node("sum", "One(big:0)", kSmall, on("CPU:0")) +
          lint_node("same", "CpuOnly(big:0)", kBig) + "return sum:0, same:0\n"),
      "");
}

TEST(Lints, ASmallReductionIsLeftAlone) {
  EXPECT_EQ(
      ids(lint_node("x", "Make()", "float32[100,100]", on("GPU:0")) +
          lint_node("sum", "One(x:0)", kSmall, on("CPU:0")) + "return sum:0\n"),
      "");
}

TEST(Lints, AnOpThatGrowsItsInputBeforeTheBorderIsNamed) {
  const auto lints =
      lints_of(lint_node("bytes", "Make()", "uint8[1024,1024]", on("CPU:0")) +
               lint_node("floats", "One(bytes:0)", kBig, on("CPU:0")) +
               lint_node("use", "One(floats:0)", kSmall, on("GPU:0")) +
               "return use:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "expand-placement");
  EXPECT_EQ(lints[0].bytes, 4 << 20);
  EXPECT_EQ(lints[0].bytes_there, 1 << 20);
}

TEST(Lints, AnOpThatShrinksItsInputBeforeTheBorderIsLeftAlone) {
  EXPECT_EQ(
      ids(lint_node("x", "Make()", kBig, on("CPU:0")) +
          lint_node("bytes", "One(x:0)", "uint8[1024,1024]", on("CPU:0")) +
          lint_node("use", "One(bytes:0)", kBig, on("GPU:0")) +
          "return use:0\n"),
      "");
}

TEST(Lints, OpsAloneBetweenOpsOfAnotherDeviceAreAPingPong) {
  const auto lints =
      lints_of(big() + lint_node("a", "One(big:0)", kBig, on("GPU:1")) +
               lint_node("b", "One(a:0)", kBig, on("GPU:1")) +
               lint_node("c", "One(b:0)", kBig, on("GPU:0")) + "return c:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "ping-pong");
  EXPECT_EQ(lints[0].bytes, 8 << 20);
  EXPECT_EQ(lints[0].bytes_there, 0);
  EXPECT_NE(lints[0].text.find("with 1 more op)"), std::string::npos);
}

TEST(Lints, ALineOfDevicesIsNoPingPong) {
  EXPECT_EQ(ids(big() + lint_node("a", "One(big:0)", kBig, on("GPU:1")) +
                lint_node("b", "One(a:0)", kBig, on("CPU:0")) + "return b:0\n"),
            "");
}

TEST(Lints, AnOpSentAwayForItsArithmeticIsLeftAlone) {
  const std::string data = lint_node("x", "Make()", kBig, on("CPU:0"));
  const std::string back = lint_node("c", "One(b:0)", kBig, on("CPU:0"));
  EXPECT_EQ(ids(data + lint_node("b", "MatMul(x:0, x:0)", kBig, on("GPU:0")) +
                back + "return c:0\n"),
            "");
  EXPECT_EQ(ids(data + lint_node("b", "Two(x:0, x:0)", kBig, on("GPU:0")) +
                back + "return c:0\n"),
            "ping-pong ");
}

std::string variable(const std::string& device,
                     const std::string& shape = "[1024,1024]") {
  return "node w = VarHandleOp() {shared_name = \"w\", dtype = float32, shape "
         "= shape" +
         shape + "} -> resource(float32)" + shape + " " + on(device) + "\n" +
         lint_node("read", "ReadVariableOp(w:0)", ("float32" + shape).c_str());
}

TEST(Lints, AVariableThatOnlyAnotherDeviceReadsIsNamed) {
  const auto lints = lints_of(
      variable("GPU:0") + lint_node("use", "One(read:0)", kBig, on("GPU:1")) +
      "return use:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "variable-elsewhere");
  EXPECT_EQ(lints[0].bytes, 4 << 20);
  EXPECT_NE(lints[0].text.find("\"w\""), std::string::npos);
}

TEST(Lints, AVariableThatIsReadAtHomeTooIsLeftAlone) {
  EXPECT_EQ(ids(variable("GPU:0") +
                lint_node("use", "One(read:0)", kBig, on("GPU:1")) +
                lint_node("here", "One(read:0)", kBig, on("GPU:0")) +
                "return use:0, here:0\n"),
            "");
}

TEST(Lints, ALayerWithItsVariableIsNoPingPong) {
  EXPECT_EQ(
      ids(big() + variable("GPU:1", "[1024]") +
          lint_node("mul", "Two(big:0, read:0)", kBig, on("GPU:1")) +
          lint_node("c", "One(mul:0)", kBig, on("GPU:0")) + "return c:0\n"),
      "");
}

TEST(Lints, GradientsPinnedAwayFromTheirForwardOpsAreNamedOnce) {
  const std::string body = big() +
                           lint_node("f", "One(big:0)", kBig, on("GPU:0")) +
                           lint_node("g", "One(f:0)", kBig, on("GPU:0"));
  const auto lints = lints_of(
      body +
      lint_node("dg", "Two(g:0, f:0)", kBig, on("GPU:1") + " follows g") +
      lint_node("df", "Two(dg:0, big:0)", kBig, on("GPU:1") + " follows f") +
      "return df:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "gradient-elsewhere");
  EXPECT_EQ(lints[0].bytes, 12 << 20);  // g, f and big are sent
  EXPECT_EQ(lints[0].bytes_there, 0);
  EXPECT_NE(lints[0].text.find("2 gradient ops are pinned to GPU:1"),
            std::string::npos);
}

TEST(Lints, GradientsThatFollowTheirForwardOpsAreLeftAlone) {
  EXPECT_EQ(ids(big() + lint_node("f", "One(big:0)", kBig, on("GPU:0")) +
                lint_node("df", "Two(f:0, big:0)", kBig, "follows f") +
                "return df:0\n"),
            "");
}

// It runs on the CPU between ops of GPU:0: 4 MiB there and 4 MiB back.
TEST(Lints, AnOpThatTheGpuLacksAndNobodyPlacedIsNamedWithItsBytes) {
  const auto lints =
      lints_of(big() + lint_node("x", "CpuOnly(big:0)", kBig) +
               lint_node("y", "One(x:0)", kBig, on("GPU:0")) + "return y:0\n");
  ASSERT_EQ(lints.size(), 1u);
  EXPECT_EQ(lints[0].id, "kernel-missing");
  EXPECT_EQ(lints[0].bytes, 8 << 20);
  EXPECT_NE(lints[0].text.find("CpuOnly \"x\" runs on CPU:0, for GPU:0 has no "
                               "kernel for it, which sends 8 MiB"),
            std::string::npos)
      << lints[0].text;
}

TEST(Lints, AnOpThatTheGpuLacksIsLeftAloneWhereItWasAskedForOrIsSmall) {
  EXPECT_EQ(ids(big() + lint_node("x", "CpuOnly(big:0)", kBig, on("CPU:0")) +
                lint_node("y", "One(x:0)", kBig, on("CPU:0")) + "return y:0\n"),
            "");
  EXPECT_EQ(
      ids(lint_node("big", "Make()", kSmall, on("GPU:0")) +
          lint_node("x", "CpuOnly(big:0)", kSmall) +
          lint_node("y", "One(x:0)", kSmall, on("GPU:0")) + "return y:0\n"),
      "");
}

TEST(Lints, OneDeviceHasNothingToSay) {
  EXPECT_EQ(
      ids(big() + lint_node("sum", "One(big:0)", kSmall) + "return sum:0\n"),
      "");
}

}  // namespace
}  // namespace berth
