// MemoryNeeds: bytes that every plan needs, for proofs that none is possible.
//
// By the rules of the problem's model, each counted so that no plan needs less.
// Made once per problem, which must outlive it; only read then.

#ifndef BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_
#define BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_

#include <cstdint>
#include <vector>

#include "place/planner/problem.h"

namespace berth {

class MemoryNeeds {
 public:
  explicit MemoryNeeds(const PlanProblem& problem);

  // Bytes that an op holds on its device from begin to end.
  double held(int32_t op) const { return held_[static_cast<size_t>(op)]; }

  // Bytes that an op leaves on its device at the end, with those.
  double kept(int32_t op) const { return kept_[static_cast<size_t>(op)]; }

  // Bytes that are on `device` while the op runs there, beside what its group
  // holds: what it reads and writes, its workspace. PlanModel::kStep alone.
  double beside(int32_t op, int32_t device) const;

 private:
  void add_sources();
  double values_of(int32_t op) const;

  const PlanProblem& p_;
  std::vector<double> held_, kept_, beside_;  // per op
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_
