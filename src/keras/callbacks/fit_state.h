// FitState: where a fit stands, as a checkpoint keeps it.
//
// Position, history, the pass over the data, and the states of callbacks. One
// thread.

#ifndef BERTH_KERAS_CALLBACKS_FIT_STATE_H_
#define BERTH_KERAS_CALLBACKS_FIT_STATE_H_

#include <optional>
#include <string>
#include <vector>

#include "berth/data.h"
#include "berth/keras/models.h"
#include "berth/train.h"

namespace berth::keras {

class FitState final : public train::Tracked {
 public:
  std::string kind() const override { return "fit"; }
  // The state that read() noted.
  train::ObjectState state() const override;
  // Throws errors::DataLoss.
  void set_state(const train::ObjectState& state) override;

  // Notes where the fit is.
  void read(FitLoop& loop);
  // For a task that has another's state: what each reads for itself, here
  // `part`, is read anew up to that position.
  void read_anew(const std::string& part);
  const History& history() const { return history_; }
  // Makes a fit that begins go on from there; `call` begins messages.
  void apply(FitLoop& loop, const std::string& call) const;

 private:
  struct OfCallback {
    std::string name;
    CallbackState state;
  };
  FitPosition position_;
  History history_;
  std::optional<data::IteratorState> pass_;
  std::string data_part_;
  std::vector<OfCallback> callbacks_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_FIT_STATE_H_
