#include "planner/plan_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "place/graphs_testing.h"
#include "planner/problem_of_graph.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT

PlanProblem problem_of_text(const GraphText& text) {
  const PlaceOptions places = gpus_and_cpu();
  std::vector<std::string> names;
  for (const PlaceDevice& d : places.devices) names.push_back(d.name.text());
  CostTable costs = estimate_costs(text.graph, assumed_machine(names));
  return problem_of(text.graph, places, std::move(costs));
}

// Nodes that read up to three earlier ones, including a variable.
std::string random_graph(uint32_t seed) {
  std::mt19937 random(seed);
  std::string body = handle("v") + arg("n0") +
                     node("n1", "ReadVariableOp(v:0)") +
                     node("n2", "Identity(n1:0)");
  for (uint32_t i = 3; i < 30; ++i) {
    const auto before = [&] {
      return "n" + std::to_string(random() % i) + ":0";
    };
    const std::string name = "n" + std::to_string(i);
    switch (random() % 4) {
      case 0:
        body += node(name, "Identity(" + before() + ")");
        break;
      case 1:
        body += node(name, "One(" + before() + ")");
        break;
      default:
        body += node(name, "Two(" + before() + ", " + before() + ")");
    }
  }
  return body + effect("w", "AssignVariableOp(v:0, n29:0)");
}

TEST(PlanOrder, FollowsWhatIsWantedAsFarAsItCan) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const GraphText text = parse_text(kHead + random_graph(seed));
    const PlanProblem p = problem_of_text(text);
    std::vector<int32_t> wanted;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      if (p.takes_time(i)) wanted.push_back(i);
    }
    EXPECT_EQ(ordered_ops(p.graph, wanted), wanted);
    std::shuffle(wanted.begin(), wanted.end(), std::mt19937(seed));
    const std::vector<int32_t> order = ordered_ops(p.graph, wanted);
    PlacePlan plan = p.candidates[0].plan;
    plan.sequence = order;
    EXPECT_GT(evaluate(p, plan).value, 0);  // throws if infeasible
    EXPECT_EQ(ordered_ops(p.graph, order), order);
  }
}

TEST(PlanOrder, AGraphInThePlansOrderIsTheSameGraph) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    GraphText text = parse_text(kHead + random_graph(seed));
    const PlanProblem p = problem_of_text(text);
    PlacePlan plan = p.candidates[0].plan;
    std::shuffle(plan.sequence.begin(), plan.sequence.end(),
                 std::mt19937(seed));
    plan.sequence = ordered_ops(p.graph, plan.sequence);
    for (size_t i = 0; i < plan.device.size(); ++i) {
      plan.device[i] = static_cast<int32_t>(i % 3);
    }
    Graph g = text.graph;
    const CostTable costs = apply_plan(g, p, plan);
    verify(g);
    const auto number = [&](const std::string& name) {
      const auto& n = p.names;
      return static_cast<int32_t>(std::find(n.begin(), n.end(), name) -
                                  n.begin());
    };
    std::vector<int32_t> sequence;
    for (int32_t i = 0; i < g.size(); ++i) {
      const int32_t was = number(g[i].name);
      EXPECT_EQ(g[i].assigned,
                p.costs.devices[static_cast<size_t>(was % 3)].name);
      if (p.takes_time(was)) sequence.push_back(was);
      ASSERT_EQ(g[i].inputs.size(), text.graph[was].inputs.size());
      for (size_t k = 0; k < g[i].inputs.size(); ++k) {
        EXPECT_EQ(g[g[i].inputs[k].node].name,
                  text.graph[text.graph[was].inputs[k].node].name);
      }
      for (int32_t d = 0; d < 3; ++d) {
        EXPECT_EQ(costs.time(i, d).us, p.costs.time(was, d).us);
      }
    }
    EXPECT_EQ(sequence, plan.sequence);
    // Readers of the variable, also through aliases, come before its write.
    std::vector<bool> looks(g.nodes.size(), false);
    bool written = false;
    for (int32_t i = 0; i < g.size(); ++i) {
      written = written || g[i].name == "w";
      for (const ValueRef& v : g[i].inputs) {
        const std::string& op = g[v.node].op->name();
        const bool alias = op == "ReadVariableOp" || op == "Identity";
        if (alias && looks[static_cast<size_t>(v.node)]) {
          looks[static_cast<size_t>(i)] = true;
          const bool takes_time = p.takes_time(number(g[i].name));
          EXPECT_TRUE(!written || !takes_time || g[i].name == "w");
        }
      }
      if (g[i].op->name() == "ReadVariableOp") {
        looks[static_cast<size_t>(i)] = true;
      }
    }
  }
}

TEST(PlanOrder, ProgramOrderWinsWhenItIsAsGood) {
  const GraphText text =
      parse_text(kHead + arg("x") + node("a", "One(x:0)") +
                 node("b", "One(x:0)") + node("c", "Two(a:0, b:0)"));
  const PlanProblem p = problem_of_text(text);
  PlacePlan plan = p.candidates[0].plan;
  std::swap(plan.sequence[0], plan.sequence[1]);
  const double value = evaluate(p, plan).value;
  EXPECT_EQ(settled_order(p, plan, value).sequence,
            p.candidates[0].plan.sequence);
}

}  // namespace
}  // namespace berth
