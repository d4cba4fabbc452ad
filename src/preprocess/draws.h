// Drawn: where a random function takes its one number from.

#ifndef BERTH_PREPROCESS_DRAWS_H_
#define BERTH_PREPROCESS_DRAWS_H_

#include <optional>

#include "berth/ops/random.h"

namespace berth::image {

class Drawn {
 public:
  // Draws from the seed of the process and `seed`.
  explicit Drawn(std::optional<int64_t> seed) : seed_(seed) {}
  // Draws equal numbers at every call.
  explicit Drawn(random::StatelessSeed seed) : stateless_(seed) {}

  // float32 [shape] in [low, high), on the host unless in a trace.
  Tensor numbers(const Shape& shape, double low, double high, Site site) const;
  // int64 [shape] in [0, high).
  Tensor whole(const Shape& shape, int64_t high, Site site) const;

 private:
  std::optional<int64_t> seed_;
  std::optional<random::StatelessSeed> stateless_;
};

}  // namespace berth::image

#endif  // BERTH_PREPROCESS_DRAWS_H_
