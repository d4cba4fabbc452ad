// The kernels that others are compared with: the reference kernels, and plain
// loops for ops whose only kernels call a library.

#ifndef BERTH_CONFORMANCE_ORACLE_ORACLE_H_
#define BERTH_CONFORMANCE_ORACLE_ORACLE_H_

#include "op/kernel.h"

namespace berth::conformance {

// Built at the first call.
const KernelTable& oracle_kernels();

void add_factor(KernelTable& t);
void add_fourier(KernelTable& t);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_ORACLE_ORACLE_H_
