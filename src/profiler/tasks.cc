// Joins the events of tasks.

#include "profiler/tasks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <regex>
#include <tuple>
#include <unordered_map>

namespace berth::profiler {

void shorten_devices(std::vector<TimelineEvent>* events) {
  const std::regex here("/job:localhost/replica:[0-9]+/task:[0-9]+/device:");
  const std::regex elsewhere(
      "/job:([A-Za-z0-9_]+)/replica:[0-9]+/task:([0-9]+)/device:");
  std::unordered_map<std::string, std::string> known;
  for (TimelineEvent& e : *events) {
    for (std::string* text : {&e.track, &e.name, &e.detail}) {
      if (text->find("/job:") == text->npos) continue;
      const auto [it, is_new] = known.try_emplace(*text);
      if (is_new) {
        it->second = std::regex_replace(std::regex_replace(*text, here, ""),
                                        elsewhere, "$1:$2 ");
      }
      *text = it->second;
    }
  }
}

namespace {

// When a task began to enter an exchange, and had left it.
struct Exchange {
  double entered_us = std::nan(""), left_us = std::nan("");
};

// The exchanges of a task by name, run, and which one of these.
using ExchangeKey = std::tuple<std::string, int64_t, int64_t>;
using Exchanges = std::map<ExchangeKey, Exchange>;

Exchanges exchanges_of(const TaskEvents& task) {
  Exchanges all;
  std::map<std::pair<std::string_view, int64_t>, int64_t> seen;
  for (const TimelineEvent& e : task.events) {
    if (e.kind != "sum" || e.simulated) continue;
    const ExchangeEvent part = exchange_event(e.name);
    if (part.exchange.empty()) continue;
    Exchange& at = all[{part.exchange, e.run, seen[{e.name, e.run}]++}];
    (part.enters ? at.entered_us : at.left_us) =
        part.enters ? e.begin_us : e.end_us;
  }
  std::erase_if(all, [](const auto& e) {
    return std::isnan(e.second.entered_us + e.second.left_us);
  });
  return all;
}

TaskClock clock_of(const std::string& task, const Exchanges& first,
                   const Exchanges& own) {
  TaskClock clock = {task};
  double least = -std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& [key, at] : own) {
    const auto other = first.find(key);
    if (other == first.end()) continue;
    ++clock.messages;
    least = std::max(least, other->second.entered_us - at.left_us);
    most = std::min(most, other->second.left_us - at.entered_us);
  }
  if (clock.messages == 0) return clock;
  const bool is_common = least <= 0 && most >= 0;
  if (!is_common) clock.offset_us = (least + most) / 2;
  clock.error_us = std::abs(most - least) / 2;
  return clock;
}

}  // namespace

ExchangeEvent exchange_event(const std::string& name) {
  for (const char* end : {"/start", "/end"}) {
    const size_t at = name.rfind(end);
    if (at == name.npos) continue;
    const std::string number = name.substr(at + std::strlen(end));
    if (!number.empty() && number[0] != '_') continue;
    return {name.substr(0, at) + number, end[1] == 's'};
  }
  return {};
}

std::vector<TaskClock> clocks_of(const std::vector<TaskEvents>& all) {
  std::vector<TaskClock> clocks;
  if (all.size() < 2) return clocks;
  const Exchanges first = exchanges_of(all[0]);
  for (const TaskEvents& task : all) {
    clocks.push_back(clock_of(task.task, first, exchanges_of(task)));
  }
  clocks[0].error_us = 0;
  return clocks;
}

Timeline joined(std::vector<TaskEvents> all,
                const std::vector<TaskClock>& clocks) {
  if (all.size() == 1) {
    return Timeline(std::move(all[0].events), all[0].dropped);
  }
  std::vector<std::pair<double, TimelineEvent*>> order;
  int64_t dropped = 0;
  for (size_t t = 0; t < all.size(); ++t) {
    dropped += all[t].dropped;
    for (TimelineEvent& e : all[t].events) {
      if (!e.simulated) {
        e.begin_us += clocks[t].offset_us;
        e.end_us += clocks[t].offset_us;
      }
      if (e.task.empty()) e.task = all[t].task;
      order.push_back({e.begin_us, &e});
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](auto& p, auto& q) { return p.first < q.first; });
  std::vector<std::vector<int32_t>> to(all.size());  // by task and place
  for (size_t t = 0; t < all.size(); ++t) to[t].resize(all[t].events.size());
  const auto task_of = [&](const TimelineEvent* e) {
    size_t t = 0;
    const std::less<> before;
    while (before(e, all[t].events.data()) ||
           !before(e, all[t].events.data() + all[t].events.size())) {
      ++t;
    }
    return t;
  };
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t t = task_of(order[k].second);
    to[t][order[k].second - all[t].events.data()] = static_cast<int32_t>(k);
  }
  std::vector<TimelineEvent> events;
  events.reserve(order.size());
  for (const auto& [begin, e] : order) {
    for (int32_t& a : e->after) a = to[task_of(e)][a];
    events.push_back(std::move(*e));
  }
  return Timeline(std::move(events), dropped);
}

}  // namespace berth::profiler
