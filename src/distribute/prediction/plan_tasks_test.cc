// Plans of strategies over several tasks. Links are said, not measured: no test
// asks how long anything takes.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "distribute/multi_worker/task_rates.h"
#include "distribute/multi_worker/tasks_testing.h"
#include "distribute/prediction/plan_step.h"
#include "distribute/strategy/strategy_testing.h"
#include "place/cost_store.h"

namespace berth::distribute {
namespace {

using fresh_process::check;

LinkCost said_link(double latency_us, double bytes_per_us) {
  LinkCost link;
  link.latency_us = latency_us;
  link.bytes_per_us = bytes_per_us;
  link.origin = CostOrigin::kMeasured;
  return link;
}

void plan_of_two_tasks() {
  keep_no_costs();
  two(false);
  cluster::FakeCluster cluster({.workers = 2});
  const auto plans = on_tasks<StrategyPlan>(
      cluster, [](const std::shared_ptr<cluster::Member>& member) {
        if (member->rank() == 0) {
          // The rates are kept by the addresses of this cluster.
          keep_rates(*member,
                     {{said_link(1e6, 10)},
                      {{0, 1, said_link(3, 5)}, {1, 0, said_link(3, 5)}}});
        }
        member->barrier("said");
        const MultiWorkerMirroredStrategy strategy(
            member, {.devices = core_sets(member->rank(), 1)});
        const auto scope = strategy.scope();
        keras::Sequential model(
            {keras::InputLayer({8}), keras::Dense(32), keras::Dense(4)});
        model.compile({.optimizer = "sgd", .loss = "mse"});
        StrategyPlan plan = strategy.plan(model, 64);
        member->barrier("planned");
        return plan;
      });
  const int64_t weights = 4 * (8 * 32 + 32 + 32 * 4 + 4);
  for (const StrategyPlan& p : plans) {
    check(p.replicas.size() == 1 && p.replicas[0].examples == 32, "its half");
    check(p.links.size() == 2, "to the next, and around");
    check(p.links[0].from == "worker:0" && p.links[0].to == "worker:1", "ends");
    check(p.exchange_measured && p.links[1].measured, "as was said");
    // A ring of two: each sends as many bytes as are added up, which are the
    // gradients and a few numbers more (losses, counts).
    const int64_t bytes = p.links[0].bytes;
    check(bytes >= weights && bytes < weights + 100, std::to_string(bytes));
    // A second for each sum, 10 bytes in a microsecond; over the link 3 us and
    // 5 bytes.
    const double sums = (p.exchange_us - static_cast<double>(bytes) / 10) / 1e6;
    check(sums >= 1 && std::abs(sums - std::round(sums)) < 1e-6, "sums");
    check(std::abs(p.links[0].us -
                   (3 * sums + static_cast<double>(bytes) / 5)) < 1e-6,
          "time of the link");
    check(p.step_us > p.exchange_us && p.one_device_us > 0, "known");
    check(p.task_counts.size() == 3, "1, 2 and 4 tasks");
    check(p.task_counts[0].tasks == 1 && p.task_counts[2].tasks == 4, "those");
    check(p.task_counts[1].step_us == p.step_us, "of this cluster");
    // One task sums nothing; a ring of four has three times the latency.
    check(p.task_counts[0].step_us < 1e6, "no sum");
    check(p.task_counts[2].step_us > 3e6 * sums, "more sums");
    // So slow a network eats what a second task computes.
    check(p.advice.ends_with("use one task or a larger batch"), p.advice);
    check(p.str().find("worker:0 to worker:1") != std::string::npos, p.str());
    check(p.json().find("\"task_counts\":[{\"tasks\":1") != std::string::npos,
          p.json());
  }
}

TEST(StrategyPlan, CountsSumsBetweenTasksAndSaysWhetherMorePay) {
  IN_A_FRESH_PROCESS(plan_of_two_tasks());
}

TEST(StrategyPlan, SaysThatMoreTasksPay) {
  StrategyPlan plan;
  plan.exchange_us = 10;
  plan.task_counts = {{1, 400}, {2, 210}, {4, 120}};
  EXPECT_EQ(advice_for_tasks(plan, 2),
            "more tasks pay: 4 would be 1.8x as fast");
  EXPECT_EQ(advice_for_tasks(plan, 4),
            "more tasks do not pay: 8 % of the step are sums between tasks");
  plan.task_counts.clear();
  EXPECT_EQ(advice_for_tasks(plan, 2), "");
}

TEST(TaskRates, TimesOfSumsAreTwoLines) {
  const SumRate rate{said_link(3, 1024), 512};
  constexpr double kMany = 6 << 20;
  EXPECT_EQ(rate.us(2, 2048), 2 * 3 + 2);
  EXPECT_EQ(rate.us(1, kMany), 3 + 4096 + 4096);
  EXPECT_EQ((SumRate{said_link(3, 1024)}).us(1, kMany), 3 + 6144);
}

TEST(TaskRates, EveryTaskMeasuresAndGetsTheSame) {
  cluster::FakeCluster cluster({.workers = 3});
  const auto rates = on_tasks<TaskRates>(
      cluster, [](const std::shared_ptr<cluster::Member>& member) {
        TaskRates r = measure_tasks(*member, true);
        member->barrier("measured");
        return r;
      });
  ASSERT_EQ(rates[0].links.size(), 6u);
  for (const TaskRates& r : rates) {
    const auto said = [](const SumRate& rate) {
      return std::tuple(rate.first.bytes_per_us, rate.first.latency_us,
                        rate.beyond_bytes_per_us);
    };
    EXPECT_EQ(said(r.sum), said(rates[0].sum));
    EXPECT_EQ(said(r.ordered_sum), said(rates[0].ordered_sum));
    EXPECT_GT(r.ordered_sum.beyond_bytes_per_us, 0);
    for (size_t i = 0; i < r.links.size(); ++i) {
      EXPECT_EQ(r.links[i].cost.origin, CostOrigin::kMeasured);
      EXPECT_GT(r.links[i].cost.bytes_per_us, 0);
      EXPECT_EQ(r.links[i].cost.latency_us, rates[0].links[i].cost.latency_us);
    }
  }
}

}  // namespace
}  // namespace berth::distribute
