#include "planner/what_if.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "planner/plan_view.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

// a -> b, c -> d: 10, 20, 20 and 10 us; 1000 bytes, 5 + 1 us between devices.
PlanProblem diamond(CopyRule copies = CopyRule::kOverlap) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  m.device("GPU:0", gpu, 0, copies);
  m.device("GPU:1", gpu, 0, copies);
  m.links(5, 1000);
  const int a = m.op("a", {10}, {}, 1000);
  const int b = m.op("net/b", {20}, {a}, 1000);
  const int c = m.op("net/c", {20}, {a}, 1000);
  m.op("d", {10}, {b, c}, 1000);
  return m.make();
}

PlanAnswer answer_of(const PlanProblem& p, std::vector<int32_t> device) {
  PlanAnswer a;
  a.status = PlanStatus::kPlanned;
  a.plan = {std::move(device), {0, 1, 2, 3}};
  a.evaluation = evaluate(p, a.plan);
  a.value = a.evaluation.value;
  return a;
}

WhatIf ask(const PlanProblem& p, const PlanAnswer& a, const std::string& q) {
  return what_if(p, a, q, {.moves = 2000, .threads = 1});
}

bool has(const WhatIf& w, const std::string& part) {
  for (const std::string& c : w.causes) {
    if (c.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(WhatIf, MovingAnOpSaysWhatItCostsAndWhy) {
  const PlanProblem p = diamond();
  // a 0-10, b 10-30 on GPU:0; c 16-36 on GPU:1, d there 36-46.
  const PlanAnswer a = answer_of(p, {0, 0, 1, 1});
  ASSERT_EQ(a.value, 46);
  // a, b, c one after the other: 50; both copies before d: 56 to 66.
  const WhatIf w = ask(p, a, "move net/c to GPU:0");
  EXPECT_EQ(w.before, 46);
  EXPECT_EQ(w.after, 66);
  EXPECT_TRUE(has(w, "1000 B of net/c now go to GPU:1 (6 us)"));
  EXPECT_TRUE(has(w, "GPU:0 is busy for 20 us more"));
  EXPECT_TRUE(w.violations.empty());
  // With c on GPU:0, d is best there: 46 if b moves away, 60 if it does not.
  EXPECT_EQ(w.again.value, 46);
}

TEST(WhatIf, ALayerAndWhatMustBeWithItMoveTogether) {
  PlanProblem p = diamond();
  p.group = {0, 1, 0, 2};  // a and net/c
  p.num_groups = 3;
  const PlanAnswer a = answer_of(p, {0, 0, 0, 0});
  EXPECT_EQ(change(p, a.plan, "move net to GPU:1").plan.device,
            (std::vector<int32_t>{1, 1, 1, 0}));
  EXPECT_EQ(change(p, a.plan, "move net/* to GPU:1").moved,
            (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(change(p, a.plan, "move net to GPU:1").note,
            "with 1 that must be with them");
  EXPECT_EQ(change(p, a.plan, "move net/b to GPU:1").moved,
            (std::vector<int32_t>{1}));
}

TEST(WhatIf, LinksGetOtherTimesBothWaysOrOne) {
  const PlanProblem p = diamond();
  const PlanAnswer a = answer_of(p, {0, 0, 1, 1});
  const auto link = [&](const std::string& q, int from, int to) {
    return change(p, a.plan, q).problem.costs.link(from, to);
  };
  EXPECT_EQ(link("link GPU:0-GPU:1 = 2GB/s", 0, 1).bytes_per_us, 2000);
  EXPECT_EQ(link("link GPU:0-GPU:1 = 2GB/s", 1, 0).bytes_per_us, 2000);
  EXPECT_EQ(link("link GPU:0->GPU:1 = 2GB/s, 7us", 0, 1).latency_us, 7);
  EXPECT_EQ(link("link GPU:0->GPU:1 = 2GB/s", 1, 0).bytes_per_us, 1000);
  EXPECT_EQ(link("link GPU:0 -> GPU:1 = 1ms", 0, 1).latency_us, 1000);
  // a is on GPU:1 at 116, and after it b at 222: d ends at 232.
  const WhatIf w = ask(p, a, "link GPU:0-GPU:1 = 105us");
  EXPECT_EQ(w.after, 232);
  EXPECT_TRUE(has(w, "transfers from GPU:0 to GPU:1 take 200 us more"));
  EXPECT_EQ(w.again.value, 60);
}

TEST(WhatIf, DevicesGetFasterSmallerOrGo) {
  const PlanProblem p = diamond();
  const PlanAnswer a = answer_of(p, {0, 0, 1, 1});
  // c 16-26, d 36-41.
  EXPECT_EQ(ask(p, a, "device GPU:1 2x faster").after, 41);
  EXPECT_EQ(ask(p, a, "device GPU:1 2x slower").after, 76);
  const WhatIf small = ask(p, a, "memory GPU:1 = 500B");
  EXPECT_EQ(small.after, 46);
  ASSERT_EQ(small.violations.size(), 1u);
  EXPECT_NE(small.violations[0].find("its limit is 500"), std::string::npos);
  EXPECT_EQ(small.again.value, 60);
  const WhatIf gone = ask(p, a, "remove GPU:1");
  EXPECT_FALSE(gone.violations.empty());
  EXPECT_EQ(gone.again.value, 60);
}

TEST(WhatIf, NoChangeHasNoCause) {
  const PlanProblem p = diamond();
  const PlanAnswer a = answer_of(p, {0, 0, 1, 1});
  const WhatIf w = ask(p, a, "move d to GPU:1");
  EXPECT_EQ(w.after, w.before);
  EXPECT_TRUE(w.causes.empty());
}

TEST(WhatIf, RefusesWhatIsNoQuestion) {
  const PlanProblem p = diamond();
  const PlanAnswer a = answer_of(p, {0, 0, 1, 1});
  for (const char* q : {"",
                        "move",
                        "move a",
                        "move a to",
                        "move to GPU:0",
                        "move e to GPU:0",
                        "move a to GPU:2",
                        "link",
                        "link GPU:0",
                        "link GPU:0-GPU:0 = 1GB/s",
                        "link GPU:0-GPU:1",
                        "link GPU:0-GPU:1 =",
                        "link GPU:0-GPU:1 = fast",
                        "link GPU:0-GPU:1 = 0GB/s",
                        "link GPU:0-GPU:1 2x faster",
                        "memory GPU:0",
                        "memory GPU:0 = lots",
                        "memory GPU:0 = 0B",
                        "device GPU:0",
                        "device GPU:0 faster",
                        "device GPU:0 -1x faster",
                        "device GPU:0 infx faster",
                        "remove",
                        "remove GPU:7",
                        "paint GPU:0"}) {
    EXPECT_THROW(change(p, a.plan, q), errors::InvalidArgument) << q;
  }
}

TEST(PlanView, TransfersOfLoadsAreThoseThatArePaidFor) {
  testing::ProblemMaker m(PlanModel::kLoad);
  const int acc = m.device_class("ACC");
  m.device("ACC:0", acc);
  m.device("ACC:1", acc);
  const int a = m.op("a", {1}, {}, 0, 2);
  m.op("b", {1}, {a}, 0, 0.5);
  m.op("c", {1}, {a}, 0, 0.5);
  const PlanProblem p = m.make();
  const PlacePlan plan = {{0, 1, 1}, {0, 1, 2}};
  const auto all = transfers_of(p, plan, {});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].value, 0);
  EXPECT_EQ(all[0].to, 1);
  EXPECT_EQ(all[0].time, 2);
  EXPECT_EQ(all[0].payers, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(value_name(p, 0), "a");
}

}  // namespace
}  // namespace berth
