// Used when built without cublasLt.h: our own kernels compute products.

#include "backends/cuda/lt_products.h"

namespace berth::cuda {

struct LtProducts::State {};

LtProducts::LtProducts(CudaCard&) : state_(nullptr) {}
LtProducts::~LtProducts() = default;

std::unique_ptr<gpu::Kernel> LtProducts::make(const gpu::MatrixProduct&,
                                              size_t*) {
  return nullptr;
}

std::string why_no_lt() {
  return "products are by Berth's own kernels: cublasLt.h was not there when "
         "this plug-in was built";
}

}  // namespace berth::cuda
