// The programs that the kernels of backends/gpu are made of. Tests only.

#ifndef BERTH_CONFORMANCE_GPU_PROGRAMS_COLLECTED_H_
#define BERTH_CONFORMANCE_GPU_PROGRAMS_COLLECTED_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/library_op.h"
#include "op/attrs.h"
#include "op/infer.h"

namespace berth::conformance {

// What is known of a program.
struct CollectedProgram {
  std::set<std::string> kernels;  // that were asked for
  std::string first;              // the case that did so first
};

// Text -> program, of every case of the conformance suite and each kernel that
// takes it, on a card like NVIDIA's. Made at the first call.
const std::map<std::string, CollectedProgram>& collected_programs();

// What a card's library was asked for, by the case that asked; it had nothing.
const std::map<std::string, gpu::LibraryOp>& collected_library_ops();
// What a card's library is asked for this call; nothing where it is not asked.
std::optional<gpu::LibraryOp> asked_of_library(const char* op,
                                               const AttrsRef& attrs,
                                               const std::vector<SpecView>& in);

// What could not be prepared: "MatMul/nn/float32: ...".
const std::set<std::string>& preparation_failures();

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_GPU_PROGRAMS_COLLECTED_H_
