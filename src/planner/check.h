// Checkers of witnesses: each shares no code with the prover of its kind, and
// none with the search for plans.
//
// They return "" if the witness proves that no plan of the problem has a value
// below its target, else what is wrong with it. docs/formats.md names the
// arrays of every kind. Pure; any numbers can be read safely.

#ifndef BERTH_PLANNER_CHECK_H_
#define BERTH_PLANNER_CHECK_H_

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "planner/planner.h"

namespace berth {

std::string check_packing(const PlanProblem& problem, const Witness& witness);
std::string check_path(const PlanProblem& problem, const Witness& witness);
std::string check_search(const PlanProblem& problem, const Witness& witness);

// Every placement and order of a step (enumerate_steps.cc), by rules in words
// of its own: the prover of "search" is its checker.
struct Enumerated {
  bool all = false;   // nothing is left to try
  PlacePlan shorter;  // one below the target; without devices: there is none
};
// Returns "", or why a problem is not tiny enough.
std::string why_not_tiny(const PlanProblem& problem);
// `over`, called at every step of the search, ends it. For tiny problems.
Enumerated enumerate_steps(const PlanProblem& problem, double target,
                           const std::function<bool()>& over);

// Returns nodes so that none precedes what it waits for; ties by number.
inline std::vector<int32_t> in_order(const SimulatedGraph& g) {
  std::vector<size_t> missing;
  std::set<int32_t> ready;
  std::vector<int32_t> order;
  for (int32_t i = 0; i < g.num_nodes(); ++i) {
    missing.push_back(g.reads[i].size() + g.controls[i].size());
    if (missing[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const int32_t node = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(node);
    const auto end = [&](int32_t i) {
      if (--missing[i] == 0) ready.insert(i);
    };
    for (const int32_t v : g.values[node]) {
      for (const int32_t r : g.readers[v]) end(r);
    }
    for (const int32_t f : g.followers[node]) end(f);
  }
  return order;
}

// Adds a link unless another of them is as fast for any size; takes away those
// that it beats.
inline void add_unbeaten(std::vector<LinkCost>& best, const LinkCost& link) {
  const auto beats = [](const LinkCost& x, const LinkCost& y) {
    return x.latency_us <= y.latency_us && x.bytes_per_us >= y.bytes_per_us;
  };
  if (std::ranges::any_of(best, [&](auto& b) { return beats(b, link); }))
    return;
  std::erase_if(best, [&](auto& b) { return beats(link, b); });
  best.push_back(link);
}

}  // namespace berth

#endif  // BERTH_PLANNER_CHECK_H_
