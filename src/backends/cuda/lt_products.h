// LtProducts: products of matrices by cuBLASLt, for one card.
//
// They cover float32 (TF32 with BERTH_TF32=1), float64, bfloat16, float16 (sums
// in float32) and complex numbers, followed by a bias and an activation.
// BERTH_CUDA_PRODUCTS selects among the library's kernels: `auto` times the
// best few once per shape and keeps the choice in $BERTH_CACHE_DIR/cublaslt,
// `first` takes the library's first proposal, `own` bypasses the library.
// Kernels whose bits may vary from run to run are never taken. Where the
// library is missing or refuses, the kernels of backends/gpu run instead, and
// the diagnostic `own-products` reports it once. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_LT_PRODUCTS_H_
#define BERTH_BACKENDS_CUDA_LT_PRODUCTS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "backends/gpu/card.h"

namespace berth::cuda {

class CudaCard;

class LtProducts {
 public:
  // Reads the variables; opens nothing yet. Throws errors::InvalidArgument for
  // invalid values. `card` must outlive it.
  explicit LtProducts(CudaCard& card);
  // The kernels it made must be gone first.
  ~LtProducts();
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  // As Card::product(). Throws what the driver reports.
  std::unique_ptr<gpu::Kernel> make(const gpu::MatrixProduct& product,
                                    size_t* scratch_bytes);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Returns why no card can compute products with the library; "" when cards may.
// Opens the library.
std::string why_no_lt();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_PRODUCTS_H_
