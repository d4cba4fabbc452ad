#include "place/planner/windows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace berth {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr double kWorthwhile = 1e-4;  // less is no deduction
constexpr double kRounding = 1e-12;   // of sums
constexpr double kShave = 1e-10;      // of what is deduced
constexpr size_t kThresholds = 24;    // times looked at, on each side
constexpr size_t kSizes = 2;          // by which ops are counted
constexpr double kLarge = 0.9;        // share of the work: the largest ops

// Keeps at most kThresholds, spread evenly; near ones count as one.
void thin_out(std::vector<double>& v, double near) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end(),
                      [&](double a, double b) { return b - a <= near; }),
          v.end());
  if (v.size() <= kThresholds) return;
  std::vector<double> fewer;
  for (size_t k = 0; k < kThresholds; ++k) {
    fewer.push_back(v[k * (v.size() - 1) / (kThresholds - 1)]);
  }
  v = std::move(fewer);
}

double least_of(const std::vector<double>& rows, int32_t op, size_t kinds) {
  const double* row = &rows[static_cast<size_t>(op) * kinds];
  return *std::min_element(row, row + kinds);
}

}  // namespace

Windows::Windows(const StepGraph& graph, std::vector<double> weight)
    : g_(graph), kinds_(graph.num_kinds()), weight_(std::move(weight)) {
  const auto n = static_cast<size_t>(g_.num_ops());
  for (const bool back : {false, true}) {
    known_[back].assign(n, 0);
    propagate(back);
  }
  on_.assign(n, -1);
  off_.assign(n, -1);
  parent_.resize(n);
  first_of_group_.assign(static_cast<size_t>(g_.num_groups), -1);
  class_of_.resize(n);
}

void Windows::propagate(bool back) {
  ready_[back] = g_.by_path(back, known_[back]);
  start_[back].resize(known_[back].size());
  end_[back].resize(known_[back].size());
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    const auto at = static_cast<size_t>(i);
    double end = kInfinity;
    for (size_t k = 0; k < kinds_; ++k) {
      end = std::min(end, ready(back, i, k) + g_.time_on(i, k));
    }
    start_[back][at] = least_of(ready_[back], i, kinds_);
    end_[back][at] = end;
  }
  work_ += static_cast<int64_t>(g_.edges.size() * kinds_ * kinds_ +
                                end_[back].size());
}

double Windows::path_bound() const {
  double bound = 0;
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    if (!(g_.least[static_cast<size_t>(i)] > 0)) continue;
    double through = kInfinity;
    for (size_t k = 0; k < kinds_; ++k) {
      through = std::min(
          through, ready(false, i, k) + g_.time_on(i, k) + ready(true, i, k));
    }
    if (through < kInfinity) bound = std::max(bound, through);
  }
  return bound;
}

double Windows::deduce(const std::function<bool()>& stop) {
  bound_ = path_bound();
  close();
  for (const bool back : {false, true}) {
    for (size_t at = 0; at < g_.order.size(); ++at) {
      const int32_t op = g_.order[back ? g_.order.size() - 1 - at : at];
      if ((back ? g_.out : g_.in)[op].size() < 2) continue;
      if (stop()) return bound_;
      if (strengthen(back, op)) bound_ = std::max(bound_, path_bound());
    }
    if (stop()) return bound_;
    close();
  }
  return bound_;
}

// What must be done in the whole step.
void Windows::close() {
  set_target(false, -1);
  const double t = improve(bound_);
  if (!(t > bound_ * (1 + kWorthwhile / 10))) return;
  steps_.push_back(
      {false, -1, t, best_.from, best_.until_on, best_.until_off, best_.size});
  bound_ = t;
}

bool Windows::strengthen(bool back, int32_t op) {
  const auto at = static_cast<size_t>(op);
  set_target(back, op);
  const double before = start_[back][at];
  const double t = improve(before);
  if (!(t > before * (1 + kWorthwhile))) return false;
  steps_.push_back(
      {back, op, t, best_.from, best_.until_on, best_.until_off, best_.size});
  known_[back][at] = t;
  propagate(back);
  return true;
}

void Windows::set_target(bool back, int32_t op) {
  back_ = back;
  target_ = op;
  between_.clear();
  items_.clear();
  std::fill(on_.begin(), on_.end(), op < 0 ? 0.0 : -1.0);
  std::fill(off_.begin(), off_.end(), op < 0 ? 0.0 : -1.0);
  if (op >= 0) set_lags(op);
  double path = 0;
  for (size_t at = 0; at < g_.order.size(); ++at) {
    const int32_t i = g_.order[back ? g_.order.size() - 1 - at : at];
    const auto number = static_cast<size_t>(i);
    if (on_[number] < 0) continue;
    for (const int32_t e : (back ? g_.out : g_.in)[i]) {
      if (g_.edges[static_cast<size_t>(e)].cross > 0) between_.push_back(e);
    }
    if (i == op) continue;
    if (g_.least[number] > 0) items_.push_back({i, on_[number], off_[number]});
    path = std::max(path, end_[back][number]);
  }
  work_ += static_cast<int64_t>(on_.size() + between_.size());
  choose_cuts(path);
}

// Least times from the end of what is before the target to its start: when both
// are on one device, and when not.
void Windows::set_lags(int32_t target) {
  on_[static_cast<size_t>(target)] = off_[static_cast<size_t>(target)] = 0;
  for (size_t at = g_.order.size(); at-- > 0;) {
    const int32_t i = g_.order[back_ ? g_.order.size() - 1 - at : at];
    const auto number = static_cast<size_t>(i);
    if (i == target) continue;
    for (const int32_t number_of_edge : (back_ ? g_.in : g_.out)[i]) {
      const StepGraph::Edge& e = g_.edges[static_cast<size_t>(number_of_edge)];
      const int32_t next = back_ ? e.from : e.to;
      const auto x = static_cast<size_t>(next);
      if (on_[x] < 0) continue;
      const double w = next == target ? 0 : g_.least[x];
      const double stay_off = next == target ? kInfinity : off_[x];
      const double any = next == target ? 0 : std::min(on_[x], off_[x]);
      const double on =
          std::min(e.apart ? kInfinity : w + on_[x], e.cross + w + stay_off);
      const double off =
          std::min(e.apart ? kInfinity : w + stay_off, e.cross + w + any);
      on_[number] = std::max(on_[number], on);
      off_[number] = std::max(off_[number], off);
    }
  }
}

// Looks where large ops begin or end at the soonest or latest.
void Windows::choose_cuts(double scale) {
  std::vector<std::pair<double, int32_t>> large;
  double all = 0, covered = 0;
  for (size_t k = 0; k < items_.size(); ++k) {
    const double w = g_.least[static_cast<size_t>(items_[k].op)];
    all += w;
    large.emplace_back(-w, static_cast<int32_t>(k));
  }
  std::sort(large.begin(), large.end());
  std::vector<double> froms = {0}, untils = {0}, sizes;
  std::vector<std::pair<double, double>> by_size;  // work, least size
  for (const auto& [minus, k] : large) {
    if (covered > kLarge * all) break;
    const Item& item = items_[static_cast<size_t>(k)];
    const double w = -minus;
    covered += w;
    const double head = start_[back_][static_cast<size_t>(item.op)];
    const double lag = target_ < 0
                           ? start_[!back_][static_cast<size_t>(item.op)]
                           : std::min(item.on, item.off);
    // What starts at the end of this must count as behind it.
    froms.push_back(head);
    froms.push_back((head + w) * (1 - 1e-9));
    untils.push_back(lag);
    untils.push_back((lag + w) * (1 - 1e-9));
    if (by_size.empty() || w < by_size.back().second * 0.999) {
      by_size.emplace_back(0, w);
    }
    by_size.back().first += w;
    by_size.back().second = w;
  }
  thin_out(froms, scale * 1e-6);
  thin_out(untils, scale * 1e-6);
  std::sort(by_size.rbegin(), by_size.rend());
  sizes = {0};
  for (size_t k = 0; k < by_size.size() && k < kSizes; ++k) {
    sizes.push_back(by_size[k].second * (1 - 1e-9));
  }
  cuts_.clear();
  for (const double until : untils) {
    double off = kInfinity;  // so that what counts on the device does elsewhere
    for (const auto& [minus, k] : large) {
      const Item& item = items_[static_cast<size_t>(k)];
      if (target_ >= 0 && item.on >= until) off = std::min(off, item.off);
    }
    if (target_ < 0 || off == kInfinity) off = until;
    for (const double from : froms) {
      for (const double size : sizes) {
        cuts_.push_back({from, until, std::max(off, until), size});
      }
    }
  }
}

int32_t Windows::root(int32_t op) const {
  while (parent_[static_cast<size_t>(op)] != op) {
    op = parent_[static_cast<size_t>(op)] =
        parent_[static_cast<size_t>(parent_[static_cast<size_t>(op)])];
  }
  return op;
}

// Whether a value that changed devices here would come too late.
bool Windows::must_join(const StepGraph::Edge& e, double t) const {
  const auto from = static_cast<size_t>(back_ ? e.to : e.from);
  const int32_t to = back_ ? e.from : e.to;
  const auto x = static_cast<size_t>(to);
  double lag = 0;
  if (to != target_) {
    lag = g_.least[x] +
          (target_ < 0 ? start_[!back_][x] : std::min(on_[x], off_[x]));
  }
  return end_[back_][from] + e.cross + lag > t * (1 + kRounding);
}

// Finds what shares devices when the target starts by `t`.
void Windows::join(double t) {
  std::fill(first_of_group_.begin(), first_of_group_.end(), -1);
  const auto add = [&](int32_t op) {
    parent_[static_cast<size_t>(op)] = op;
    int32_t& first =
        first_of_group_[static_cast<size_t>(g_.group[static_cast<size_t>(op)])];
    if (first < 0) first = op;
    parent_[static_cast<size_t>(op)] = first;
  };
  for (int32_t i = 0; i < g_.num_ops(); ++i) {
    if (on_[static_cast<size_t>(i)] >= 0) add(i);
  }
  for (const int32_t number : between_) {
    const StepGraph::Edge& e = g_.edges[static_cast<size_t>(number)];
    if (must_join(e, t)) {
      parent_[static_cast<size_t>(root(e.from))] = root(e.to);
    }
  }
  if (target_ >= 0) {
    for (const Item& item : items_) {
      if (end_[back_][static_cast<size_t>(item.op)] + item.off >
          t * (1 + kRounding)) {
        parent_[static_cast<size_t>(root(item.op))] = root(target_);
      }
    }
  }
  work_ += static_cast<int64_t>(on_.size() + between_.size() + items_.size());
  make_classes();
}

void Windows::make_classes() {
  classes_.clear();
  std::fill(class_of_.begin(), class_of_.end(), -1);
  for (const Item& item : items_) {
    int32_t& c = class_of_[static_cast<size_t>(root(item.op))];
    if (c < 0) {
      c = static_cast<int32_t>(classes_.size());
      classes_.push_back({0, 0, ~uint64_t{0}, false});
      classes_.back().with_target =
          target_ >= 0 && root(item.op) == root(target_);
    }
    ++classes_[static_cast<size_t>(c)].end;
  }
  int32_t begin = 0;
  for (Class& c : classes_) {
    const int32_t size = c.end;
    c.begin = c.end = begin;
    begin += size;
  }
  sorted_.resize(items_.size());
  for (const Item& item : items_) {
    Class& c = classes_[static_cast<size_t>(
        class_of_[static_cast<size_t>(root(item.op))])];
    sorted_[static_cast<size_t>(c.end++)] = item;
    c.kinds &= g_.kinds[static_cast<size_t>(item.op)];
  }
}

double Windows::excess(const Cut& cut, double t) {
  work_ += static_cast<int64_t>(items_.size() * kinds_);
  const double on = std::max(t - cut.until_on - cut.from, 0.0);
  const double off = std::max(t - cut.until_off - cut.from, 0.0);
  const bool one = target_ < 0;  // no device differs
  double sum = 0, largest = 0;
  uint64_t used = 0;
  for (const Class& c : classes_) {
    double least = kInfinity;
    for (uint64_t k = c.kinds; k; k &= k - 1) {
      const auto kind = static_cast<size_t>(std::countr_zero(k));
      const double weight = cut.size > 0 ? 1 : weight_[kind];
      if (!one) least = std::min(least, weight * need(c, cut, t, true, kind));
      if (!c.with_target) {
        least = std::min(least, weight * need(c, cut, t, false, kind));
      }
    }
    if (least == kInfinity) return kInfinity;
    if (least > 0) used |= c.kinds;
    sum += least;
  }
  const auto room = [&](double length) {
    return cut.size > 0 ? std::floor(length / cut.size) : length;
  };
  double capacity = 0;
  for (uint64_t k = used; k; k &= k - 1) {
    const auto kind = static_cast<size_t>(std::countr_zero(k));
    const double weight = cut.size > 0 ? 1 : weight_[kind];
    capacity += weight * room(off) * std::popcount(g_.kind_devices[kind]);
    largest = std::max(largest, weight * (room(on) - room(off)));
  }
  if (!one) capacity += largest;
  const double over = sum - capacity * (1 + kRounding);
  return over > 0 ? over * (cut.size > 0 ? cut.size : 1) : 0;
}

// What a class must do between the cut's times on a device of a kind; infinite
// when it cannot be there.
double Windows::need(const Class& c, const Cut& cut, double t, bool on,
                     size_t kind) {
  const double until = on || target_ < 0 ? cut.until_on : cut.until_off;
  const double length = std::max(t - until - cut.from, 0.0);
  double inside = 0, all = 0, count_inside = 0, count = 0;
  double head = kInfinity, lag = kInfinity;
  for (int32_t i = c.begin; i < c.end; ++i) {
    const Item& item = sorted_[static_cast<size_t>(i)];
    const double w = g_.time_on(item.op, kind);
    const double h = ready(back_, item.op, kind);
    const double l = target_ < 0 ? ready(!back_, item.op, kind)
                     : on        ? item.on
                                 : item.off;
    if (h + w + l > t * (1 + kRounding)) return kInfinity;
    if (cut.size > 0) {
      if (w < cut.size) continue;
      ++count;
      count_inside += h >= cut.from && l >= until;
    } else {
      const double part = std::min(std::min(w, length),
                                   std::min(h + w - cut.from, l + w - until));
      inside += std::max(part, 0.0);
      all += w;
    }
    head = std::min(head, h);
    lag = std::min(lag, l);
  }
  if (head == kInfinity) return 0;
  // One after the other: before and behind the cut is only so much time.
  const double before = std::max(cut.from - head, 0.0);
  const double behind = std::max(until - lag, 0.0);
  if (cut.size > 0) {
    const double n =
        std::max(count_inside, count - std::ceil(before / cut.size) -
                                   std::ceil(behind / cut.size));
    if (n > std::floor(length / cut.size)) return kInfinity;
    return std::max(n, 0.0);
  }
  const double n = std::max(inside, all - before - behind);
  return n > length * (1 + kRounding) ? kInfinity : n;
}

bool Windows::best_cut(double t, Cut& best) {
  double most = 0;
  join(t);
  for (const Cut& cut : cuts_) {
    const double over = excess(cut, t);
    if (!(over > most)) continue;
    most = over;
    best = cut;
    if (over == kInfinity) break;
  }
  return most > 0;
}

// Returns the latest start of the target that a cut refutes, from one that it
// does.
double Windows::latest_refuted(const Cut& cut, double low) {
  const auto refuted = [&](double t) {
    join(t);
    return excess(cut, t) > 0;
  };
  double high = low * 1.01;
  for (int k = 0; refuted(high); ++k, high *= 1.1) {
    low = high;
    if (k == 200) return low;  // no plan is possible at all
  }
  while (high - low > low * 1e-11) {
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
