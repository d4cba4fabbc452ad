// RunRecord: what the runs of one plan did.
//
// Runs are counted always, timed when sampled: the second to the fourth, then
// every 64th, and from the 1024th on every 1024th. Times come from the clock of
// the device that did the work, so that those of different devices may not be
// compared, only their lengths. Plain data; guarded by the lock of its plan.

#ifndef BERTH_EXEC_RUN_RECORD_H_
#define BERTH_EXEC_RUN_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth {

// `run` counts from 1.
constexpr bool is_sampled(int64_t run) {
  if (run <= 1024) return (run >= 2 && run <= 4) || run % 64 == 0;
  return run % 1024 == 0;
}

struct RunRecord {
  static constexpr size_t kKeptSteps = 31;

  struct Step {
    int64_t samples = 0;
    double total_us = 0;
  };
  // Arguments that the caller had on another device.
  struct Argument {
    int32_t index = 0;
    int32_t from = 0;  // slot of the device
    int64_t count = 0;
  };

  int64_t runs = 0;         // that ended, well or not
  int64_t samples = 0;      // that were timed to their end
  std::vector<Step> steps;  // by step of the plan
  std::vector<Argument> arguments;
  std::array<double, kKeptSteps> step_us{};  // of the last samples
  // What the steps of the plan took in these: sample by sample; -1: not timed.
  std::vector<float> kept_us;

  // Room for what each step of the plan took in a sample that is to be added.
  std::vector<float> scratch;

  // `parts`: what each step of the plan took in it. The first makes room for
  // all to come.
  void add_sample(double us, const std::vector<float>& parts);
  // The median of the last samples; -1: none.
  double median_step_us() const;
  // What a step of the plan took in the sample that is the median: of one
  // device these add up to no more than it. -1: not timed.
  double typical_us(size_t step) const;
  // The mean of all timed runs of a step; -1: not timed.
  double mean_us(size_t step) const {
    const Step& s = steps[step];
    return s.samples == 0 ? -1 : s.total_us / static_cast<double>(s.samples);
  }
};

}  // namespace berth

#endif  // BERTH_EXEC_RUN_RECORD_H_
