// berth calibrate --cluster: measures the links between the tasks of a cluster.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "berth/cluster.h"
#include "berth/errors.h"
#include "cli/commands.h"
#include "distribute/multi_worker/task_rates.h"
#include "place/cost_store.h"

namespace berth::cli {

namespace {

using distribute::TaskRates;

distribute::ClusterResolver cluster_to_measure() {
  try {
    auto resolver = distribute::cluster_resolver::from_environment({});
    if (resolver.spec.ranks().size() > 1) return resolver;
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(std::string("calibrate --cluster: ") + e.what());
  }
  throw UsageError(
      "calibrate --cluster: expected a cluster of two tasks that train or "
      "more, by TF_CONFIG or a launcher: berth launch --workers 2 -- berth "
      "calibrate --cluster");
}

void print_rates(const cluster::Member& member, const TaskRates& rates) {
  const auto ranks = member.ranks();
  fmt::print("{:<14} {:<14} {:>10} {:>12}  {}\n", "from", "to", "GB/s",
             "latency us", "origin");
  for (const TaskRates::Pair& p : rates.links) {
    fmt::print("{:<14} {:<14} {:>10.2f} {:>12.1f}  {}\n", ranks[p.from].str(),
               ranks[p.to].str(), p.cost.bytes_per_us * 1e-3, p.cost.latency_us,
               origin_name(p.cost.origin));
  }
  const auto print_sum = [](const char* what, const distribute::SumRate& r) {
    fmt::print("{:<29} {:>10.2f} {:>12.1f}  {}; {:.2f} GB/s beyond 4 MiB\n",
               what, r.first.bytes_per_us * 1e-3, r.first.latency_us,
               origin_name(r.first.origin), r.beyond_bytes_per_us * 1e-3);
  };
  print_sum("sum over all tasks", rates.sum);
  print_sum("the same with equal bits", rates.ordered_sum);
}

void print_rates_json(const cluster::Member& member, const TaskRates& rates,
                      bool saved) {
  using Json = nlohmann::ordered_json;
  const auto ranks = member.ranks();
  const auto cost = [](const LinkCost& l) {
    return Json{{"latency_us", l.latency_us},
                {"bytes_per_us", l.bytes_per_us},
                {"origin", origin_name(l.origin)}};
  };
  Json links = Json::array();
  for (const TaskRates::Pair& p : rates.links) {
    Json link = {{"from", ranks[static_cast<size_t>(p.from)].str()},
                 {"to", ranks[static_cast<size_t>(p.to)].str()}};
    link.update(cost(p.cost));
    links.push_back(std::move(link));
  }
  const auto sum = [&](const distribute::SumRate& r) {
    Json json = cost(r.first);
    json["beyond_bytes_per_us"] = r.beyond_bytes_per_us;
    return json;
  };
  const Json all = {{"tasks", ranks.size()},
                    {"links", links},
                    {"sum", sum(rates.sum)},
                    {"ordered_sum", sum(rates.ordered_sum)},
                    {"kept_in", saved ? CostStore::get().path() : ""}};
  fmt::print("{}\n", all.dump());
}

}  // namespace

void calibrate_cluster(bool quick, bool json) {
  const auto resolver = cluster_to_measure();
  if (resolver.task.job == "evaluator") return;  // no member of a cluster
  const auto member = cluster::Member::join(resolver);
  if (member->rank() >= 0) {  // parameter servers only wait
    const TaskRates rates = distribute::measure_tasks(*member, quick);
    distribute::keep_rates(*member, rates);
    const bool saved = CostStore::get().save();
    if (member->rank() == 0 && json) {
      print_rates_json(*member, rates, saved);
    } else if (member->rank() == 0) {
      print_rates(*member, rates);
      fmt::print("{}\n", kept_text(saved));
    }
    std::fflush(stdout);
  }
  member->leave();
}

}  // namespace berth::cli
