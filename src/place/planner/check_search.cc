// The checker of proofs by search: it repeats the search independently.
//
// Goes through every placement group by group, then every order of the ops op
// by op; what is fixed so far gives the earliest end of the step. Simpler and
// slower than the prover, with which it shares no code.

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "place/planner/check.h"

namespace berth {

namespace {

constexpr int64_t kMostReplayed = 40'000'000;
constexpr int32_t kMostReplayTimed = 16, kMostReplayDevices = 16;

class Enumeration {
 public:
  Enumeration(const PlanProblem& p, double target)
      : p_(p), g_(p.graph), goal_(target * (1 - 1e-9)) {}

  std::string run() {
    if (const std::string wrong = unknown(); !wrong.empty()) return wrong;
    place_.assign(static_cast<size_t>(p_.num_groups), -1);
    place(0);
    if (steps_ > kMostReplayed) {
      return "the search takes too long to be done again";
    }
    return shorter_ ? "there is a plan below it" : "";
  }

 private:
  // Sorts the nodes; names what this search does not support.
  std::string unknown() {
    if (p_.num_devices() > kMostReplayDevices)
      return "too many devices to search";
    for (const double b : p_.costs.bus_bytes) {
      if (b > 0) return "devices share a bus, which the search leaves out";
    }
    std::vector<size_t> missing;
    std::set<int32_t> ready;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      missing.push_back(g_.reads[i].size() + g_.controls[i].size());
      if (missing[i] == 0) ready.insert(i);
      if (g_.alias_of[i] >= 0) return "aliases, which the search leaves out";
      if (!p_.takes_time(i) && missing[i] > 0) {
        return "nodes without time that wait, which the search leaves out";
      }
    }
    while (!ready.empty()) {
      const int32_t i = *ready.begin();
      ready.erase(ready.begin());
      (p_.takes_time(i) ? timed_ : sources_).push_back(i);
      for (const int32_t v : g_.values[i]) {
        for (const int32_t r : g_.readers[v]) {
          if (--missing[r] == 0) ready.insert(r);
        }
      }
      for (const int32_t f : g_.followers[i]) {
        if (--missing[f] == 0) ready.insert(f);
      }
    }
    if (timed_.size() > kMostReplayTimed) return "too many ops to search";
    std::sort(sources_.begin(), sources_.end());
    std::vector<int32_t> once;
    for (const int32_t i : timed_) groups_.push_back(p_.group[i]);
    for (const int32_t i : sources_) groups_.push_back(p_.group[i]);
    for (const int32_t g : groups_) {
      if (std::find(once.begin(), once.end(), g) == once.end()) {
        once.push_back(g);
      }
    }
    groups_ = once;
    return "";
  }

  int32_t where(int32_t node) const { return place_[p_.group[node]]; }
  double least(int32_t op) const {
    if (where(op) >= 0) return p_.costs.time(op, where(op)).us;
    double us = std::numeric_limits<double>::infinity();
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      if (p_.allowed[op].has(d)) us = std::min(us, p_.costs.time(op, d).us);
    }
    return us;
  }
  double sent(int32_t value, int32_t reader) const {
    const int32_t from = where(g_.producer[value]), to = where(reader);
    if (from < 0 || to < 0 || from == to || g_.everywhere[value]) return 0;
    return p_.costs.link(from, to).time_us(p_.costs.bytes.item(value));
  }

  bool enough() { return ++steps_ > kMostReplayed || shorter_; }

  // Computes the times after the ends of all ops, and whether the placement
  // takes so long that no order reaches the goal.
  bool too_long() {
    tail_.clear();
    head_.clear();
    bool over = false;
    for (const int32_t i : timed_) {
      double& at = head_[i];
      for (const int32_t c : g_.controls[i]) {
        if (head_.count(c)) at = std::max(at, head_[c] + least(c));
      }
      for (const int32_t v : g_.reads[i]) {
        const int32_t from = g_.producer[v];
        const double end = head_.count(from) ? head_[from] + least(from) : 0;
        at = std::max(at, end + sent(v, i));
      }
    }
    for (auto it = timed_.rbegin(); it != timed_.rend(); ++it) {
      double& behind = tail_[*it];
      for (const int32_t v : g_.values[*it]) {
        for (const int32_t r : g_.readers[v]) {
          behind = std::max(behind, sent(v, r) + least(r) + tail_[r]);
        }
      }
      for (const int32_t f : g_.followers[*it]) {
        behind = std::max(behind, least(f) + tail_[f]);
      }
      over = over || head_[*it] + least(*it) + behind >= goal_;
    }
    for (int32_t d = -1; d < p_.num_devices() && !over; ++d) over = crowded(d);
    return over;
  }

  // Too much work on a device (-1: on all) between some head and some tail.
  bool crowded(int32_t d) {
    for (const int32_t a : timed_) {
      for (const int32_t b : timed_) {
        double us = 0;
        for (const int32_t i : timed_) {
          if (d >= 0 && where(i) != d) continue;
          if (head_[i] >= head_[a] && tail_[i] >= tail_[b]) us += least(i);
        }
        us = d < 0 ? us / p_.num_devices() : us;
        if (us > 0 && head_[a] + us + tail_[b] >= goal_) return true;
      }
    }
    return false;
  }

  void place(size_t k) {
    if (enough() || too_long()) return;
    if (k == groups_.size()) {
      begin_order();
      return;
    }
    for (int32_t d = 0; d < p_.num_devices() && !shorter_; ++d) {
      if (!may(groups_[k], d) || twin(d)) continue;
      place_[groups_[k]] = d;
      place(k + 1);
      place_[groups_[k]] = -1;
    }
  }

  bool may(int32_t group, int32_t d) const {
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      if (p_.group[i] == group && !p_.allowed[i].has(d)) return false;
    }
    return true;
  }

  // An empty device that equals an earlier empty one.
  bool twin(int32_t d) const {
    const auto taken = [&](int32_t e) {
      return std::find(place_.begin(), place_.end(), e) != place_.end();
    };
    if (taken(d)) return false;
    for (int32_t e = 0; e < d; ++e) {
      if (!taken(e) && same(d, e)) return true;
    }
    return false;
  }
  bool same(int32_t d, int32_t e) const {
    const DeviceCost &x = p_.costs.devices[d], &y = p_.costs.devices[e];
    bool equal = x.device_class == y.device_class && x.copies == y.copies &&
                 x.memory_limit == y.memory_limit;
    for (const DeviceSet& m : p_.allowed) equal &= m.has(d) == m.has(e);
    const auto link = [&](int32_t a, int32_t b, int32_t c, int32_t f) {
      const LinkCost &l = p_.costs.link(a, b), &m = p_.costs.link(c, f);
      return l.latency_us == m.latency_us && l.shared == m.shared &&
             l.bytes_per_us == m.bytes_per_us;
    };
    equal = equal && link(d, e, e, d);
    for (int32_t o = 0; o < p_.num_devices(); ++o) {
      if (o == d || o == e) continue;
      equal = equal && link(d, o, e, o) && link(o, d, o, e);
    }
    return equal;
  }

  // When each resource is free, and when each value is where.
  struct Clock {
    std::map<int32_t, double> compute, engine, shared, end;
    std::map<std::pair<int32_t, int32_t>, double> there;  // value, device
    double last = 0;
  };

  double get(Clock& c, int32_t v, int32_t to) const {
    const int32_t from = where(g_.producer[v]);
    const double made =
        p_.takes_time(g_.producer[v]) ? c.end.at(g_.producer[v]) : 0;
    if (from == to || g_.everywhere[v]) return made;
    if (const auto at = c.there.find({v, to}); at != c.there.end()) {
      return at->second;
    }
    const CopyRule rule = p_.costs.devices[to].copies;
    const LinkCost& link = p_.costs.link(from, to);
    std::vector<double*> busy;
    if (rule != CopyRule::kFree) {
      busy.push_back(rule == CopyRule::kOverlap ? &c.engine[to]
                                                : &c.compute[to]);
      if (p_.costs.devices[from].copies == CopyRule::kBoth) {
        busy.push_back(&c.compute[from]);
      }
      if (link.shared >= 0) busy.push_back(&c.shared[link.shared]);
    }
    double begin = made;
    for (const double* b : busy) begin = std::max(begin, *b);
    const double end = begin + link.time_us(p_.costs.bytes.item(v));
    for (double* b : busy) *b = end;
    return c.there[{v, to}] = end;
  }

  void push(Clock& c, int32_t node) const {
    for (const int32_t v : g_.values[node]) {
      std::set<int32_t> to;
      for (const int32_t r : g_.readers[v]) to.insert(where(r));
      for (const int32_t d : to) {
        const CopyRule rule = p_.costs.devices[d].copies;
        if (rule == CopyRule::kOverlap || rule == CopyRule::kFree) get(c, v, d);
      }
    }
  }

  void begin_order() {
    Clock c;
    for (const int32_t i : sources_) push(c, i);
    done_.clear();
    order_.clear();
    order(c);
  }

  void order(const Clock& c) {
    if (enough()) return;
    if (order_.size() == timed_.size()) {
      PlacePlan plan{{}, order_};
      for (int32_t i = 0; i < p_.num_ops(); ++i)
        plan.device.push_back(where(i));
      shorter_ = evaluate(p_, plan).violations.empty();
      return;
    }
    for (const int32_t i : timed_) {
      if (done_.count(i) || !ready(i)) continue;
      Clock next = c;
      double at = 0;
      for (const int32_t v : g_.reads[i]) {
        at = std::max(at, get(next, v, where(i)));
      }
      for (const int32_t b : g_.controls[i]) {
        if (p_.takes_time(b)) at = std::max(at, next.end.at(b));
      }
      double& free = next.compute[where(i)];
      free = next.end[i] = std::max(at, free) + least(i);
      if (free + tail_of(i) >= goal_) continue;
      push(next, i);
      if (loaded(next, i)) continue;
      done_.insert(i);
      order_.push_back(i);
      order(next);
      order_.pop_back();
      done_.erase(i);
      if (shorter_ || steps_ > kMostReplayed) return;
    }
  }

  double tail_of(int32_t i) const { return tail_.at(i); }

  // Whether a device cannot finish its remaining ops in time.
  bool loaded(Clock& c, int32_t now) const {
    std::map<int32_t, double> rest;
    for (const int32_t i : timed_) {
      if (i != now && !done_.count(i)) rest[where(i)] += least(i);
    }
    for (const auto& [d, us] : rest) {
      if (c.compute[d] + us >= goal_) return true;
    }
    return false;
  }

  bool ready(int32_t i) const {
    const auto has = [&](int32_t b) {
      return !p_.takes_time(b) || done_.count(b) > 0;
    };
    for (const int32_t v : g_.reads[i]) {
      if (!has(g_.producer[v])) return false;
    }
    return std::all_of(g_.controls[i].begin(), g_.controls[i].end(), has);
  }

  const PlanProblem& p_;
  const SimulatedGraph& g_;
  double goal_;
  int64_t steps_ = 0;
  bool shorter_ = false;
  std::vector<int32_t> timed_, sources_, groups_, place_, order_;
  std::map<int32_t, double> head_, tail_;
  std::set<int32_t> done_;
};

}  // namespace

std::string check_search(const PlanProblem& p, const Witness& w) {
  if (p.model != PlanModel::kStep) return "a proof of another objective";
  if (!(w.target > 0)) return "it has no target";
  return Enumeration(p, w.target).run();
}

}  // namespace berth
