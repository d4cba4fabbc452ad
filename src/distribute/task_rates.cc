#include "distribute/task_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "berth/ops/array.h"
#include "place/cost_store.h"

namespace berth::distribute {

namespace {

constexpr const char* kService = "calibrate";
constexpr int kAllPairs = 8;

std::string host_part(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

std::string key_of_sum(int tasks, int hosts) {
  return fmt::format("sum of {} tasks on {} hosts", tasks, hosts);
}

std::string key_between(const ClusterSpec& spec, const TaskId& from,
                        const TaskId& to) {
  return fmt::format("tasks at {} -> {}",
                     host_part(spec.task_address(from.job, from.index)),
                     host_part(spec.task_address(to.job, to.index)));
}

LinkCost guess(bool one_host) {
  LinkCost link;
  link.latency_us = one_host ? 20 : 50;
  link.bytes_per_us = one_host ? 4e3 : 1.25e3;
  return link;
}

// The least of `rounds` calls.
double best_us(int rounds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

LinkCost link_of_times(double small_us, double large_us, double bytes) {
  LinkCost link;
  link.latency_us = small_us;
  link.bytes_per_us = bytes / std::max(large_us - small_us, 0.001);
  link.origin = CostOrigin::kMeasured;
  return link;
}

// The slowest task says what a sum takes.
LinkCost measure_sum(cluster::Exchange& exchange, bool quick) {
  const cluster::Tag tag{.channel = "", .what = "calibration"};
  std::vector<float> values((quick ? 1 : 4) << 20);
  const auto sum = [&](int64_t count) {
    return [&, count] {
      exchange.all_reduce(values.data(), count, float32,
                          cluster::Reduction::kSum, tag);
    };
  };
  sum(static_cast<int64_t>(values.size()))();
  float times[2] = {
      static_cast<float>(best_us(quick ? 20 : 200, sum(64))),
      static_cast<float>(
          best_us(quick ? 3 : 20, sum(static_cast<int64_t>(values.size()))))};
  exchange.all_reduce(times, 2, float32, cluster::Reduction::kMax, tag);
  const double bytes = static_cast<double>(values.size()) * sizeof(float);
  return link_of_times(times[0], times[1], ring_bytes(bytes, exchange.size()));
}

LinkCost measure_link(cluster::Member& member, const TaskId& to, bool quick) {
  const Tensor large = zeros({(quick ? 1 : 4) << 18});
  const auto call = [&](std::vector<Tensor> tensors) {
    member.call(to, kService, {"", std::move(tensors)}).get();
  };
  call({large});
  const double small_us = best_us(quick ? 10 : 100, [&] { call({}); });
  const double large_us = best_us(quick ? 3 : 20, [&] { call({large}); });
  LinkCost link = link_of_times(small_us, large_us,
                                static_cast<double>(large.num_elements()) * 4);
  link.latency_us /= 2;  // it was there and back
  return link;
}

bool is_measured(int from, int to, int n) {
  const int ahead = (to - from + n) % n;
  return n <= kAllPairs || ahead == 1 || ahead == n - 1;
}

}  // namespace

double ring_bytes(double bytes, int tasks) {
  return 2.0 * (tasks - 1) / tasks * bytes;
}

int hosts_of(const ClusterSpec& spec, const std::vector<TaskId>& ranks) {
  std::set<std::string> hosts;
  for (const TaskId& t : ranks) {
    hosts.insert(host_part(spec.task_address(t.job, t.index)));
  }
  return static_cast<int>(hosts.size());
}

TaskRates measure_tasks(cluster::Member& member, bool quick) {
  cluster::Exchange& exchange = member.exchange();
  const std::vector<TaskId> ranks = member.ranks();
  const auto n = static_cast<int>(ranks.size());
  const cluster::Tag tag{.channel = "", .what = "calibration"};
  member.serve(kService, [](const TaskId&, cluster::Message) {
    return cluster::Message{};
  });
  TaskRates rates;
  rates.sum = measure_sum(exchange, quick);
  // One pair at a time.
  std::vector<double> here(2 * static_cast<size_t>(n), 0);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to || !is_measured(from, to, n)) continue;
      exchange.barrier(tag);
      if (from != exchange.rank()) continue;
      const LinkCost link =
          measure_link(member, ranks[static_cast<size_t>(to)], quick);
      here[2 * static_cast<size_t>(to)] = link.latency_us;
      here[2 * static_cast<size_t>(to) + 1] = link.bytes_per_us;
    }
  }
  const auto row_bytes = static_cast<int64_t>(here.size() * sizeof(double));
  const std::vector<int64_t> sizes(static_cast<size_t>(n), row_bytes);
  std::vector<double> all(here.size() * static_cast<size_t>(n));
  exchange.all_gather(here.data(), sizes, all.data(), tag);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const double* at = &all[2 * static_cast<size_t>(from * n + to)];
      LinkCost link =
          rate_between(member.spec(), ranks[static_cast<size_t>(from)],
                       ranks[static_cast<size_t>(to)]);
      if (is_measured(from, to, n)) {
        link.latency_us = at[0];
        link.bytes_per_us = at[1];
        link.origin = CostOrigin::kMeasured;
      }
      rates.links.push_back({from, to, link});
    }
  }
  return rates;
}

void keep_rates(const cluster::Member& member, const TaskRates& rates) {
  const std::vector<TaskId> ranks = member.ranks();
  CostStore& store = CostStore::get();
  store.add_link(key_of_sum(static_cast<int>(ranks.size()),
                            hosts_of(member.spec(), ranks)),
                 rates.sum);
  for (const TaskRates::Pair& p : rates.links) {
    if (p.cost.origin != CostOrigin::kMeasured) continue;
    store.add_link(
        key_between(member.spec(), ranks[static_cast<size_t>(p.from)],
                    ranks[static_cast<size_t>(p.to)]),
        p.cost);
  }
}

LinkCost rate_of_sum(int tasks, int hosts) {
  const auto known = CostStore::get().find_link(key_of_sum(tasks, hosts));
  if (known) return *known;
  LinkCost link = guess(hosts == 1);
  link.latency_us *= tasks - 1;
  return link;
}

LinkCost rate_between(const ClusterSpec& spec, const TaskId& from,
                      const TaskId& to) {
  const auto known = CostStore::get().find_link(key_between(spec, from, to));
  if (known) return *known;
  return guess(host_part(spec.task_address(from.job, from.index)) ==
               host_part(spec.task_address(to.job, to.index)));
}

}  // namespace berth::distribute
