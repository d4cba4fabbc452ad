// What is done with results of eager ops on request: the checks of
// debugging::enable_check_numerics(), and checksums. Thread-safe.

#ifndef BERTH_EAGER_CHECK_NUMERICS_H_
#define BERTH_EAGER_CHECK_NUMERICS_H_

#include <span>

#include "berth/tensor.h"
#include "op/op_def.h"

namespace berth {

// Throws errors::InvalidArgument if a float result of `op` has one: how many,
// and from what to what its inputs go. Waits for the results.
void check_numerics(const OpDef& op, std::span<const Tensor* const> in,
                    std::span<const Tensor> out);

// Adds their checksums and ranges to the timeline. Waits for the results.
void record_checksums(const OpDef& op, std::span<const Tensor> out);

}  // namespace berth

#endif  // BERTH_EAGER_CHECK_NUMERICS_H_
