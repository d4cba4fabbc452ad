// balance: how many slices of a batch each replica should have.
//
// Pure functions over times; nothing here touches a device. Balancer is the
// memory between steps: it is told what a step took and says which shares to
// try next. Not thread-safe: one Balancer per loop over steps.

#ifndef BERTH_DISTRIBUTE_BALANCE_H_
#define BERTH_DISTRIBUTE_BALANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::distribute {

// What a replica takes for its share: fixed_us + slices * slice_us.
struct ReplicaSpeed {
  double fixed_us = 0;
  double slice_us = 1;
  int most_slices = 1 << 20;  // that its memory has room for
};

// Returns the longest of the replicas' times; those without slices take none.
double longest_us(const std::vector<ReplicaSpeed>& speeds,
                  const std::vector<int>& shares);

// Returns the shares of `slices` in all whose longest time is the least; among
// equals the earlier replicas have more. Every replica gets a slice when there
// are enough and it has room. Throws errors::ResourceExhausted when the
// replicas together have no room for all slices.
std::vector<int> balanced_shares(const std::vector<ReplicaSpeed>& speeds,
                                 int slices);

// When slices are moved.
struct BalanceOptions {
  double least_gain = 0.03;  // of the step, predicted
  double worse = 0.02;       // a step longer by this share is taken back
  // After so many moves the shares are those whose step was the shortest; then,
  // and after a move that was taken back, the next comes `patience` samples
  // later.
  int most_moves = 8;
  int patience = 50;
};

class Balancer {
 public:
  // Shares as they are; `most_slices` per replica, empty: no limits.
  Balancer(std::vector<int> shares, std::vector<int> most_slices = {},
           const BalanceOptions& options = {});

  // What was measured with the current shares: time per replica without waits,
  // what of it does not depend on the share, and the whole step. Returns shares
  // to use from now on when others are expected to be faster by more than the
  // least gain, or when the last move has not been one.
  std::optional<std::vector<int>> sample(const std::vector<double>& compute_us,
                                         const std::vector<double>& fixed_us,
                                         double step_us);
  // What the memories of replicas have room for.
  void limit(std::vector<int> most_slices) {
    most_slices_ = std::move(most_slices);
  }

  const std::vector<int>& shares() const { return shares_; }
  int moves() const { return moves_; }
  // Of the first sample and the last; negative: none.
  double first_step_us() const { return first_step_us_; }
  double last_step_us() const { return last_step_us_; }
  const std::vector<int>& first_shares() const { return first_shares_; }
  // "shares 8:24 -> 6:26: step 812 us -> 640 us"; "" when nothing moved.
  std::string str() const;

 private:
  void learn(size_t replica, double us);
  std::optional<std::vector<int>> settle(double step_us);

  // The last times of a replica with different numbers of slices.
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
  bool refused_ = false;  // the last move was taken back
};

// "8:24".
std::string shares_text(const std::vector<int>& shares);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_BALANCE_H_
