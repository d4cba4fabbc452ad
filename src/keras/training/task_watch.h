// TaskWatch: how the work of a fit over several tasks was shared, and who was
// late.
//
// Acts between the steps: counts this task's examples, times its steps and its
// waits for input and for others. report() compares them with those of all
// tasks. Without other tasks it does nothing. One thread.

#ifndef BERTH_KERAS_TRAINING_TASK_WATCH_H_
#define BERTH_KERAS_TRAINING_TASK_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "berth/keras/models.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/training/batches.h"

namespace berth::keras {

class TaskWatch {
 public:
  explicit TaskWatch(std::shared_ptr<distribute::StrategyCore> core);

  // next(element), timed.
  bool wait(const NextBatch& next, Tensors& element);
  void before_step();
  // A step on a batch of so many examples, of all tasks, is done.
  void after_step(int64_t examples);
  // What all tasks did. All call it together; it measures the network to the
  // first task.
  std::optional<TaskReport> report();

 private:
  std::shared_ptr<distribute::StrategyCore> core_;  // null: there is one task
  TaskReport::Task mine_;
  int64_t steps_ = 0, timed_ = 0, samples_ = 0;
  double begun_us_ = 0;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_TASK_WATCH_H_
