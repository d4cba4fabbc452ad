// ExamplesSeen: how often the places of an epoch's order were computed on.
//
// Only counts of ranges are kept: one for an epoch in which all goes well. Part
// of the state of a fit. One thread.

#ifndef BERTH_KERAS_TRAINING_EXAMPLES_SEEN_H_
#define BERTH_KERAS_TRAINING_EXAMPLES_SEEN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "berth/keras/models.h"
#include "berth/train.h"

namespace berth::keras {

class ExamplesSeen final : public train::Tracked {
 public:
  std::string kind() const override { return "examples"; }
  train::ObjectState state() const override;
  // Throws errors::DataLoss.
  void set_state(const train::ObjectState& state) override;

  // Batch `batch` of the epoch is done: its tasks computed on so many each.
  void add_step(int64_t batch, const std::vector<int64_t>& by_task);
  void end_epoch();
  bool stopped = false;  // the fit was, by a callback
  // The epochs that are over.
  const std::vector<TaskReport::Seen>& epochs() const { return epochs_; }

 private:
  void add(int64_t begin, int64_t end);
  TaskReport::Seen counted() const;

  std::map<int64_t, int64_t> counts_;  // from this place on: how often
  int64_t rows_ = 0, next_batch_ = 0, batch_size_ = 0;
  std::vector<TaskReport::Seen> epochs_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_EXAMPLES_SEEN_H_
