// LoadState: a throughput plan under change, its loads kept up to date.
//
// A move of one unit costs as much as the unit has nets. The energy is a p-norm
// of the loads, raised to the p-th power: smooth enough to anneal, and nearly
// the highest load. Bytes above a device's limit count as load. One thread; the
// problem must outlive it.

#ifndef BERTH_PLANNER_LOAD_STATE_H_
#define BERTH_PLANNER_LOAD_STATE_H_

#include <algorithm>
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
  LoadState(const LoadProblem& problem, double scale, int squarings = 4)
      : p_(problem),
        scale_(scale),
        squarings_(squarings),
        devices_(problem.num_devices()) {
    const size_t machines = p_.num_machines();
    for (int32_t d = 0; d < devices_; ++d) machines_.push_back(d);
    for (int32_t d = 0; d < devices_; ++d) {
      if (p_.copies_to[d] == CopyRule::kOverlap)
        machines_.push_back(devices_ + d);
    }
    for (size_t m = 2 * p_.limit.size(); m < machines; ++m) {
      machines_.push_back(static_cast<LoadMachine>(m));
    }
    powers_.resize(machines);
    delta_.assign(machines, 0);
    changed_.assign(machines, 0);
    for (const double limit : p_.limit) {
      penalty_.push_back(std::isinf(limit) ? 0 : kPenalty * scale_ / limit);
    }
  }

  void set(std::span<const int32_t> device) {
    device_.assign(device.begin(), device.end());
    loads_ = machine_loads(p_, device);
    counts_.assign(static_cast<size_t>(p_.num_nets()) * p_.limit.size(), 0);
    holders_.assign(p_.num_nets(), 0);
    cut_at_.assign(holders_.size(), -1);
    cut_nets_.clear();
    for (int32_t n = 0; n < p_.num_nets(); ++n) {
      for (const int32_t u : p_.pins[n]) {
        ++counts_[static_cast<size_t>(n) * p_.limit.size() + device_[u]];
        holders_[n] |= device_bit(device_[u]);
      }
      note_cut(n);
    }
    bytes_.assign(p_.limit.size(), 0);
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      bytes_[device_[u]] += p_.bytes[u];
    }
    num_over_ = 0;
    for (int32_t d = 0; d < devices_; ++d) num_over_ += bytes_[d] > p_.limit[d];
    for (const LoadMachine m : machines_) {
      powers_[m] = power_of(m, loads_[m], m < devices_ ? bytes_[m] : 0);
    }
    sum_up();
  }

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
  double price(int32_t unit, int32_t to) {
    const int32_t from = device_[unit];
    unit_ = unit;
    to_ = to;
    for (const LoadMachine m : changes_) {
      changed_[m] = 0;
      delta_[m] = 0;
    }
    changes_.clear();
    add(from, -p_.work_on(unit, from));
    add(to, p_.work_on(unit, to));
    p_.by_links ? price_copies(unit, from, to) : price_touches(unit, from, to);
    double energy = energy_;
    for (const LoadMachine m : changes_) {
      double bytes = 0;
      if (m < devices_) {
        bytes = bytes_[m];
        if (m == from) bytes -= p_.bytes[unit];
        if (m == to) bytes += p_.bytes[unit];
      }
      energy += power_of(m, loads_[m] + delta_[m], bytes) - powers_[m];
    }
    return energy;
  }

  void apply() {
    const int32_t from = device_[unit_];
    num_over_ -= bytes_[from] > p_.limit[from];
    num_over_ -= bytes_[to_] > p_.limit[to_];
    bytes_[from] -= p_.bytes[unit_];
    bytes_[to_] += p_.bytes[unit_];
    num_over_ += bytes_[from] > p_.limit[from];
    num_over_ += bytes_[to_] > p_.limit[to_];
    for (const LoadMachine m : changes_) {
      loads_[m] += delta_[m];
      powers_[m] = power_of(m, loads_[m], m < devices_ ? bytes_[m] : 0);
    }
    for (const int32_t n : p_.nets[unit_]) {
      int32_t* count = &counts_[static_cast<size_t>(n) * p_.limit.size()];
      if (--count[from] == 0) holders_[n] &= ~device_bit(from);
      if (count[to_]++ == 0) holders_[n] |= device_bit(to_);
      note_cut(n);
    }
    device_[unit_] = to_;
    sum_up();
  }

  void move(int32_t unit, int32_t to) {
    price(unit, to);
    apply();
  }

 private:
  // What a device that needs twice its limit adds to its load, in scales.
  static constexpr double kPenalty = 5;

  void price_touches(int32_t unit, int32_t from, int32_t to) {
    double at_from = 0, at_to = 0;
    for (const int32_t n : p_.nets[unit]) {
      const int32_t* count = &counts_[static_cast<size_t>(n) * p_.limit.size()];
      const double us = p_.touch_us[n];
      if (count[from] > 1) {
        if (holders_[n] == device_bit(from)) at_from += us;
        if (count[to] == 0) at_to += us;
      } else {
        at_from -= us;
        if (count[to] == 0) {
          at_to += us;
        } else if (holders_[n] == (device_bit(from) | device_bit(to))) {
          at_to -= us;
        }
      }
    }
    if (p_.pays.has(from)) delta_[from] += at_from;
    if (p_.pays.has(to)) delta_[to] += at_to;
  }

  void price_copies(int32_t unit, int32_t from, int32_t to) {
    for (const int32_t n : p_.nets[unit]) {
      const int32_t* count = &counts_[static_cast<size_t>(n) * p_.limit.size()];
      const DeviceSet before = holders_[n];
      DeviceSet after = before | device_bit(to);
      if (count[from] == 1) after &= ~device_bit(from);
      const int32_t producer = p_.pins[n][0];
      if (producer == unit) {
        add_copies(n, from, before, -1);
        add_copies(n, to, after, 1);
      } else {
        add_copies(n, device_[producer], before & ~after, -1);
        add_copies(n, device_[producer], after & ~before, 1);
      }
    }
  }

  void add_copies(int32_t net, int32_t from, DeviceSet to, double sign) {
    for (to &= ~device_bit(from); to; to.drop_first()) {
      const int32_t d = to.first();
      const double us = sign * p_.copy_us(net, from, d);
      for (const LoadMachine m : p_.routes->between(from, d)) add(m, us);
    }
  }

  void add(LoadMachine machine, double us) {
    if (!(changed_[machine])) {
      changed_[machine] = 1;
      changes_.push_back(machine);
    }
    delta_[machine] += us;
  }

  double power_of(LoadMachine machine, double load, double bytes) const {
    if (machine < devices_ && bytes > p_.limit[machine]) {
      // Above any other load, however little it computes.
      load = std::max(load, scale_) +
             (bytes - p_.limit[machine]) * penalty_[machine];
    }
    return power(load / scale_);
  }

  // Summed anew after every move: differences of sums would lose the small
  // ones.
  void sum_up() {
    energy_ = 0;
    highest_ = 0;
    for (const LoadMachine m : machines_) {
      energy_ += powers_[m];
      highest_ = std::max(highest_, loads_[m]);
    }
  }

  // Adds a net to the list of split nets, or removes it.
  void note_cut(int32_t net) {
    const bool cut = holders_[net].several();
    int32_t& at = cut_at_[net];
    if (cut == (at >= 0)) return;
    if (cut) {
      at = cut_nets_.size();
      cut_nets_.push_back(net);
      return;
    }
    cut_at_[cut_nets_.back()] = at;
    cut_nets_[at] = cut_nets_.back();
    cut_nets_.pop_back();
    cut_at_[net] = -1;
  }

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
