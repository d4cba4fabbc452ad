// Fallbacks: when they happen, what is recorded and what is reported.

#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "op/op_registry.h"
#include "place/graphs_testing.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT
using config::SoftPlacement;

class Fallback : public ::testing::Test {
 protected:
  Fallback() {
    reset_diagnostics_for_testing();
    debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { got_.push_back(d); });
  }
  ~Fallback() override {
    debugging::set_diagnostic_handler({});
    reset_diagnostics_for_testing();
  }
  std::vector<debugging::Diagnostic> got_;
};

TEST_F(Fallback, GoesToTheFirstDeviceOfTheTaskAndIsRecorded) {
  const Result r = placed(
      arg("x") + node("a", "CpuOnly(x:0)", "on \"/GPU:1\" from a (m.cc:5)") +
      node("b", "One(a:0)", "on \"/GPU:7\"") +
      node("c", "NotGpu0(b:0)", "on \"/GPU:0\""));
  EXPECT_EQ(r.text, "x CPU:0\na CPU:0\nb GPU:0\nc GPU:1\n");
  ASSERT_EQ(r.placement.fallbacks.size(), 3u);
  EXPECT_EQ(r.placement.fallbacks[0].requested, "/GPU:1");
  EXPECT_EQ(r.placement.fallbacks[0].reason, "no kernel for float32 on GPU:1");
  EXPECT_EQ(r.placement.fallbacks[1].reason, "there is no \"/GPU:7\"");
  EXPECT_EQ(r.placement.fallbacks[2].reason, "no kernel for float32 on GPU:0");
  for (const PlaceFallback& f : r.placement.fallbacks) {
    EXPECT_EQ(r.placement.reasons[f.node].rule, PlaceRule::kRequest);
  }
}

TEST_F(Fallback, IsToldOncePerOpAndReasonWithLineAndBytes) {
  const Result r =
      placed(arg("x", "on \"/GPU:0\"") +
             node("a", "CpuOnly(x:0)", "on \"/GPU:1\" from a (m.cc:5)") +
             node("b", "CpuOnly(x:0)", "on \"/GPU:1\"") +
             node("c", "Two(a:0, b:0)", "on \"/GPU:0\"") +
             node("d", "Two(a:0, b:0)", "on \"/GPU:1\""));
  report_fallbacks(r.graph, r.placement, SoftPlacement::kWarn);
  ASSERT_EQ(got_.size(), 1u);
  EXPECT_EQ(got_[0].id, "fallback");
  EXPECT_EQ(got_[0].severity, debugging::Severity::kWarning);
  EXPECT_EQ(got_[0].site.line, 5);
  // x is sent, and a goes to two devices: 3 x 4 floats.
  EXPECT_PRED2(has, got_[0].text,
               "CpuOnly \"a\" (m.cc:5) was asked for on \"/GPU:1\" and runs "
               "on CPU:0: no kernel for float32 on GPU:1; 48 B per step");
  EXPECT_EQ(debugging::diagnostic_counts()["fallback"], 2);
  EXPECT_EQ(crossing_bytes(r.graph, std::vector{3, 1}),
            (std::vector<int64_t>{32, 48}));
}

TEST_F(Fallback, ToADeviceThatIsNotThereIsOneLineForAllOps) {
  const Result r =
      placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:7\" from a (m.cc:5)") +
             node("b", "One(a:0)", "on \"/GPU:7\"") +
             node("c", "One(b:0)", "on \"/GPU:8\"") +
             node("d", "One(c:0)", "on \"/GPU:7\""));
  report_fallbacks(r.graph, r.placement, SoftPlacement::kWarn);
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_PRED2(has, got_[0].text, "there is no \"/GPU:7\": 3 ops of ");
  EXPECT_PRED2(has, got_[0].text, "the first is One \"a\" (m.cc:5)");
  EXPECT_PRED2(has, got_[1].text, "there is no \"/GPU:8\": 1 op of ");
  EXPECT_EQ(debugging::diagnostic_counts()["fallback"], 4);
}

TEST_F(Fallback, IsCountedAloneWhenSilent) {
  const Result r =
      placed(arg("x") + node("a", "CpuOnly(x:0)", "on \"/GPU:1\""));
  report_fallbacks(r.graph, r.placement, SoftPlacement::kSilent);
  EXPECT_TRUE(got_.empty());
  EXPECT_EQ(debugging::diagnostic_counts()["fallback"], 1);
}

TEST_F(Fallback, OfASetNamesTheMemberThatLacksAKernel) {
  const Result r =
      placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\" with g") +
             node("b", "CpuOnly(x:0)", "with g"));
  EXPECT_EQ(r.text, "x CPU:0\na CPU:0\nb CPU:0\n");
  ASSERT_EQ(r.placement.fallbacks.size(), 1u);
  EXPECT_EQ(r.placement.fallbacks[0].reason,
            "CpuOnly \"b\" must be with it and has no kernel for float32 on "
            "GPU:1");
}

TEST_F(Fallback, AVariableThatDecidesIsANoteInstead) {
  const Result r = placed(handle("v", "on \"/GPU:1\"") +
                          node("read", "ReadVariableOp(v:0)", "on \"/GPU:0\""));
  EXPECT_TRUE(r.placement.fallbacks.empty());
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_EQ(r.placement.notes[0].id, "request-ignored");
}

TEST_F(Fallback, NotesAreToldOncePerOpAndLine) {
  Graph g;
  Placement p;
  const auto note = [&](const char* op, const char* name, int line) {
    Node n;
    n.op = &op_named(op);
    n.name = name;
    n.sources = {{name, {"m.cc", line}}};
    p.notes.push_back({"request-ignored", g.size(), "a note"});
    g.nodes.push_back(std::move(n));
  };
  note("Identity", "a", 5);
  note("Identity", "b", 5);
  note("Identity", "c", 6);
  note("ReadVariableOp", "d", 7);  // runs on the variable's device
  report_notes(g, p, SoftPlacement::kWarn);
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_EQ(got_[1].id, "request-ignored");
  EXPECT_EQ(got_[1].site.line, 6);
  EXPECT_PRED2(has, got_[0].text, "a note");
  report_notes(g, p, SoftPlacement::kSilent);
  EXPECT_EQ(got_.size(), 2u);
  EXPECT_EQ(debugging::diagnostic_counts()["request-ignored"], 6);
}

TEST_F(Fallback, GroupsOfTwoRequestsTakeTheFirst) {
  const Result r =
      placed(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\" with g") +
             node("b", "One(x:0)", "on CPU with g"));
  EXPECT_EQ(r.text, "x GPU:1\na GPU:1\nb GPU:1\n");
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_PRED2(has, r.placement.notes[0].text,
               "One \"b\" was asked for on \"CPU\" but shares a device with "
               "\"a\", which was asked for on \"/GPU:1\", on GPU:1");
}

TEST_F(Fallback, StringsLiveOnTheHost) {
  const Result r =
      placed("node w = Make() -> string[2]\nnode l = One(w:0) -> int32[2]\n" +
             node("a", "One(l:0)"));
  EXPECT_EQ(r.text, "w CPU:0\nl CPU:0\na GPU:0\n");
}

TEST_F(Fallback, PlacementIsLoggedOneLinePerNode) {
  const Result r = placed(arg("x") + node("a", "One(x:0)", "on CPU"));
  log_placement(r.graph);
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_EQ(got_[1].id, "placement");
  EXPECT_EQ(got_[1].text, "a: (One): CPU:0");
}

placement::OpRow measured(const std::string& op, double us, double runs) {
  placement::OpRow row;
  row.op = op;
  row.type = "MatMul";
  row.device = "/job:localhost/replica:0/task:0/device:CPU:0";
  row.measured_us = us;
  row.runs_per_step = runs;
  return row;
}

TEST(ReportText, ShowsTheTenMostExpensiveOps) {
  placement::Report r;
  r.name = "f";
  // 1 us to 12 us; the first runs 100 times per step; two were not measured.
  for (int k = 1; k <= 12; ++k) {
    r.ops.push_back(
        measured("op" + std::to_string(k) + "/MatMul", k, k == 1 ? 100 : 1));
  }
  r.ops.push_back(measured("idle", 1e6, 0));
  r.ops.push_back(measured("unknown", -1, 1));
  const std::string s = r.str();
  // 100 + 2 + ... + 12 = 177.
  EXPECT_PRED2(has, s,
               "10 most expensive ops, of 12, which took 177 us a step");
  EXPECT_PRED2(has, s, "op1/MatMul  MatMul CPU:0        100 56.5 %\n");
  EXPECT_PRED2(has, s, "op12/MatMul MatMul CPU:0       12.0  6.8 %\n");
  EXPECT_LT(s.find("op1/MatMul"), s.find("op12/MatMul"));
  EXPECT_LT(s.find("op12/MatMul"), s.find("op4/MatMul"));
  for (const char* cheap : {"op3/", "op2/", "idle", "unknown"}) {
    EXPECT_EQ(s.find(cheap), s.npos) << s;
  }
  // A brief report leaves them out, as does one of a step that has not run.
  EXPECT_EQ(r.brief().find("expensive"), std::string::npos);
  r.ops = {measured("unknown", -1, 1)};
  EXPECT_EQ(r.str().find("expensive"), std::string::npos);
}

}  // namespace
}  // namespace berth
