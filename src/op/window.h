// Where the windows of convolutions and pools lie in an image.
//
// TensorFlow's rules for padding "SAME", "VALID" and "EXPLICIT", for shape
// rules, kernels and costs. Images are [n, h, w, c]. Pure functions;
// thread-safe.

#ifndef BERTH_OP_WINDOW_H_
#define BERTH_OP_WINDOW_H_

#include "op/op_def.h"

namespace berth {

// One axis of an image under a sliding window; all in pixels. Output pixel o
// reads input pixels o * stride - pad + k * dilation, 0 <= k < window, those
// that are inside [0, in).
struct WindowAxis {
  int64_t in = 0;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t out = 0;  // negative when `in` or `window` is unknown
  int64_t pad = 0;  // before the first pixel

  // The first pixel of output pixel o; may be negative.
  int64_t first(int64_t o) const { return o * stride - pad; }
};

struct WindowAxes {
  WindowAxis h, w;
};

// Returns the windows of a convolution from the attributes strides, dilations,
// padding and explicit_paddings: image [n, h, w, c], filter [kh, kw, c, o].
// Throws errors::InvalidArgument for attributes that make no sense and for a
// window larger than the padded image.
WindowAxes conv_windows(const OpDef& op, const Attrs* attrs, const Shape& image,
                        const Shape& filter);

// Returns the groups of such a convolution: the attribute groups, or, where it
// is 0, as many as the channels say (1 when they do not fit); negative when
// those are unknown.
int64_t conv_groups(const OpDef& op, const Attrs* attrs, const Shape& image,
                    const Shape& filter);

// Returns the windows of a pool, from the attributes ksize, strides and
// padding.
WindowAxes pool_windows(const OpDef& op, const Attrs* attrs,
                        const Shape& image);

// {both}, {h, w} or {1, h, w, 1} -> {1, h, w, 1}; others stay as they are.
std::vector<int64_t> nhwc_list(const std::vector<int64_t>& v);

}  // namespace berth

#endif  // BERTH_OP_WINDOW_H_
