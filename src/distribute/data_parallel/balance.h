// balance: how many slices of a batch each replica should get.
//
// Pure functions over times; no device is touched. Balancer keeps the state
// between steps: it is given the times of a step and returns the shares to try
// next. Not thread-safe: use one Balancer per training loop.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_BALANCE_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_BALANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::distribute {

// Time of a replica for its share: fixed_us + slices * slice_us.
struct ReplicaSpeed {
  double fixed_us = 0;
  double slice_us = 1;
  int most_slices = 1 << 20;  // that fit in its memory
};

// Returns the longest replica time; replicas without slices count as 0.
double longest_us(const std::vector<ReplicaSpeed>& speeds,
                  const std::vector<int>& shares);

// Returns shares of `slices` slices in total that minimise the longest time; on
// a tie the earlier replicas get more. Every replica gets a slice if there are
// enough and its memory allows one. Throws errors::ResourceExhausted when the
// replicas together cannot hold all slices.
std::vector<int> balanced_shares(const std::vector<ReplicaSpeed>& speeds,
                                 int slices);

// When to move slices.
struct BalanceOptions {
  double least_gain = 0.03;  // predicted, relative to the step
  double worse = 0.02;       // a step longer by this ratio undoes the move
  // After this many moves the fastest shares so far are used for good. After a
  // move that was undone, the next one comes `patience` samples later.
  int most_moves = 8;
  int patience = 50;
};

class Balancer {
 public:
  // Initial shares, and the limit `most_slices` per replica; empty: no limits.
  Balancer(std::vector<int> shares, std::vector<int> most_slices = {},
           const BalanceOptions& options = {});

  // Takes measurements with the current shares: time per replica without waits,
  // the part of it that does not depend on the share, and the time of the whole
  // step. Returns new shares if they are predicted to be faster by more than
  // the least gain, or if the last move has to be undone.
  std::optional<std::vector<int>> sample(const std::vector<double>& compute_us,
                                         const std::vector<double>& fixed_us,
                                         double step_us);
  // Sets the number of slices that fit in the memory of each replica.
  void limit(std::vector<int> most_slices) {
    most_slices_ = std::move(most_slices);
  }

  const std::vector<int>& shares() const { return shares_; }
  int moves() const { return moves_; }
  // "shares 8:24 -> 6:26: step 812 us -> 640 us"; "" when nothing moved.
  // `clock` follows the times: ", simulated".
  std::string str(const char* clock = "") const;

 private:
  void learn(size_t replica, double us);
  std::optional<std::vector<int>> settle(double step_us);

  // The last times of a replica with two different numbers of slices.
  struct Seen {
    int slices = 0;
    double us = 0;
    int other_slices = 0;  // 0: none
    double other_us = 0;
  };
  BalanceOptions options_;
  std::vector<int> shares_, first_shares_, before_;
  std::vector<int> most_slices_;
  std::vector<Seen> seen_;
  std::map<std::vector<int>, double> step_us_;  // when last sampled
  double first_step_us_ = -1, last_step_us_ = -1, before_step_us_ = -1;
  int moves_ = 0, samples_ = 0, moved_at_ = 0;
  bool refused_ = false;  // the last move was undone
};

// "8:24".
std::string shares_text(const std::vector<int>& shares);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_BALANCE_H_
