// Runs an op on host arrays with the kernels of one table, past the engine.
//
// No device, no allocator, no cache: what computes is the kernel alone, in
// buffers between sentinels. A composite op runs its decomposition with the
// same table. One thread.

#ifndef BERTH_CONFORMANCE_HOST_RUN_H_
#define BERTH_CONFORMANCE_HOST_RUN_H_

#include <optional>
#include <vector>

#include "conformance/array.h"
#include "conformance/case.h"
#include "op/kernel.h"

namespace berth::conformance {

struct HostCall {
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  // One flag per input; variables are changed in place.
  std::vector<bool> variables = {};
  // Dtypes and shapes of the outputs; from the shape rule when absent.
  std::optional<std::vector<OutSpec>> outputs = {};
  ThreadPool* pool = nullptr;
  int slices = 1;
  int64_t slice_origin = 0;
  const Shape* unsplit = nullptr;
  // Runs the kernel once more: then it may not ask the system's allocator.
  bool check_warm_run = false;
};

// Returns a call of a case.
HostCall host_call(const Case& c, const AttrsRef& attrs);

// Returns the outputs. Throws errors::Unimplemented when the table has no
// kernel and there is no decomposition, errors::Internal when a kernel writes
// outside its buffers or allocates where it may not.
Arrays run_on_host(const KernelTable& table, const HostCall& call, Arrays* in);

// Returns what a shape rule sees of the inputs; `in` must outlive it.
std::vector<SpecView> specs_of(const HostCall& call, const Arrays& in);
SpecView spec_of(const HostCall& call, size_t i, DType dtype,
                 const Shape& shape);

// Returns outputs of a call by the shape rule.
std::vector<OutSpec> infer_on_host(const HostCall& call, const Arrays& in);

// Returns the dtype that selects the kernel of a call.
DType kernel_dtype_of(const HostCall& call, const Arrays& in);

// Outputs, then the variables after the call.
struct HostResult {
  Arrays outputs;
  Arrays inputs;
};

// Runs a case with the reference kernels on `in`, in double precision where
// the op takes it: the oracle. Outputs may then be float64 instead of float32.
HostResult run_oracle(const Case& c, DType dtype, const Arrays& in);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_HOST_RUN_H_
