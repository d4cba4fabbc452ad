// Finds the steps of a timeline.

#include "profiler/steps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace berth::profiler {

namespace {

bool is_step_mark(const TimelineEvent& e) {
  return (e.kind == "call" || e.kind == "annotation") &&
         (e.name.starts_with("train") || e.name.starts_with("test") ||
          e.name.starts_with("predict"));
}

// The name without arguments: "train (step_num=1)" is "train".
std::string mark_of(const std::string& name) {
  return name.substr(0, name.find_first_of(" (/"));
}

std::vector<Step> marked_steps(const std::vector<TimelineEvent>& events,
                               const Layout& layout) {
  std::vector<Step> steps;
  for (const int32_t k : layout.order) {
    if (!is_step_mark(events[k]) || layout.rows[layout.row[k]].simulated) {
      continue;
    }
    steps.push_back(
        {mark_of(events[k].name), layout.begin_ns[k], layout.end_ns[k]});
  }
  return steps;
}

// Events of a run of a plan hang together by what had to end before.
class Runs {
 public:
  explicit Runs(const std::vector<TimelineEvent>& events)
      : parent_(events.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t k = 0; k < events.size(); ++k) {
      if (events[k].run == 0) continue;
      for (const int32_t a : events[k].after) {
        const bool is_same = a >= 0 && static_cast<size_t>(a) < events.size() &&
                             events[a].run == events[k].run;
        if (is_same) parent_[root(a)] = root(static_cast<int32_t>(k));
      }
    }
  }
  int32_t root(int32_t k) {
    while (parent_[k] != k) k = parent_[k] = parent_[parent_[k]];
    return k;
  }

 private:
  std::vector<int32_t> parent_;
};

std::vector<Step> steps_of_plan(const std::vector<TimelineEvent>& events,
                                const Layout& layout) {
  const auto counts = [&](int32_t k) {
    return events[k].run > 0 && !layout.rows[layout.row[k]].simulated;
  };
  using Op = std::tuple<int32_t, std::string_view, const char*, int>;
  std::map<Op, std::vector<int32_t>> ops;
  const std::vector<int32_t>* most = nullptr;
  for (const int32_t k : layout.order) {
    if (!counts(k)) continue;
    const TimelineEvent& e = events[k];
    auto& those = ops[{layout.row[k], e.name, e.site.file, e.site.line}];
    those.push_back(k);
    if (most == nullptr || those.size() > most->size()) most = &those;
  }
  if (most == nullptr) return {};
  Runs runs(events);
  std::map<int32_t, Step> steps;  // by root
  for (const int32_t k : *most) {
    steps.try_emplace(runs.root(k), Step{"train", layout.begin_ns[k], 0});
  }
  for (const int32_t k : layout.order) {
    if (!counts(k)) continue;
    const auto it = steps.find(runs.root(k));
    if (it == steps.end()) continue;
    it->second.begin_ns = std::min(it->second.begin_ns, layout.begin_ns[k]);
    it->second.end_ns = std::max(it->second.end_ns, layout.end_ns[k]);
  }
  std::vector<Step> all;
  for (auto& [root, step] : steps) all.push_back(std::move(step));
  return all;
}

}  // namespace

std::vector<Step> steps_of(const std::vector<TimelineEvent>& events,
                           const Layout& layout) {
  std::vector<Step> found = marked_steps(events, layout);
  if (found.empty()) found = steps_of_plan(events, layout);
  std::sort(found.begin(), found.end(), [](const Step& a, const Step& b) {
    return a.begin_ns < b.begin_ns;
  });
  std::vector<Step> steps;
  for (Step& s : found) {
    if (steps.empty() || s.begin_ns >= steps.back().end_ns) {
      steps.push_back(std::move(s));
    }
  }
  // The last input between two steps belongs to the second.
  std::vector<std::optional<int64_t>> begin(steps.size());
  size_t next = 0;
  for (const int32_t k : layout.order) {
    if (events[k].kind != "input") continue;
    const int64_t at = layout.begin_ns[k];
    while (next < steps.size() && steps[next].begin_ns <= at) ++next;
    if (next == steps.size()) break;
    if (next == 0 || at >= steps[next - 1].end_ns) begin[next] = at;
  }
  for (size_t s = 0; s < steps.size(); ++s) {
    steps[s].begin_ns = begin[s].value_or(steps[s].begin_ns);
  }
  return steps;
}

}  // namespace berth::profiler
