// Windows: when ops can run at all, deduced from each other.
//
// Every op has a head (it cannot start sooner) and a tail (the least time
// between its end and the step's). Both begin as joined_starts(). A deduction
// assumes that an op starts before some time and shows that what must run
// before it does not fit: a reader whose value would be sent too late is on its
// producer's device; ops on one device run one after the other; and no device
// works more than all the time. So the op starts no sooner. Tails are the same
// in the reversed graph, and a bound on the step is the same for its end.
// docs/formats.md has the complete rule. Deterministic; one thread.

#ifndef BERTH_PLACE_PLANNER_WINDOWS_H_
#define BERTH_PLACE_PLANNER_WINDOWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "place/disjoint_sets.h"
#include "place/planner/step_graph.h"

namespace berth {

class Windows {
 public:
  // One deduction: given the earlier ones, `op` has no head (`back`: tail)
  // under `value`; op -1: no step is shorter. It considers the time from `from`
  // until `until` before the op. `size` > 0: counts the ops that take at least
  // this, instead of work.
  struct Step {
    bool back;
    int32_t op;
    double value;
    double from, until, size;
  };

  // `weight`: per kind of device, how much a unit of its time counts.
  Windows(const StepGraph& graph, std::vector<double> weight);

  // Deduces until `stop`, which is called often, returns true or nothing more
  // follows. Returns the bound, which is valid at any time.
  double deduce(std::function<bool()> stop);

  double bound() const { return bound_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Operations done, for budgets that do not use the clock.
  int64_t work() const { return work_; }

 private:
  struct Cut {  // the times that a deduction considers
    double from = 0, until = 0, size = 0;
  };
  struct Part {  // an item on a kind of device
    double us, head, lag;
  };
  struct Class {  // ops that share a device
    int32_t begin = 0, end = 0;
    DeviceSet kinds = ~DeviceSet();
    double largest = 0;
  };

  void propagate(bool back);
  double path_bound() const;
  std::vector<int32_t> choose_targets() const;
  bool strengthen(bool back, int32_t op);
  void close();
  void count_work();
  void add_bound(double t, const Cut& cut);

  void set_target(bool back, int32_t op);
  void set_lags(int32_t target);
  void choose_cuts(double scale);
  double improve(double known);
  bool best_cut(double t, Cut& best);
  double latest_refuted(const Cut& cut, double low);

  void join(double t);
  bool must_join(const StepGraph::Edge& e, double t) const;
  void make_classes();
  double excess(const Cut& cut, double t);
  double need(const Class& c, const Cut& cut, double t, size_t kind);

  double ready(bool back, int32_t op, size_t kind) const {
    return ready_[back][static_cast<size_t>(op) * kinds_ + kind];
  }

  const StepGraph& g_;
  const size_t kinds_;
  std::vector<double> weight_;
  std::vector<double> ready_[2];           // [op * kinds + kind]
  std::vector<double> joined_[2];          // likewise: joined_starts()
  std::vector<double> known_[2];           // per op: deduced
  std::vector<double> start_[2], end_[2];  // per op: least over kinds
  std::function<bool()> stop_;
  double bound_ = 0;
  std::vector<Step> steps_;
  int64_t work_ = 0;

  // For the current target.
  bool back_ = false;
  int32_t target_ = -1;
  std::vector<double> lag_;       // per op; negative: not before it
  std::vector<int32_t> between_;  // edges between devices
  std::vector<int32_t> items_;    // ops that take time
  std::vector<Cut> cuts_;
  Cut best_;

  // If it starts by some time.
  DisjointSets together_;  // ops that share a device
  std::vector<int32_t> first_of_group_, class_of_;
  std::vector<Class> classes_;
  std::vector<Part> parts_;  // [kind * items + position by class]
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOWS_H_
