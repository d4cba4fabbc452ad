// Analysis: where the time of a timeline went. What `berth report` prints.
//
// analyze() is pure. Times are microseconds, shares 0 to 1. Devices of
// simulated machines have a clock of their own: where most of the ops ran on
// it, steps and idle time are those of that clock.

#ifndef BERTH_PROFILER_ANALYSIS_H_
#define BERTH_PROFILER_ANALYSIS_H_

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/profiler.h"

namespace berth::profiler {

// Why a device computes nothing; the first that holds.
enum class IdleCause {
  kTransfer,  // what it needs was being copied
  kSum,       // a sum over tasks
  kCompute,   // another device computed what it needs
  kInput,     // the next batch was not ready
  kHost,      // Python, checkpoints, launching work
  kMemory,    // no memory was free
  kStepEnd,   // its part of the step was done
  kOther,     // unknown
};
constexpr size_t kIdleCauses = 8;
// "transfer", "sum", "other device", "input", "host", "memory", "end of step",
// "other".
const char* name_of(IdleCause cause);

// How a device spent the steps.
struct DeviceTime {
  std::string name;      // with the task: "worker:1 /CPU:0"
  double busy_us = 0;    // of the union of its ops
  double window_us = 0;  // of the steps
  std::array<double, kIdleCauses> idle_us{};  // with busy_us: window_us
  // "transfer /CPU:0 -> /GPU:0", the longest first.
  std::vector<std::pair<std::string, double>> idle_edges;
};

// Copies, or sums over tasks: how much of them ran while their task computed.
struct OverlapShare {
  double total_us = 0, hidden_us = 0;
  int64_t bytes = 0;
  double exposed_us() const { return total_us - hidden_us; }
};

// What bounds an op on the roofline: more than 60 % of what the device can.
enum class OpLimit { kUnknown, kCompute, kMemory, kLaunch, kNeither };
const char* name_of(OpLimit limit);

// All runs of one op on one device.
struct OpSummary {
  std::string name, kind, device, line, detail;
  int64_t count = 0;
  double total_us = 0, median_us = 0, predicted_us = -1;
  int64_t bytes = 0;  // of one run
  double flops = 0;
  OpLimit limit = OpLimit::kUnknown;
  double roof_share = 0;     // of what the device could do
  double critical_us = 0;    // on the critical path, per step
  bool is_transfer = false;  // copy or sum
};

// The most that ops of this device reached in this timeline.
struct DeviceRoof {
  std::string device;
  double flops_per_us = 0, bytes_per_us = 0, launch_us = 0;
};

// A part of the critical path of the step of median duration.
struct PathPart {
  int32_t event = -1;  // place in the timeline; -1: a gap
  double begin_us = 0, end_us = 0;
  std::string what, where;  // name and device, cause of a gap and ""
};

// A stage of the input pipeline.
struct InputStageUse {
  std::string name, line;
  int64_t count = 0;
  double busy_us = 0;  // of the union of its calls
  double own_us = 0;   // while no other stage was entered later
};

// A task at the sums that it shares with others.
struct TaskLag {
  std::string task;
  int64_t sums = 0, last = 0;  // at how many it arrived last
  double waited_us = 0;        // for the last one, in all
  double median_lost_us = 0;   // that others waited for it, when it was last
};

// The clock of a task against the first one's.
struct TaskClock {
  std::string task;
  double offset_us = 0;  // added to its times
  double error_us = 0;   // at most
  int64_t messages = 0;  // that both recorded; 0: nothing is known
};

struct Advice {
  std::string title, line, formula;
  double gain_us = 0;  // of a step
  double share = 0;    // of the step
};

struct Analysis {
  std::string step_name;
  std::string clock = "host";  // or "simulated"
  int64_t steps = 0, events = 0, dropped = 0;
  double span_us = 0;                   // from the first event to the last
  double step_us = 0, step_p90_us = 0;  // median, and the ninth tenth
  double first_step_us = 0;             // often with what is done once
  double explained = 0;  // share of the steps in which an op, a transfer, a
                         // sum, a wait or input is recorded
  std::vector<std::pair<double, double>> step_spans;  // begin and end
  std::vector<DeviceTime> devices;
  OverlapShare transfers, sums;
  double input_us = 0;         // waiting for batches, per step
  std::vector<OpSummary> ops;  // by total time
  std::vector<DeviceRoof> roofs;
  std::vector<PathPart> path;  // of the median step, from its beginning
  // The time on the critical path per step by device and cause, longest first.
  std::vector<std::pair<std::string, double>> path_by_device;
  std::vector<InputStageUse>
      stages;  // by own time: the first is the bottleneck
  std::vector<TaskLag> lags;
  std::vector<TaskClock> clocks;  // of several tasks
  std::vector<Advice> advice;  // by gain, at most five; each >= 3 % of a step
  std::string verdict;         // what limits the step, in a sentence
};

struct EventIndex;
Analysis analyze(const EventIndex& x);
Analysis analyze(const Timeline& timeline);

// An op in two runs; a count of 0 is where it is not.
struct OpDifference {
  std::string name, kind, device, line;
  int64_t count_a = 0, count_b = 0;
  double median_a = 0, median_b = 0;
  double per_step_us = 0;  // of b minus that of a
};
// By |per_step_us|.
std::vector<OpDifference> compare(const Analysis& a, const Analysis& b);

// docs/json.md
nlohmann::ordered_json to_json(const Analysis& a);
nlohmann::ordered_json to_json(const std::vector<OpDifference>& all);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_ANALYSIS_H_
