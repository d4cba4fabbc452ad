// Forks: parts of a chain whose ops are not connected to each other run on
// several devices at a time.

#include <algorithm>

#include "cli/planner/chain_pieces.h"

namespace berth {

// Adds a part to the branches behind it, which end before `end`. Returns
// whether there are between two and the maximum.
bool PiecesChain::join(int32_t part, int32_t end) {
  const auto unite = [&](int32_t a, int32_t b) {
    if (connected_.find(a) == connected_.find(b)) return;
    connected_.join(a, b);
    --num_branches_;
  };
  const std::vector<int32_t>& ops = parts_[part];
  for (const int32_t v : ops) connected_.separate(v);
  num_branches_ += static_cast<int32_t>(ops.size());
  for (const int32_t v : ops) {
    for (const int32_t r : p_.readers[v]) {
      if (part_of_[r] < end) unite(v, r);
    }
    const auto group = p_.ops_of[p_.group[v]];
    unite(v, group[0]);
  }
  return num_branches_ >= 2 && num_branches_ <= kMostBranches;
}

// Fills branches_ with the parts from `begin` to before `end`.
void PiecesChain::find_branches(int32_t begin, int32_t end) {
  branches_.clear();
  std::vector<int32_t> roots;
  for (int32_t k = begin; k < end; ++k) {
    for (const int32_t v : parts_[k]) {
      const int32_t r = connected_.find(v);
      const auto at = std::find(roots.begin(), roots.end(), r);
      const size_t which = at - roots.begin();
      if (at == roots.end()) {
        roots.push_back(r);
        branches_.emplace_back();
      }
      branches_[which].ops.push_back(v);
    }
  }
  std::vector<int32_t> inputs;
  for (Branch& b : branches_) {
    inputs.clear();
    b.work.assign(p_.num_devices, 0);
    for (const int32_t v : b.ops) {
      if (last_reader_[v] >= end) b.transfers += p_.touch[v];
      for (const int32_t u : p_.inputs[v]) {
        if (part_of_[u] < begin) inputs.push_back(u);
      }
      for (int32_t d = 0; d < p_.num_devices; ++d) {
        b.work[d] += p_.time_of(v, d);
      }
      b.bytes += p_.bytes[v];
      b.on_cpu = std::max(b.on_cpu, rest_[v]);
      b.allowed &= p_.allowed[p_.group[v]];
    }
    sort_unique(inputs);
    for (const int32_t u : inputs) {
      b.transfers += p_.touch[u];
    }
  }
}

// Returns the best assignment of parallel branches to CPUs, to the first
// accelerator or to the second (digits 0, 1 and 2 of the code).
PiecesChain::Fork PiecesChain::best_fork(int32_t first, int32_t second) const {
  Fork best;
  int32_t codes = 1;
  for (size_t k = 0; k < branches_.size(); ++k) codes *= 3;
  const int32_t device[3] = {-1, first, second};
  for (int32_t code = 1; code < codes; ++code) {
    double time[3] = {0, 0, 0}, bytes[3] = {0, 0, 0};
    bool good = true;
    int32_t rest = code, used = 0;
    for (const Branch& b : branches_) {
      const int32_t slot = rest % 3;
      rest /= 3;
      used = std::max(used, slot);
      if (slot == 0) {
        time[0] = std::max(time[0], b.on_cpu);
        continue;
      }
      if (device[slot] < 0) {
        good = false;
        break;
      }
      time[slot] += b.transfers + b.work[device[slot]];
      bytes[slot] += b.bytes;
      good &=
          b.allowed.has(device[slot]) && bytes[slot] <= p_.limit[device[slot]];
    }
    const double cost = std::max({time[0], time[1], time[2]});
    const auto at = static_cast<size_t>(used) - 1;
    if (good && cost < best.cost[at]) {
      best.cost[at] = cost;
      best.code[at] = code;
    }
  }
  return best;
}

void PiecesChain::add_forks(const std::vector<int32_t>& devices, int32_t begin,
                            int32_t end) {
  find_branches(begin, end);
  Fork fork;
  for (int32_t a = 1; a <= static_cast<int32_t>(devices.size()); ++a) {
    if (a <= 2 || !alike_) {
      fork = best_fork(devices[static_cast<size_t>(a) - 1],
                       a == 1 ? -1 : devices[static_cast<size_t>(a) - 2]);
    }
    for (int32_t used = 1; used <= std::min(a, 2); ++used) {
      const auto at = static_cast<size_t>(used) - 1;
      const double cost = step(a - used, begin).cost + fork.cost[at];
      if (cost >= step(a, end).cost) continue;
      step(a, end) = {cost, begin, kFork, fork.code[at]};
    }
  }
}

}  // namespace berth
