// Convolutions with few input channels: forward pass and filter gradient.
//
// oneDNN pads their channels to 8 or 16, which costs most of its speed in the
// gradient and some of it forward. The loops here work on a padded copy of one
// image and a list of filter taps. Thread rule: as ConvPlan.

#ifndef BERTH_BACKENDS_CPU_CONV_SMALL_H_
#define BERTH_BACKENDS_CPU_CONV_SMALL_H_

#include "backends/cpu/dnnl_math.h"

namespace berth::cpu {

class SmallChannelConv : public SlicedConv {
 public:
  // True for one group, fewer than 8 input channels and filters of at most
  // kMaxTaps taps, in every pass but the one that computes dx.
  static bool takes(const ConvShape& shape, ConvPass pass);
  SmallChannelConv(const ConvShape& shape, ConvPass pass,
                   const ConvChoice& options);

  void begin(const ConvBuffers& buffers) const override;
  void slice(int index, const ConvBuffers& buffers) const override;
  void finish(const ConvBuffers& buffers, ThreadPool* pool) const override;

  static constexpr int kMaxTaps = 1024;

 private:
  // Size of the padded copy of one image.
  int64_t padded_h() const;
  int64_t padded_w() const;
  float* partial(int index, const ConvBuffers& buffers) const;

  const ConvShape shape_;
  const ConvPass pass_;
  const ConvChoice options_;
  int64_t filter_stride_ = 0, image_stride_ = 0;  // floats
};

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_CONV_SMALL_H_
