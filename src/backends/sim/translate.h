// Runs kernels for host memory on the memory of simulated devices.

#ifndef BERTH_BACKENDS_SIM_TRANSLATE_H_
#define BERTH_BACKENDS_SIM_TRANSLATE_H_

#include "backends/sim/sim_memory.h"
#include "op/kernel.h"

namespace berth::sim {

// Runs `kernel` with every address of `call` translated to an accessible one.
// Allocates only for calls of more than 64 operands.
void run_translated(const AddressMap& map, const KernelCall& call,
                    const BoundKernel& kernel);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_TRANSLATE_H_
