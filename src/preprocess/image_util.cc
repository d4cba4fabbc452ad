#include "preprocess/image_util.h"

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"

namespace berth::image {

Shape ImageLayout::sized(int64_t h, int64_t w) const {
  return batched ? Shape{n, h, w, channels} : Shape{h, w, channels};
}

void refuse(const char* function, Site site, const std::string& problem) {
  throw errors::InvalidArgument(
      fmt::format("{}: {}", call_text(function, site), problem));
}

ImageLayout layout_of(const Tensor& t, const char* function, Site site) {
  if (!t.defined()) {
    refuse(function, site, "the image is an empty Tensor; expected pixels");
  }
  const Shape& s = t.shape();
  if (s.rank() != 3 && s.rank() != 4) {
    refuse(function, site,
           fmt::format("the image is {}; expected [height, width, channels] or "
                       "[n, height, width, channels]",
                       t.spec().str()));
  }
  if (t.dtype() == string_ || t.dtype() == resource || t.dtype() == bool_) {
    refuse(function, site,
           fmt::format("the image is {}; expected numbers{}", t.spec().str(),
                       t.dtype() == string_ ? ": decode it first" : ""));
  }
  const int at = s.rank() - 3;
  ImageLayout l{.n = at == 1 ? s[0] : 1,
                .height = s[at],
                .width = s[at + 1],
                .channels = s[at + 2],
                .batched = at == 1};
  return l;
}

ImageLayout known_layout_of(const Tensor& t, const char* function, Site site) {
  const ImageLayout l = layout_of(t, function, site);
  if (l.height < 1 || l.width < 1 || l.channels < 1) {
    refuse(function, site,
           fmt::format("the image is {}; expected a known height, width and "
                       "number of channels, all above 0",
                       t.spec().str()));
  }
  return l;
}

bool runs_at_once(const Tensor& t) {
  return !t.is_symbolic() && t_state.top == nullptr &&
         t.impl()->kind == TensorKind::kConcrete &&
         t.impl()->block->device->memory().host_addressable;
}

void check_rgb(const Tensor& t, const char* function, Site site) {
  if (t.rank() > 0 && t.shape()[t.rank() - 1] == 3) return;
  refuse(function, site,
         fmt::format("the image is {}; expected 3 channels (RGB)",
                     t.spec().str()));
}

}  // namespace berth::image
