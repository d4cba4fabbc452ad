// MemoryNeeds: bytes that every plan needs, for proofs that no plan exists.
//
// By the rules of the problem's model, each counted so that no plan needs less.
// Made once per problem, which must outlive it; then read-only.

#ifndef BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_
#define BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_

#include <cstdint>
#include <vector>

#include "place/planner/problem.h"

namespace berth {

class MemoryNeeds {
 public:
  explicit MemoryNeeds(const PlanProblem& problem);

  // Bytes that an op holds on its device from beginning to end.
  double held(int32_t op) const { return held_[static_cast<size_t>(op)]; }

  // The same plus the bytes that an op leaves on its device at the end.
  double kept(int32_t op) const { return kept_[static_cast<size_t>(op)]; }

  // Bytes that are on `device` while the op runs there, besides what its group
  // holds: what it reads and writes, its workspace. Only for PlanModel::kStep.
  double beside(int32_t op, int32_t device) const;

 private:
  void add_sources();
  double values_of(int32_t op) const;

  const PlanProblem& p_;
  std::vector<double> held_, kept_, beside_;  // per op
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_MEMORY_NEEDS_H_
