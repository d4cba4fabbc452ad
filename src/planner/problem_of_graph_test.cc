// What binds the ops of a graph, as the planner sees it. Devices are GPU:0,
// GPU:1 and CPU:0, numbered 0, 1, 2.

#include "planner/problem_of_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "place/graphs_testing.h"
#include "planner/planner.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT

struct GraphCase {
  explicit GraphCase(const std::string& body, GraphProblemOptions options = {},
                     const PlaceOptions& places = gpus_and_cpu())
      : text(parse_text(kHead + body)) {
    std::vector<std::string> names;
    for (const PlaceDevice& d : places.devices) names.push_back(d.name.text());
    const Machine m = assumed_machine(names);
    EstimateOptions estimates;
    estimates.runs = [&](const OpDef& op, DType t, const DeviceClass& on) {
      return std::any_of(places.devices.begin(), places.devices.end(),
                         [&](const auto& d) {
                           return has(d.name.text(), on.type) && d.runs(op, t);
                         });
    };
    problem = problem_of(text.graph, places,
                         estimate_costs(text.graph, m, estimates), options);
    check_problem(problem);
  }
  int32_t id(const std::string& name) const {
    const auto& n = problem.names;
    return static_cast<int32_t>(std::find(n.begin(), n.end(), name) -
                                n.begin());
  }
  DeviceSet allowed(const std::string& name) const {
    return problem.allowed[static_cast<size_t>(id(name))];
  }
  bool together(const std::string& a, const std::string& b) const {
    return problem.group[static_cast<size_t>(id(a))] ==
           problem.group[static_cast<size_t>(id(b))];
  }
  bool waits(const std::string& node, const std::string& for_node) const {
    const auto row = problem.graph.controls[id(node)];
    return std::find(row.begin(), row.end(), id(for_node)) != row.end();
  }

  GraphText text;
  PlanProblem problem;
};

TEST(ProblemOfGraph, KernelsAndRequestsSayWhereOpsMayBe) {
  const GraphCase c(arg("x") + node("a", "One(x:0)") +
                    node("b", "CpuOnly(a:0)") + node("c", "NotGpu0(a:0)") +
                    node("d", "One(a:0)", "on \"/GPU:1\"") +
                    node("e", "One(a:0)", "on \"/GPU:*\""));
  EXPECT_EQ(c.allowed("a"), 0b111u);
  EXPECT_EQ(c.allowed("b"), 0b100u);
  EXPECT_EQ(c.allowed("c"), 0b110u);
  EXPECT_EQ(c.allowed("d"), 0b010u);
}

TEST(ProblemOfGraph, ScopesThatNeedNotBeKeptAreACandidateAlone) {
  GraphProblemOptions free;
  free.keep_scopes = false;
  const GraphCase c(arg("x") + node("d", "One(x:0)", "on \"/GPU:1\""), free);
  EXPECT_EQ(c.allowed("d"), 0b111u);
  ASSERT_EQ(c.problem.candidates.size(), 2u);
  EXPECT_EQ(c.problem.candidates[0].name, "the scopes as written");
  EXPECT_EQ(c.problem.candidates[0].plan.device[1], 1);
}

TEST(ProblemOfGraph, UpdatesStayWithTheirVariable) {
  const GraphCase c(handle("v", "on \"/GPU:1\"") + handle("m") + arg("g") +
                    effect("u", "Slot(v:0, m:0, g:0)"));
  EXPECT_TRUE(c.together("v", "u"));
  EXPECT_TRUE(c.together("m", "u"));
  EXPECT_FALSE(c.together("g", "u"));
  EXPECT_EQ(c.allowed("m"), 0b010u);
}

TEST(ProblemOfGraph, ReadersOfAVariableComeBeforeTheNextWrite) {
  const GraphCase c(handle("v") + arg("g") + node("r", "ReadVariableOp(v:0)") +
                    node("s", "Identity(r:0)") + node("f", "One(s:0)") +
                    effect("w", "AssignVariableOp(v:0, g:0)") +
                    node("r2", "ReadVariableOp(v:0)"));
  EXPECT_TRUE(c.waits("w", "r"));
  EXPECT_TRUE(c.waits("w", "f"));
  EXPECT_TRUE(c.waits("r2", "w"));
  EXPECT_TRUE(c.together("v", "r"));
}

TEST(ProblemOfGraph, AliasesGoWithWhatTheyRename) {
  const GraphCase c(arg("x") + node("a", "One(x:0)") +
                    node("i", "Identity(a:0)") + node("b", "CpuOnly(a:0)") +
                    node("j", "Identity(b:0)", "on \"/GPU:0\""));
  EXPECT_TRUE(c.together("a", "i"));
  EXPECT_FALSE(c.together("b", "j"));  // no common device
}

TEST(ProblemOfGraph, EveryCandidateKeepsItsLimits) {
  const GraphCase c(handle("v", "on \"/GPU:1\"") + arg("x") +
                    node("r", "ReadVariableOp(v:0)") +
                    node("a", "Two(x:0, r:0)") + node("i", "Identity(a:0)") +
                    node("b", "CpuOnly(i:0)") +
                    effect("w", "AssignVariableOp(v:0, b:0)"));
  ASSERT_EQ(c.problem.candidates.size(), 2u);
  const auto allowed = allowed_of_groups(c.problem);
  for (const PlanCandidate& candidate : c.problem.candidates) {
    std::vector<int32_t> device(static_cast<size_t>(c.problem.num_groups), -1);
    for (int32_t i = 0; i < c.problem.num_ops(); ++i) {
      const auto group =
          static_cast<size_t>(c.problem.group[static_cast<size_t>(i)]);
      const int32_t d = candidate.plan.device[static_cast<size_t>(i)];
      EXPECT_TRUE(allowed[group].has(d))
          << candidate.name << " " << c.problem.names[static_cast<size_t>(i)];
      if (device[group] < 0) device[group] = d;
      EXPECT_EQ(device[group], d) << candidate.name;
    }
  }
}

TEST(ProblemOfGraph, ContractsSayWhereOpsMayBe) {
  GraphProblemOptions options;
  options.contracts.emplace_back(placement::Contract{
      .peak_memory = {{"/GPU:0", 1000}}, .ops = {{"layer", "/GPU:1"}}});
  const GraphCase c(
      arg("x") + node("layer/a", "One(x:0)") + node("b", "One(x:0)"), options);
  EXPECT_EQ(c.allowed("layer/a"), 0b010u);
  EXPECT_EQ(c.allowed("b"), 0b111u);
  EXPECT_EQ(c.problem.costs.devices[0].memory_limit, 1000);
  EXPECT_EQ(c.problem.costs.devices[1].memory_limit, 0);
  options.contracts.clear();
  options.contracts.emplace_back(placement::Contract{.stays_on = "/GPU:0"});
  EXPECT_THROW(GraphCase(arg("x") + node("a", "CpuOnly(x:0)"), options),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
