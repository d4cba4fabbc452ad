// LoadState: a throughput plan under change, its loads kept up to date.
//
// A move of one unit costs as much as the unit has nets. The energy is a p-norm
// of the loads, raised to the p-th power: smooth enough to anneal, and nearly
// the highest load. Bytes above a device's limit count as load. One thread; the
// problem must outlive it.

#ifndef BERTH_PLANNER_LOAD_STATE_H_
#define BERTH_PLANNER_LOAD_STATE_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/loads.h"

namespace berth {

class LoadState {
 public:
  // `scale` > 0: the load to expect, which makes energies close to 1. The
  // norm's p is 2 to the `squarings`: the higher, the closer to the highest.
  LoadState(const LoadProblem& problem, double scale, int squarings = 4);

  void set(std::span<const int32_t> device);

  const LoadProblem& problem() const { return p_; }
  std::span<const int32_t> devices() const { return device_; }
  int32_t device(int32_t unit) const { return device_[unit]; }
  double energy() const { return energy_; }
  double scale() const { return scale_; }
  // x to the power p, and back.
  double power(double x) const {
    for (int k = 0; k < squarings_; ++k) x *= x;
    return x;
  }
  double root(double x) const {
    for (int k = 0; k < squarings_; ++k) x = std::sqrt(x);
    return x;
  }
  double load(LoadMachine machine) const { return loads_[machine]; }
  double highest() const { return highest_; }  // load
  // Nets on more than one device, in any order.
  std::span<const int32_t> cut_nets() const { return cut_nets_; }
  bool keeps_limits() const { return num_over_ == 0; }

  // Returns the energy after a move of `unit` to another device, which it must
  // allow. Does not make the move: apply() makes the one priced last.
  double price(int32_t unit, int32_t to);
  void apply();
  void move(int32_t unit, int32_t to) {
    price(unit, to);
    apply();
  }

 private:
  void price_touches(int32_t unit, int32_t from, int32_t to);
  void price_copies(int32_t unit, int32_t from, int32_t to);
  void add_copies(int32_t net, int32_t from, DeviceSet to, double sign);
  void add(LoadMachine machine, double us) {
    if (!(changed_[machine])) {
      changed_[machine] = 1;
      changes_.push_back(machine);
    }
    delta_[machine] += us;
  }
  double power_of(LoadMachine machine, double load, double bytes) const;
  void sum_up();
  void note_cut(int32_t net);

  const LoadProblem& p_;
  double scale_;
  int squarings_;
  int32_t devices_;
  std::vector<int32_t> device_;     // per unit
  std::vector<int32_t> counts_;     // [net * devices + device]: its units
  std::vector<DeviceSet> holders_;  // per net: devices with a count
  std::vector<int32_t> cut_nets_, cut_at_;  // and each net's index there
  std::vector<double> loads_;               // per machine
  std::vector<double> powers_;              // per machine
  std::vector<double> bytes_;               // per device
  std::vector<double> penalty_;             // per device: us per excess byte
  std::vector<LoadMachine> machines_;       // that exist
  double energy_ = 0, highest_ = 0;
  int32_t num_over_ = 0;

  // The priced move.
  int32_t unit_ = -1, to_ = -1;
  std::vector<LoadMachine> changes_;
  std::vector<uint8_t> changed_;  // per machine
  std::vector<double> delta_;     // per machine
};

}  // namespace berth

#endif  // BERTH_PLANNER_LOAD_STATE_H_
