// The families of cases; each file of this folder adds one.

#ifndef BERTH_CONFORMANCE_OPS_FAMILIES_H_
#define BERTH_CONFORMANCE_OPS_FAMILIES_H_

#include "conformance/case.h"

namespace berth::conformance {

void add_elementwise_cases(Cases& cases);
void add_compare_cases(Cases& cases);
void add_reduce_cases(Cases& cases);
void add_matmul_cases(Cases& cases);
void add_array_cases(Cases& cases);

inline void add_all_cases(Cases& cases) {
  add_elementwise_cases(cases);
  add_compare_cases(cases);
  add_reduce_cases(cases);
  add_matmul_cases(cases);
  add_array_cases(cases);
}

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_OPS_FAMILIES_H_
