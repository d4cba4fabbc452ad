#include "cli/planner/plan_svg.h"

#include <gtest/gtest.h>

#include "planner/problem_testing.h"

namespace berth {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

// Checks only that tags pair: an XML parser would be another dependency.
void expect_well_formed(const std::string& svg) {
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  for (const char* tag : {"text", "title", "svg"}) {
    EXPECT_EQ(count(svg, "<" + std::string(tag)),
              count(svg, "</" + std::string(tag)))
        << tag;
  }
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "\"inf"), 0u);
}

PlanProblem problem_of(PlanModel model) {
  testing::ProblemMaker m(model);
  const bool step = model == PlanModel::kStep;
  const int gpu = m.device_class("GPU"), cpu = m.device_class("CPU");
  m.device("GPU:0", gpu, 1 << 20);
  m.device("CPU:0", cpu, 0, CopyRule::kReceiving, true);
  const double touch = step ? -1 : 2;
  const int a = m.op("a<&>\x01\xff/x", {3, 9}, {}, 8, touch);
  const int b = m.op("b/y", {3, 9}, {a}, 8, touch);
  m.op("b/z", {3, 9}, {a, b}, 8, touch);
  return m.make();
}

TEST(PlanSvg, ShowsOpsTransfersBoundAndTitleOfEveryModel) {
  for (const PlanModel model : {PlanModel::kStep, PlanModel::kLoad}) {
    const PlanProblem p = problem_of(model);
    PlanAnswer a;
    a.status = PlanStatus::kPlanned;
    a.plan = {{0, 1, 0}, {0, 1, 2}};
    a.evaluation = evaluate(p, a.plan);
    a.value = a.evaluation.value;
    a.bound.value = a.value / 1.25;
    const std::string svg = plan_svg(p, a);
    expect_well_formed(svg);
    EXPECT_NE(svg.find("no plan can be more than 25 % better"),
              std::string::npos);
    EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
    EXPECT_NE(svg.find("a&lt;&amp;&gt;?"
                       "?/x: 0 us"),
              std::string::npos)
        << svg;
    EXPECT_NE(svg.find(">GPU:0<"), std::string::npos);
    // The legend, for readers who do not know docs/planner.md.
    EXPECT_NE(svg.find(">forward, from first to last op<"), std::string::npos);
    EXPECT_NE(svg.find(">transfers between devices<"), std::string::npos);
    EXPECT_NE(svg.find(" % busy"), std::string::npos);
  }
}

// A chain of `count` ops of one microsecond each on one device.
std::string svg_of_chain(int count) {
  testing::ProblemMaker m(PlanModel::kStep);
  m.device("CPU:0", m.device_class("CPU"), 0, CopyRule::kReceiving, true);
  PlanAnswer a;
  a.status = PlanStatus::kPlanned;
  for (int k = 0; k < count; ++k) {
    m.op("layer" + std::to_string(k) + "/x", {1}, {}, 8, -1);
    a.plan.device.push_back(0);
    a.plan.sequence.push_back(k);
  }
  const PlanProblem p = m.make();
  a.evaluation = evaluate(p, a.plan);
  a.value = a.evaluation.value;
  const std::string svg = plan_svg(p, a);
  expect_well_formed(svg);
  return svg;
}

TEST(PlanSvg, WritesLabelsOnlyWhereTheyFit) {
  EXPECT_EQ(count(svg_of_chain(8), ">x<"), 8u);
  EXPECT_EQ(count(svg_of_chain(800), ">x<"), 0u);
}

TEST(PlanSvg, DrawsManyTinyBoxesAsFew) {
  EXPECT_LT(svg_of_chain(20000).size(), 1u << 20);
}

}  // namespace
}  // namespace berth
