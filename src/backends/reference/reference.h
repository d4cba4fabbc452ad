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
void add_elementwise(KernelTable& t);
void add_compare(KernelTable& t);
void add_reduce(KernelTable& t);
void add_matmul(KernelTable& t);
void add_array(KernelTable& t);
void add_variable(KernelTable& t);
void add_layout(KernelTable& t);
void add_slice(KernelTable& t);
void add_gather(KernelTable& t);
void add_rearrange(KernelTable& t);
void add_shape_ops(KernelTable& t);
void add_scatter(KernelTable& t);
void add_sort(KernelTable& t);
void add_dynamic(KernelTable& t);
void add_random(KernelTable& t);
// Ops that only host devices have: in kernels(), but not for accelerators.
void add_host_only(KernelTable& t);
void add_linalg(KernelTable& t);
void add_ctc(KernelTable& t);
void add_suppression(KernelTable& t);
void add_distributions(KernelTable& t);
void add_host_functions(KernelTable& t);
void add_nn(KernelTable& t);
void add_softmax(KernelTable& t);
void add_conv(KernelTable& t);
void add_pool(KernelTable& t);
void add_norm(KernelTable& t);
void add_attention(KernelTable& t);
void add_layer_norm(KernelTable& t);
void add_training(KernelTable& t);
void add_functions(KernelTable& t);
void add_scan(KernelTable& t);
void add_lstm(KernelTable& t);
void add_complex(KernelTable& t);
void add_widened(KernelTable& t);

// Kernels for text, which only devices with host memory have; not in kernels().
void add_strings(KernelTable& t);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_REFERENCE_H_
