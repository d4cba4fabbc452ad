// The random numbers that a kernel draws from.

#ifndef BERTH_BACKENDS_REFERENCE_STREAM_H_
#define BERTH_BACKENDS_REFERENCE_STREAM_H_

#include "backends/reference/indices.h"
#include "base/rng.h"

namespace berth::reference {

// Takes the attributes seed and op_id, or input `at`, a tensor [2], if the call
// has it.
inline RandomStream stream_of(const KernelCall& c, int at, bool stateless) {
  const bool given = c.num_in > at;
  const int64_t seed = given ? index_at(c.in[at], 0) : c.attr<int64_t>("seed");
  const int64_t id = given ? index_at(c.in[at], 1) : c.attr<int64_t>("op_id");
  return {static_cast<uint64_t>(seed), static_cast<uint32_t>(id),
          stateless || given ? 0 : c.context->step()};
}

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_STREAM_H_
