// Products of matrices by CLBlast, which is opened when first needed.
//
// BERTH_OPENCL_PRODUCTS selects the implementation: `auto` (the default) uses
// CLBlast on GPUs where it is installed (libclblast.so.1), `clblast` on
// processors, too; `own`: the kernels of backends/gpu. Thread-safe.

#ifndef BERTH_BACKENDS_OPENCL_CL_PRODUCTS_H_
#define BERTH_BACKENDS_OPENCL_CL_PRODUCTS_H_

#include <memory>

#include "backends/gpu/card.h"

namespace berth::opencl {

enum class Products { kAuto, kOwn, kClblast };

// Returns the environment's choice. Throws errors::InvalidArgument for others.
Products asked_products();

// True when CLBlast is installed.
bool has_clblast();

// Returns a product by CLBlast; null for dtypes that it lacks, or when it is
// not installed. `has_f16`: the card computes in float16.
std::unique_ptr<gpu::Kernel> clblast_product(const gpu::MatrixProduct& product,
                                             bool has_f16);

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_PRODUCTS_H_
