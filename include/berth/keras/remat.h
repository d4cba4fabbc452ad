// remat: layers whose inner values are computed again for the gradient
// (keras.RematScope, keras.remat).
//
//   std::optional<keras::RematScope> remat("full");
//   auto block = keras::make_layer<TransformerBlock>();
//   remat.reset();
//   auto model = keras::Sequential({block, keras::Dense(10)});
//
// A layer made in a scope keeps only its inputs in training; the other values
// that the gradient needs are computed again from them. The step takes less
// memory and more time, and gives the same numbers. A layer with parts is one
// unit: its parts are not recomputed twice. Models around layers are not units,
// unless list_of_layers names them.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_REMAT_H_
#define BERTH_KERAS_REMAT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/recompute_grad.h"

namespace berth::keras {

struct LayerState;  // keras/layer_state.h
struct RematMode;   // keras/remat.h

struct RematOptions {
  // larger_than: elements of an example's outputs.
  int64_t output_size_threshold = 1024;
  std::vector<std::string> layer_names = {};  // list_of_layers
};

// Applies to layers that this thread makes until the end of the block; the
// innermost scope counts. mode: "full": all layers; "activations": activations,
// as layers and by name; "larger_than": layers whose outputs have more elements
// per example than output_size_threshold; "list_of_layers": those with these
// names. Throws errors::InvalidArgument for another mode.
class RematScope {
 public:
  explicit RematScope(const std::string& mode = "full",
                      RematOptions options = {}, Site site = Site::here());
  ~RematScope();
  RematScope(const RematScope&) = delete;
  RematScope& operator=(const RematScope&) = delete;

  // The mode of the innermost scope, or null.
  static std::shared_ptr<const RematMode> current();

 private:
  const RematScope* const outer_;
  std::shared_ptr<const RematMode> mode_;
};

// A function of tensors that does the same (berth/recompute_grad.h).
inline RecomputedFn remat(RecomputedFn f, Site site = Site::here()) {
  return recompute_grad(std::move(f), site);
}
inline RecomputedListFn remat(RecomputedListFn f, Site site = Site::here()) {
  return recompute_grad(std::move(f), site);
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_REMAT_H_
