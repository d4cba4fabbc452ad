// NaNFinder: while it lives, looks at the results of all ops of this thread,
// run one by one, until one is not finite. One thread.

#ifndef BERTH_KERAS_CALLBACKS_NAN_FINDER_H_
#define BERTH_KERAS_CALLBACKS_NAN_FINDER_H_

#include <string>

#include "op/dispatcher.h"
#include "op/op_def.h"

namespace berth::keras {

// True of what has no floating elements, too.
bool all_finite(const Tensor& t);

class NaNFinder final : public Dispatcher {
 public:
  NaNFinder() { push(); }
  ~NaNFinder() override {
    if (pushed()) pop();
  }

  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override;

  // The first op, as "dense_1/MatMul (model.cc:41)"; "" while there is none.
  const std::string& found() const { return found_; }
  // Its layer, "" outside of layers.
  const std::string& layer() const { return layer_; }

 private:
  std::string found_, layer_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_NAN_FINDER_H_
