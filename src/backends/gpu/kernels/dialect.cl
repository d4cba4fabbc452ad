// The dialect that kernels are written in: one text for OpenCL C 1.2, for
// NVRTC and for a C++ compiler. Words that those spell differently stand here.
//
// Rules: loops around a BARRIER run equally often in every item of a group; no
// atomic operation on LOCAL memory; no double outside HAS_F64; a*b+c is two
// roundings, F32_MADD one.

#if defined(__OPENCL_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#if HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;

#define FN static
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define KERNEL(size, name) \
  __kernel __attribute__((reqd_work_group_size(size, 1, 1))) void name
// Parameters and, first thing in a kernel, the pointers that they stand for:
// memory is a buffer and an offset in bytes.
#define BUF(type, x) __global type *x##_buffer, const u64 x##_at
#define AT(type, x)          \
  __global type *x =         \
      (__global type *)((__global u8 *)x##_buffer + x##_at)
#define LOCAL_ARRAY(type, name, n) __local type name[n]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LID ((i32)get_local_id(0))
#define GROUP ((i64)get_group_id(0))
#define GROUP_Y ((i64)get_group_id(1))
#define GROUP_Z ((i64)get_group_id(2))
#define GROUPS ((i64)get_num_groups(0))
#define ITEM ((i64)get_global_id(0))
#define ATOMIC_CAS(p, expected, value) atomic_cmpxchg(p, expected, value)
#define AS_I32(x) as_int(x)
#define AS_U32(x) as_uint(x)
#define AS_F32(x) as_float(x)
#define F32_MADD(a, b, c) fma((f32)(a), (f32)(b), (f32)(c))
#define F32_SQRT(x) sqrt((f32)(x))
#define F32_FLOOR(x) floor((f32)(x))
#define F32_RINT(x) rint((f32)(x))
#define MUL_HI_U32(a, b) mul_hi((u32)(a), (u32)(b))
#define MUL_HI_U64(a, b) mul_hi((u64)(a), (u64)(b))
typedef float f32;
#if HAS_F64
typedef double f64;
#define AS_I64(x) as_long(x)
#define AS_F64(x) as_double(x)
#define F64_MADD(a, b, c) fma((f64)(a), (f64)(b), (f64)(c))
#define F64_SQRT(x) sqrt((f64)(x))
#define F64_FLOOR(x) floor((f64)(x))
#define F64_RINT(x) rint((f64)(x))
#endif

#else  // CUDA, or C++ with the same words (tests)

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#if defined(__CUDACC__)
#pragma nv_diag_suppress 177
#define FN static __device__ __forceinline__
#define GLOBAL
#define LOCAL
#define CONSTANT static __device__ const
#define KERNEL(size, name) \
  extern "C" __global__ void __launch_bounds__(size) name
#define LOCAL_ARRAY(type, name, n) __shared__ type name[n]
#define BARRIER() __syncthreads()
#define LID ((i32)threadIdx.x)
#define GROUP ((i64)blockIdx.x)
#define GROUP_Y ((i64)blockIdx.y)
#define GROUP_Z ((i64)blockIdx.z)
#define GROUPS ((i64)gridDim.x)
#define ITEM ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define ATOMIC_CAS(p, expected, value) atomicCAS((i32 *)(p), expected, value)
#define AS_I32(x) __float_as_int(x)
#define AS_U32(x) __float_as_uint(x)
#define AS_F32(x) __int_as_float((i32)(x))
#define AS_I64(x) __double_as_longlong(x)
#define AS_F64(x) __longlong_as_double((i64)(x))
#define F32_MADD(a, b, c) __fmaf_rn(a, b, c)
#define F64_MADD(a, b, c) __fma_rn(a, b, c)
#define F32_SQRT(x) __fsqrt_rn(x)
#define F64_SQRT(x) __dsqrt_rn(x)
#define F32_FLOOR(x) floorf(x)
#define F64_FLOOR(x) floor(x)
#define F32_RINT(x) rintf(x)
#define F64_RINT(x) rint(x)
#define MUL_HI_U32(a, b) __umulhi(a, b)
#define MUL_HI_U64(a, b) __umul64hi(a, b)
#else
#include "host_words.h"
#endif
#define BUF(type, x) type *x
#define AT(type, x)

#endif

// Items of a group: of kernels of one element per item, and of those whose
// items work together.
#define FLAT_SIZE 256
#ifndef GROUP_SIZE
#define GROUP_SIZE 256
#endif

// What went wrong with a value that only the device knows: the first one is
// kept, as (code, three numbers); the stream reports it (gpu/recipe.h).
FN void report(GLOBAL i64 *fault, i32 code, i64 a, i64 b, i64 c) {
  if (ATOMIC_CAS((GLOBAL i32 *)fault, 0, code) == 0) {
    fault[1] = a;
    fault[2] = b;
    fault[3] = c;
  }
}
