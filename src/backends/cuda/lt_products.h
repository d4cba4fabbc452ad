// LtProducts: products of matrices by cuBLASLt, for one card.
//
// float32 (TF32 with BERTH_TF32=1), float64, bfloat16, float16 (sums in
// float32) and complex numbers, with a bias and an activation behind them.
// BERTH_CUDA_PRODUCTS says who chooses among the library's kernels: `auto`
// times the best few once for each shape and keeps the choice in
// $BERTH_CACHE_DIR/cublaslt, `first` takes what the library proposes, `own`
// does without the library. Kernels whose bits may vary from run to run are
// never taken. Where the library is missing or refuses, the kernels of
// backends/gpu run instead, and the diagnostic `own-products` says so once.
// Thread-safe.

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
  // Reads the variables; opens nothing yet. Throws errors::InvalidArgument
  // for values that they cannot have. `card` outlives it.
  explicit LtProducts(CudaCard& card);
  // Kernels that it made are gone before it.
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

// Why no card has products by the library; "" when cards may have them. Opens
// the library.
std::string why_no_lt();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_PRODUCTS_H_
