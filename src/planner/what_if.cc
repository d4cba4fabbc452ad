// Questions: parses them and applies them to problem and plan.

#include "planner/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "berth/errors.h"
#include "planner/plan_view.h"
#include "planner/units.h"

namespace berth {

namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(
      text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

class Question {
 public:
  Question(const PlanProblem& p, const PlacePlan& plan, const std::string& text)
      : text_(text), c_{p, plan, {}, {}} {
    c_.problem.candidates.clear();  // made under other circumstances
  }

  Changed run() {
    const std::string text = trimmed(text_);
    const size_t space = text.find(' ');
    const std::string verb = text.substr(0, space);
    rest_ = space == std::string::npos ? "" : trimmed(text.substr(space));
    if (verb == "move") {
      move();
    } else if (verb == "link") {
      link();
    } else if (verb == "memory") {
      memory();
    } else if (verb == "device") {
      speed();
    } else if (verb == "remove") {
      remove();
    } else {
      fail("begins with none of these words");
    }
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

  template <class Fn>
  auto quantity(Fn&& fn) const {
    try {
      return fn();
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
  void for_links(const std::string& ends,
                 const std::function<void(LinkCost&)>& fn) {
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
    const size_t equals = rest_.find('=');
    if (equals == std::string::npos) {
      const size_t space = rest_.find(' ');
      if (space == std::string::npos) fail("has no \"=\"");
      const double by = factor(trimmed(rest_.substr(space)));
      for_links(trimmed(rest_.substr(0, space)), [&](LinkCost& l) {
        l.latency_us *= by;
        l.bytes_per_us /= by;
      });
      return;
    }
    if (c_.problem.time_unit != "us") {
      fail(
          "the file says in no unit how long transfers take; say \"2x "
          "faster\"");
    }
    std::optional<double> bandwidth, latency;
    std::string words = trimmed(rest_.substr(equals + 1));
    std::replace(words.begin(), words.end(), ',', ' ');
    while (!words.empty()) {
      const size_t space = words.find(' ');
      const std::string word = words.substr(0, space);
      words = space == std::string::npos ? "" : trimmed(words.substr(space));
      const bool is_rate = word.ends_with("/s");
      (is_rate ? bandwidth : latency) = quantity([&] {
        return parse_quantity(word,
                              is_rate ? Quantity::kBandwidth : Quantity::kTime);
      });
    }
    if (!bandwidth && !latency) fail("has nothing behind \"=\"");
    if (bandwidth && *bandwidth == 0) fail("a bandwidth of 0 brings nothing");
    for_links(trimmed(rest_.substr(0, equals)), [&](LinkCost& l) {
      l.bytes_per_us = bandwidth.value_or(l.bytes_per_us);
      l.latency_us = latency.value_or(l.latency_us);
    });
  }

  void memory() {
    const auto [name, text] = cut("=");
    const std::string& size = text;  // for the lambda
    const double bytes =
        quantity([&] { return parse_quantity(size, Quantity::kBytes); });
    if (bytes < 1) fail("a limit of 0 means none");
    c_.problem.costs.devices[device(name)].memory_limit =
        limit_of(c_.problem, bytes);
  }

  // The device gets its own class.
  void speed() {
    const size_t space = rest_.find(' ');
    if (space == std::string::npos) fail("does not say how fast");
    const int32_t d = device(rest_.substr(0, space));
    const double by = factor(trimmed(rest_.substr(space)));
    CostTable& costs = c_.problem.costs;
    const size_t old = costs.classes.size();
    const size_t from = costs.devices[d].device_class;
    costs.classes.push_back(costs.classes[from]);
    costs.classes.back().name +=
        fmt::format(", {}", trimmed(rest_.substr(space)));
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
  if (std::isfinite(is.value)) {
    w.causes = causes_of(p, a.plan, a.evaluation, c.problem, c.plan, is);
  }
  if (!c.note.empty()) w.causes.push_back(c.note);
  w.again = plan_placement(c.problem, options);
  return w;
}

}  // namespace berth
