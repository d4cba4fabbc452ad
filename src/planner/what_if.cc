// Questions: parses them and applies them to problem and plan.

#include "planner/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "berth/errors.h"
#include "planner/plan_view.h"
#include "planner/units.h"

namespace berth {

namespace {

constexpr size_t kMostCauses = 4;

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(
      text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

// Splits off the first word.
std::pair<std::string, std::string> first_word(const std::string& text) {
  const std::string all = trimmed(text);
  const size_t space = std::min(all.find(' '), all.size());
  return {all.substr(0, space), trimmed(all.substr(space))};
}

class Question {
 public:
  Question(const PlanProblem& p, const PlacePlan& plan, const std::string& text)
      : text_(text), c_{p, plan, {}, {}} {
    c_.problem.candidates.clear();  // made under other circumstances
  }

  Changed run() {
    const std::map<std::string, void (Question::*)()> apply = {
        {"move", &Question::move},
        {"link", &Question::link},
        {"memory", &Question::memory},
        {"device", &Question::speed},
        {"remove", &Question::remove}};
    std::string verb;
    std::tie(verb, rest_) = first_word(text_);
    const auto at = apply.find(verb);
    if (at == apply.end()) fail("begins with none of these words");
    (this->*at->second)();
    return std::move(c_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw errors::InvalidArgument(fmt::format(
        "what-if \"{}\": {}; expected \"move OP to DEVICE\", \"link A-B = "
        "64GB/s\", \"memory DEVICE = 8GiB\", \"device DEVICE 2x faster\" or "
        "\"remove DEVICE\"",
        text_, why));
  }

  std::optional<int32_t> find_device(const std::string& name) const {
    for (int32_t d = 0; d < c_.problem.num_devices(); ++d) {
      if (short_name(c_.problem, d) == name ||
          c_.problem.costs.devices[d].name == name) {
        return d;
      }
    }
    return std::nullopt;
  }
  int32_t device(const std::string& name) const {
    if (const auto d = find_device(name)) return *d;
    std::string all;
    for (int32_t d = 0; d < std::min(c_.problem.num_devices(), 16); ++d) {
      all += (d ? ", " : "") + short_name(c_.problem, d);
    }
    fail(fmt::format("there is no device \"{}\" among {}", name, all));
  }

  // Splits the rest at the last `word`.
  std::pair<std::string, std::string> cut(const std::string& word) const {
    const size_t at = rest_.rfind(word);
    if (at == std::string::npos)
      fail(fmt::format("has no \"{}\"", trimmed(word)));
    return {trimmed(rest_.substr(0, at)),
            trimmed(rest_.substr(at + word.size()))};
  }

  double quantity(const std::string& text, Quantity kind) const {
    try {
      return parse_quantity(text, kind);
    } catch (const errors::InvalidArgument& e) {
      fail(e.what());
    }
  }

  // "2x faster", "1.5x slower": returns the factor for times.
  double factor(const std::string& text) const {
    double x = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, x);
    const std::string word = trimmed({rest, static_cast<size_t>(end - rest)});
    if (error != std::errc() || !(x > 0) || !(x < 1e9) ||
        (word != "x faster" && word != "x slower")) {
      fail(fmt::format("\"{}\" is nothing like \"2x faster\"", text));
    }
    return word == "x faster" ? 1 / x : x;
  }

  std::vector<int32_t> ops_named(std::string name) const {
    const bool all =
        name.size() > 1 && (name.back() == '*' || name.back() == '/');
    if (all && name.back() == '*') name.pop_back();
    std::vector<int32_t> ops;
    for (int32_t i = 0; i < c_.problem.num_ops(); ++i) {
      const std::string& n = c_.problem.names[i];
      if (all ? n.starts_with(name) : n == name) ops.push_back(i);
    }
    // The ops of a layer.
    for (int32_t i = 0; ops.empty() && !all && i < c_.problem.num_ops(); ++i) {
      const std::string& n = c_.problem.names[i];
      if (!n.starts_with(name + "/")) continue;
      return ops_named(name + "/");
    }
    if (ops.empty()) fail(fmt::format("there is no op \"{}\"", name));
    return ops;
  }

  void move() {
    const auto [name, where] = cut(" to ");
    const int32_t to = device(where);
    const std::vector<int32_t> ops = ops_named(name);
    std::vector<uint8_t> group(c_.problem.num_groups, 0);
    for (const int32_t i : ops) group[c_.problem.group[i]] = 1;
    for (int32_t i = 0; i < c_.problem.num_ops(); ++i) {
      if (!group[c_.problem.group[i]]) continue;
      c_.moved.push_back(i);
      c_.plan.device[i] = to;
      c_.problem.allowed[i] &= device_bit(to);
    }
    if (c_.moved.size() > ops.size()) {
      c_.note = fmt::format("with {} that must be with {}",
                            c_.moved.size() - ops.size(),
                            ops.size() == 1 ? "it" : "them");
    }
  }

  // "A-B" or "A->B"; names may contain dashes.
  template <class Fn>
  void for_links(const std::string& ends, const Fn& fn) {
    for (size_t at = ends.find('-'); at != std::string::npos;
         at = ends.find('-', at + 1)) {
      const bool one_way = ends.compare(at, 2, "->") == 0;
      const auto a = find_device(trimmed(ends.substr(0, at)));
      const auto b = find_device(trimmed(ends.substr(at + (one_way ? 2 : 1))));
      if (!a || !b || *a == *b) continue;
      fn(c_.problem.costs.link_of(*a, *b));
      if (!one_way) fn(c_.problem.costs.link_of(*b, *a));
      return;
    }
    fail(fmt::format("\"{}\" is no pair of devices", ends));
  }

  void link() {
    if (!c_.problem.touch_us.empty()) {
      fail("the file has times of transfers, no links");
    }
    if (c_.problem.time_unit != "us") {
      fail("the file says in no unit how long transfers take");
    }
    std::optional<double> bandwidth, latency;
    auto [ends, words] = cut("=");
    std::replace(words.begin(), words.end(), ',', ' ');
    while (!words.empty()) {
      const auto [word, rest] = first_word(words);
      words = rest;
      if (word.ends_with("/s")) {
        bandwidth = quantity(word, Quantity::kBandwidth);
      } else {
        latency = quantity(word, Quantity::kTime);
      }
    }
    if (!bandwidth && !latency) fail("has nothing behind \"=\"");
    if (bandwidth && *bandwidth == 0) fail("a bandwidth of 0 brings nothing");
    for_links(ends, [&](LinkCost& l) {
      l.bytes_per_us = bandwidth.value_or(l.bytes_per_us);
      l.latency_us = latency.value_or(l.latency_us);
    });
  }

  void memory() {
    const auto [name, size] = cut("=");
    const double bytes = quantity(size, Quantity::kBytes);
    if (bytes < 1) fail("a limit of 0 means none");
    c_.problem.costs.devices[device(name)].memory_limit =
        limit_of(c_.problem, bytes);
  }

  // The device gets its own class.
  void speed() {
    const auto [name, how] = first_word(rest_);
    const int32_t d = device(name);
    const double by = factor(how);
    CostTable& costs = c_.problem.costs;
    const size_t old = costs.classes.size();
    const size_t from = costs.devices[d].device_class;
    costs.classes.push_back(costs.classes[from]);
    costs.classes.back().name += ", " + how;
    costs.devices[d].device_class = old;
    std::vector<OpTime> times;
    std::vector<int64_t> workspace;
    for (size_t i = 0; i * old < costs.times.size(); ++i) {
      for (size_t c = 0; c <= old; ++c) {
        const size_t at = i * old + (c == old ? from : c);
        times.push_back(costs.times[at]);
        if (c == old) times.back().us *= by;
        if (!costs.workspace.empty()) workspace.push_back(costs.workspace[at]);
      }
    }
    costs.times = std::move(times);
    costs.workspace = std::move(workspace);
  }

  // No op may be there; a plan that uses the device is only planned anew.
  void remove() {
    const int32_t d = device(rest_);
    for (DeviceSet& mask : c_.problem.allowed) mask &= ~device_bit(d);
  }

  const std::string& text_;
  Changed c_;
  std::string rest_;
};

// Why the value changed: transfers that come, go or take another time, devices
// with more or less to do. The largest first.
std::vector<std::string> causes_of(const PlanProblem& p, const PlanAnswer& a,
                                   const Changed& c, const Evaluation& is) {
  std::vector<std::pair<double, std::string>> causes;
  const auto add = [&](double more, const std::string& what) {
    if (more == 0) return;
    causes.emplace_back(
        -std::fabs(more),
        fmt::format("{} {} {}", what, time_text(std::fabs(more), p.time_unit),
                    more > 0 ? "more" : "less"));
  };
  const bool sized = p.touch_us.empty() && p.time_unit == "us";
  const auto add_transfer = [&](const char* adverb, const PlannedTransfer& t) {
    causes.emplace_back(
        -t.time,
        fmt::format("{}{} {} {} to {} ({})",
                    sized ? size_text(t.bytes) + " of " : "value ",
                    value_name(p, t.value), adverb, sized ? "go" : "goes",
                    short_name(p, t.to), time_text(t.time, p.time_unit)));
  };
  std::map<std::pair<int32_t, int32_t>, PlannedTransfer> was;  // value, to
  for (const PlannedTransfer& t :
       transfers_of(p, a.plan, a.evaluation.simulation)) {
    was[{t.value, t.to}] = t;
  }
  std::map<std::pair<int32_t, int32_t>, double> changed;  // from, to
  for (const PlannedTransfer& t :
       transfers_of(c.problem, c.plan, is.simulation)) {
    const auto old = was.extract({t.value, t.to});
    if (old.empty()) {
      add_transfer("now", t);
    } else {
      changed[{t.from, t.to}] += t.time - old.mapped().time;
    }
  }
  for (const auto& [key, t] : was) add_transfer("no longer", t);
  for (const auto& [link, more] : changed) {
    add(more,
        fmt::format("transfers from {} to {} take", short_name(p, link.first),
                    short_name(p, link.second)));
  }
  for (int32_t d = 0; d < std::ssize(is.devices); ++d) {
    add(is.devices[d].busy - a.evaluation.devices[d].busy,
        short_name(p, d) + " is busy for");
  }
  std::ranges::stable_sort(causes, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> texts;
  // Negligible differences explain nothing.
  const double least = 0.01 * std::fabs(is.value - a.value);
  for (const auto& [size, text] : causes) {
    if (texts.size() < kMostCauses && -size > least) texts.push_back(text);
  }
  return texts;
}

}  // namespace

Changed change(const PlanProblem& p, const PlacePlan& plan,
               const std::string& question) {
  return Question(p, plan, question).run();
}

WhatIf what_if(const PlanProblem& p, const PlanAnswer& a,
               const std::string& question, const PlannerOptions& options) {
  const Changed c = change(p, a.plan, question);
  WhatIf w;
  w.question = question;
  w.before = a.value;
  const Evaluation is = evaluate(c.problem, c.plan);
  w.after = is.value;
  w.violations = is.violations;
  if (std::isfinite(is.value)) w.causes = causes_of(p, a, c, is);
  if (!c.note.empty()) w.causes.push_back(c.note);
  w.again = plan_placement(c.problem, options);
  return w;
}

}  // namespace berth
