// Idle time of devices, split by cause.

#include <algorithm>
#include <map>

#include "profiler/busy.h"

namespace berth::profiler {

namespace {

constexpr double kLaunchUs = 20;  // between two ops: launching the second

class IdleTime {
 public:
  explicit IdleTime(const EventIndex& x) : x_(x) {
    using enum EventClass;
    for (size_t e = 0; e < x.events.size(); ++e) {
      if (!x.counts[e]) continue;
      const Interval at = {x.events[e].begin_us, x.events[e].end_us};
      switch (x.classes[e]) {
        case kSum:
          covers_[0].second.push_back(at);
          break;
        case kInput:
          covers_[1].second.push_back(at);
          break;
        case kMemoryWait:
          covers_[2].second.push_back(at);
          break;
        case kHost:
          covers_[3].second.push_back(at);
          break;
        case kTransfer:
          covers_[4].second.push_back(at);
          break;
        case kCompute:
          covers_[5].second.push_back(at);
          break;
        default:
          break;
      }
      if (x.is_work(static_cast<int32_t>(e)) && x.step[e] >= 0) {
        Interval& work = work_[x.step[e]];
        if (work.end == 0) work.begin = at.begin;
        work.end = std::max(work.end, at.end);
      }
    }
    for (auto& [cause, all] : covers_) all = union_of(std::move(all));
  }

  DeviceTime of(int32_t device) {
    use_ = {};
    edges_.clear();
    use_.name = x_.tracks[device];
    const Intervals steps = union_of(x_.steps);
    const Intervals busy = compute_of(x_, device);
    use_.window_us = measure(steps);
    use_.busy_us = measure(busy);
    std::vector<int32_t> ops;
    for (size_t e = 0; e < x_.events.size(); ++e) {
      const bool is_op = x_.classes[e] == EventClass::kCompute && x_.counts[e];
      if (is_op && x_.track[e] == device) ops.push_back(e);
    }
    size_t next = 0;  // gaps do not cross the border of two steps
    for (const Interval& gap : difference(x_.steps, busy)) {
      while (next < ops.size() && x_.events[ops[next]].begin_us < gap.end) {
        ++next;
      }
      const bool runs_on =
          next < ops.size() && x_.events[ops[next]].begin_us <= gap.end;
      explain(gap, runs_on ? ops[next] : -1);
    }
    use_.idle_edges.assign(edges_.begin(), edges_.end());
    std::stable_sort(use_.idle_edges.begin(), use_.idle_edges.end(),
                     [](auto& a, auto& b) { return a.second > b.second; });
    return use_;
  }

 private:
  void add(IdleCause cause, double us) {
    use_.idle_us[static_cast<size_t>(cause)] += us;
  }

  // Walks back from the op after the gap along what was released last.
  void explain(Interval gap, int32_t next) {
    double until = gap.end;
    for (int32_t e = next; e >= 0 && until > gap.begin;) {
      const int32_t before = x_.last_before(e);
      if (before < 0 || x_.events[before].end_us <= gap.begin) break;
      const TimelineEvent& b = x_.events[before];
      if (b.end_us < until) fill({b.end_us, until}, false);
      const double from = std::max(gap.begin, b.begin_us);
      const double us = std::min(until, b.end_us) - from;
      charge(before, us);
      until = std::min(until, from);
      e = before;
    }
    if (until > gap.begin) fill({gap.begin, until}, next < 0);
  }

  void charge(int32_t e, double us) {
    if (us <= 0) return;
    const TimelineEvent& event = x_.events[e];
    if (x_.classes[e] == EventClass::kTransfer) {
      add(IdleCause::kTransfer, us);
      edges_["transfer " + event.detail] += us;
    } else if (x_.classes[e] == EventClass::kSum) {
      add(IdleCause::kSum, us);
      edges_["sum " + event.name] += us;
    } else {
      add(IdleCause::kCompute, us);
      edges_["compute of " + x_.tracks[x_.track[e]]] += us;
    }
  }

  // What no prerequisite explains: by what goes on at that time. `rest`: the
  // device has nothing more to do, others may.
  void fill(Interval gap, bool rest) {
    Intervals left = {gap};
    for (size_t k = 0; k < covers_.size() - (rest ? 0 : 2); ++k) {
      const Intervals covered =
          intersection(left, clipped(covers_[k].second, gap));
      if (covered.empty()) continue;
      add(covers_[k].first, measure(covered));
      left = difference(left, covered);
    }
    for (const Interval& part : left) add(border_cause(part, rest), part.us());
  }

  IdleCause border_cause(Interval part, bool rest) const {
    const auto next = std::upper_bound(
        x_.steps.begin(), x_.steps.end(), part.begin,
        [](double at, const Interval& s) { return at < s.begin; });
    if (next == x_.steps.begin()) return IdleCause::kOther;
    const auto step = static_cast<int32_t>(next - x_.steps.begin()) - 1;
    const auto work = work_.find(step);
    if (work == work_.end() || part.begin >= work->second.end) {
      return IdleCause::kStepEnd;
    }
    if (rest) return IdleCause::kStepEnd;
    if (part.end <= work->second.begin) return IdleCause::kHost;
    return part.us() <= kLaunchUs ? IdleCause::kHost : IdleCause::kOther;
  }

  const EventIndex& x_;
  // In this order; the last two only where nothing more is to be done.
  std::array<std::pair<IdleCause, Intervals>, 6> covers_ = {
      {{IdleCause::kSum, {}},
       {IdleCause::kInput, {}},
       {IdleCause::kMemory, {}},
       {IdleCause::kHost, {}},
       {IdleCause::kTransfer, {}},
       {IdleCause::kCompute, {}}}};
  std::map<int32_t, Interval> work_;  // by step: its ops
  DeviceTime use_;
  std::map<std::string, double> edges_;
};

}  // namespace

std::vector<DeviceTime> device_use(const EventIndex& x) {
  IdleTime idle(x);
  std::vector<DeviceTime> all;
  for (const int32_t d : x.devices) all.push_back(idle.of(d));
  return all;
}

double explained(const EventIndex& x) {
  Intervals named;
  for (size_t e = 0; e < x.events.size(); ++e) {
    const EventClass c = x.classes[e];
    if (!x.counts[e] || c == EventClass::kCall || c == EventClass::kMemory ||
        c == EventClass::kAnnotation || c == EventClass::kStage ||
        c == EventClass::kSlice) {
      continue;
    }
    named.push_back({x.events[e].begin_us, x.events[e].end_us});
  }
  const Intervals steps = union_of(x.steps);
  const double all = measure(steps);
  if (all <= 0) return 0;
  return measure(intersection(steps, union_of(std::move(named)))) / all;
}

}  // namespace berth::profiler
