// Times of a fit's steps, from the executor's report.

#include "keras/training/step_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/percent_text.h"
#include "device/virtual_clock.h"

namespace berth::keras {

namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string short_name(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

}  // namespace

MeasuredSplit split_of(const placement::Report& report,
                       const distribute::StrategyCore& core,
                       const std::vector<int64_t>& shares) {
  std::map<std::string, double> busy, sync;  // by device
  for (const placement::DeviceRow& d : report.devices) {
    busy[d.device] = std::max(0.0, d.measured_busy_us);
  }
  for (const placement::OpRow& op : report.ops) {
    if (op.measured_us > 0 && op.collective) {
      sync[op.device] += op.measured_us * op.runs_per_step;
    }
  }
  std::map<std::string, double> sent;  // to each device
  for (const placement::TransferRow& t : report.transfers) {
    if (t.measured_us > 0 && t.collective) {
      sent[t.to] += t.measured_us * t.runs_per_step;
    }
  }
  MeasuredSplit s;
  s.steps = report.steps;
  s.step_us = std::max(0.0, report.measured_step_us);
  for (size_t r = 0; r < core.replicas().size(); ++r) {
    MeasuredSplit::Replica replica;
    replica.examples = shares.at(r + static_cast<size_t>(core.first_here()));
    for (const Device* d : core.replicas()[r]) {
      const std::string& name = d->str();
      replica.devices.push_back(name);
      replica.compute_us += std::max(0.0, busy[name] - sync[name]);
      s.all_reduce_us = std::max(s.all_reduce_us, sync[name] + sent[name]);
    }
    s.replicas.push_back(std::move(replica));
  }
  return s;
}

double MeasuredSplit::slowest_us() const {
  double slowest = 0;
  for (const Replica& r : replicas) slowest = std::max(slowest, r.compute_us);
  return slowest;
}

double MeasuredSplit::imbalance() const {
  double sum = 0;
  int count = 0;
  for (const Replica& r : replicas) {
    if (r.examples == 0) continue;
    sum += r.compute_us;
    ++count;
  }
  return sum > 0 ? slowest_us() * count / sum - 1 : 0;
}

double MeasuredSplit::other_us() const {
  return std::max(0.0, step_us - slowest_us() - all_reduce_us);
}

double MeasuredSplit::prediction_error() const {
  return predicted_us < 0 || step_us <= 0 ? 0 : predicted_us / step_us - 1;
}

std::string MeasuredSplit::str() const {
  bool simulated = false, real = false;
  for (const Replica& r : replicas) {
    for (const std::string& d : r.devices) {
      (on_virtual_clock(d) ? simulated : real) = true;
    }
  }
  std::string text = fmt::format(
      "measured after {} steps, per step{}:\n", steps,
      simulated ? " (simulated times; the wait for input is wall time)" : "");
  for (size_t r = 0; r < replicas.size(); ++r) {
    std::string names;
    for (const std::string& d : replicas[r].devices) {
      names += (names.empty() ? "" : "+") + short_name(d);
    }
    text += fmt::format("  replica {}  {:<12} {:>6} examples {:>10.0f} us\n", r,
                        names, replicas[r].examples, replicas[r].compute_us);
  }
  text += fmt::format(
      "  all-reduce {:.0f} us, hand-over and waits {:.0f} us, input {:.0f} us, "
      "imbalance {}\n  step {:.0f} us",
      all_reduce_us, other_us(), input_us, percent_text(imbalance()), step_us);
  if (predicted_us >= 0) {
    text += fmt::format(", predicted {:.0f} us", predicted_us);
    // A step on both clocks has no time to compare with.
    if (!simulated || !real) {
      text += fmt::format(" ({}{})", prediction_error() > 0 ? "+" : "",
                          percent_text(prediction_error()));
    }
  }
  return text + "\n";
}

StepWatch::StepWatch(const Model& model, const Model::Training& training)
    : model_(model), training_(training) {}

bool StepWatch::wait(const NextBatch& next, Tensors& element) {
  if (training_.num_replicas() < 2 || split_) return next(element);
  const double start = now_us();
  const bool more = next(element);
  // The first wait is for the pipeline to start.
  if (more && steps_ > 0) waited_us_ += now_us() - start;
  return more;
}

bool StepWatch::after_step(int64_t examples) {
  if (training_.num_replicas() < 2 || split_) return false;
  most_examples_ = std::max(most_examples_, examples);
  if (++steps_ < kSteps) return false;
  const distribute::SplitReport report = training_.rewrite()->report();
  split_ = split_of(model_.placement(), *training_.core,
                    report.batch == most_examples_
                        ? report.examples
                        : training_.core->examples(most_examples_));
  split_->steps = steps_;
  split_->input_us = waited_us_ / static_cast<double>(steps_ - 1);
  if (training_.predicted_us > 0 &&
      training_.predicted_batch == most_examples_) {
    split_->predicted_us = training_.predicted_us;
  }
  return true;
}

}  // namespace berth::keras
