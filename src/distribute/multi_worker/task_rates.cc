#include "distribute/multi_worker/task_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>

#include "berth/ops/array.h"
#include "place/cost_store.h"

namespace berth::distribute {

namespace {

constexpr const char* kService = "calibrate";
constexpr int kAllPairs = 8;
constexpr const char* kBeyond = " beyond 4 MiB";

std::string host_part(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

std::string key_of_sum(int tasks, int hosts, bool ordered) {
  return fmt::format("{}sum of {} tasks on {} hosts", ordered ? "ordered " : "",
                     tasks, hosts);
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

// The lowest tenth of `rounds` calls: others may have had the cores meanwhile.
double usual_us(int rounds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    us.push_back(took.count());
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 10];
}

LinkCost link_of_times(double small_us, double large_us, double bytes) {
  LinkCost link;
  link.latency_us = small_us;
  link.bytes_per_us = bytes / std::max(large_us - small_us, 0.001);
  link.origin = CostOrigin::kMeasured;
  return link;
}

// The slowest task determines the time.
SumRate measure_sum(cluster::Exchange& exchange, bool ordered, bool quick) {
  constexpr auto kFew = static_cast<int64_t>(SumRate::kFirstBytes);
  constexpr int64_t kMany = 4 * kFew;
  const cluster::Tag tag{.channel = "", .what = "calibration"};
  const auto given = exchange.shared_buffer(kMany);
  const auto summed = ordered ? exchange.shared_buffer(kMany) : given;
  std::vector<float> values(kMany / sizeof(float)), results(values.size());
  const auto sum = [&](int64_t bytes) {
    const auto count = bytes / static_cast<int64_t>(sizeof(float));
    std::memcpy(given.get(), values.data(), static_cast<size_t>(bytes));
    if (ordered) {
      const cluster::SlicePart mine{exchange.rank(), 1, given.get()};
      exchange.ordered_sum({&mine, 1}, exchange.size(), summed.get(), count,
                           float32, tag);
    } else {
      exchange.all_reduce(given.get(), count, float32, cluster::Reduction::kSum,
                          tag);
    }
    std::memcpy(results.data(), summed.get(), static_cast<size_t>(bytes));
  };
  const auto time = [&](int rounds, int64_t bytes) {
    sum(bytes);
    return static_cast<float>(usual_us(rounds, [&] { sum(bytes); }));
  };
  float us[3] = {time(quick ? 50 : 500, 256), time(quick ? 20 : 100, kFew),
                 time(quick ? 5 : 20, kMany)};
  exchange.all_reduce(us, 3, float32, cluster::Reduction::kMax, tag);
  const auto volume = [&](int64_t bytes) {
    return ring_bytes(static_cast<double>(bytes), exchange.size());
  };
  return {link_of_times(us[0], us[1], volume(kFew)),
          volume(kMany - kFew) / std::max(us[2] - us[1], 0.001f)};
}

LinkCost measure_link(cluster::Member& member, const TaskId& to, bool quick) {
  const Tensor large = zeros({(quick ? 1 : 4) << 18});
  const auto call = [&](std::vector<Tensor> tensors) {
    member.call(to, kService, {"", std::move(tensors)}).get();
  };
  call({large});
  const double small_us = usual_us(quick ? 20 : 100, [&] { call({}); });
  const double large_us = usual_us(quick ? 10 : 20, [&] { call({large}); });
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

double SumRate::us(int sums, double bytes) const {
  const double few = std::min(bytes, kFirstBytes);
  const double rate =
      beyond_bytes_per_us > 0 ? beyond_bytes_per_us : first.bytes_per_us;
  return sums * first.latency_us + few / first.bytes_per_us +
         (bytes - few) / rate;
}

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
  rates.sum = measure_sum(exchange, false, quick);
  rates.ordered_sum = measure_sum(exchange, true, quick);
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
  for (const bool ordered : {false, true}) {
    const SumRate& rate = ordered ? rates.ordered_sum : rates.sum;
    if (rate.first.origin != CostOrigin::kMeasured) continue;
    const std::string key = key_of_sum(static_cast<int>(ranks.size()),
                                       hosts_of(member.spec(), ranks), ordered);
    store.add_link(key, rate.first);
    LinkCost beyond = rate.first;
    beyond.bytes_per_us = rate.beyond_bytes_per_us;
    if (beyond.bytes_per_us > 0) store.add_link(key + kBeyond, beyond);
  }
  for (const TaskRates::Pair& p : rates.links) {
    if (p.cost.origin != CostOrigin::kMeasured) continue;
    store.add_link(
        key_between(member.spec(), ranks[static_cast<size_t>(p.from)],
                    ranks[static_cast<size_t>(p.to)]),
        p.cost);
  }
}

SumRate rate_of_sum(int tasks, int hosts, bool ordered) {
  const CostStore& store = CostStore::get();
  for (const bool of : {ordered, false}) {
    const std::string key = key_of_sum(tasks, hosts, of);
    const auto known = store.find_link(key);
    if (!known) continue;
    const auto beyond = store.find_link(key + kBeyond);
    return {*known, beyond ? beyond->bytes_per_us : 0};
  }
  LinkCost link = guess(hosts == 1);
  link.latency_us *= tasks - 1;
  return {link};
}

LinkCost rate_between(const ClusterSpec& spec, const TaskId& from,
                      const TaskId& to) {
  const auto known = CostStore::get().find_link(key_between(spec, from, to));
  if (known) return *known;
  return guess(host_part(spec.task_address(from.job, from.index)) ==
               host_part(spec.task_address(to.job, to.index)));
}

}  // namespace berth::distribute
