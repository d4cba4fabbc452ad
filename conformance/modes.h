// The modes; each reads the cases and the registry, nothing else.
//
// test, grad, grad2, split and slices become tests of one case and dtype; perf
// and support print. One thread.

#ifndef BERTH_CONFORMANCE_MODES_H_
#define BERTH_CONFORMANCE_MODES_H_

#include <functional>
#include <string>
#include <vector>

#include "conformance/case.h"

namespace berth::conformance {

inline constexpr DType kRunTypes[] = {
    float32, float64,   int32,      int64, uint8,  bool_,  int8,  bfloat16,
    float16, complex64, complex128, int16, uint16, uint32, uint64};

// The dtypes a case runs with.
std::vector<DType> dtypes_of(const Case& c);

// Whether a mode applies to a case by the properties of its op (an op that is
// not differentiable has no gradient to check).
bool applies(Mode mode, const Case& c, DType dtype);

// The check of one mode; fails through gtest.
void test_case(const Case& c, DType dtype);
void grad_case(const Case& c, DType dtype);
void grad2_case(const Case& c, DType dtype);
void split_case(const Case& c, DType dtype);
void slices_case(const Case& c, DType dtype);

// True when the op has a split rule that cuts something of this case.
bool can_split(const Case& c, DType dtype);

// Registers every test with gtest.
void register_modes();

// Prints one JSON line per case marked perf_only; `op` empty: of all ops.
int run_perf(const std::string& op);
// Prints what supports what. Returns 1 when an op lacks a case.
int run_support(bool markdown);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_MODES_H_
