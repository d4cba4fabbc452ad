// The callbacks of a fit, evaluate or predict, as one list of objects.
//
// Tables of hooks become objects once, so that a step asks no table. One
// thread.

#ifndef BERTH_KERAS_CALLBACKS_CALLBACK_LIST_H_
#define BERTH_KERAS_CALLBACKS_CALLBACK_LIST_H_

#include <memory>
#include <vector>

#include "berth/keras/callbacks.h"

namespace berth::keras {

class CallbackList {
 public:
  explicit CallbackList(const std::vector<Callback>& callbacks);

  bool empty() const { return list_.empty(); }

  template <class... Formal, class... Args>
  void call(void (CallbackBase::*hook)(Model&, Formal...), Model& model,
            Args&&... args) const {
    for (const auto& c : list_) (c.get()->*hook)(model, args...);
  }

 private:
  std::vector<std::shared_ptr<CallbackBase>> list_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_CALLBACK_LIST_H_
