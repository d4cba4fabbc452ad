#include "cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/place_input.h"
#include "planner/plan_file.h"
#include "planner/plan_view.h"
#include "planner/units.h"
#include "simulate/pipeline_steps.h"

namespace berth::cli {

namespace {

constexpr size_t kMostLines = 8;

void append_candidates(const PlanProblem& p, const PlanAnswer& a,
                       std::string* out) {
  const auto to = std::back_inserter(*out);
  fmt::format_to(to, "found by: {}\n", a.source);
  if (!a.start.name.empty() && std::isfinite(a.start.value)) {
    fmt::format_to(to, "  the search began with: {}, {}; it saved {:.1f} %\n",
                   a.start.name, time_text(a.start.value, p.time_unit),
                   100 * a.improved());
  }
  size_t shown = 0;
  for (const PricedCandidate& c : a.candidates) {
    if (++shown > kMostLines) {
      fmt::format_to(to, "  and {} more\n", a.candidates.size() - kMostLines);
      break;
    }
    if (!c.violations.empty() || std::isinf(c.value)) {
      fmt::format_to(
          to, "  {}: impossible, {}\n", c.name,
          c.violations.empty() ? "an op has no kernel there" : c.violations[0]);
    } else {
      fmt::format_to(to, "  {}: {}, {:+.1f} %\n", c.name,
                     time_text(c.value, p.time_unit),
                     a.value > 0 ? 100 * (c.value / a.value - 1) : 0.0);
    }
  }
}

void append_devices(const PlanProblem& p, const PlanAnswer& a,
                    std::string* out) {
  const auto to = std::back_inserter(*out);
  std::vector<int32_t> ops(p.costs.devices.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    ops[a.plan.device[static_cast<size_t>(i)]] += p.takes_time(i);
  }
  fmt::format_to(to, "{:<14} {:>6} {:>10} {:>6} {:>10}  {}\n", "device", "ops",
                 "busy", "share", "copies in", "peak memory");
  for (size_t d = 0; d < a.evaluation.devices.size(); ++d) {
    const DeviceUse& use = a.evaluation.devices[d];
    const int64_t limit = p.costs.devices[d].memory_limit;
    // Without units, files have no bytes.
    const bool sized = p.time_unit == "us" || limit > 0;
    fmt::format_to(
        to, "{:<14} {:>6} {:>10} {:>5.0f}% {:>10}  {}{}\n",
        short_name(p, static_cast<int32_t>(d)), ops[d],
        time_text(use.busy, p.time_unit),
        a.value > 0 ? 100 * use.busy / a.value : 0.0,
        time_text(use.copy_busy, p.time_unit),
        sized ? size_text(use.bytes) : "-",
        limit > 0 ? " of " + size_text(static_cast<double>(limit)) : "");
  }
}

// Adds what is particular to a pipeline: its stages; per device, its memory.
void append_pipeline(const PlanProblem& p, const PlanAnswer& a,
                     std::string* out) {
  const auto to = std::back_inserter(*out);
  const std::vector<StageUse>& stages = a.evaluation.stages;
  fmt::format_to(to, "{} stage{}, {}, {} micro-batches, bubble {:.1f} %\n",
                 stages.size(), stages.size() == 1 ? "" : "s",
                 order_name(a.plan.order), p.pipeline.micro_batches,
                 100 * bubble_of(a));
  fmt::format_to(to, "{:<6} {:<14} {:>10} {:>10} {:>9} {:>10} {:>10} {:>11}\n",
                 "stage", "device", "forward", "backward", "in flight",
                 "weights", "gradients", "activations");
  std::set<int32_t> seen;
  for (size_t s = 0; s < stages.size(); ++s) {
    const StageUse& stage = stages[s];
    if (stage.device < 0) continue;
    const DeviceUse& use = a.evaluation.devices[stage.device];
    const bool first = seen.insert(stage.device).second;
    const auto size = [&](double bytes) {
      return first ? size_text(bytes) : std::string("\"");
    };
    fmt::format_to(
        to, "{:<6} {:<14} {:>10} {:>10} {:>9} {:>10} {:>10} {:>11}\n", s,
        short_name(p, stage.device), time_text(stage.forward, p.time_unit),
        time_text(stage.backward, p.time_unit), stage.in_flight,
        size(use.weights), size(use.gradients),
        size(use.bytes - use.weights - use.gradients));
  }
}

// Adds links that carry one transfer at a time, if they are the bottleneck.
void append_links(const PlanProblem& p, const PlanAnswer& a, std::string* out) {
  const std::vector<double>& busy = a.evaluation.shared_busy;
  std::vector<size_t> full;
  for (size_t k = 0; k < busy.size(); ++k) {
    if (busy[k] >= 0.9 * a.value && a.value > 0) full.push_back(k);
  }
  std::ranges::stable_sort(full, std::greater<>(),
                           [&](size_t k) { return busy[k]; });
  const auto to = std::back_inserter(*out);
  const auto& names = p.costs.shared_names;
  for (size_t i = 0; i < std::min(full.size(), kMostLines); ++i) {
    const size_t k = full[i];
    const std::string name = k < names.size() ? names[k] : "";
    fmt::format_to(
        to, "{}: busy for {:.0f}% of a step\n",
        name.empty() ? fmt::format("links that share number {}", k) : name,
        100 * busy[k] / a.value);
  }
  if (full.size() > kMostLines) {
    fmt::format_to(to, "and {} more\n", full.size() - kMostLines);
  }
}

void append_transfers(const PlanProblem& p, const PlanAnswer& a,
                      std::string* out) {
  const auto to = std::back_inserter(*out);
  std::vector<PlannedTransfer> all =
      transfers_of(p, a.plan, a.evaluation.simulation);
  if (all.empty()) return;
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return x.time > y.time;
  });
  const size_t shown = std::min(all.size(), kMostLines);
  fmt::format_to(
      to, "{} transfer{}{}\n", all.size(), all.size() == 1 ? "" : "s",
      shown < all.size() ? fmt::format(", the {} longest:", shown) : ":");
  for (size_t k = 0; k < shown; ++k) {
    const PlannedTransfer& t = all[k];
    // Files with times of transfers have no bytes.
    const std::string bytes =
        p.touch_us.empty() && p.time_unit == "us"
            ? ", " + size_text(static_cast<double>(t.bytes))
            : "";
    fmt::format_to(to, "  {}: {} -> {}, {}{}\n", value_name(p, t.value),
                   short_name(p, t.from), short_name(p, t.to),
                   time_text(t.time, p.time_unit), bytes);
  }
}

}  // namespace

std::string plan_summary(const PlanProblem& p, const PlanAnswer& a) {
  std::string out = certificate(p, a) + "\n";
  if (a.status != PlanStatus::kPlanned) return out;
  append_candidates(p, a, &out);
  if (p.model == PlanModel::kPipeline) append_pipeline(p, a, &out);
  append_devices(p, a, &out);
  append_links(p, a, &out);
  append_transfers(p, a, &out);
  return out;
}

Compared compare(const PlanProblem& p, const std::string& path) {
  const std::string text = read_file(path);
  try {
    if (text.find("\"berth_plan\"") == std::string::npos) {
      throw UsageError(fmt::format(
          "{}: has no \"berth_plan\"; a split of dnn-partitioning is converted "
          "by tools/plan_problem FILE --split SPLIT > PLAN",
          path));
    }
    return {path, evaluate(p, read_plan(p, text, path).plan)};
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(e.what());
  }
}

Json to_json(const Compared& c, const PlanAnswer& a) {
  return {{"file", c.file},
          {"value", c.evaluation.value},
          {"difference", c.evaluation.value - a.value},
          {"violations", c.evaluation.violations}};
}

std::string to_text(const Compared& c, const PlanProblem& p,
                    const PlanAnswer& a) {
  std::string text =
      fmt::format("{}: {}", c.file, time_text(c.evaluation.value, p.time_unit));
  if (a.status == PlanStatus::kPlanned && a.value > 0) {
    const double more = c.evaluation.value / a.value - 1;
    text += more == 0
                ? ", as much as this plan"
                : fmt::format(", {:.2f} % {} than this plan",
                              std::abs(100 * more), more > 0 ? "more" : "less");
  }
  text += "\n";
  size_t shown = 0;
  for (const std::string& v : c.evaluation.violations) {
    if (++shown > 5) {
      return text +
             fmt::format("  and {} more\n", c.evaluation.violations.size() - 5);
    }
    text += "  it breaks a limit: " + v + "\n";
  }
  return text;
}

namespace {

Json value_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

}  // namespace

Json to_json(const WhatIf& w) {
  const bool planned = w.again.status == PlanStatus::kPlanned;
  return {{"question", w.question},
          {"value", value_or_null(w.after)},
          {"difference", value_or_null(w.after - w.before)},
          {"causes", w.causes},
          {"violations", w.violations},
          {"planned_again", planned ? Json(w.again.value) : Json()}};
}

std::string to_text(const WhatIf& w, const PlanProblem& p) {
  const auto change = [&](double value) {
    const double more = value - w.before;
    return fmt::format(
        "{}{} ({})", more > 0 ? "+" : "",
        more == 0 ? "no difference" : time_text(more, p.time_unit),
        time_text(value, p.time_unit));
  };
  std::string text = fmt::format("what if {}: ", w.question);
  if (!w.violations.empty() || !std::isfinite(w.after)) {
    text += "this plan cannot be kept";
    const char* colon = ": ";
    for (size_t k = 0; k < std::min<size_t>(w.violations.size(), 2); ++k) {
      text += colon + w.violations[k];
      colon = "; ";
    }
  } else {
    text += change(w.after);
    const char* comma = ", because ";
    for (const std::string& c : w.causes) {
      text += comma + c;
      comma = "; ";
    }
  }
  text += "\n  planned again: ";
  return text +
         (w.again.status == PlanStatus::kPlanned ? change(w.again.value)
          : w.again.conflict.any() ? "impossible, " + w.again.conflict.text
                                   : std::string("nothing found")) +
         "\n";
}

}  // namespace berth::cli
