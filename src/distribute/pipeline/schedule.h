// Schedules of pipelines: instruction lists, their checks and their times.
//
// Formulas are those of GPipe, 1F1B, interleaved 1F1B, ZB-H1 and ZB-V; texts
// are PyTorch's ("0F1": stage 0, forward, micro-batch 1). Pure functions.

#ifndef BERTH_DISTRIBUTE_PIPELINE_SCHEDULE_H_
#define BERTH_DISTRIBUTE_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/pipeline.h"

namespace berth::distribute {

// 'F' forward, 'B' backward, or its halves: 'I' for the stage before, 'W' for
// the weights.
struct PipelineAction {
  int32_t stage = 0;
  char pass = 'F';
  int32_t micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};
// By device, in the order in which it runs them.
using PipelineActions = std::vector<std::vector<PipelineAction>>;

struct ScheduleShape {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int devices = 1, stages = 1, micro_batches = 1;
  int device_of(int stage) const;
};

const char* name_of(PipelineSchedule schedule);
// Throws errors::InvalidArgument unless it is one of the names.
PipelineSchedule schedule_named(const std::string& name);

// Throws errors::InvalidArgument if the schedule cannot have that shape.
PipelineActions actions_of(const ScheduleShape& shape);
// Keeps the forward passes of the first `micro_batches`.
PipelineActions forward_only(const PipelineActions& actions, int micro_batches);

std::string str(const PipelineActions& actions);
// Throws errors::InvalidArgument for a word that is not an instruction.
PipelineActions parse_actions(const std::string& text);

// Throws errors::InvalidArgument, naming the instruction and the device: a
// stage on a wrong or second device, a pass that is missing, twice or before
// what it needs, passes that wait for each other.
void check_actions(const PipelineActions& actions, const ScheduleShape& shape);

// Microseconds, by stage, of one micro-batch; `backward` is the sum of both
// halves. `hop` lies between stages on different devices.
struct PipelineTimes {
  std::vector<double> forward, input, weight;
  double hop = 0;
  double of(const PipelineAction& action) const;
};

struct PipelineTiming {
  double step_us = 0;
  std::vector<std::vector<double>> begin_us;  // by device, by instruction
  std::vector<double> busy_us;                // by device
  std::vector<int> in_flight;                 // as in_flight() says
  // Share of the devices' time spent waiting.
  double bubble() const;
};

// By device: the chunks that it holds at most, whatever they take.
std::vector<int> in_flight(const PipelineActions& actions);

// Each device runs its list in order; each instruction begins when it can.
// Throws errors::InvalidArgument if instructions wait for each other.
PipelineTiming time_of(const PipelineActions& actions,
                       const PipelineTimes& times);

// The step of equal stages by the closed form, hops free: `f`, `i`, `w` of a
// whole device and one micro-batch. kZbV: exact for f = i = w.
double closed_form_us(const ScheduleShape& shape, double f, double i, double w);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PIPELINE_SCHEDULE_H_
