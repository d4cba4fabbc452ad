#include "cli/planner/plan_svg.h"

#include <gtest/gtest.h>

#include "cli/planner/svg_chart.h"
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
  for (const char* tag : {"text", "title", "defs", "pattern", "svg"}) {
    EXPECT_EQ(count(svg, "<" + std::string(tag)),
              count(svg, "</" + std::string(tag)))
        << tag;
  }
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "\"inf"), 0u);
}

TEST(SvgChart, EscapesTextAndDropsBytesThatAreNone) {
  EXPECT_EQ(xml_text("a<b>&\"c\x01\xff"), "a&lt;b&gt;&amp;&quot;c??");
}

TEST(SvgChart, MixesColours) {
  EXPECT_EQ(mix("#000000", "#ff8040", 0), "#000000");
  EXPECT_EQ(mix("#000000", "#ff8040", 1), "#ff8040");
  EXPECT_EQ(mix("#000000", "#ff8040", 0.5), "#804020");
}

TEST(SvgChart, DrawsEmptyAndEndlessOnes) {
  expect_well_formed(draw_svg({}));
  Chart c;
  c.lanes.push_back({"a", ""});
  c.boxes.push_back({0, 0, 0, "x", "<&>"});
  c.marks.push_back({std::numeric_limits<double>::infinity(), "never"});
  expect_well_formed(draw_svg(c));
}

TEST(SvgChart, WritesLabelsOnlyWhereTheyFit) {
  Chart c;
  c.lanes.push_back({"a", ""});
  c.boxes.push_back({0, 0, 90, "fits", ""});
  c.boxes.push_back({0, 90, 91, "does_not_fit", ""});
  const std::string svg = draw_svg(c);
  EXPECT_EQ(count(svg, ">fits<"), 1u);
  EXPECT_EQ(count(svg, "does_not_fit"), 0u);
}

TEST(SvgChart, DrawsManyTinyBoxesAsFew) {
  Chart c;
  c.lanes.push_back({"a", ""});
  for (int k = 0; k < 100000; ++k) {
    c.boxes.push_back({0, k * 1.0, k + 1.0, "x", "tip"});
  }
  EXPECT_LT(draw_svg(c).size(), 1u << 20);
}

PlanProblem problem_of(PlanModel model) {
  testing::ProblemMaker m(model);
  const bool step = model == PlanModel::kStep;
  const int gpu = m.device_class("GPU"), cpu = m.device_class("CPU");
  m.device("GPU:0", gpu, 1 << 20);
  m.device("CPU:0", cpu, 0, CopyRule::kReceiving, true);
  const double touch = step ? -1 : 2;
  const int a = m.op("a<&>/x", {3, 9}, {}, 8, touch);
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
    EXPECT_NE(svg.find("url(#hatch)"), std::string::npos);
    EXPECT_NE(svg.find("a&lt;&amp;&gt;/x: 0 us"), std::string::npos) << svg;
    EXPECT_NE(svg.find(">GPU:0<"), std::string::npos);
    EXPECT_EQ(svg.find("critical path") != std::string::npos,
              model == PlanModel::kStep);
    // The legend, for readers who do not know docs/planner.md.
    EXPECT_NE(svg.find(">ops of b<"), std::string::npos) << svg;
    EXPECT_NE(svg.find(">transfers between devices<"), std::string::npos);
    EXPECT_NE(svg.find(" % busy"), std::string::npos);
  }
}

// With more layers than colours: one colour per direction, light to dark.
TEST(PlanSvg, SaysWhatItsShadesMean) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int cpu = m.device_class("CPU");
  m.device("CPU:0", cpu, 0, CopyRule::kReceiving, true);
  PlanAnswer a;
  a.status = PlanStatus::kPlanned;
  for (int k = 0; k < 12; ++k) {
    m.op("layer" + std::to_string(k) + "/x", {3}, {}, 8, -1);
    a.plan.device.push_back(0);
    a.plan.sequence.push_back(k);
  }
  PlanProblem p = m.make();
  p.backward.assign(12, 0);
  const auto legend = [&] {
    a.evaluation = evaluate(p, a.plan);
    a.value = a.evaluation.value;
    const std::string svg = plan_svg(p, a);
    expect_well_formed(svg);
    return svg;
  };
  EXPECT_NE(legend().find(">ops, from the first to the last<"),
            std::string::npos);
  for (size_t k = 6; k < 12; ++k) p.backward[k] = 1;
  const std::string svg = legend();
  for (const char* pass : {"forward", "backward"}) {
    EXPECT_NE(svg.find(">ops of the " + std::string(pass) +
                       " pass, from the first to the last<"),
              std::string::npos)
        << svg;
  }
  EXPECT_EQ(svg.find(">last<"), std::string::npos);
}

}  // namespace
}  // namespace berth
