// Chooses the cuBLASLt kernel that computes a product.
//
// The first one that the heuristics propose is not always the fastest. So the
// best few are timed on the card, with separate memory, once for each shape.
// The choice is kept in memory and on disk by the library's version, the card
// and the product. Small products take the first. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_LT_CHOICE_H_
#define BERTH_BACKENDS_CUDA_LT_CHOICE_H_

#include <map>
#include <mutex>
#include <string>

#include "backends/cuda/cubin_cache.h"
#include "backends/cuda/cuda_card.h"
#include "backends/cuda/lt_problem.h"

namespace berth::cuda {

struct LtChoice {
  cublasLtMatmulAlgo_t algorithm = {};
  size_t scratch_bytes = 0;
};

class LtChoices {
 public:
  // With `timed` false, takes the heuristics' first.
  LtChoices(CudaCard& card, const LtLibrary& lt, cublasLtHandle_t handle,
            bool timed, bool tf32);

  // Throws LtRefusal when the library has no kernel for the product.
  LtChoice choose(const LtProblem& problem);

 private:
  std::string key_of(const gpu::MatrixProduct& product) const;
  bool find_kept(const LtProblem& problem, const std::string& key,
                 LtChoice* choice);
  LtChoice make(const LtProblem& problem, bool* settled);

  CudaCard& card_;
  const LtLibrary& lt_;
  const cublasLtHandle_t handle_;
  const bool timed_, tf32_;
  const size_t most_scratch_;
  const CubinCache disk_;
  std::mutex mutex_;
  std::map<std::string, LtChoice> made_;
  int num_timed_ = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_CHOICE_H_
