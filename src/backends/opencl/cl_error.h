// Errors of OpenCL calls as exceptions that name the call and the error.

#ifndef BERTH_BACKENDS_OPENCL_CL_ERROR_H_
#define BERTH_BACKENDS_OPENCL_CL_ERROR_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace berth::opencl {

// "CL_OUT_OF_RESOURCES (-5)"
std::string error_name(cl_int error);

// Throws errors::ResourceExhausted when memory ran out, errors::Unavailable
// when the device is gone, else errors::Internal: "clFinish: CL_... (-5)".
[[noreturn]] void raise_error(cl_int error, const char* call);

inline void check(cl_int error, const char* call) {
  if (error != CL_SUCCESS) raise_error(error, call);
}

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_ERROR_H_
