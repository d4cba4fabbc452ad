// ElasticState: the state of one fit that each task keeps in memory while
// MultiWorkerMirroredStrategy::elastic() runs it.
//
// When the fit is called again, all tasks go on from the last state that one of
// them has; a task without it gets it from that one. One thread; the state of
// this task is sent by threads of the member.

#ifndef BERTH_KERAS_TRAINING_ELASTIC_STATE_H_
#define BERTH_KERAS_TRAINING_ELASTIC_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "berth/keras/models.h"
#include "berth/train.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::keras {

class ElasticState {
 public:
  // What tasks have of a fit. kEnd: it ended in an earlier call of `train`.
  enum class Found { kNothing, kState, kEnd };

  // For the next fit of the strategy in elastic(); elsewhere on() is false, and
  // nothing else may be called.
  ElasticState(std::shared_ptr<distribute::StrategyCore> core, Site site);
  ~ElasticState();
  ElasticState(const ElasticState&) = delete;
  ElasticState& operator=(const ElasticState&) = delete;

  bool on() const { return run_ != nullptr; }
  // Called in all tasks, with equal objects: sets them to the state, if one is
  // found of a fit that is not over. Throws errors::DataLoss if what another
  // task sends is damaged.
  Found begin(train::Objects objects);
  // Whether the state came from another task.
  bool fetched() const { return fetched_; }
  // What an object said of itself in the state.
  const std::string& text(const std::string& object) const;
  // What the fit returned here, once it is over.
  std::optional<History>& result();

  // Copies the objects, as they are after `progress`, which grows.
  void copy(int64_t progress);
  // Called after each step: whether it is to be copied.
  bool step_ends();
  // Throws errors::Aborted if this task was told to end: the others go on from
  // the last copy.
  void hand_over();

 private:
  struct Kept;

  void keep();
  void serve() const;
  void fetch(int from);

  const std::shared_ptr<distribute::StrategyCore> core_;
  const std::shared_ptr<distribute::ElasticRun> run_;  // null: not elastic
  const Site site_;
  std::unique_ptr<train::Checkpoint::Impl> checkpoint_;
  size_t number_ = 0;  // of the fit in `train`
  std::shared_ptr<Kept> kept_;
  int64_t since_ = 0;  // steps, since the last copy
  bool told_ = false, fetched_ = false;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_ELASTIC_STATE_H_
