// What the functions of berth/image.h ask of pictures. Pure.

#ifndef BERTH_PREPROCESS_IMAGE_UTIL_H_
#define BERTH_PREPROCESS_IMAGE_UTIL_H_

#include <cstdint>
#include <string>

#include "berth/tensor.h"

namespace berth::image {

// Pictures as [n, height, width, channels]; n is 1 of a single one.
struct ImageLayout {
  int64_t n = 1, height = 0, width = 0, channels = 0;
  bool batched = false;
  // The shape with another height and width.
  Shape sized(int64_t height, int64_t width) const;
};

// Throws "function (site): ..." unless `t` is [(n,) height, width, channels].
// Dimensions that a trace does not know are kUnknownDim.
ImageLayout layout_of(const Tensor& t, const char* function, Site site);
// Throws, too, unless height, width and channels are known.
ImageLayout known_layout_of(const Tensor& t, const char* function, Site site);

// Axis of height: 0, or 1 of a batch.
inline int64_t height_axis(const Tensor& t) { return t.rank() - 3; }

// True when a plain loop may read the values of `t`: they are there, in host
// memory, and neither a trace nor a tape watches.
bool runs_at_once(const Tensor& t);

[[noreturn]] void refuse(const char* function, Site site,
                         const std::string& problem);

// Throws unless `channels` are 3.
void check_rgb(const Tensor& t, const char* function, Site site);

}  // namespace berth::image

#endif  // BERTH_PREPROCESS_IMAGE_UTIL_H_
