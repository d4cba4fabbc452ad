// LibraryOp: an op other than a product of matrices that a card's library may
// compute. Plain numbers, the same for every library.

#ifndef BERTH_BACKENDS_GPU_LIBRARY_OP_H_
#define BERTH_BACKENDS_GPU_LIBRARY_OP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "berth/dtype.h"

namespace berth::gpu {

class Kernel;

// Libraries take operands at multiples of this alone.
inline constexpr int64_t kLibraryAlignment = 16;

// Output pixel i reads input pixels i * stride - pad + k * dilation, along
// height and width; those outside the image are 0.
struct ConvGeometry {
  int64_t n = 0, h = 0, w = 0, c = 0;  // of the image [n, h, w, c]
  int64_t kh = 0, kw = 0;
  int64_t oh = 0, ow = 0, o = 0;  // of the result [n, oh, ow, o]
  int64_t groups = 1;
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0};
};

// Attention over sequences: query [batch, heads, s, d], key [batch, heads, t,
// d], value [batch, heads, t, e], result [batch, heads, s, e], logarithms
// [batch, heads, s]. Causal: query i sees keys 0 to i.
struct AttentionGeometry {
  int64_t batch = 0, heads = 0, s = 0, t = 0, d = 0, e = 0;
  bool causal = false;
  double scale = 1;
};

struct LibraryOp {
  // Arguments in order. Filters are [o, kh, kw, c / groups].
  enum class What : uint8_t {
    kConv,            // image, filter, result
    kConvImageGrad,   // filter, gradient of the result, of the image
    kConvFilterGrad,  // image, gradient of the result, of the filter
    // Moments of [rows, channels] over rows, at least 2, in any of the types;
    // values per channel are float32. x, scale, offset, y, mean, 1 /
    // sqrt(variance + epsilon), mean again, variance * rows / (rows - 1)
    kBatchNorm,
    // gradient of y, x, scale, mean, 1 / sqrt(variance + epsilon); gradients
    // of x, scale, offset
    kBatchNormGrad,
    // query, key, value, result, logarithms (float32)
    kAttention,
    // query, key, value, result, its gradient, logarithms; gradients of query,
    // key, value
    kAttentionGrad,
  };
  What what = What::kConv;
  DType dtype = DType::kInvalid;
  ConvGeometry conv;               // of convolutions
  int64_t rows = 0, channels = 0;  // of norms
  double epsilon = 0;
  AttentionGeometry attention;
};

// A library's kernel. Its arguments are the addresses of the op's operands and,
// if it asks for any, of scratch; its grid is empty.
struct LibraryKernel {
  std::unique_ptr<Kernel> kernel;  // null: there is none
  size_t scratch_bytes = 0;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_LIBRARY_OP_H_
