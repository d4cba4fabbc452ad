// InputWatch: how long the steps of one fit wait for their batches.
//
// Times next() of a pass. An epoch that waited for most of its time is a lint
// ("input-bound"), once for a call of fit, that names the slow stage of the
// pipeline. One thread.

#ifndef BERTH_KERAS_TRAINING_INPUT_WATCH_H_
#define BERTH_KERAS_TRAINING_INPUT_WATCH_H_

#include <cstdint>
#include <string>

#include "keras/training/batches.h"
#include "keras/training/training.h"

namespace berth::keras {

class InputWatch {
 public:
  InputWatch(const Model& model, Model::Training& training,
             const Batches& batches, Site site)
      : model_(model), training_(training), batches_(batches), site_(site) {}

  // next(element), timed.
  bool wait(const NextBatch& next, Tensors& element);
  // An epoch of so many steps took so long. Returns the seconds of it that
  // were waits.
  double after_epoch(int epoch, int64_t steps, double seconds);

 private:
  // What of the epoch the devices did not work.
  double idle_seconds(int64_t steps, double seconds) const;

  const Model& model_;
  Model::Training& training_;
  const Batches& batches_;
  const Site site_;
  double waited_s_ = 0;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_INPUT_WATCH_H_
