// What decides the numbers of one random call, for all ops that draw.

#ifndef BERTH_OPS_DRAW_STREAM_H_
#define BERTH_OPS_DRAW_STREAM_H_

#include <optional>
#include <vector>

#include "berth/ops/random.h"
#include "op/attrs.h"
#include "ops/random_key.h"

namespace berth::random {

struct DrawStream {
  RandomKey key;
  bool stateless = false;
  std::optional<Tensor> pair = std::nullopt;  // an input, in place of key

  // The attributes of the op.
  std::vector<Attrs::Pair> attrs() const;
};

// The key of the next random call, into which a seed is mixed.
DrawStream next_stream(std::optional<int64_t> seed);
// The two seeds stand for themselves: neither the process's seed nor the
// number of the call nor the step matters.
DrawStream stateless_stream(const StatelessSeed& seed);

}  // namespace berth::random

#endif  // BERTH_OPS_DRAW_STREAM_H_
