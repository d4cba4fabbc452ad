#include "planner/plan_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/errors.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

using nlohmann::json;

PlanProblem small() {
  testing::ProblemMaker m(PlanModel::kLoad);
  const int gpu = m.device_class("GPU");
  m.device("GPU:0", gpu, 100);
  m.device("GPU:1", gpu);
  const int a = m.op("a", {3}, {}, 8, 1);
  m.op("b \xff", {2}, {a}, 8, 1);
  return m.make();
}

PlanAnswer answer() {
  PlanAnswer a;
  a.status = PlanStatus::kPlanned;
  a.plan = {{0, 1}, {0, 1}};
  a.value = 4;
  a.bound.value = 3;
  a.bound.how = "by hand";
  a.bound.witness = {"hand", 3, {{"x", {1, 0.1, kNoKernel}}}};
  a.evaluation.devices = {{4, 0, 8}, {3, 0, 0}};
  a.candidates = {{"one", kNoKernel, {"no kernel"}}};
  return a;
}

std::string text_of(const PlanProblem& p, const PlanAnswer& a,
                    const PlannerOptions& o) {
  return lines_of(plan_json(p, a, o));
}

TEST(PlanFile, ReadsBackWhatItWrote) {
  const PlanProblem p = small();
  const std::string text = text_of(p, answer(), {});
  const PlanFile f = read_plan(p, text, "p.json");
  EXPECT_EQ(f.plan.device, answer().plan.device);
  EXPECT_EQ(f.plan.sequence, answer().plan.sequence);
  EXPECT_EQ(f.value, 4);
  EXPECT_EQ(f.bound, 3);
  EXPECT_DOUBLE_EQ(f.gap, 1.0 / 3);
  EXPECT_EQ(f.status, "planned");
  EXPECT_EQ(f.peak_bytes, (std::vector<double>{8, 0}));
  EXPECT_EQ(f.witness.kind, "hand");
  EXPECT_EQ(f.witness.arrays, answer().bound.witness.arrays);
}

TEST(PlanFile, SaysWhatProgramsNeed) {
  const PlanProblem p = small();
  const json j = json::parse(text_of(p, answer(), {}));
  EXPECT_EQ(j["devices"][0]["busy"], 4);
  EXPECT_EQ(j["devices"][0]["order"], json::array({"a"}));
  EXPECT_EQ(j["transfers"].size(), 1u);
  EXPECT_EQ(j["transfers"][0]["value"], "a");
  EXPECT_EQ(j["transfers"][0]["time"], 1);
  EXPECT_EQ(j["candidates"][0]["value"], "inf");
}

TEST(PlanFile, OfAnInfeasibleProblemHasNoOps) {
  PlanAnswer a;
  a.status = PlanStatus::kInfeasible;
  a.conflict = {{1}, {0}, "too large"};
  const PlanProblem p = small();
  const std::string text = text_of(p, a, {});
  EXPECT_EQ(json::parse(text)["conflict"]["devices"][0], "GPU:0");
  EXPECT_EQ(json::parse(text)["value"], nullptr);
  EXPECT_TRUE(read_plan(p, text, "p.json").plan.device.empty());
}

TEST(PlanFile, NamesTheFieldThatIsWrong) {
  const PlanProblem p = small();
  const json good = json::parse(text_of(p, answer(), {}));
  const auto expect = [&](const char* pointer, const json& value,
                          const char* part) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    try {
      read_plan(p, bad.dump(), "p.json");
      ADD_FAILURE() << pointer;
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << e.what();
    }
  };
  expect("/berth_plan", 2, "berth_plan: found 2, expected 1 to 1");
  expect("/rules", "step", "rules: found \"step\", expected \"load\"");
  expect("/ops/0/device", "GPU:9", "ops[0].device: found \"GPU:9\"");
  expect("/ops/1/name", "a", "ops[1].name: found \"a\", expected an op that");
  expect("/ops/1/name", "c", "ops[1].name: found \"c\", expected an op of");
  expect("/ops", json::array(), "ops: \"a\" is missing; expected all 2 ops");
  expect("/sequence/1", 2, "sequence[1]: found 2, expected 0 to 1");
  expect("/sequence/1", 0.5, "sequence[1]");
  expect("/status", "done", "status: found \"done\", expected \"planned\"");
  expect("/value", "much", "value: found \"much\", expected a number");
  expect("/witness/arrays/x/1", "y", "witness.arrays.x[1]");
  expect("/devices/0/order/0", "c", "devices[0].order[0]: found \"c\"");
  expect("/devices/1/order", json::array(), "devices[1].order");
  expect("/devices/0/order/1", "a", "devices[0].order");
  expect("/devices/1/name", "GPU:0", "devices[1].name");
}

}  // namespace
}  // namespace berth
