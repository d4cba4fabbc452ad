// The steps of a timeline: calls of one function or annotations of one name,
// else runs of one plan.

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "profiler/event_index.h"

namespace berth::profiler {

namespace {

// "train" of the annotation "train (step_num=1)", a call's whole name; empty:
// no step.
std::string_view step_mark(const TimelineEvent& e, EventClass c) {
  constexpr const char* kWords[] = {"train", "test", "predict"};
  const std::string_view name = e.name;
  for (const char* word : kWords) {
    if (c == EventClass::kCall && name.find(word) != name.npos) return name;
    if (c == EventClass::kAnnotation && name.starts_with(word)) {
      return name.substr(0, name.find_first_of(" (/"));
    }
  }
  return "";
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

// Those of the name on which most time was spent; a single annotation only
// without calls. A step lasts until the next call or annotation begins: waiting
// for input belongs to it.
bool EventIndex::steps_of_marks() {
  if (simulated) return false;  // they are on the host's clock
  struct Mark {
    double us = 0;
    int64_t count = 0;
    EventClass of = EventClass::kCall;
  };
  std::map<std::string_view, Mark> marks;
  std::vector<int32_t> places;  // of calls and annotations
  bool any_call = false;
  for (size_t e = 0; e < events.size(); ++e) {
    const EventClass c = classes[e];
    if (c != EventClass::kCall && c != EventClass::kAnnotation) continue;
    places.push_back(static_cast<int32_t>(e));
    const std::string_view name = step_mark(events[e], c);
    if (name.empty()) continue;
    Mark& mark = marks[name];
    mark.us += events[e].end_us - events[e].begin_us;
    mark.of = c;
    ++mark.count;
    any_call |= c == EventClass::kCall;
  }
  const Mark* most = nullptr;
  for (const auto& [name, mark] : marks) {
    const bool is_one = mark.of == EventClass::kAnnotation && mark.count < 2;
    if ((is_one && any_call) || (most != nullptr && mark.us <= most->us)) {
      continue;
    }
    most = &mark;
    step_name = name;
  }
  if (most == nullptr) return false;
  std::string_view task;
  bool open = false;
  for (const int32_t e : places) {
    const TimelineEvent& event = events[e];
    if (open && event.task == task && event.begin_us >= steps.back().end) {
      steps.back().end = event.begin_us;
      open = false;
    }
    if (step_mark(event, classes[e]) != step_name) continue;
    if (steps.empty()) task = event.task;  // of several, the first one's
    if (event.task != task) continue;
    if (!steps.empty() && event.begin_us < steps.back().end) continue;
    steps.push_back({event.begin_us, event.end_us});
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
  if (!steps_of_marks()) steps_of_runs();
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
