#include "place/planner/windows.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"
#include "place/planner/joined_starts.h"

namespace berth {

namespace {

constexpr double kWorthwhile = 3e-5;       // smaller gains are no deduction
constexpr double kWindowRounding = 1e-12;  // of sums
constexpr double kNear = 1e-9;             // of times that should be equal
constexpr double kShave = 1e-10;           // subtracted from what is deduced
constexpr size_t kThresholds = 32;         // times tried, on each side
constexpr double kLooks = 5e5;             // ops times cuts of one kind
constexpr size_t kTargets = 300;           // ops that are tried
constexpr size_t kSizes = 2;               // sizes by which ops are counted
constexpr int64_t kWorkPerJoin = 200;      // of joined_starts(), per edge
constexpr double kLarge = 0.995;           // share of the work: the largest ops

// Keeps at most `most`, evenly spread; near ones count as one.
void thin_out(std::vector<double>& v, size_t most, double near) {
  std::ranges::sort(v);
  const auto alike = [&](double a, double b) { return b - a <= near; };
  v.erase(std::unique(v.begin(), v.end(), alike), v.end());
  if (v.size() <= most) return;
  std::vector<double> fewer;
  for (size_t k = 0; k < most; ++k) {
    fewer.push_back(v[k * (v.size() - 1) / (most - 1)]);
  }
  v = std::move(fewer);
}

}  // namespace

Windows::Windows(const StepGraph& graph, std::vector<double> weight)
    : g_(graph), kinds_(graph.num_kinds()), weight_(std::move(weight)) {
  const size_t n = g_.num_ops();
  for (const bool back : {false, true}) {
    known_[back].assign(n, 0);
    joined_[back] = joined_starts(graph, back);
    work_ += kWorkPerJoin * static_cast<int64_t>(g_.edges.size() * kinds_);
    propagate(back);
  }
  lag_.assign(n, -1);
  together_ = DisjointSets(n);
  first_of_group_.assign(g_.num_groups, -1);
  class_of_.resize(n);
}

void Windows::propagate(bool back) {
  ready_[back] = g_.by_path(back, [&](int32_t op, std::vector<double>& start) {
    for (size_t k = 0; k < kinds_; ++k) {
      const size_t at = static_cast<size_t>(op) * kinds_ + k;
      start[at] = std::max({start[at], joined_[back][at], known_[back][op]});
    }
  });
  start_[back].resize(known_[back].size());
  end_[back].resize(known_[back].size());
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    double start = kInfinity, end = kInfinity;
    for (size_t k = 0; k < kinds_; ++k) {
      start = std::min(start, ready(back, i, k));
      end = std::min(end, ready(back, i, k) + g_.time_on(i, k));
    }
    start_[back][i] = start, end_[back][i] = end;
  }
  work_ += static_cast<int64_t>(g_.edges.size() * kinds_ * kinds_ +
                                end_[back].size());
}

double Windows::path_bound() const {
  double bound = 0;
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    double through = kInfinity;
    for (size_t k = 0; k < kinds_; ++k) {
      through = std::min(
          through, ready(false, i, k) + g_.time_on(i, k) + ready(true, i, k));
    }
    if (through < kInfinity) bound = std::max(bound, through);
  }
  return bound;
}

double Windows::deduce(std::function<bool()> stop) {
  stop_ = std::move(stop);
  bound_ = path_bound();
  count_work();
  close();
  const std::vector<int32_t> targets = choose_targets();
  for (const bool back : {false, true}) {
    for (size_t k = 0; k < targets.size(); ++k) {
      const int32_t op = targets[back ? targets.size() - 1 - k : k];
      if ((back ? g_.out : g_.in)[op].size() < 2) continue;
      if (stop_()) return bound_;
      if (strengthen(back, op)) bound_ = std::max(bound_, path_bound());
    }
    if (stop_()) return bound_;
    close();
  }
  return bound_;
}

// Where ops come together, in order; if there are many, those with few others
// beside them, by number of ops before them.
std::vector<int32_t> Windows::choose_targets() const {
  std::vector<size_t> depth(lag_.size(), 0), width(lag_.size() + 1, 0);
  std::vector<std::pair<size_t, size_t>> found;  // width, position in the order
  for (const int32_t op : g_.order) {
    size_t& d = depth[op];
    for (const int32_t e : g_.in[op]) {
      d = std::max(d, depth[g_.edges[e].from] + 1);
    }
    ++width[d];
  }
  for (size_t at = 0; at < g_.order.size(); ++at) {
    const int32_t op = g_.order[at];
    if (g_.in[op].size() < 2 && g_.out[op].size() < 2) continue;
    found.emplace_back(width[depth[op]], at);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kTargets) found.resize(kTargets);
  std::vector<size_t> places;
  for (const auto& [beside, at] : found) places.push_back(at);
  std::sort(places.begin(), places.end());
  std::vector<int32_t> targets;
  for (const size_t at : places) targets.push_back(g_.order[at]);
  return targets;
}

// The minimum work of all devices: what close() would find, at once.
void Windows::count_work() {
  double sum = 0, capacity = 0;
  DeviceSet used;
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    double least = kInfinity;
    for (size_t k = 0; k < kinds_; ++k) {
      least = std::min(least, weight_[k] * g_.time_on(i, k));
    }
    if (!(least > 0)) continue;
    sum += least;
    used |= g_.kinds[i];
  }
  for (DeviceSet k = used; k; k.drop_first()) {
    const size_t kind = k.first();
    capacity += weight_[kind] * g_.kind_devices[kind].count();
  }
  const double t = sum / capacity * (1 - kShave);
  if (!(t > bound_ && t < kInfinity)) return;
  set_target(false, -1);
  join(t);
  if (excess({}, t) > 0) add_bound(t, {});
}

void Windows::add_bound(double t, const Cut& cut) {
  steps_.push_back({false, -1, t, cut.from, cut.until, cut.size});
  bound_ = t;
}

// The work of the whole step.
void Windows::close() {
  set_target(false, -1);
  const double t = improve(bound_);
  if (t > bound_ * (1 + kWorthwhile / 10)) add_bound(t, best_);
}

bool Windows::strengthen(bool back, int32_t op) {
  set_target(back, op);
  const double before = start_[back][op];
  const double t = improve(before);
  if (!(t > before * (1 + kWorthwhile))) return false;
  steps_.push_back({back, op, t, best_.from, best_.until, best_.size});
  known_[back][op] = t;
  propagate(back);
  return true;
}

void Windows::set_target(bool back, int32_t op) {
  back_ = back;
  target_ = op;
  between_.clear();
  items_.clear();
  std::fill(lag_.begin(), lag_.end(), op < 0 ? 0.0 : -1.0);
  if (op >= 0) set_lags(op);
  double path = 0;
  for (size_t at = 0; at < g_.order.size(); ++at) {
    const int32_t i = g_.order[back ? g_.order.size() - 1 - at : at];
    if (lag_[i] < 0) continue;
    for (const int32_t e : (back ? g_.out : g_.in)[i]) {
      if (g_.edges[e].cross > 0) between_.push_back(e);
    }
    if (i == op) continue;
    if (g_.least[i] > 0) items_.push_back(i);
    path = std::max(path, end_[back][i]);
  }
  work_ += static_cast<int64_t>(lag_.size() + between_.size());
  choose_cuts(path);
}

// The longest paths from the ends of what precedes the target to its start.
void Windows::set_lags(int32_t target) {
  lag_[target] = 0;
  for (size_t at = g_.order.size(); at-- > 0;) {
    const int32_t i = g_.order[back_ ? g_.order.size() - 1 - at : at];
    if (lag_[i] < 0) continue;
    const double w = i == target ? 0 : g_.least[i];
    for (const int32_t number : (back_ ? g_.out : g_.in)[i]) {
      const StepGraph::Edge& e = g_.edges[number];
      double& lag = lag_[back_ ? e.to : e.from];
      lag = std::max(lag, lag_[i] + w);
    }
  }
}

// Tries the times when large ops begin or end at the soonest or latest.
void Windows::choose_cuts(double scale) {
  std::vector<std::pair<double, int32_t>> large;
  double all = 0, covered = 0;
  for (const int32_t op : items_) {
    const double w = g_.least[op];
    all += w;
    large.emplace_back(-w, op);
  }
  std::sort(large.begin(), large.end());
  std::vector<double> froms = {0}, untils = {0};
  std::vector<std::pair<double, double>> by_size;  // work, least size
  for (const auto& [minus, op] : large) {
    if (covered > kLarge * all) break;
    const size_t at = op;
    const double w = -minus;
    covered += w;
    const double head = start_[back_][at];
    const double lag = target_ < 0 ? start_[!back_][at] : lag_[at];
    // What starts at the end of this must count as after it.
    froms.push_back(head);
    froms.push_back((head + w) * (1 - kNear));
    untils.push_back(lag);
    untils.push_back((lag + w) * (1 - kNear));
    if (by_size.empty() || w < by_size.back().second * 0.999) {
      by_size.emplace_back(0, w);
    }
    by_size.back().first += w;
    by_size.back().second = w;
  }
  // With many ops, fewer cuts are tried for each.
  const size_t most = std::clamp<size_t>(
      static_cast<size_t>(std::sqrt(kLooks / (1.0 + double(items_.size())))), 3,
      kThresholds);
  thin_out(froms, most, scale * 1e-6);
  thin_out(untils, most, scale * 1e-6);
  std::sort(by_size.rbegin(), by_size.rend());
  if (by_size.size() > kSizes) by_size.resize(kSizes);
  cuts_.clear();
  for (const double until : untils) {
    for (const double from : froms) {
      cuts_.push_back({from, until, 0});
      for (const auto& [work, size] : by_size) {
        cuts_.push_back({from, until, size * (1 - kNear)});
      }
    }
  }
}

// Whether a value that changed devices here would come too late.
bool Windows::must_join(const StepGraph::Edge& e, double t) const {
  const size_t from = back_ ? e.to : e.from;
  const int32_t to = back_ ? e.from : e.to;
  double lag = 0;
  if (to != target_) {
    lag = g_.least[to] + (target_ < 0 ? start_[!back_][to] : lag_[to]);
  }
  return end_[back_][from] + e.cross + lag > t * (1 + kWindowRounding);
}

// Finds what must share devices if the target starts by `t`.
void Windows::join(double t) {
  std::fill(first_of_group_.begin(), first_of_group_.end(), -1);
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    if (lag_[i] < 0) continue;
    together_.separate(i);
    int32_t& first = first_of_group_[g_.group[i]];
    if (first < 0) first = i;
    together_.join(first, i);
  }
  for (const int32_t number : between_) {
    const StepGraph::Edge& e = g_.edges[number];
    if (must_join(e, t)) together_.join(e.to, e.from);
  }
  work_ += static_cast<int64_t>(lag_.size() + between_.size() + items_.size());
  make_classes();
}

void Windows::make_classes() {
  classes_.clear();
  std::fill(class_of_.begin(), class_of_.end(), -1);
  for (const int32_t op : items_) {
    int32_t& c = class_of_[together_.find(op)];
    if (c < 0) {
      c = classes_.size();
      classes_.push_back({});
    }
    ++classes_[c].end;
  }
  int32_t begin = 0;
  for (Class& c : classes_) {
    const int32_t size = c.end;
    c.begin = c.end = begin;
    begin += size;
  }
  const size_t n = items_.size();
  parts_.resize(n * kinds_);
  for (const int32_t op : items_) {
    Class& c = classes_[class_of_[together_.find(op)]];
    const size_t at = c.end++;
    c.kinds &= g_.kinds[op];
    for (size_t k = 0; k < kinds_; ++k) {
      parts_[k * n + at] = {g_.time_on(op, k), ready(back_, op, k),
                            target_ < 0 ? ready(!back_, op, k) : lag_[op]};
      c.largest = std::max(c.largest, g_.time_on(op, k));
    }
  }
}

// By how much the work between the cut's times exceeds what devices can do;
// infinite when some class fits on none.
double Windows::excess(const Cut& cut, double t) {
  work_ += static_cast<int64_t>(items_.size() * kinds_);
  const double length = std::max(t - cut.until - cut.from, 0.0);
  double sum = 0;
  DeviceSet used;
  for (const Class& c : classes_) {
    if (c.largest < cut.size) continue;
    double least = kInfinity;
    for (DeviceSet k = c.kinds; k; k.drop_first()) {
      const size_t kind = k.first();
      const double us = need(c, cut, t, kind);
      if (us == kInfinity) continue;
      least = std::min(least, cut.size > 0 ? us : weight_[kind] * us);
    }
    if (least == kInfinity) return kInfinity;
    if (least > 0) used |= c.kinds;
    sum += least;
  }
  const double room = cut.size > 0 ? std::floor(length / cut.size) : length;
  double capacity = 0;
  for (DeviceSet k = used; k; k.drop_first()) {
    const size_t kind = k.first();
    capacity += room * (cut.size > 0 ? 1 : weight_[kind]) *
                g_.kind_devices[kind].count();
  }
  const double over = sum - capacity * (1 + kWindowRounding);
  return over > 0 ? over * (cut.size > 0 ? cut.size : 1) : 0;
}

// The work that a class must do between the cut's times on a device of a kind;
// infinite when it cannot be there.
double Windows::need(const Class& c, const Cut& cut, double t, size_t kind) {
  const double length = std::max(t - cut.until - cut.from, 0.0);
  double inside = 0, all = 0;
  double first = kInfinity, last = kInfinity;
  const Part* parts = &parts_[kind * items_.size()];
  for (int32_t i = c.begin; i < c.end; ++i) {
    const auto& [w, head, lag] = parts[i];
    if (head + w + lag > t * (1 + kWindowRounding)) return kInfinity;
    if (cut.size > 0) {
      if (w < cut.size) continue;
      inside += head >= cut.from && lag >= cut.until;
      all += 1;
    } else {
      const double part =
          std::min(std::min(w, length),
                   std::min(head + w - cut.from, lag + w - cut.until));
      inside += std::max(part, 0.0);
      all += w;
    }
    first = std::min(first, head);
    last = std::min(last, lag);
  }
  if (all == 0) return 0;
  // One after the other: before and after the cut there is only this much time.
  double before = std::max(cut.from - first, 0.0);
  double behind = std::max(cut.until - last, 0.0);
  double room = length * (1 + kWindowRounding);
  if (cut.size > 0) {
    before = std::ceil(before / cut.size);
    behind = std::ceil(behind / cut.size);
    room = std::floor(length / cut.size);
  }
  const double least = std::max(inside, all - before - behind);
  return least > room ? kInfinity : least;
}

bool Windows::best_cut(double t, Cut& best) {
  double most = 0;
  join(t);
  for (const Cut& cut : cuts_) {
    if (cut.from + cut.until >= t) continue;
    if (stop_()) break;
    const double over = excess(cut, t);
    if (!(over > most)) continue;
    most = over;
    best = cut;
    if (over == kInfinity) break;
  }
  return most > 0;
}

// Returns the latest start of the target that a cut refutes, given one that it
// does.
double Windows::latest_refuted(const Cut& cut, double low) {
  const auto refuted = [&](double t) {
    join(t);
    return excess(cut, t) > 0;
  };
  double high = low * 1.01;
  for (int k = 0; !stop_() && refuted(high); ++k, high *= 1.1) {
    low = high;
    if (k == 200) return low;  // no plan is possible at all
  }
  while (high - low > low * 1e-11 && !stop_()) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;
    (refuted(middle) ? low : high) = middle;
  }
  return low;
}

double Windows::improve(double known) {
  double low = known;
  best_ = {};
  for (int round = 0; round < 40; ++round) {
    Cut cut;
    const double t = low > 0 ? low * (1 + kWorthwhile) : 1e-9;
    if (!best_cut(t, cut)) break;
    const double refuted = latest_refuted(cut, t) * (1 - kShave);
    if (!(refuted > low)) break;
    low = refuted;
    best_ = cut;
  }
  return low;
}

}  // namespace berth
