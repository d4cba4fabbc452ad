// run_in_parts: a large eager call of a serial kernel, split over the cores.
//
// Cuts along the first axis by the op's split rule, so that the parts are
// dense and no sums are needed; the bits are those of the whole call.

#ifndef BERTH_EAGER_PARTS_H_
#define BERTH_EAGER_PARTS_H_

#include "device/device.h"
#include "op/kernel.h"

namespace berth {

// Computes `call`, whose operands are described by `c`, in parts on the pool
// of `device`. False, and nothing done: it is not worth a fork or cannot be
// cut so. Throws what the kernel throws.
bool run_in_parts(Device& device, DirectKernel kernel, const KernelCall& call,
                  const InferContext& c);

}  // namespace berth

#endif  // BERTH_EAGER_PARTS_H_
