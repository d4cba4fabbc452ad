// Kernels of narrow dtypes by way of wider ones: bfloat16 and float16 are
// computed in float32, int8, int16 and uint16 in int32, uint32 in int64,
// complex64 in complex128.
//
// Operands are converted, the kernel of the wide dtype runs, and results are
// rounded once (integers wrap). So an op of the catalogue takes a narrow dtype
// as soon as its schema allows it. Re-entrant.

#ifndef BERTH_BACKENDS_REFERENCE_WIDENED_H_
#define BERTH_BACKENDS_REFERENCE_WIDENED_H_

#include "op/kernel.h"

namespace berth::reference {

// Returns the dtype in which `dtype` is computed; kInvalid for those that are
// computed directly.
constexpr DType wider(DType dtype) {
  switch (dtype) {
    case bfloat16:
    case float16:
      return float32;
    case int8:
    case int16:
    case uint16:
      return int32;
    case uint32:
      return int64;
    case complex64:
      return complex128;
    default:
      return DType::kInvalid;
  }
}

// Runs a kernel with each operand of dtype `narrow` in its wider one.
void run_widened(const KernelCall& c, DType narrow, DirectKernel kernel);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_WIDENED_H_
