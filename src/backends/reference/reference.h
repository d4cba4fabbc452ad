// The reference kernels: plain loops for every primitive op.
//
// A library of kernels and the oracle of the suites; other backends append it
// after their own. Single-threaded, re-entrant.

#ifndef BERTH_BACKENDS_REFERENCE_REFERENCE_H_
#define BERTH_BACKENDS_REFERENCE_REFERENCE_H_

#include "op/kernel.h"

namespace berth::reference {

// Returns the table of all reference kernels. It is built at the first call.
const KernelTable& kernels();

// The families; each file of this folder adds one.
using AddKernels = void(KernelTable& t);
AddKernels add_elementwise, add_compare, add_reduce, add_matmul, add_array,
    add_variable, add_layout, add_slice, add_gather, add_rearrange,
    add_shape_ops, add_scatter, add_sort, add_dynamic, add_random, add_nn,
    add_softmax, add_conv, add_pool, add_norm, add_attention, add_layer_norm,
    add_training, add_functions, add_scan, add_lstm, add_complex, add_widened;
// Ops that only host devices have: in kernels(), but not for accelerators.
AddKernels add_host_only, add_linalg, add_ctc, add_suppression,
    add_distributions, add_host_functions;

// Kernels for text, which only devices with host memory have; not in kernels().
void add_strings(KernelTable& t);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_REFERENCE_H_
