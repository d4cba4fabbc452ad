#include "cli/verify_rules.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "berth/errors.h"

namespace berth::cli {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Recomputed loads(const PlanProblem& p, const PlacePlan& plan) {
  const SimulatedGraph& g = p.graph;
  const size_t devices = p.costs.devices.size();
  std::vector<double> load(devices), copy(devices);
  std::map<int32_t, double> links;  // by `shared` number
  Recomputed r{0, std::vector<double>(devices)};
  std::vector<std::set<int32_t>> held(g.producer.size());
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    if (p.takes_time(i)) load[d] += p.costs.time(i, d).us;
    r.bytes[d] += p.resident_bytes[i] + g.variable_bytes[i];
    for (const int32_t v : g.reads[i]) held[renamed(g, v)].insert(d);
  }
  for (int32_t v = 0; v < static_cast<int32_t>(held.size()); ++v) {
    const int32_t home = plan.device[g.producer[v]];
    held[v].insert(home);
    if (held[v].size() == 1 || g.everywhere[v]) continue;
    for (const int32_t d : held[v]) {
      if (!p.touch_us.empty()) {
        load[d] += p.free_of_touch[d] ? 0 : p.touch_us[v];
        continue;
      }
      const CopyRule rule = p.costs.devices[d].copies;
      if (d == home || rule == CopyRule::kFree) continue;
      const double us = p.costs.link(home, d).time_us(p.costs.bytes.item(v));
      (rule == CopyRule::kOverlap ? copy : load)[d] += us;
      if (p.costs.devices[home].copies == CopyRule::kBoth) load[home] += us;
      for (const int32_t n : p.costs.link(home, d).shared) links[n] += us;
    }
  }
  for (const double x : load) r.value = std::max(r.value, x);
  for (const double x : copy) r.value = std::max(r.value, x);
  for (const auto& [shared, x] : links) r.value = std::max(r.value, x);
  return r;
}

// Simulates one step, tracking when each resource becomes free.
class Step {
 public:
  Step(const PlanProblem& p, const PlacePlan& plan)
      : p_(p), plan_(plan), g_(p.graph), end_(p.names.size(), -1) {
    for (size_t v = 0; v < p.graph.producer.size(); ++v) copies_.emplace_back();
  }

  Recomputed run() {
    // For every node, the place in the sequence of the op it follows.
    std::vector<int32_t> place(end_.size(), 0);
    for (size_t k = 0; k < plan_.sequence.size(); ++k) {
      place[plan_.sequence[k]] = static_cast<int32_t>(k) + 1;
    }
    std::vector<std::vector<int32_t>> behind(plan_.sequence.size() + 1);
    const std::vector<int32_t> order = in_order(g_);
    for (const int32_t i : order) {
      if (p_.takes_time(i)) continue;
      for (const int32_t v : g_.reads[i]) {
        place[i] = std::max(place[i], place[g_.producer[v]]);
      }
      for (const int32_t c : g_.controls[i]) {
        place[i] = std::max(place[i], place[c]);
      }
      behind[place[i]].push_back(i);
    }
    for (const int32_t i : behind[0]) stand(i);
    for (size_t k = 0; k < plan_.sequence.size(); ++k) {
      const int32_t op = plan_.sequence[k], d = plan_.device[op];
      double start = inputs_of(op);
      start = std::max(start, compute_[d]);
      compute_[d] = end_[op] = start + p_.costs.time(op, d).us;
      start_[op] = start;
      send(op);
      for (const int32_t i : behind[k + 1]) stand(i);
    }
    Recomputed r;
    for (const int32_t i : order) r.value = std::max(r.value, end(i));
    r.bytes = peaks();
    return r;
  }

 private:
  struct Copy {
    double start, end;
  };

  // Returns when a node ends; for one that takes no time, when it can end.
  double end(int32_t i) {
    if (end_[i] >= 0) return end_[i];
    if (++depth_ > 5000) {
      throw errors::InvalidArgument("too many aliases of aliases to verify");
    }
    end_[i] = inputs_of(i);
    --depth_;
    return end_[i];
  }

  double inputs_of(int32_t i) {
    double at = 0;
    for (const int32_t v : g_.reads[i]) {
      at = std::max(at, arrival(v, plan_.device[i]));
    }
    for (const int32_t c : g_.controls[i]) at = std::max(at, end(c));
    return at;
  }

  double arrival(int32_t v, int32_t to) {
    const int32_t producer = g_.producer[v], from = plan_.device[producer];
    const double ready = end(producer);
    if (from == to || g_.everywhere[v]) return ready;
    const auto done = copies_[v].find(to);
    if (done != copies_[v].end()) return done->second.end;
    const CopyRule rule = p_.costs.devices[to].copies;
    const LinkCost& link = p_.costs.link(from, to);
    std::vector<double*> used;
    if (rule == CopyRule::kOverlap) used.push_back(&engine_[to]);
    if (rule == CopyRule::kReceiving || rule == CopyRule::kBoth) {
      used.push_back(&compute_[to]);
    }
    if (rule != CopyRule::kFree) {
      if (p_.costs.devices[from].copies == CopyRule::kBoth) {
        used.push_back(&compute_[from]);
      }
      for (const int32_t n : link.shared) used.push_back(&shared_[n]);
    }
    double start = ready;
    for (const double* free : used) start = std::max(start, *free);
    const double end = start + link.time_us(p_.costs.bytes.item(v));
    for (double* free : used) *free = end;
    copies_[v][to] = {start, end};
    return end;
  }

  // Handles a node that takes no time at its place. It ends now, unless it
  // needs a copy that comes later.
  void stand(int32_t i) {
    bool here = true;
    for (const int32_t v : g_.reads[i]) {
      const int32_t from = g_.producer[v];
      here = here && end_[from] >= 0 &&
             (plan_.device[from] == plan_.device[i] || g_.everywhere[v]);
    }
    for (const int32_t c : g_.controls[i]) here = here && end_[c] >= 0;
    if (here) end(i);
    send(i);
  }

  // Sends to the devices that need not stop for it.
  void send(int32_t i) {
    for (const int32_t v : g_.values[i]) {
      std::set<int32_t> to;
      for (const int32_t r : g_.readers[v]) to.insert(plan_.device[r]);
      for (const int32_t d : to) {
        const CopyRule rule = p_.costs.devices[d].copies;
        if (rule == CopyRule::kOverlap || rule == CopyRule::kFree) {
          arrival(v, d);
        }
      }
    }
  }

  // Bytes are held from one time to another; releases come before allocations.
  std::vector<double> peaks() {
    using Change = std::tuple<double, int, double>;  // time, 0: release, bytes
    std::vector<std::vector<Change>> changes(p_.costs.devices.size());
    const auto hold = [&](int32_t d, double bytes, double from, double to) {
      if (bytes == 0 || !(to > from)) return;
      changes[d].emplace_back(from, 1, bytes);
      changes[d].emplace_back(to, 0, -bytes);
    };
    // Returns the end of a value's last reader, by any alias, on a device.
    const auto last_use = [&](int32_t value, int32_t d) {
      double last = 0;
      std::vector<int32_t> names = {value};
      for (size_t k = 0; k < names.size(); ++k) {
        const int32_t v = names[k];
        for (const int32_t r : g_.readers[v]) {
          if (plan_.device[r] != d) continue;
          last = std::max(last, end(r));
          if (g_.alias_of[r] != v) continue;
          for (const int32_t named : g_.values[r]) names.push_back(named);
        }
        if (plan_.device[g_.producer[v]] != d) continue;
        if (g_.lives_on[v]) last = kInfinity;
        for (const auto& [to, copy] : copies_[v])
          last = std::max(last, copy.end);
      }
      return last;
    };
    for (int32_t v = 0; v < static_cast<int32_t>(copies_.size()); ++v) {
      const int32_t i = g_.producer[v], home = plan_.device[i];
      const auto bytes = static_cast<double>(p_.costs.bytes.item(v));
      if (g_.alias_of[i] < 0) {
        const bool stays = !p_.takes_time(i);
        hold(home, bytes, stays ? -1 : start_[i],
             stays ? kInfinity : std::max(end(i), last_use(v, home)));
        std::set<int32_t> on;
        for (const int32_t r : g_.readers[v]) on.insert(plan_.device[r]);
        for (const int32_t d : on) {
          if (d != home && stays && g_.everywhere[v])
            hold(d, bytes, -1, kInfinity);
        }
      }
      for (const auto& [to, copy] : copies_[v]) {
        hold(to, bytes, copy.start, std::max(copy.end, last_use(v, to)));
      }
    }
    std::vector<double> peak(changes.size());
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      const int32_t d = plan_.device[i];
      peak[d] +=
          p_.resident_bytes[i] + static_cast<double>(g_.variable_bytes[i]);
      if (!p_.takes_time(i) || p_.costs.workspace.empty()) continue;
      hold(d,

           p_.costs.workspace[static_cast<size_t>(i) * p_.costs.classes.size() +
                              p_.costs.devices[d].device_class],
           start_[i], end(i));
    }
    for (size_t d = 0; d < changes.size(); ++d) {
      std::sort(changes[d].begin(), changes[d].end());
      double live = peak[d];
      for (const auto& [time, comes, bytes] : changes[d]) {
        live += bytes;
        peak[d] = std::max(peak[d], live);
      }
    }
    return peak;
  }

  const PlanProblem& p_;
  const PlacePlan& plan_;
  const SimulatedGraph& g_;
  std::vector<double> end_;
  std::map<int32_t, double> start_, compute_, engine_, shared_;
  std::vector<std::map<int32_t, Copy>> copies_;  // per value, by device
  int depth_ = 0;
};

}  // namespace

int32_t renamed(const SimulatedGraph& g, int32_t v) {
  for (int32_t of = g.alias_of[g.producer[v]]; of >= 0 && !g.everywhere[of];
       of = g.alias_of[g.producer[v]]) {
    v = of;
  }
  return v;
}

Recomputed recompute(const PlanProblem& p, const PlacePlan& plan) {
  if (p.model == PlanModel::kLoad) return loads(p, plan);
  if (p.model == PlanModel::kPipeline) return recompute_pipeline(p, plan);
  return Step(p, plan).run();
}

}  // namespace berth::cli
