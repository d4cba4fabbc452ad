// Chains: plans that split a linear order of all ops into pieces, one for each
// accelerator, with ops on CPUs between them that run in parallel.
//
// For one order it finds the best such plan exactly, assuming that pieces run
// one after another, as they do where a graph is close to a chain. Internal to
// the search of this model; one thread per object.

#ifndef BERTH_CLI_PLANNER_CHAIN_PIECES_H_
#define BERTH_CLI_PLANNER_CHAIN_PIECES_H_

#include <cstdint>
#include <vector>

#include "base/infinity.h"
#include "cli/planner/pieces.h"
#include "place/disjoint_sets.h"
#include "place/planner/budget.h"

namespace berth {

class PiecesChain {
 public:
  explicit PiecesChain(const PiecesProblem& problem);

  // Returns a random order of the blocks, by one of several rules.
  std::vector<int32_t> random_order(StreamRandom& random) const;

  // Returns the best plan along `order` with these accelerators in this order:
  // per group the index in `devices`, or -1 for its CPU. An accelerator listed
  // twice has twice its memory. Empty: there is none.
  std::vector<int32_t> best_plan(const std::vector<int32_t>& order,
                                 const std::vector<int32_t>& devices);

  // Returns the CPU for a group; -1: it allows none.
  int32_t cpu_of(int32_t group) const { return cpu_of_[group]; }

  // Returns the groups of each block. Groups that wait for each other form one
  // block; blocks have no cycles.
  const Rows<int32_t>& blocks() const { return blocks_; }

 private:
  static constexpr int32_t kOnCpu = -1, kUnused = -2, kFork = -3;
  static constexpr int32_t kMostBranches = 4;

  struct Step {  // best end at a position, by accelerators used
    double cost;
    int32_t from;  // where the last piece begins
    int32_t on;    // device, kOnCpu, kUnused: with one less, kFork
    int32_t code;  // of a fork: placement of its branches
  };
  struct Segment {
    double in = 0, out = 0, bytes = 0;
    DeviceSet allowed = ~DeviceSet{0};
    std::vector<double> work;  // per device
  };

  void find_blocks();
  void connect_blocks();
  void lay_out(const std::vector<int32_t>& order);
  void grow(Segment& segment, int32_t begin, int32_t end);
  void extend(const std::vector<int32_t>& devices, int32_t end);
  void find_cpus();
  double grow_on_cpu(int32_t begin, int32_t end);
  Step& step(int32_t used, int32_t at) {
    return steps_[static_cast<size_t>(used) * stride_ +
                  static_cast<size_t>(at)];
  }
  std::vector<int32_t> walk_back(int32_t used);
  bool join(int32_t part, int32_t end);
  void find_branches(int32_t begin, int32_t end);
  struct Fork {  // with one accelerator, and with two
    double cost[2] = {kInfinity, kInfinity};
    int32_t code[2] = {0, 0};
  };
  Fork best_fork(int32_t first, int32_t second) const;
  void add_forks(const std::vector<int32_t>& devices, int32_t begin,
                 int32_t end);

  const PiecesProblem& p_;
  Rows<int32_t> blocks_;           // groups
  std::vector<int32_t> block_of_;  // per group
  std::vector<int32_t> cpu_of_;    // per group; -1: none
  Rows<int32_t> after_, before_;   // per block: blocks
  bool alike_ = true;              // all accelerators are equal
  double most_bytes_ = 0;          // of any accelerator

  // For one order: parts of one or more blocks, to limit their number.
  std::vector<std::vector<int32_t>> parts_;  // ops
  std::vector<int32_t> part_of_;             // per op
  std::vector<int32_t> last_reader_;         // per op: a part
  std::vector<int32_t> marked_;              // per op: where counted as input
  std::vector<double> rest_;                 // per op: time to the end on CPUs
  DisjointSets connected_;                   // ops of a segment
  int32_t num_branches_ = 0;
  struct Branch {
    std::vector<int32_t> ops;
    std::vector<double> work;  // per device
    double transfers = 0, bytes = 0, on_cpu = 0;
    DeviceSet allowed = ~DeviceSet{0};
  };
  std::vector<Branch> branches_;
  std::vector<Step> steps_;
  size_t stride_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_CHAIN_PIECES_H_
