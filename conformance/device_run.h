// Runs an op on the device under test, through the seam, as users do.
//
// One thread.

#ifndef BERTH_CONFORMANCE_DEVICE_RUN_H_
#define BERTH_CONFORMANCE_DEVICE_RUN_H_

#include <string>
#include <vector>

#include "berth/tensor.h"
#include "conformance/array.h"
#include "conformance/case.h"
#include "device/device.h"

namespace berth::conformance {

// Chooses the device under test: `name`, else /GPU:0 when BERTH_SIM or
// BERTH_OPENCL=all is set, else /CPU:0. Throws errors::InvalidArgument when
// there is no such device.
void choose_device(const std::string& name);
Device& device_under_test();
// The kernels that run there, when they work on host memory too; else null.
const KernelTable* kernels_on_host();

// Copies an array to the device; the other way.
Tensor to_device(const Array& a);
Tensor to_variable(const Array& a);
Array to_host(const Tensor& t);
// The value of a variable.
Array value_of(const Tensor& handle);

// Inputs of a case on the device.
Tensors to_device(const Case& c, const Arrays& in);

// Calls the op under a scope of the device.
Tensors call_on_device(const OpDef& op, const Tensors& in, const Attrs* attrs);

// Fills a block of the size of each output with garbage and frees it, so that
// the next outputs do not start as zeros.
void litter(const std::vector<OutSpec>& outputs);

// True when the device is an accelerator without any kernel of the op.
bool accelerator_lacks(const OpDef& op);

// True when the device, or a decomposition, can compute this call.
bool device_can_run(const OpDef& op, DType dtype);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_DEVICE_RUN_H_
