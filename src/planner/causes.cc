// Why one plan takes longer than another: transfers added or removed, devices
// that compute or wait more, the critical path.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "planner/plan_view.h"
#include "planner/units.h"
#include "planner/what_if.h"

namespace berth {

namespace {

constexpr size_t kMostCauses = 4;

struct Cause {
  double size;
  std::string text;
};

class Comparison {
 public:
  Comparison(const PlanProblem& before, const PlacePlan& plan_before,
             const Evaluation& was, const PlanProblem& after,
             const PlacePlan& plan_after, const Evaluation& is)
      : p0_(before),
        p1_(after),
        e0_(was),
        e1_(is),
        plan0_(plan_before),
        plan1_(plan_after) {}

  std::vector<std::string> run() {
    compare_transfers();
    compare_devices();
    if (p0_.model == PlanModel::kStep) compare_paths();
    std::ranges::stable_sort(causes_, std::greater<>(), &Cause::size);
    std::vector<std::string> texts;
    // Negligible differences explain nothing.
    const double least = 0.01 * std::fabs(e1_.value - e0_.value);
    for (const Cause& c : causes_) {
      if (texts.size() < kMostCauses && c.size > least) texts.push_back(c.text);
    }
    return texts;
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // value, destination

  std::string time(double t) const { return time_text(t, p0_.time_unit); }
  void add(double size, std::string text) {
    causes_.push_back({size, std::move(text)});
  }
  // "CPU:0 computes 4 us more"; nothing if they are equal.
  void add_change(double more, const std::string& what) {
    if (more == 0) return;
    add(std::fabs(more), fmt::format("{} {} {}", what, time(std::fabs(more)),
                                     more > 0 ? "more" : "less"));
  }

  // "4 MiB of dense_2:0 now go to CPU:0 (4 us)"; for files without bytes
  // "dense_2 now goes ...".
  std::string text(const char* adverb, const PlannedTransfer& t) const {
    const bool sized = p0_.touch_us.empty() && p0_.time_unit == "us";
    return fmt::format(
        "{}{} {} {} to {} ({})",
        sized ? size_text(static_cast<double>(t.bytes)) + " of " : "value ",
        value_name(p0_, t.value), adverb, sized ? "go" : "goes",
        short_name(p0_, t.to), time(t.time));
  }

  void compare_transfers() {
    std::map<Key, PlannedTransfer> was, is;
    for (const auto& t : transfers_of(p0_, plan0_, e0_))
      was[{t.value, t.to}] = t;
    for (const auto& t : transfers_of(p1_, plan1_, e1_))
      is[{t.value, t.to}] = t;
    std::map<Key, double> changed;  // from, to
    for (const auto& [key, t] : is) {
      const auto old = was.find(key);
      if (old == was.end()) {
        add(t.time, text("now", t));
      } else if (old->second.time != t.time) {
        changed[{t.from, t.to}] += t.time - old->second.time;
      }
    }
    for (const auto& [key, t] : was) {
      if (is.count(key)) continue;
      add(t.time, text("no longer", t));
    }
    for (const auto& [link, more] : changed) {
      add(std::fabs(more),
          fmt::format("transfers from {} to {} take {} {} in all",
                      short_name(p0_, link.first), short_name(p0_, link.second),
                      time(std::fabs(more)), more > 0 ? "more" : "less"));
    }
  }

  // A device's idle time until its last op ends.
  static double idle(const PlacePlan& plan, const Evaluation& e, size_t d) {
    double last = 0;
    if (e.simulation.end_us.size() != plan.device.size()) return 0;
    for (const int32_t i : plan.sequence) {
      if (plan.device[i] == static_cast<int32_t>(d)) {
        last = std::max(last, e.simulation.end_us[i]);
      }
    }
    return last > 0 ? last - e.devices[d].busy : 0;
  }

  void compare_devices() {
    for (size_t d = 0; d < e0_.devices.size(); ++d) {
      const std::string name = short_name(p0_, static_cast<int32_t>(d));
      const bool step = p0_.model == PlanModel::kStep;
      add_change(e1_.devices[d].busy - e0_.devices[d].busy,
                 name + (step ? " computes" : " is busy"));
      if (!step) continue;
      add_change(idle(plan1_, e1_, d) - idle(plan0_, e0_, d), name + " waits");
    }
    if (p0_.model != PlanModel::kLoad) return;
    const size_t b0 = busiest(e0_), b1 = busiest(e1_);
    if (b0 == b1) return;
    add(std::fabs(e1_.value - e0_.value),
        fmt::format("{} is the busiest now, {} was",
                    short_name(p0_, static_cast<int32_t>(b1)),
                    short_name(p0_, static_cast<int32_t>(b0))));
  }

  static size_t busiest(const Evaluation& e) {
    const auto load = [](const DeviceUse& u) {
      return std::max(u.busy, u.copy_busy);
    };
    return static_cast<size_t>(std::ranges::max_element(e.devices, {}, load) -
                               e.devices.begin());
  }

  // How much of the critical path consists of transfers.
  void compare_paths() {
    const auto moving = [](const std::vector<CriticalItem>& path) {
      double sum = 0;
      for (const CriticalItem& c : path) sum += c.op < 0 ? c.end - c.start : 0;
      return sum;
    };
    const double was = moving(critical_path(p0_, plan0_, e0_));
    const double is = moving(critical_path(p1_, plan1_, e1_));
    if (was == is) return;
    add(std::fabs(is - was),
        fmt::format("the critical path has {} of transfers, it had {}",
                    time(is), time(was)));
  }

  const PlanProblem &p0_, &p1_;
  const Evaluation &e0_, &e1_;
  const PlacePlan &plan0_, &plan1_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<std::string> causes_of(const PlanProblem& before,
                                   const PlacePlan& plan_before,
                                   const Evaluation& was,
                                   const PlanProblem& after,
                                   const PlacePlan& plan_after,
                                   const Evaluation& is) {
  return Comparison(before, plan_before, was, after, plan_after, is).run();
}

}  // namespace berth
