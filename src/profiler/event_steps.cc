// The steps of a timeline: calls of one function, else runs of one plan.

#include <algorithm>
#include <numeric>

#include "profiler/event_index.h"

namespace berth::profiler {

namespace {

bool names_a_step(const std::string& name) {
  for (const char* word : {"train", "test", "predict"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

// Sets of places that were joined.
struct JoinedPlaces {
  explicit JoinedPlaces(size_t n) : parent(n) {
    std::iota(parent.begin(), parent.end(), 0);
  }
  int32_t find(int32_t a) {
    while (parent[a] != a) a = parent[a] = parent[parent[a]];
    return a;
  }
  std::vector<int32_t> parent;
};

}  // namespace

// Calls of the name on which most time was spent. A step lasts until the next
// call begins: waiting for input belongs to it.
bool EventIndex::steps_of_calls() {
  if (simulated) return false;  // calls are on the host's clock
  std::map<std::string, double> us;
  for (size_t e = 0; e < events.size(); ++e) {
    if (classes[e] != EventClass::kCall || !names_a_step(events[e].name)) {
      continue;
    }
    us[events[e].name] += events[e].end_us - events[e].begin_us;
  }
  if (us.empty()) return false;
  step_name = std::max_element(us.begin(), us.end(), [](auto& a, auto& b) {
                return a.second < b.second;
              })->first;
  std::string task;
  bool open = false;
  for (size_t e = 0; e < events.size(); ++e) {
    if (classes[e] != EventClass::kCall) continue;
    if (open && events[e].task == task &&
        events[e].begin_us >= steps.back().end) {
      steps.back().end = events[e].begin_us;
      open = false;
    }
    if (events[e].name != step_name) continue;
    if (steps.empty()) task = events[e].task;  // of several, the first one's
    if (events[e].task != task) continue;
    if (!steps.empty() && events[e].begin_us < steps.back().end) continue;
    steps.push_back({events[e].begin_us, events[e].end_us});
    open = true;
  }
  return true;
}

// What hangs together by `after` is a run of a plan; those that begin with the
// same op are of the same plan.
void EventIndex::steps_of_runs() {
  JoinedPlaces runs(events.size());
  for (int32_t e = 0; e < static_cast<int32_t>(events.size()); ++e) {
    if (!is_work(e) || events[e].run == 0) continue;
    for (const int32_t a : events[e].after) {
      if (a >= 0 && a < e && events[a].run == events[e].run) {
        runs.parent[runs.find(e)] = runs.find(a);
      }
    }
  }
  std::map<int32_t, Interval> spans;              // by root
  std::map<int32_t, std::vector<int32_t>> of_op;  // roots, by their first op
  for (int32_t e = 0; e < static_cast<int32_t>(events.size()); ++e) {
    if (!is_work(e) || events[e].run == 0) continue;
    const int32_t root = runs.find(e);
    const auto [span, is_new] =
        spans.try_emplace(root, Interval{events[e].begin_us, events[e].end_us});
    span->second.end = std::max(span->second.end, events[e].end_us);
    if (is_new) of_op[op[e]].push_back(root);
  }
  const std::vector<int32_t>* longest = nullptr;
  double most = 0;
  for (const auto& [first, roots] : of_op) {
    double us = 0;
    for (const int32_t root : roots) us += spans[root].us();
    if (us <= most) continue;
    most = us;
    longest = &roots;
    step_name = "run of " + events[first_of_op[first]].name;
  }
  if (longest == nullptr) return;
  for (const int32_t root : *longest) {
    const Interval s = spans[root];
    if (!steps.empty()) steps.back().end = s.begin;
    steps.push_back(s);
  }
}

void EventIndex::find_steps() {
  if (!steps_of_calls()) steps_of_runs();
  if (steps.empty() && !events.empty()) {
    Intervals all;
    for (size_t e = 0; e < events.size(); ++e) {
      if (counts[e] && classes[e] != EventClass::kMemory) {
        all.push_back({events[e].begin_us, events[e].end_us});
      }
    }
    all = union_of(std::move(all));
    if (!all.empty()) steps.push_back({all.front().begin, all.back().end});
    step_name = "the whole recording";
  }
  std::erase_if(steps, [](const Interval& s) { return s.us() <= 0; });
  step.assign(events.size(), -1);
  for (size_t e = 0; e < events.size(); ++e) {
    if (!counts[e]) continue;
    const auto next = std::upper_bound(
        steps.begin(), steps.end(), events[e].begin_us,
        [](double at, const Interval& s) { return at < s.begin; });
    if (next == steps.begin()) continue;
    if (events[e].begin_us < std::prev(next)->end) {
      step[e] = static_cast<int32_t>(next - steps.begin()) - 1;
    }
  }
}

}  // namespace berth::profiler
