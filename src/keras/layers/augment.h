// AugmentBase: what layers that change images share: the batch, the dtype, the
// draws.

#ifndef BERTH_KERAS_LAYERS_AUGMENT_H_
#define BERTH_KERAS_LAYERS_AUGMENT_H_

#include <string>

#include "berth/keras/augmentation_layers.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

class AugmentBase : public LayerBase {
 public:
  AugmentBase(const char* type, const std::string& name,
              std::optional<int64_t> seed, Site site)
      : LayerBase(type, name, site), seed_(seed) {
    state().casts.inputs = false;  // pixels count exactly
  }

  Tensors call(const Tensors& inputs, bool training) final;

 protected:
  // x [n, h, w, c] float32 -> the same, or of another size.
  virtual Tensor change(const Tensor& x, bool training) = 0;

  struct Range {
    double low, high;
  };
  // [-f, f], or [0, f], of a factor; fails outside of [least, most].
  Range range_of(const char* what, const Factor& f, double least,
                 double most) const;
  // One number per image, [n, 1] or [n, 1, 1, 1].
  Tensor draw(const Tensor& x, Range range, int rank = 4) const;
  // 1 or -1 per image.
  Tensor signs(const Tensor& x, int rank = 4) const;
  // x cut to the range.
  Tensor cut(const Tensor& x, const ValueRange& range) const;
  void check_range(const ValueRange& range) const;
  // x moved from one range to another.
  Tensor moved(const Tensor& x, const ValueRange& from,
               const ValueRange& to) const;
  // The middle, [n, height, width, c].
  Tensor centered(const Tensor& x, int64_t height, int64_t width) const;
  // Grey of red, green and blue: [n, h, w, 1].
  Tensor grey(const Tensor& x) const;

 private:
  const std::optional<int64_t> seed_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_AUGMENT_H_
