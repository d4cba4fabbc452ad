#include "place/verdicts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/percent_text.h"
#include "base/where.h"
#include "device/virtual_clock.h"
#include "place/device_table.h"

namespace berth {

namespace {

constexpr double kMuch = 0.25;     // of a step
constexpr double kTinyUs = 10;     // of one run of an op
constexpr double kManyTurns = 20;  // of a loop
constexpr double kNearlyAll = 0.9;
constexpr int64_t kFewRuns = 5;

// Ops that were measured by the wall clock.
struct Ops {
  double us = 0, runs = 0;                  // per step
  const placement::OpRow* first = nullptr;  // the one that takes most

  void add(const placement::OpRow& op) {
    const auto us_of = [](const placement::OpRow& o) {
      return o.measured_us * o.runs_per_step;
    };
    us += us_of(op);
    runs += op.runs_per_step;
    if (first == nullptr || us_of(op) > us_of(*first)) first = &op;
  }
};

std::string share_text(double us, double step_us) {
  return percent_text(std::min(1.0, us / step_us)) + " of the step";
}

// The name of the loop that it is in, else its own.
std::string loop_of(const placement::OpRow& op) {
  return op.op.substr(0, std::min(op.op.find("/body/"), op.op.find("/cond/")));
}

}  // namespace

std::vector<std::string> verdicts_of(const placement::Report& report,
                                     const HostReads& reads) {
  std::vector<std::string> verdicts;
  Ops all, python, tiny;
  Clocks clocks;
  for (const placement::OpRow& op : report.ops) {
    clocks.add(op.device);
    if (op.measured_us < 0 || on_virtual_clock(op.device)) continue;
    const bool inside = loop_of(op) != op.op;
    if (!inside) all.add(op);  // with what runs in its bodies
    if (op.type == "PyFunction") python.add(op);
    if (inside && op.runs_per_step >= kManyTurns && op.measured_us < kTinyUs) {
      tiny.add(op);
    }
  }
  double step_us = all.us;
  if (!clocks.virtual_time)
    step_us = std::max(step_us, report.measured_step_us);
  if (python.us >= kMuch * step_us && python.first != nullptr) {
    verdicts.push_back(fmt::format(
        "{} is Python on {}: {} \"{}\"{}; ops instead run beside the others",
        share_text(python.us, step_us), short_device(python.first->device),
        python.first->type, python.first->op,
        where_text(nullptr, python.first->site)));
  }
  if (tiny.us >= kMuch * step_us && tiny.first != nullptr) {
    verdicts.push_back(fmt::format(
        "{} is {:.0f} runs of ops of less than {:.0f} us in \"{}\"{}; ops on "
        "whole tensors instead of a loop take less",
        share_text(tiny.us, step_us), tiny.runs, kTinyUs, loop_of(*tiny.first),
        where_text(nullptr, tiny.first->site)));
  }
  if (reads.runs >= kFewRuns &&
      static_cast<double>(reads.read) >=
          kNearlyAll * static_cast<double>(reads.runs)) {
    verdicts.push_back(fmt::format(
        "after {} of {} steps a value was read from {}, for which the host "
        "waits; read it every 100 steps",
        reads.read, reads.runs, reads.device));
  }
  return verdicts;
}

}  // namespace berth
