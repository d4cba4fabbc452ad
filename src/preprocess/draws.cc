#include "preprocess/draws.h"

namespace berth::image {

Tensor Drawn::numbers(const Shape& shape, double low, double high,
                      Site site) const {
  const random::UniformOptions o{.minval = low, .maxval = high, .seed = seed_};
  return stateless_ ? random::stateless_uniform(shape, *stateless_, o, site)
                    : random::uniform(shape, o, site);
}

Tensor Drawn::whole(const Shape& shape, int64_t high, Site site) const {
  const random::UniformOptions o{
      .maxval = static_cast<double>(high), .dtype = int64, .seed = seed_};
  return stateless_ ? random::stateless_uniform(shape, *stateless_, o, site)
                    : random::uniform(shape, o, site);
}

}  // namespace berth::image
