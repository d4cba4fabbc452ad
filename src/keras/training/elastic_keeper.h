// ElasticKeeper: what one fit keeps for the case that tasks come or go, where
// MultiWorkerMirroredStrategy::elastic() runs it.
//
// After each step it copies the state to memory. When fit is called again, it
// goes on from the last step that all tasks finished; a task without that state
// gets it from one that has it. Elsewhere it does nothing. One thread; the
// state of this task is sent by threads of the member.

#ifndef BERTH_KERAS_TRAINING_ELASTIC_KEEPER_H_
#define BERTH_KERAS_TRAINING_ELASTIC_KEEPER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "berth/keras/models.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/callbacks/fit_state.h"
#include "keras/training/elastic_state.h"
#include "keras/training/examples_seen.h"

namespace berth::keras {

class ElasticKeeper {
 public:
  ElasticKeeper(Model& model, Model::Training& training, FitLoop& loop,
                Site site);
  ~ElasticKeeper();
  ElasticKeeper(const ElasticKeeper&) = delete;
  ElasticKeeper& operator=(const ElasticKeeper&) = delete;

  // Before the callbacks begin: all tasks agree on the state. Returns what this
  // fit returned, if it ended in an earlier call of `train`.
  std::optional<History> begin();
  // After the callbacks have begun: sets their states and the position.
  // `moved`: a callback has set another position.
  void apply(bool moved);
  // A step, `batch` of its epoch, on so many examples is done; an epoch is,
  // with its callbacks. Throws errors::Aborted if this task was told to end.
  void after_step(int64_t batch, int64_t examples);
  void after_epoch();
  void end(const History& history);
  // Examples of the epochs that are over.
  std::vector<TaskReport::Seen> seen() const;

 private:
  void copy();

  const std::shared_ptr<distribute::StrategyCore> core_;
  ElasticState state_;
  Model& model_;
  Model::Training& training_;
  FitLoop& loop_;
  const Site site_;
  std::shared_ptr<FitState> fit_;
  std::shared_ptr<ExamplesSeen> seen_;
  bool restored_ = false;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_ELASTIC_KEEPER_H_
