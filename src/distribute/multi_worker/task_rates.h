// How fast tasks exchange: measured by `berth calibrate --cluster`, kept in the
// CostStore, read by plans of strategies over several tasks. Free functions;
// thread-safe.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_TASK_RATES_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_TASK_RATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "place/costs.h"

namespace berth::distribute {

// A sum over all tasks as a step makes it: the values are copied to where the
// tasks exchange them, added, and copied back. Bytes are ring_bytes().
struct SumRate {
  // The first bytes of a step, which caches of many machines hold.
  static constexpr double kFirstBytes = 4 << 20;

  LinkCost first;                  // latency, and up to kFirstBytes
  double beyond_bytes_per_us = 0;  // of what is more; 0: as the first
  double us(int sums, double bytes) const;
};

struct TaskRates {
  SumRate sum;
  // From a task to another, by rank. Among more than 8 tasks those of
  // neighbours are measured, others are estimates.
  struct Pair {
    int from = 0, to = 0;
    LinkCost cost;
  };
  std::vector<Pair> links;
  SumRate ordered_sum;  // the same with equal bits, of one part per task
};

// What each task sends in a sum of so many bytes over a ring.
double ring_bytes(double bytes, int tasks);

// On how many hosts the tasks that train are, by their addresses.
int hosts_of(const ClusterSpec& spec, const std::vector<TaskId>& ranks);

// All tasks that train call it at the same time, and get the same. For about a
// second, `quick`: a tenth of it.
TaskRates measure_tasks(cluster::Member& member, bool quick);

// Puts them into the process's CostStore. Does not save it.
void keep_rates(const cluster::Member& member, const TaskRates& rates);

// What was measured among as many tasks on as many hosts, else an estimate:
// memory of one host, or a network of 10 Gbit/s.
SumRate rate_of_sum(int tasks, int hosts, bool ordered = false);
// The rate between the hosts of two tasks, measured or estimated.
LinkCost rate_between(const ClusterSpec& spec, const TaskId& from,
                      const TaskId& to);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_TASK_RATES_H_
