// Shared by tests of strategies over several tasks: tasks that are threads of
// one process, each with core sets of its own. Tests only.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_TASKS_TESTING_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_TASKS_TESTING_H_

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "berth/multi_worker.h"
#include "cluster/testing.h"

namespace berth::distribute {

// Core sets /CPU:first to /CPU:(first + n - 1).
inline std::vector<std::string> core_sets(int first, int n) {
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i)
    names.push_back("/CPU:" + std::to_string(first + i));
  return names;
}

// Runs the program on every task of a cluster, each on a thread of its own, and
// returns the result of each. Rethrows the first error.
template <class T>
std::vector<T> on_tasks(
    cluster::FakeCluster& cluster,
    const std::function<T(std::shared_ptr<cluster::Member>)>& program) {
  const auto ranks = cluster.spec().ranks();
  std::vector<T> results(ranks.size());
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        results[r] = program(cluster.member(ranks[r]));
      } catch (...) {
        errors[r] = std::current_exception();
        cluster.lose(ranks[r], "the test's program threw");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
  return results;
}

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_TASKS_TESTING_H_
