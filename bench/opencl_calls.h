// Counts what a program and the OpenCL plug-in do between the driver's calls:
// include it in exactly one source file of a program that exports its symbols.
// The plug-in then finds these calls first; each passes on to the driver.
// Allocations of a thread count unless it is inside such a call.

#ifndef BERTH_BENCH_OPENCL_CALLS_H_
#define BERTH_BENCH_OPENCL_CALLS_H_

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace berth_bench {

inline thread_local int t_in_driver = 0;
inline thread_local long t_allocations = 0;
inline std::atomic<long> g_programs_built{0};

struct InDriver {
  InDriver() { ++t_in_driver; }
  ~InDriver() { --t_in_driver; }
};

inline void count_allocation() {
  if (t_in_driver == 0) ++t_allocations;
}

}  // namespace berth_bench

#define BERTH_PASS_ON(name, parameters, arguments)                            \
  extern "C" cl_int name parameters {                                         \
    using Call = cl_int(*) parameters;                                        \
    static const auto call = reinterpret_cast<Call>(dlsym(RTLD_NEXT, #name)); \
    const berth_bench::InDriver inside;                                       \
    return call arguments;                                                    \
  }

BERTH_PASS_ON(clEnqueueNDRangeKernel,
              (cl_command_queue q, cl_kernel k, cl_uint n, const size_t* o,
               const size_t* g, const size_t* l, cl_uint w, const cl_event* e,
               cl_event* out),
              (q, k, n, o, g, l, w, e, out))
BERTH_PASS_ON(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void* v),
              (k, i, n, v))
BERTH_PASS_ON(clEnqueueReadBuffer,
              (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n,
               void* p, cl_uint w, const cl_event* e, cl_event* out),
              (q, m, b, o, n, p, w, e, out))
BERTH_PASS_ON(clEnqueueWriteBuffer,
              (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n,
               const void* p, cl_uint w, const cl_event* e, cl_event* out),
              (q, m, b, o, n, p, w, e, out))
BERTH_PASS_ON(clEnqueueCopyBuffer,
              (cl_command_queue q, cl_mem a, cl_mem b, size_t i, size_t o,
               size_t n, cl_uint w, const cl_event* e, cl_event* out),
              (q, a, b, i, o, n, w, e, out))
BERTH_PASS_ON(clEnqueueFillBuffer,
              (cl_command_queue q, cl_mem m, const void* p, size_t s, size_t o,
               size_t n, cl_uint w, const cl_event* e, cl_event* out),
              (q, m, p, s, o, n, w, e, out))
BERTH_PASS_ON(clEnqueueBarrierWithWaitList,
              (cl_command_queue q, cl_uint w, const cl_event* e, cl_event* out),
              (q, w, e, out))
BERTH_PASS_ON(clEnqueueMarkerWithWaitList,
              (cl_command_queue q, cl_uint w, const cl_event* e, cl_event* out),
              (q, w, e, out))
BERTH_PASS_ON(clGetEventProfilingInfo,
              (cl_event e, cl_profiling_info i, size_t n, void* p, size_t* out),
              (e, i, n, p, out))
BERTH_PASS_ON(clGetEventInfo,
              (cl_event e, cl_event_info i, size_t n, void* p, size_t* out),
              (e, i, n, p, out))
BERTH_PASS_ON(clWaitForEvents, (cl_uint n, const cl_event* e), (n, e))
BERTH_PASS_ON(clRetainEvent, (cl_event e), (e))
BERTH_PASS_ON(clReleaseEvent, (cl_event e), (e))
BERTH_PASS_ON(clFlush, (cl_command_queue q), (q))
BERTH_PASS_ON(clFinish, (cl_command_queue q), (q))

extern "C" cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id* d,
                                 const char* options,
                                 void (*then)(cl_program, void*), void* data) {
  using Call = cl_int (*)(cl_program, cl_uint, const cl_device_id*, const char*,
                          void (*)(cl_program, void*), void*);
  static const auto call =
      reinterpret_cast<Call>(dlsym(RTLD_NEXT, "clBuildProgram"));
  ++berth_bench::g_programs_built;
  const berth_bench::InDriver inside;
  return call(p, n, d, options, then, data);
}

// glibc's own entry points, under the names it keeps for interposers.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  berth_bench::count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  berth_bench::count_allocation();
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, size_t bytes) {
  berth_bench::count_allocation();
  return __libc_realloc(p, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  berth_bench::count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  berth_bench::count_allocation();
  return __libc_memalign(alignment, bytes);
}
}

#endif  // BERTH_BENCH_OPENCL_CALLS_H_
