// Proofs by search: every placement of a tiny problem, group by group, then
// every order of its ops, op by op. What is fixed so far gives the earliest end
// of the step; orders that lead to the same times are followed once.

#include <algorithm>
#include <map>
#include <set>

#include "base/infinity.h"
#include "planner/check.h"

namespace berth {

namespace {

constexpr int64_t kMostReplayed = 40'000'000;
constexpr size_t kMostSeen = 1'000'000;
constexpr int32_t kMostReplayTimed = 16, kMostReplayDevices = 16;

class Enumeration {
 public:
  Enumeration(const PlanProblem& p, double target,
              const std::function<bool()>& over)
      : p_(p),
        g_(p.graph),
        allowed_(allowed_of_groups(p)),
        goal_(target * (1 - 1e-9)),
        over_(over) {
    for (const DeviceCost& d : p.costs.devices) limited_ |= d.memory_limit > 0;
    sort_nodes();
  }

  Enumerated run() {
    place_.assign(p_.num_groups, -1);
    place(0);
    return {!stopped_, std::move(shorter_)};
  }

 private:
  void sort_nodes() {
    for (const int32_t i : in_order(g_)) {
      (p_.takes_time(i) ? timed_ : sources_).push_back(i);
    }
    bit_.assign(p_.num_ops(), 0);
    for (size_t i = 0; i < timed_.size(); ++i) bit_[timed_[i]] = 1u << i;
    std::set<int32_t> groups_of_links;
    for (const LinkCost& l : p_.costs.links) {
      groups_of_links.insert(l.shared.begin(), l.shared.end());
    }
    groups_of_links_.assign(groups_of_links.begin(), groups_of_links.end());
    std::sort(sources_.begin(), sources_.end());
    for (const auto* nodes : {&timed_, &sources_}) {
      for (const int32_t i : *nodes) {
        const int32_t g = p_.group[i];
        if (std::ranges::count(groups_, g) == 0) groups_.push_back(g);
      }
    }
  }

  int32_t where(int32_t node) const { return place_[p_.group[node]]; }
  double least(int32_t op) const {
    if (where(op) >= 0) return p_.costs.time(op, where(op)).us;
    double us = kInfinity;
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

  bool found() const { return !shorter_.device.empty(); }
  bool enough() {
    stopped_ = stopped_ || over_();
    return stopped_ || found();
  }

  // Computes the times after the ends of all ops, and whether the placement
  // takes so long that no order reaches the goal.
  bool too_long() {
    tail_.assign(p_.num_ops(), 0);
    head_.assign(p_.num_ops(), 0);
    bool over = false;
    for (const int32_t i : timed_) {
      double& at = head_[i];
      for (const int32_t c : g_.controls[i]) {
        if (p_.takes_time(c)) at = std::max(at, head_[c] + least(c));
      }
      for (const int32_t v : g_.reads[i]) {
        const int32_t from = g_.producer[v];
        const double made = p_.takes_time(from) ? head_[from] + least(from) : 0;
        at = std::max(at, made + sent(v, i));
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
    for (int32_t d = 0; d < p_.num_devices() && !found(); ++d) {
      if (!allowed_[groups_[k]].has(d) || twin(d)) continue;
      place_[groups_[k]] = d;
      place(k + 1);
      place_[groups_[k]] = -1;
    }
  }

  // An empty device that equals an earlier empty one.
  bool twin(int32_t d) const {
    const auto taken = [&](int32_t e) {
      return std::ranges::count(place_, e) > 0;
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

  // When each resource is free and each op ends, and when each value is where;
  // kNever: not yet. One array, since every step of the search copies it.
  static constexpr double kNever = -1;
  using Clock = std::vector<double>;
  // Places in it.
  int32_t compute(int32_t device) const { return device; }
  int32_t engine(int32_t device) const { return p_.num_devices() + device; }
  int32_t shared(int32_t group) const {
    const auto at =
        std::find(groups_of_links_.begin(), groups_of_links_.end(), group);
    return 2 * p_.num_devices() + at - groups_of_links_.begin();
  }
  int32_t end(int32_t op) const {
    return 2 * p_.num_devices() + groups_of_links_.size() + op;
  }
  int32_t there(int32_t value, int32_t device) const {
    return end(p_.num_ops()) + value * p_.num_devices() + device;
  }

  double get(Clock& c, int32_t v, int32_t to) const {
    const int32_t op = g_.producer[v], from = where(op);
    const double made = p_.takes_time(op) ? c[end(op)] : 0;
    if (from == to || g_.everywhere[v]) return made;
    double& arrives = c[there(v, to)];
    if (arrives != kNever) return arrives;
    const CopyRule rule = p_.costs.devices[to].copies;
    const LinkCost& link = p_.costs.link(from, to);
    int32_t busy[2 + SharedLinks::kMost], resources = 0;
    if (rule != CopyRule::kFree) {
      busy[resources++] = rule == CopyRule::kOverlap ? engine(to) : compute(to);
      if (p_.costs.devices[from].copies == CopyRule::kBoth) {
        busy[resources++] = compute(from);
      }
      for (const int32_t n : link.shared) busy[resources++] = shared(n);
    }
    double begin = made;
    for (int i = 0; i < resources; ++i) begin = std::max(begin, c[busy[i]]);
    arrives = begin + link.time_us(p_.costs.bytes.item(v));
    for (int i = 0; i < resources; ++i) c[busy[i]] = arrives;
    return arrives;
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
    Clock c(there(static_cast<int32_t>(g_.producer.size()), 0), kNever);
    std::fill_n(c.begin(), end(0), 0.0);
    for (const int32_t i : sources_) push(c, i);
    done_ = 0;
    order_.clear();
    seen_.clear();
    num_seen_ = 0;
    order(c);
  }

  // False if the same ops were done before, no later: what follows ends no
  // earlier. Under memory limits only if all times were the same.
  bool is_new(const Clock& c) {
    if (num_seen_ == kMostSeen) return true;
    Clock times = c;
    for (const int32_t i : timed_) {  // what nothing waits for does not matter
      if (!limited_ && !is_awaited(i)) times[end(i)] = kNever;
      for (const int32_t v : g_.values[i]) {
        if (limited_ || is_read(v)) continue;
        std::fill_n(times.begin() + there(v, 0), p_.num_devices(), kNever);
      }
    }
    std::vector<Clock>& seen = seen_[done_];
    for (const Clock& before : seen) {
      if (limited_ ? before == times
                   : std::equal(before.begin(), before.end(), times.begin(),
                                times.end(), std::less_equal<>())) {
        return false;
      }
    }
    seen.push_back(std::move(times));
    ++num_seen_;
    return true;
  }

  // Whether an op that is not done reads the value, or waits for the op.
  bool is_read(int32_t value) const {
    return std::ranges::any_of(g_.readers[value], [&](int32_t r) {
      return p_.takes_time(r) && !done(r);
    });
  }
  bool is_awaited(int32_t op) const {
    return std::ranges::any_of(g_.values[op],
                               [&](int32_t v) { return is_read(v); }) ||
           std::ranges::any_of(g_.followers[op],
                               [&](int32_t f) { return !done(f); });
  }

  void order(const Clock& c) {
    if (enough() || !is_new(c)) return;
    if (order_.size() == timed_.size()) {
      PlacePlan plan{{}, order_};
      for (int32_t i = 0; i < p_.num_ops(); ++i)
        plan.device.push_back(where(i));
      if (evaluate(p_, plan).violations.empty()) shorter_ = std::move(plan);
      return;
    }
    for (const int32_t i : timed_) {
      if (done(i) || !ready(i)) continue;
      Clock next = c;
      double at = 0;
      for (const int32_t v : g_.reads[i]) {
        at = std::max(at, get(next, v, where(i)));
      }
      for (const int32_t b : g_.controls[i]) {
        if (p_.takes_time(b)) at = std::max(at, next[end(b)]);
      }
      double& free = next[compute(where(i))];
      free = next[end(i)] = std::max(at, free) + least(i);
      if (free + tail_[i] >= goal_) continue;
      push(next, i);
      if (loaded(next, i)) continue;
      done_ ^= bit_[i];
      order_.push_back(i);
      order(next);
      order_.pop_back();
      done_ ^= bit_[i];
      if (stopped_ || found()) return;
    }
  }

  // Whether a device cannot finish its remaining ops in time.
  bool loaded(const Clock& c, int32_t now) const {
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      double rest = 0;
      for (const int32_t i : timed_) {
        if (i != now && !done(i) && where(i) == d) rest += least(i);
      }
      if (rest > 0 && c[compute(d)] + rest >= goal_) return true;
    }
    return false;
  }

  bool done(int32_t op) const { return (done_ & bit_[op]) != 0; }

  bool ready(int32_t i) const {
    const auto has = [&](int32_t b) { return !p_.takes_time(b) || done(b); };
    for (const int32_t v : g_.reads[i]) {
      if (!has(g_.producer[v])) return false;
    }
    return std::all_of(g_.controls[i].begin(), g_.controls[i].end(), has);
  }

  const PlanProblem& p_;
  const SimulatedGraph& g_;
  const std::vector<DeviceSet> allowed_;  // per group
  double goal_;
  const std::function<bool()>& over_;
  bool stopped_ = false;
  PlacePlan shorter_;
  std::vector<int32_t> timed_, sources_, groups_, place_, order_;
  std::vector<double> head_, tail_;  // per op
  std::vector<int32_t> groups_of_links_;
  std::vector<uint32_t> bit_;  // of timed ops; 0: of others
  uint32_t done_ = 0;          // bits of the ops in order_
  // Times of the ops done so far, for the current placement.
  std::map<uint32_t, std::vector<Clock>> seen_;
  size_t num_seen_ = 0;
  bool limited_ = false;
};

}  // namespace

std::string why_not_tiny(const PlanProblem& p) {
  if (p.num_devices() > kMostReplayDevices) return "too many devices to search";
  for (const double b : p.costs.bus_bytes) {
    if (b > 0) return "devices share a bus, which the search leaves out";
  }
  int32_t timed = 0;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const SimulatedGraph& g = p.graph;
    if (g.alias_of[i] >= 0) return "aliases, which the search leaves out";
    if (p.takes_time(i)) {
      ++timed;
    } else if (g.reads[i].size() + g.controls[i].size() > 0) {
      return "nodes without time that wait, which the search leaves out";
    }
  }
  return timed == 0                 ? "no ops that take time"
         : timed > kMostReplayTimed ? "too many ops to search"
                                    : "";
}

Enumerated enumerate_steps(const PlanProblem& p, double target,
                           const std::function<bool()>& over) {
  return Enumeration(p, target, over).run();
}

std::string check_search(const PlanProblem& p, const Witness& w) {
  if (p.model != PlanModel::kStep) return "a proof of another objective";
  if (!(w.target > 0)) return "it has no target";
  if (std::string wrong = why_not_tiny(p); !wrong.empty()) return wrong;
  int64_t steps = 0;
  const Enumerated tried =
      enumerate_steps(p, w.target, [&] { return ++steps > kMostReplayed; });
  if (!tried.all) return "the search takes too long to be done again";
  return tried.shorter.device.empty() ? "" : "there is a plan below it";
}

}  // namespace berth
